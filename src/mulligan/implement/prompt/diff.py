"""Shorten a diff: binary, lock and generated files become one line each (CONTEXT-7). Pure."""

import io
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

from mulligan.domain.globs import globs
from mulligan.text.diff import HUNK, PART, Patch, patches_of
from mulligan.text.escape import Excerpt, one_line

# A diff in few lines.

LINE_CHARS = 400


BULKY_LINES, BULKY_SHOWN = 60, 10
"""A new file with more lines is folded to its first ones, unless a failure names it."""


@dataclass(frozen=True, slots=True)
class Location:
    """A file that a failure names, from any directory; `line` counts from 1 in the new file."""

    file: str
    line: int | None = None


def readable(
    diff: bytes,
    most: int,
    named: Collection[Location] = (),
    named_before: Collection[Location] = (),
) -> Excerpt:
    """Keep at most `most` lines of what `git diff` printed, after collapsing.

    The hunks at the lines that failures `named` come first, then the rest of their files, then the
    hunks that the prompt before named, then the others. Bulky new files are folded and come last.
    """
    kept, left_out, size = list[str](), 0, 0
    for line in _lines_of(diff, named, named_before):
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


class _Order(IntEnum):
    NAMED = 0
    """At a line that a failure names."""
    BESIDE = 1
    """Elsewhere in a file that a failure names."""
    NAMED_BEFORE = 2
    CHANGED = 3
    BULKY = 4


@dataclass(frozen=True, slots=True)
class _Part:
    """Hunks of a file in their order, or a whole file; `head` are the header lines of the file."""

    order: _Order
    head: tuple[str, ...]
    lines: tuple[str, ...]


def _lines_of(
    diff: bytes, named: Collection[Location], named_before: Collection[Location]
) -> Iterator[str]:
    first = PART.search(diff)
    yield from map(_text, _lines(diff[: first.start()] if first else diff))
    parts = [part for patch in patches_of(diff) for part in _parts(patch, named, named_before)]
    head: tuple[str, ...] = ()
    for part in sorted(parts, key=lambda part: part.order):
        if part.head != head:
            head = part.head
            yield from head
        yield from part.lines


def _parts(
    patch: Patch, named: Collection[Location], named_before: Collection[Location]
) -> Iterator[_Part]:
    collapsed = _collapsed(patch)
    head = tuple(map(_text, _lines(patch.head)))
    lines = tuple(map(_text, _lines(patch.content)))
    ours = [each for each in named if _is_named(patch.path, each.file)]
    before = [each for each in named_before if _is_named(patch.path, each.file)]
    is_bulky = b"\nnew file mode " in patch.head and len(head) + len(lines) > BULKY_LINES
    if collapsed:
        yield _Part(_Order.BESIDE if ours else _Order.CHANGED, (), (collapsed,))
    elif is_bulky and not ours:
        more = len(head) + len(lines) - BULKY_SHOWN
        folded = f"{_name(patch)}: new file, {more} more lines, not shown"
        yield _Part(_Order.BULKY, (), (*(*head, *lines)[:BULKY_SHOWN], folded))
    elif not lines:
        yield _Part(_Order.BESIDE if ours else _Order.CHANGED, head, ())
    else:
        starts = [at for at, line in enumerate(lines) if line.startswith("@@ ")]
        for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
            hunk = lines[start:end]
            yield _Part(_order(hunk, ours, before), head, hunk)


def _order(hunk: Sequence[str], named: list[Location], before: list[Location]) -> _Order:
    if any(each.line is not None and _is_near(each.line, hunk) for each in named):
        return _Order.NAMED
    if named:
        return _Order.BESIDE
    is_named_before = any(each.line is None or _is_near(each.line, hunk) for each in before)
    return _Order.NAMED_BEFORE if is_named_before else _Order.CHANGED


NEAR_LINES = 10
"""The maximum distance of a line from a hunk that may be its cause."""


def _is_near(line: int, hunk: Sequence[str]) -> bool:
    """Return whether a line of the new file is in a hunk, or a few lines from it."""
    found = HUNK.match(hunk[0])
    first = int(found[2]) if found else 0
    last = first + sum(each[:1] in {"+", " "} for each in hunk[1:])
    return first - NEAR_LINES <= line <= last + NEAR_LINES


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
