"""Find the parts of an agent's tree that are not part of its change."""

from collections.abc import Collection, Sequence
from itertools import accumulate
from pathlib import PurePosixPath

from mulligan.git.worktrees.reset import IssueWorktree


def nested_repositories(site: IssueWorktree, found: Sequence[str]) -> tuple[str, ...]:
    """Keep the topmost of these repositories, without those in directories that git tracks.

    A directory with tracked files stays part of the change, whatever git repository it holds.
    """
    if not found:
        return ()
    listed = site.git.read("ls-files", "-z")
    files = [name.decode(errors="surrogateescape") for name in listed.split(b"\0")]
    tracked = {str(parent) for name in files for parent in (name, *PurePosixPath(name).parents)}
    nested = list[str]()
    for path in sorted(found, key=lambda path: path.count("/")):
        # A submodule is tracked itself, and all below it is its own.
        if path not in tracked and not is_below(path, {*nested, *files}):
            nested.append(path)
    return tuple(sorted(nested))


def is_below(path: str, others: Collection[str]) -> bool:
    """Return whether a path is one of the others, or below one."""
    above = accumulate(path.split("/"), lambda start, part: f"{start}/{part}")
    return any(parent in others for parent in above)
