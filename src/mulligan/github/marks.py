"""The marks by which Mulligan finds its own texts again: lines that GitHub does not show. Pure.

A mark counts only on a line of its own where Mulligan writes one: in the head of a comment, around
a part of it that is replaced later, and around Mulligan's part of a pull request's text. Anywhere
else it is a quotation, or forged; text of others never begins a line.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from mulligan.domain.issue import IssueRef

OPENING, NAME, CLOSING = "<!--", "mulligan:", "-->"

MARKER = f"{OPENING} {NAME}"


class Mark(NamedTuple):
    """A mark: its kind, and what follows the kind."""

    kind: str
    about: str


def marker(kind: str, ref: IssueRef, more: str = "") -> str:
    """Return the line by which Mulligan finds a text again."""
    named = f"{MARKER}{kind} {ref}"
    return f"{named} {more} {CLOSING}" if more else f"{named} {CLOSING}"


def enclosed(kind: str, ref: IssueRef, text: str) -> str:
    """Return the text between two marks, so that `replaced` can replace it later."""
    line = marker(kind, ref)
    return f"{line}\n{text}\n{line}"


def replaced(text: str, kind: str, by: str) -> str:
    """Replace two marks of a kind and what stands between them; the same text without marks."""
    lines = text.split("\n")
    marked = [at for at, line in enumerate(lines) if (mark := mark_in(line)) and mark.kind == kind]
    if len(marked) < 2:  # noqa: PLR2004
        return text
    return "\n".join((*lines[: marked[0]], by, *lines[marked[1] + 1 :]))


def mark_in(line: str) -> Mark | None:
    """Read a line that is a mark and nothing else, without regard to case and trailing blanks."""
    inner = line.rstrip().removesuffix(CLOSING)
    if inner == line.rstrip() or not inner.startswith(OPENING) or CLOSING in inner:
        return None
    name, _, about = inner.removeprefix(OPENING).strip().partition(" ")
    if not name.casefold().startswith(NAME):
        return None
    return Mark(name[len(NAME) :].casefold(), about.strip())


def head(text: str) -> tuple[Mark, ...]:
    """Return the marks with which a text begins, up to its first other line."""
    found = list[Mark]()
    for line in text.lstrip("\r\n").split("\n"):
        mark = mark_in(line)
        if mark is None:
            break
        found.append(mark)
    return tuple(found)


def heads(text: str, kind: str) -> Iterator[str]:
    """Yield what the marks of a kind say in the head of a text."""
    return (mark.about for mark in head(text) if mark.kind == kind)


def said(text: str, kind: str, ref: IssueRef, wanted: str) -> str | None:
    """Return what the head of a text says about an issue: the group of the pattern `wanted`.

    It is empty if a mark of the kind names the issue only; None without such a mark.
    """
    pattern = re.compile(rf"{re.escape(str(ref))}(?: {wanted})?", re.IGNORECASE)
    found = (pattern.fullmatch(about) for about in heads(text, kind))
    return next((named[1] or "" for named in found if named), None)


def begins_with(text: str, marks: str) -> bool:
    """Return whether the head of a text has all of these marks, without regard to case."""
    return _folded(marks) <= _folded(text)


def _folded(text: str) -> set[Mark]:
    return {Mark(mark.kind, mark.about.casefold()) for mark in head(text)}
