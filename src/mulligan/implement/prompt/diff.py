"""Shorten a diff: binary, lock and generated files become one line each (CONTEXT-7). Pure."""

import io
from collections.abc import Collection, Iterator
from enum import IntEnum

from mulligan.domain.globs import globs
from mulligan.text.diff import PART, Patch, patches_of
from mulligan.text.escape import Excerpt, one_line

# A diff in few lines.

LINE_CHARS = 400


BULKY_LINES, BULKY_SHOWN = 60, 10
"""A new file with more lines is folded to its first ones, unless a failure names it."""


def readable(diff: bytes, most: int, named: Collection[str] = ()) -> Excerpt:
    """Keep at most `most` lines of what `git diff` printed, after collapsing.

    Files whose paths are `named` by failures come first; bulky new files are folded.
    """
    kept, left_out, size = list[str](), 0, 0
    for line in _lines_of(diff, named):
        if len(kept) < most:
            kept.append(line)
        else:
            left_out, size = left_out + 1, size + len(line.encode()) + 1
    return Excerpt(tuple(kept), left_out, size)


def changed_lines(diff: bytes) -> Iterator[tuple[str, str]]:
    """Yield each line that a diff adds or removes, its sign first, after the path of its file.

    Skip empty lines, and files that are not worth showing.
    """
    for patch in patches_of(diff):
        if _collapsed(patch):
            continue
        name = _name(patch)
        for line in _lines(patch.content):
            if line[:1] in {b"+", b"-"} and line[1:].strip():
                yield name, line.decode(errors="replace")


def _lines_of(diff: bytes, named: Collection[str]) -> Iterator[str]:
    first = PART.search(diff)
    yield from map(_text, _lines(diff[: first.start()] if first else diff))
    patches = [(_order(patch, named), patch) for patch in patches_of(diff)]
    for order, patch in sorted(patches, key=lambda each: each[0]):
        collapsed = _collapsed(patch)
        lines = [*map(_text, _lines(patch.head + patch.content))]
        if collapsed:
            yield collapsed
        elif order is _Order.BULKY:
            yield from lines[:BULKY_SHOWN]
            yield f"{_name(patch)}: new file, {len(lines) - BULKY_SHOWN} more lines, not shown"
        else:
            yield from lines


class _Order(IntEnum):
    NAMED = 0
    CHANGED = 1
    BULKY = 2


def _order(patch: Patch, named: Collection[str]) -> _Order:
    if any(_is_named(patch.path, name) for name in named):
        return _Order.NAMED
    is_new = b"\nnew file mode " in b"\n" + patch.head
    is_long = (patch.head + patch.content).count(b"\n") > BULKY_LINES
    return _Order.BULKY if is_new and is_long else _Order.CHANGED


def _is_named(path: str, name: str) -> bool:
    """Return whether a tool that names a file, from any directory, may mean this path."""
    name = name.removeprefix("./")
    return bool(path and name) and (path == name or path.endswith(f"/{name}"))


# The files of a diff.

COLLAPSED_FILES = globs(
    (
        *("*.lock", "*-lock.json", "*-lock.yaml", "npm-shrinkwrap.json", "go.sum", "*.lockb"),
        *("*.min.js", "*.min.css", "*.map", "*.snap", "*.generated.*", "__generated__/"),
        *("*_pb2.py", "*_pb2.pyi", "*_pb2_grpc.py", "*.pb.go", "*.pb.cc", "*.pb.h"),
        *("node_modules/", "dist/", "__pycache__/", "*.egg-info/"),
    )
)
"""Lock files and generated files, by name."""


def _collapsed(patch: Patch) -> str | None:
    """Return one line for a file whose diff is omitted."""
    name = _name(patch)
    if patch.is_binary:
        return f"{name}: binary file, not shown"
    if name and COLLAPSED_FILES.match(name):
        count = sum(1 for _ in _lines(patch.head + patch.content))
        return f"{name}: lock or generated file, {count} lines of diff, not shown"
    return None


def _name(patch: Patch) -> str:
    return one_line(patch.path, LINE_CHARS)


def _lines(text: bytes) -> Iterator[bytes]:
    return (line.rstrip(b"\r\n") for line in io.BytesIO(text))


def _text(line: bytes) -> str:
    text = line.decode(errors="replace")
    return text if len(text) <= LINE_CHARS else f"{text[: LINE_CHARS - 1]}…"
