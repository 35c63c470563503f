"""Read git's unified diff into files and numbered lines. Pure."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

FILE = re.compile(r"^diff --git .*\n", re.MULTILINE)

HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@ ?(.*)")

KINDS = {"+": "added", "-": "deleted", " ": "same"}


@dataclass(frozen=True, slots=True)
class Line:
    """A line with its numbers before and after; `kind` is added, deleted, same or hunk."""

    kind: str
    text: str
    old: int | None = None
    new: int | None = None


@dataclass(frozen=True, slots=True)
class FileDiff:
    """The changed lines of a file; `change` is added, deleted, changed or binary."""

    path: str
    change: str
    lines: tuple[Line, ...]

    def count(self, kind: str) -> int:
        """Count the lines of a kind."""
        return sum(line.kind == kind for line in self.lines)


def read_diff(paths: Sequence[str], patch: str) -> list[FileDiff]:
    """Read a patch; `paths` are its files in order, because git quotes some names in a patch."""
    sections = FILE.split(patch)[1:]
    return [_file(path, section) for path, section in zip(paths, sections, strict=True)]


def _file(path: str, section: str) -> FileDiff:
    head, at, body = section.partition("\n@@ ")
    change = "changed"
    for start, meaning in (("new file", "added"), ("deleted file", "deleted")):
        change = meaning if head.startswith(start) else change
    if "\nBinary files " in f"\n{head}":
        change = "binary"
    return FileDiff(path, change, tuple(_lines(f"@@ {body}" if at else "")))


def _lines(body: str) -> Iterator[Line]:
    old = new = 0
    for line in body.split("\n"):
        if hunk := HUNK.fullmatch(line):
            old, new = int(hunk[1]), int(hunk[2])
            yield Line("hunk", hunk[3])
        elif kind := KINDS.get(line[:1]):
            yield Line(
                kind,
                line[1:],
                None if kind == "added" else old,
                None if kind == "deleted" else new,
            )
            old += kind != "added"
            new += kind != "deleted"
