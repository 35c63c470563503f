"""Parse git's diffs into files and hunks. Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

PART = re.compile(rb"^diff --git ", re.MULTILINE)
"""The beginning of a file's part: in a diff, no line of content starts like this."""
MODE = re.compile(
    rb"^(?:new file mode|deleted file mode|new mode|index [0-9a-f]+\.\.[0-9a-f]+) (\d{6})$",
    re.MULTILINE,
)
NAME = re.compile(
    rb'^(?:\+\+\+|---) (?:[ab]/(?P<plain>[^\n]*?)|"[ab]/(?P<quoted>(?:[^"\\\n]|\\.)*)")\t?$',
    re.MULTILINE,
)
RENAMED = re.compile(
    rb'^rename (from|to) (?:(?P<plain>[^"\n][^\n]*)|"(?P<quoted>(?:[^"\\\n]|\\.)*)")$', re.MULTILINE
)
UNCHANGED_NAME = re.compile(
    rb'^diff --git (?:a/(?P<plain>[^\n]*) b/(?P=plain)|"a/(?P<quoted>[^\n]*)" "b/(?P=quoted)")$',
    re.MULTILINE,
)
"""The first line of a file that keeps its name; binary and empty files have no other."""
BINARY = re.compile(rb"^(?:Binary files .* differ|GIT binary patch)$", re.MULTILINE)
HUNK = re.compile(r"^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@ ?(.*)$")
ADDED = re.compile(rb"^\+([^\n]*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Line:
    """A line of one side of a hunk; `is_changed` is set if the other side lacks it."""

    number: int
    text: str
    is_changed: bool


@dataclass(frozen=True, slots=True)
class Hunk:
    """Both sides of a hunk; `heading` is the enclosing definition, as git shows it."""

    heading: str
    old: tuple[Line, ...]
    new: tuple[Line, ...]


@dataclass(frozen=True)
class Patch:
    """The part of a diff for one file: its header lines and its content."""

    head: bytes
    content: bytes

    @cached_property
    def modes(self) -> frozenset[bytes]:
        """The file's old and new modes."""
        return frozenset(MODE.findall(self.head))

    @cached_property
    def path(self) -> str:
        """The new path of the file, else the old one; empty if the diff has none."""
        forms = (NAME, RENAMED, UNCHANGED_NAME)
        found = next(filter(None, ([*form.finditer(self.head)] for form in forms)), None)
        return _text(found[-1]) if found else ""

    @cached_property
    def old_path(self) -> str | None:
        """The path before a rename; None without a rename."""
        found = RENAMED.search(self.head)
        return _text(found) if found else None

    @property
    def is_new(self) -> bool:
        """Return whether the change creates the file."""
        return b"\nnew file mode " in self.head

    @property
    def is_binary(self) -> bool:
        """Return whether git treats the file as binary and shows no lines."""
        return bool(BINARY.search(self.head))

    @property
    def added(self) -> list[str]:
        """The added lines."""
        return [line.decode(errors="replace") for line in ADDED.findall(self.content)]

    def hunks(self, longest: int) -> Iterator[Hunk]:
        """Split the content into hunks; cut each line to `longest` characters."""
        lines = self.content.decode(errors="replace").split("\n")
        starts = [at for at, line in enumerate(lines) if line.startswith("@@ ")]
        for start, end in zip(starts, [*starts[1:], len(lines)], strict=False):
            yield _hunk(
                lines[start][:longest], [line[: longest + 1] for line in lines[start + 1 : end]]
            )


def patches_of(diff: bytes) -> Iterator[Patch]:
    """Split a diff by file."""
    starts = [found.start() for found in PART.finditer(diff)]
    for start, end in zip(starts, [*starts[1:], len(diff)], strict=False):
        content = diff.find(b"\n@@ ", start, end)
        at = content if content >= 0 else end
        yield Patch(diff[start : at + 1], diff[at + 1 : end])


def _hunk(opening: str, lines: list[str]) -> Hunk:
    found = HUNK.match(opening)
    old_at, new_at, heading = found.groups() if found else ("1", "1", "")
    return Hunk(
        heading,
        tuple(_side(lines, int(old_at), "-")),
        tuple(_side(lines, int(new_at), "+")),
    )


def _side(lines: list[str], number: int, sign: str) -> Iterator[Line]:
    for line in lines:
        if line[:1] in {" ", sign}:
            yield Line(number, line[1:], line[:1] == sign)
            number += 1


def _text(found: re.Match[bytes]) -> str:
    """Decode a path; git quotes unusual bytes as in C."""
    path = found["plain"]
    if path is None:
        path = found["quoted"].decode("latin-1").encode().decode("unicode_escape").encode("latin-1")
    return path.decode(errors="replace")
