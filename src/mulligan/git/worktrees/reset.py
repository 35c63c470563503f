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
GITLINK = b"160000 "


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


def reset_worktree(site: IssueWorktree, sha: str, *, keep_ignored: bool) -> bool:
    """Make the worktree equal a commit; return whether it had to be recreated.

    UnavailableError if even a new one does not equal it.
    """
    known = site.paths.git_dir.exists() or site.paths.tree.is_symlink() or site.paths.tree.exists()
    if known and not _fault_after_reset(site, sha, keep_ignored=keep_ignored):
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


def _fault_after_reset(site: IssueWorktree, sha: str, *, keep_ignored: bool) -> str:
    """Reset in place; return the difference or error that remains, or an empty string."""
    tree = site.paths.tree
    if tree.is_symlink() or not tree.is_dir() or not site.paths.git_dir.is_dir():
        return "it is not a worktree"
    try:
        return _in_place(site, sha, keep_ignored=keep_ignored)
    except (UnavailableError, OSError) as error:
        return str(error)


def _recreate(site: IssueWorktree, sha: str) -> None:
    # If its old entry existed, git would name the worktree `issue-121` instead of `issue-12`.
    for old in (site.paths.tree, site.paths.git_dir):
        site.cleaner.set_aside(old, site.paths.name)
    site.mirror.git.run(
        *("worktree", "add", "-q", "-f", "--detach", "--no-checkout"),
        *("--", str(site.paths.tree), sha),
        patience=RESET_TIMEOUT,
    )


def _in_place(site: IssueWorktree, sha: str, *, keep_ignored: bool) -> str:
    tree = site.paths.tree
    if left := site.cleaner.clean(tree):
        return left
    if keep_ignored:
        site.cleaner.remove(tree, site.mirror.litter)
    _repair_git_directory(site)
    _reset(site, sha)
    _clean(site, keep_ignored=keep_ignored)
    _empty_submodules(site)
    status = _status(site, keep_ignored=keep_ignored)
    if unconverted := _modified_only(status):
        site.mirror.disable_conversion(unconverted)
        _reset(site, sha)
        status = _status(site, keep_ignored=keep_ignored)
    return _difference(site, sha, status)


def _repair_git_directory(site: IssueWorktree) -> None:
    """Delete locks of a killed git, and set HEAD to the issue's branch."""
    ref, admin = f"refs/heads/{site.branch}", site.paths.git_dir
    # No other process works here while the issue's lock is held.
    for lock in (*admin.glob("*.lock"), site.mirror.paths.mirror / f"{ref}.lock"):
        lock.unlink(missing_ok=True)
    drop_bad_index(site)
    head = f"ref: {ref}\n".encode()
    if (admin / "HEAD").read_bytes() != head:
        site.git.read("symbolic-ref", "HEAD", ref)


def _reset(site: IssueWorktree, sha: str) -> None:
    """Set branch, index and files to a commit."""
    site.git.run("reset", "-q", "--hard", sha, patience=RESET_TIMEOUT)


def drop_bad_index(site: IssueWorktree) -> None:
    """Delete Mulligan's own index if it cannot be read or hides changes."""
    listed = site.git.query("ls-files", "-v", "-z")
    tags = {entry[:1] for entry in listed.output.split(b"\0") if entry}
    # Lower case is assume-unchanged, S is skip-worktree: git would not see changes to such files.
    if listed.exit_code or not tags <= {b"H", b"M"}:
        (site.paths.git_dir / "index").unlink(missing_ok=True)


def _clean(site: IssueWorktree, *, keep_ignored: bool) -> None:
    """Remove untracked files; the verification finds any that could not be removed."""
    also = () if keep_ignored else ("-x",)
    site.git.attempt("clean", "-q", "-ff", "-d", *also, patience=RESET_TIMEOUT)


def _empty_submodules(site: IssueWorktree) -> None:
    """Empty the directories of submodules (WORKTREE-5), which git itself never reads."""
    root = Path(os.path.realpath(site.paths.tree))
    for entry in site.git.read("ls-files", "-s", "-z").split(b"\0"):
        if not entry.startswith(GITLINK):
            continue
        place = root / entry.partition(b"\t")[2].decode(errors="surrogateescape")
        if os.path.realpath(place) == str(place) and place.is_dir() and any(place.iterdir()):
            site.cleaner.set_aside(place, site.paths.name)
            place.mkdir()


def _status(site: IssueWorktree, *, keep_ignored: bool) -> list[bytes]:
    ignored = "no" if keep_ignored else "traditional"
    status = site.git.read(
        *("status", "--porcelain", "-z", "--untracked-files=normal", "--no-renames"),
        *(f"--ignored={ignored}", "--ignore-submodules=all"),
    )
    return [entry for entry in status.split(b"\0") if entry]


def _modified_only(status: list[bytes]) -> list[bytes]:
    """Return the files that git reports as modified right after it wrote them, if that is all.

    The repository has such files with line endings that its own attributes forbid.
    """
    only = all(entry.startswith(b" M ") for entry in status)
    return [entry[3:] for entry in status] if only else []


def _difference(site: IssueWorktree, sha: str, status: list[bytes]) -> str:
    """Return the first difference between the worktree and a commit; empty if there is none."""
    git = site.git
    head, tree = git.line("rev-parse", "HEAD", f"{sha}^{{tree}}").split()
    if head != sha:
        return f"HEAD is {head}"
    if git.line("write-tree") != tree:
        return "the index holds another tree"
    if status:
        return f"git status shows {status[0].decode(errors='replace')!r}"
    return ""
