"""Find the parts of an agent's tree that are not part of its change."""

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path, PurePosixPath

from mulligan.git.worktrees.naming import TOOL_LEFTOVERS, leftover_in
from mulligan.git.worktrees.reset import IssueWorktree


@dataclass(frozen=True, slots=True)
class Excluded:
    """The parts of an agent's tree that are not part of its change.

    `nested` are directories with a git repository of their own, `tools` patterns of tools' files.
    """

    nested: tuple[str, ...]
    tools: tuple[str, ...]


# Repositories.


def nested_repositories(site: IssueWorktree, found: Sequence[str]) -> tuple[str, ...]:
    """Keep the topmost of these repositories, without those in directories that git tracks.

    A directory with tracked files stays part of the change, whatever git repository it holds.
    """
    if not found:
        return ()
    files = paths_of(site.git.read("ls-files", "-z"))
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


# Files of tools.


def tool_leftovers(site: IssueWorktree, index: Sequence[bytes]) -> tuple[str, ...]:
    """Return the patterns of files that tools leave, without those of which git tracks a file."""
    # Few repositories track such files, and a process costs more than this search.
    names = b"\0".join(index)
    if not any(pattern.strip("*/").encode() in names for pattern in TOOL_LEFTOVERS):
        return TOOL_LEFTOVERS
    return tuple(pattern for pattern in TOOL_LEFTOVERS if not _tracked(site, (pattern,)))


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
    leftovers = ((leftover_in(path, excluded.tools), path) for path in paths)
    candidates = (path for found, path in leftovers if found and found not in seen)
    for path in written_by_agent(site, candidates):
        seen.add(found := leftover_in(path, excluded.tools))
        yield found


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
