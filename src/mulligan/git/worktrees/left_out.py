"""Find the parts of an agent's tree that are not part of its change."""

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path, PurePosixPath

from mulligan.git.worktrees.files import FoundDirectories
from mulligan.git.worktrees.naming import TOOL_LEFTOVERS, leftover_in
from mulligan.git.worktrees.reset import IssueWorktree


@dataclass(frozen=True, slots=True)
class Excluded:
    """The parts of an agent's tree that are not part of its change.

    `nested` are directories with a git repository of their own, `marked` virtual environments and
    caches, and `tools` patterns of tools' files.
    """

    nested: tuple[str, ...]
    marked: tuple[str, ...]
    tools: tuple[str, ...]

    @property
    def directories(self) -> tuple[str, ...]:
        """Both kinds of directories."""
        return (*self.nested, *self.marked)


# Directories.


def excluded_from(site: IssueWorktree, found: FoundDirectories, index: Sequence[bytes]) -> Excluded:
    """Return the parts that are not part of the change, of all that was found in the tree.

    Of directories in each other, only the topmost. A directory with tracked files stays part of
    the change, whatever it holds.
    """
    marked = [path for path in found.tools if not leftover_in(f"{path}/", TOOL_LEFTOVERS)]
    topmost = _untracked((*found.repositories, *marked), index)
    repositories = set(found.repositories)
    return Excluded(
        tuple(path for path in topmost if path in repositories),
        tuple(path for path in topmost if path not in repositories),
        tool_leftovers(site, index),
    )


def _untracked(found: Sequence[str], index: Sequence[bytes]) -> list[str]:
    if not found:
        return []
    files = {os.fsdecode(entry.partition(b"\t")[2]) for entry in index if entry}
    tracked = {str(parent) for name in files for parent in (name, *PurePosixPath(name).parents)}
    topmost = list[str]()
    for path in sorted(found, key=lambda path: path.count("/")):
        # A submodule is tracked itself, and all below it is its own.
        if path not in tracked and not is_below(path, {*topmost, *files}):
            topmost.append(path)
    return sorted(topmost)


def is_below(path: str, others: Collection[str]) -> bool:
    """Return whether a path is one of the others, or below one."""
    above = accumulate(path.split("/"), lambda start, part: f"{start}/{part}")
    return any(parent in others for parent in above)


# Files of tools.


def tool_leftovers(site: IssueWorktree, index: Sequence[bytes]) -> tuple[str, ...]:
    """Return the patterns of files that tools leave, without those of which git tracks a file."""
    # Few repositories track such files, and a process costs more than this search.
    names = b"\0".join(index)
    return tuple(
        pattern
        for pattern in TOOL_LEFTOVERS
        if max(pattern.strip("/").split("*"), key=len).encode() not in names
        or not _tracked(site, (pattern,))
    )


def _tracked(site: IssueWorktree, patterns: Sequence[str]) -> bool:
    return bool(site.git.read("ls-files", "-z", "-i", "-c", *_excluding(patterns)))


def _excluding(patterns: Iterable[str]) -> Iterator[str]:
    return (f"--exclude={pattern}" for pattern in patterns)


def unlike_leftovers(site: IssueWorktree, excluded: Excluded) -> list[str]:
    """List new files that look like a tool's, but are work, as the repository tracks such files.

    Call it when all others are in the index.
    """
    if excluded.tools == TOOL_LEFTOVERS:
        return []
    patterns = _excluding((*site.mirror.litter, *excluded.tools))
    return paths_of(site.git.read("ls-files", "-z", "--others", UNIGNORED, *patterns))


UNIGNORED = "--exclude-per-directory=.gitignore"


def left_by_tools(site: IssueWorktree, excluded: Excluded) -> Iterator[str]:
    """Name the files and directories that tools left during the agent's run, ignored ones aside.

    Call it when the change is in the index.
    """
    listed = paths_of(site.git.read("ls-files", "-z", "--others", UNIGNORED))
    seen = set[str]()
    paths = (path for path in listed if not is_below(path, excluded.nested))
    leftovers = ((_leftover_of(path, excluded), path) for path in paths)
    candidates = (path for found, path in leftovers if found and found not in seen)
    for path in written_by_agent(site, candidates):
        seen.add(found := _leftover_of(path, excluded))
        yield found


def _leftover_of(path: str, excluded: Excluded) -> str:
    marked = (f"{directory}/" for directory in excluded.marked if is_below(path, {directory}))
    return leftover_in(path, excluded.tools) or next(marked, "")


# Paths.


def paths_of(listed: bytes) -> list[str]:
    """Return the paths in git's output with `-z`."""
    return [os.fsdecode(path) for path in listed.split(b"\0") if path]


def written_by_agent(site: IssueWorktree, paths: Iterable[str]) -> Iterator[str]:
    """Keep the files that were written since the agent started.

    Setup commands may write such files too, but before the agent. Making the agent's HOME changes
    the private directory, so its time marks the start of the agent.
    """
    root, private = site.paths.tree, site.paths.private
    began = private.stat().st_mtime_ns if private.is_dir() else 0
    return (path for path in paths if _written(root / path) > began)


def _written(path: Path) -> int:
    """Return a file's last change (ctime) in nanoseconds, which no program can set back."""
    try:
        return path.lstat().st_ctime_ns
    except OSError:
        return 0
