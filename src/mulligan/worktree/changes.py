"""Read what git lists of a change and of its tree into file changes. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mulligan.domain.result import FileChange

BINARY = b"-"
SYMLINK, NO_FILE = "120000", "000000"


@dataclass(frozen=True, slots=True)
class Entry:
    """What a tree holds at a path; a submodule has no size."""

    mode: str
    blob: str
    size: int | None


def changes_of(output: bytes) -> tuple[FileChange, ...]:
    """Read `git diff-tree -r -z --raw --numstat -M`; the files are in git's order.

    A name that is not UTF-8 has its bad bytes replaced.
    """
    tokens = iter(output.split(b"\0"))
    raw, files = dict[bytes, FileChange](), list[FileChange]()
    for token in tokens:
        if token.startswith(b":"):
            path, change = _raw(token, tokens)
            raw[path] = change
        elif token:
            plus, minus, path = token.split(b"\t", 2)
            if not path:
                # Of a moved file, both names follow.
                _, path = next(tokens), next(tokens)
            files.append(_counted(raw[path], plus, minus))
    return tuple(files)


def _raw(token: bytes, tokens: Iterator[bytes]) -> tuple[bytes, FileChange]:
    """Read `:100644 100644 <blob> <blob> R087`, and the one or two names after it."""
    before, after, _, _, letter = token[1:].decode().split(" ")
    path = old = next(tokens)
    if letter.startswith("R"):
        path = next(tokens)
    return path, FileChange(
        path=_text(path),
        status=letter[:1],
        old_path=None if path is old else _text(old),
        mode=before if after == NO_FILE else after,
    )


def _counted(change: FileChange, plus: bytes, minus: bytes) -> FileChange:
    if BINARY in {plus, minus}:
        return change
    return change.model_copy(update={"insertions": int(plus), "deletions": int(minus)})


def entries_of(output: bytes) -> dict[str, Entry]:
    """Read `git ls-tree -r -l -z`, by path."""
    entries = dict[str, Entry]()
    for line in filter(None, output.split(b"\0")):
        about, _, path = line.partition(b"\t")
        mode, _, blob, size = about.decode().split()
        entries[_text(path)] = Entry(mode, blob, int(size) if size.isdigit() else None)
    return entries


def measured(
    changes: Sequence[FileChange], entries: Mapping[str, Entry], links: Mapping[str, str]
) -> tuple[FileChange, ...]:
    """Add to each change its size in the new tree, and where it leads; `links` are by blob."""
    told = list[FileChange]()
    for change in changes:
        entry = entries.get(change.path)
        if entry:
            link = links.get(entry.blob) if entry.mode == SYMLINK else None
            told.append(change.model_copy(update={"size": entry.size, "link": link}))
        else:
            told.append(change)
    return tuple(told)


def _text(path: bytes) -> str:
    return path.decode(errors="replace")
