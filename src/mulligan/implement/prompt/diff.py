"""Shorten a diff: binary, lock and generated files become one line each (SPEC C9). Pure."""

import io
import re
from collections.abc import Iterator
from itertools import takewhile

from pathspec import GitIgnoreSpec

from mulligan.text.escape import Excerpt, one_line

# A diff in few lines.

LINE_CHARS = 400

HEAD_LINES = 12


def readable(diff: bytes, most: int) -> Excerpt:
    """Keep at most `most` lines of what `git diff` printed, after collapsing."""
    kept, left_out, size = list[str](), 0, 0
    for line in _told(diff):
        if len(kept) < most:
            kept.append(line)
        else:
            left_out, size = left_out + 1, size + len(line.encode()) + 1
    return Excerpt(tuple(kept), left_out, size)


def changed_lines(diff: bytes) -> Iterator[tuple[str, str]]:
    """Give each line that a diff adds or removes, its sign first, after the path of its file.

    What is not worth showing is left out, and so are empty lines.
    """
    for section in _sections(diff):
        if _collapsed(section):
            continue
        head = list(takewhile(lambda line: not line.startswith(b"@@"), section))
        name = _name(section[0], head)
        for line in section[len(head) :]:
            if line[:1] in {b"+", b"-"} and line[1:].strip():
                yield name, line.decode(errors="replace")


def _told(diff: bytes) -> Iterator[str]:
    for section in _sections(diff):
        collapsed = _collapsed(section)
        if collapsed:
            yield collapsed
        else:
            yield from (_text(line) for line in section)


# The files of a diff.

COLLAPSED_FILES = GitIgnoreSpec.from_lines(
    [
        *("*.lock", "*-lock.json", "*-lock.yaml", "npm-shrinkwrap.json", "go.sum", "*.lockb"),
        *("*.min.js", "*.min.css", "*.map", "*.snap", "*.generated.*", "__generated__/"),
        *("*_pb2.py", "*_pb2.pyi", "*_pb2_grpc.py", "*.pb.go", "*.pb.cc", "*.pb.h"),
        *("node_modules/", "dist/", "__pycache__/", "*.egg-info/"),
    ]
)
"""Lock files and generated files, by name."""

BINARY = re.compile(rb"Binary files .* differ$|GIT binary patch$")

NAMED = re.compile(rb'(?:\+\+\+ "?b/|--- "?a/|rename to "?)(.+?)"?\t?$')

HEADER = re.compile(rb'diff --git "?a/.+ "?b/(.+?)"?$')


def _sections(diff: bytes) -> Iterator[list[bytes]]:
    section = list[bytes]()
    for line in io.BytesIO(diff):
        if line.startswith(b"diff --git ") and section:
            yield section
            section = []
        section.append(line.rstrip(b"\r\n"))
    if section:
        yield section


def _collapsed(section: list[bytes]) -> str | None:
    """Write one line for a file that is not worth showing."""
    head = list(takewhile(lambda line: not line.startswith(b"@@"), section[:HEAD_LINES]))
    name = _name(section[0], head)
    if any(BINARY.match(line) for line in head):
        return f"{name}: binary file, not shown"
    if name and COLLAPSED_FILES.match_file(name):
        return f"{name}: lock or generated file, {len(section)} lines of diff, not shown"
    return None


def _name(first: bytes, head: list[bytes]) -> str:
    """Read the path after the change, or before it where the file was deleted."""
    found = [match[1] for line in head if (match := NAMED.match(line))]
    header = HEADER.match(first)
    path = found[-1] if found else header[1] if header else b""
    return one_line(_text(path), LINE_CHARS)


def _text(line: bytes) -> str:
    text = line.decode(errors="replace")
    return text if len(text) <= LINE_CHARS else f"{text[: LINE_CHARS - 1]}…"
