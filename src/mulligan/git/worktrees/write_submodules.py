"""Write the files of fetched submodules into a worktree, and take them out again (WORKTREE-5)."""

import os
from collections.abc import Sequence
from pathlib import Path

from mulligan.git.repository import Repository
from mulligan.git.worktrees.fetch_submodules import Submodule
from mulligan.git.worktrees.reset import (
    LIST_INDEX,
    RESET_TIMEOUT,
    IssueWorktree,
    links_in,
    submodule_directory,
)
from mulligan.sandbox.home import clear, copy

TREE_LINK = b"160000 commit "


def write_submodules(
    site: IssueWorktree, submodules: Sequence[Submodule], sha: str, left: Path | None = None
) -> None:
    """Write the files of submodules into the worktree, which was just reset to a commit.

    The directories are empty. A submodule that the commit does not link is skipped, whatever is
    there. `left` is a tree whose files, which setup commands left in submodules, come first.
    """
    linked = _linked(site, [each.path for each in submodules], sha)
    written = set[str]()
    for each in submodules:
        is_inner = any(each.path.startswith(f"{path}/") for path in written)
        directory = submodule_directory(site.paths.tree, each.path)
        if directory is None or not (is_inner or each.path in linked):
            continue
        if left and not is_inner and (found := submodule_directory(left, each.path)):
            copy(found, directory, site.mirror.outer)
        written.add(each.path)
        git = each.git(site.mirror.outer, directory, _new_index(site))
        git.read("read-tree", each.sha)
        # It removes links and directories in the way, and never writes through a link.
        git.run("checkout-index", "--quiet", "--force", "--all", timeout=RESET_TIMEOUT)
        _remove_links_out(git, directory)


def _linked(site: IssueWorktree, paths: Sequence[str], sha: str) -> set[str]:
    """Return the paths that are submodules in a commit of the repository itself."""
    if not paths:
        return set()
    listed = site.git.read("--literal-pathspecs", "ls-tree", "-z", "--full-tree", sha, "--", *paths)
    entries = (entry.partition(b"\t") for entry in listed.split(b"\0"))
    return {os.fsdecode(path) for about, _, path in entries if about.startswith(TREE_LINK)}


def _new_index(site: IssueWorktree) -> Path:
    index = site.paths.git_dir / "submodule-index"
    index.unlink(missing_ok=True)
    return index


def _remove_links_out(git: Repository, directory: Path) -> None:
    """Remove the links that lead out of the submodule."""
    root = os.path.realpath(directory)
    for path in links_in(git.read(*LIST_INDEX).split(b"\0")):
        place = Path(root, path)
        target = os.path.realpath(place)
        if place.is_symlink() and os.path.commonpath((root, target)) != root:
            place.unlink()


def remove_tracked(site: IssueWorktree, submodules: Sequence[Submodule], tree: Path) -> set[str]:
    """Keep only what git ignores in the submodules of a tree that setup commands left.

    Return the paths of the submodules that this was done for.
    """
    done = set[str]()
    for each in reversed(submodules):
        directory = submodule_directory(tree, each.path)
        if directory is None:
            continue
        if os.path.lexists(directory / ".git"):
            clear(directory / ".git", site.mirror.outer)
        git = each.git(site.mirror.outer, directory, _new_index(site))
        git.read("read-tree", each.sha)
        git.run("clean", "-q", "-ffd", timeout=RESET_TIMEOUT)
        empty = git.line("hash-object", "-t", "tree", os.devnull)
        git.run("read-tree", "--reset", "-u", empty, timeout=RESET_TIMEOUT)
        done.add(each.path)
    return done
