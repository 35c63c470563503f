"""Make a worktree equal a commit, whatever an agent did to it, or recreate it (WORKTREE-1).

Resetting in place is ten times faster than a new checkout (measured on 11,000 files). The result is
verified.
"""

import os
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from mulligan.domain.errors import UnavailableError
from mulligan.git.repository import Repository
from mulligan.git.worktrees.files import TreeCleaner
from mulligan.git.worktrees.mirror import Mirror
from mulligan.git.worktrees.naming import WorktreePaths

RESET_TIMEOUT = timedelta(minutes=10)
"""Time limit of a reset or clean; 91,000 files take one second."""
GITLINK = b"H 160000 "
HEAD_LINE = b"# branch.oid "


@dataclass(frozen=True, slots=True)
class IssueWorktree:
    """The worktree of one issue, read with Mulligan's own git directory and index."""

    paths: WorktreePaths
    mirror: Mirror
    branch: str

    @property
    def git(self) -> Repository:
        """The worktree as a repository; the `.git` in it is never read."""
        return Repository(
            self.mirror.name,
            self.paths.git_dir,
            self.mirror.outer,
            work_tree=self.paths.tree,
            is_limited=True,
        )

    @property
    def cleaner(self) -> TreeCleaner:
        """The cleaner for this worktree's directories."""
        return self.mirror.cleaner


def reset_worktree(
    site: IssueWorktree, sha: str, *, keep_ignored: bool, is_searched: bool = False
) -> bool:
    """Make the worktree equal a commit; return whether it had to be recreated.

    With `is_searched`, `TreeCleaner.clean` has searched it since the last process of others ran
    there. UnavailableError if even a new one does not equal the commit.
    """
    known = site.paths.git_dir.exists() or site.paths.tree.is_symlink() or site.paths.tree.exists()
    if known and not _fault_after_reset(
        site, sha, keep_ignored=keep_ignored, is_searched=is_searched
    ):
        return False
    _recreate(site, sha)
    wrong = _in_place(site, sha, keep_ignored=keep_ignored)
    if wrong:
        message = (
            f"The worktree at {site.paths.tree} could not be reset ({wrong}); "
            "check workspace.root and its disk."
        )
        raise UnavailableError(message)
    return known


def _fault_after_reset(
    site: IssueWorktree, sha: str, *, keep_ignored: bool, is_searched: bool
) -> str:
    """Reset in place; return the difference or error that remains, or an empty string."""
    tree = site.paths.tree
    if tree.is_symlink() or not tree.is_dir() or not site.paths.git_dir.is_dir():
        return "it is not a worktree"
    try:
        return _in_place(site, sha, keep_ignored=keep_ignored, is_searched=is_searched)
    except (UnavailableError, OSError) as error:
        return str(error)


def _recreate(site: IssueWorktree, sha: str) -> None:
    # If its old entry existed, git would name the worktree `issue-121` instead of `issue-12`.
    for old in (site.paths.tree, site.paths.git_dir):
        site.cleaner.set_aside(old, site.paths.name)
    site.mirror.git.run(
        *("worktree", "add", "-q", "-f", "--detach", "--no-checkout"),
        *("--", str(site.paths.tree), sha),
        timeout=RESET_TIMEOUT,
    )


def _in_place(
    site: IssueWorktree, sha: str, *, keep_ignored: bool, is_searched: bool = False
) -> str:
    tree = site.paths.tree
    if not is_searched and (left := site.cleaner.clean(tree)):
        return left
    if keep_ignored:
        site.cleaner.remove(tree, site.mirror.litter)
    _repair_git_directory(site)
    if not keep_ignored and _is_at(site, sha):
        return ""
    _reset(site, sha)
    index = _read_index(site)
    if _hides_changes(index):
        _index_file(site).unlink(missing_ok=True)
        _reset(site, sha)
        index = _read_index(site)
    untracked = _clean(site, keep_ignored=keep_ignored)
    _empty_submodules(site, index)
    head, changes = _status(site, untracked)
    if unconverted := _modified_only(changes):
        site.mirror.disable_conversion(unconverted)
        _reset(site, sha)
        head, changes = _status(site, untracked)
    if head != sha:
        return f"HEAD is {head}"
    return f"git status shows {changes[0].decode(errors='replace')!r}" if changes else ""


def _is_at(site: IssueWorktree, sha: str) -> bool:
    """Remove untracked files, and return whether the worktree then equals the commit.

    It does right after its capture. A reset would write no file, but takes half as long as this.
    """
    branch = site.mirror.paths.mirror / f"refs/heads/{site.branch}"
    if not branch.is_file() or branch.read_text().strip() != sha:
        return False
    # Git reports no empty directories.
    untracked = _clean(site, keep_ignored=False)
    listed = site.git.query("ls-files", "-v", "-s", "-z")
    index = listed.output.split(b"\0")
    has_submodules = any(entry.startswith(GITLINK) for entry in index)
    if listed.exit_code or has_submodules or _hides_changes(index):
        return False
    return _status(site, untracked) == (sha, [])


def _repair_git_directory(site: IssueWorktree) -> None:
    """Delete locks of a killed git, and set HEAD to the issue's branch."""
    ref, admin = f"refs/heads/{site.branch}", site.paths.git_dir
    # No other process works here while the issue's lock is held.
    for lock in (*admin.glob("*.lock"), site.mirror.paths.mirror / f"{ref}.lock"):
        lock.unlink(missing_ok=True)
    head = f"ref: {ref}\n".encode()
    if (admin / "HEAD").read_bytes() != head:
        site.git.read("symbolic-ref", "HEAD", ref)


def _reset(site: IssueWorktree, sha: str) -> None:
    """Set branch, index and files to a commit; without the index if git cannot read that."""
    command = ("reset", "-q", "--hard", sha)
    if site.git.attempt(*command, timeout=RESET_TIMEOUT).exit_code:
        drop_bad_index(site)
        site.git.run(*command, timeout=RESET_TIMEOUT)


def drop_bad_index(site: IssueWorktree) -> None:
    """Delete Mulligan's own index if it cannot be read or hides changes."""
    listed = site.git.query("ls-files", "-v", "-z")
    if listed.exit_code or _hides_changes(listed.output.split(b"\0")):
        _index_file(site).unlink(missing_ok=True)


def _index_file(site: IssueWorktree) -> Path:
    return site.paths.git_dir / "index"


def _read_index(site: IssueWorktree) -> list[bytes]:
    """List the index: `H 100644 <blob> 0`, a tab and the path."""
    return site.git.read("ls-files", "-v", "-s", "-z").split(b"\0")


def _hides_changes(index: list[bytes]) -> bool:
    """Return whether git would not see changes to some files, by the first letters.

    Lower case is assume-unchanged, S is skip-worktree.
    """
    return not {entry[:1] for entry in index if entry} <= {b"H", b"M"}


def _clean(site: IssueWorktree, *, keep_ignored: bool) -> tuple[str, str]:
    """Remove untracked files; return the options with which `git status` looks for some left.

    None are left if git removed all that it found. So `git status` need not search the tree again.
    """
    also = () if keep_ignored else ("-x",)
    cleaned = site.git.attempt("clean", "-q", "-ff", "-d", *also, timeout=RESET_TIMEOUT)
    if not cleaned.exit_code:
        return "--untracked-files=no", "--ignored=no"
    return "--untracked-files=normal", f"--ignored={'no' if keep_ignored else 'traditional'}"


def _empty_submodules(site: IssueWorktree, index: list[bytes]) -> None:
    """Empty the directories of submodules (WORKTREE-5), which git itself never reads."""
    root = Path(os.path.realpath(site.paths.tree))
    for entry in index:
        if not entry.startswith(GITLINK):
            continue
        place = root / entry.partition(b"\t")[2].decode(errors="surrogateescape")
        if os.path.realpath(place) == str(place) and place.is_dir() and any(place.iterdir()):
            site.cleaner.set_aside(place, site.paths.name)
            place.mkdir()


def _status(site: IssueWorktree, untracked: tuple[str, str]) -> tuple[str, list[bytes]]:
    """Read the commit of HEAD, and what differs between HEAD, index and files."""
    status = site.git.read(
        *("status", "--porcelain=v2", "--branch", "-z", *untracked),
        *("--no-renames", "--ignore-submodules=all"),
    )
    lines = [line for line in status.split(b"\0") if line]
    heads = [line.removeprefix(HEAD_LINE) for line in lines if line.startswith(HEAD_LINE)]
    return heads[0].decode(), [line for line in lines if not line.startswith(b"# ")]


def _modified_only(status: list[bytes]) -> list[bytes]:
    """Return the files that git reports as modified right after it wrote them, if that is all.

    The repository has such files with line endings that its own attributes forbid.
    """
    only = all(entry.startswith(b"1 .M ") for entry in status)
    return [entry.split(b" ", 8)[8] for entry in status] if only else []
