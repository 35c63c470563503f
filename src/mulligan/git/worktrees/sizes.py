"""Measure what an agent left before git reads it: a sparse file takes git as long as a real one."""

import stat
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from mulligan.config.policy import Scope
from mulligan.git.faults import TookTooLongError
from mulligan.git.worktrees.left_out import is_below, paths_of
from mulligan.git.worktrees.reset import IssueWorktree

LIST_TIMEOUT = timedelta(minutes=2)
NAMES_BYTES = 16 * 1024 * 1024
NAME_BYTES = 256
LEAST_BYTES = 1024**3
"""How much git reads in any case, in bytes."""
MAX_LARGE = 1000
"""How many large files git can leave out and be fast."""

DEFAULT_SCOPE = Scope()


@dataclass(frozen=True, slots=True)
class Measured:
    """Files of a change that git does not read, with their sizes; or why it reads none at all."""

    large: Mapping[str, int] = field(default_factory=dict[str, int])
    unread: str = ""


def measure(site: IssueWorktree, directories: Collection[str], scope: Scope) -> Measured:
    """Measure what git would add to its index, apart from some directories.

    More than a change may have in all cannot pass (`scope`), so git need not read it.
    """
    names = changed_names(site, scope)
    if names is None:
        return Measured(unread="There are too many new files. Leave fewer, or let git ignore them.")
    sizes = sizes_of(site, [name for name in names if not is_below(name, directories)])
    large = {name: size for name, size in sizes.items() if size > scope.max_file_bytes}
    total = sum(sizes.values()) - sum(large.values())
    if len(large) > MAX_LARGE:
        unread = f"{len(large)} files are larger than scope.max_file_bytes allows. Remove them."
        return Measured(unread=unread)
    if total > max(scope.max_changed_files * scope.max_file_bytes, LEAST_BYTES):
        unread = f"The change has {total} bytes in {len(sizes)} files. Make a smaller one."
        return Measured(unread=unread)
    return Measured(large)


def sizes_of(site: IssueWorktree, names: Sequence[str]) -> dict[str, int]:
    """Return the sizes of files in the tree, without reading them; links have none."""
    found = dict[str, int]()
    for name in names:
        try:
            entry = (site.paths.tree / name).lstat()
        except OSError:
            continue
        if stat.S_ISREG(entry.st_mode):
            found[name] = entry.st_size
    return found


def changed_names(site: IssueWorktree, scope: Scope) -> list[str] | None:
    """List the new and modified files that git does not ignore; None if they are too many."""
    place = site.paths.git_dir / "to-measure"
    limit = max(NAMES_BYTES, scope.max_changed_files * NAME_BYTES)
    ended = site.git.stream(
        *("ls-files", "-z", "--others", "--modified", "--exclude-standard"),
        into=place,
        limit=limit,
        timeout=LIST_TIMEOUT,
    )
    listed = place.read_bytes()
    place.unlink()
    if ended.stopped_by:
        raise TookTooLongError(f"Listing the files of {site.mirror.name} took too long.")
    return None if ended.output_bytes > limit else paths_of(listed)
