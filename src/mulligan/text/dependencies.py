"""Read which issues an issue waits for, from its text as GitHub shows it (COMMAND-2). Pure."""

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from mulligan.domain.issue import REPOSITORY, Issue, IssueRef
from mulligan.text.escape import one_line

if TYPE_CHECKING:
    from mulligan.text.page_lines import Line

MAX_DEPENDENCIES = 10
"""Limit of dependencies to check for an issue; further ones are ignored."""

QUOTE_CHARS = 100


class Dependency(NamedTuple):
    """An issue that a text waits for, and the line that says so."""

    ref: IssueRef
    line: str


def dependencies(issue: Issue) -> tuple[Dependency, ...]:
    """List the issues that an issue's text waits for."""
    return tuple(each for each in _named(issue) if each.ref != issue.ref)[:MAX_DEPENDENCIES]


def depends_on_itself(issue: Issue) -> bool:
    """Return whether the text of an issue says that it waits for itself."""
    return any(each.ref == issue.ref for each in _named(issue))


def _named(issue: Issue) -> list[Dependency]:
    found = dict[IssueRef, Dependency]()
    if not WORDS.search(issue.body):
        return []
    # Imported only where a text may name one: the libraries take 60 ms.
    from mulligan.text.page_lines import lines_of  # noqa: PLC0415

    for line, names in _sentences(lines_of(issue.body, NAME)):
        for ref in _refs(names, issue):
            found.setdefault(ref, Dependency(ref, one_line(line, QUOTE_CHARS)))
    return [*found.values()]


# Names of issues.

NUMBER = r"[1-9][0-9]{0,9}"

NAME = re.compile(
    rf"(?P<repository>{REPOSITORY.pattern})?#(?P<number>{NUMBER})\b"
    rf"|https?://(?P<host>[^/\s]+)/(?P<path>{REPOSITORY.pattern})/(?:issues|pull)/(?P<at>{NUMBER})\b"
    r"[^\s,;()]*",
    re.IGNORECASE,
)
"""`#3`, `owner/name#3`, or the address of an issue or a pull request."""

BEFORE_NAME = re.compile(r"(?:(?:issues?|prs?|pull requests?)\s+)?", re.IGNORECASE)

BETWEEN_NAMES = re.compile(r"(?:\s*\([^()]*\))?(?:\s*[,;&]\s*|\s+)(?:and\s+)?", re.IGNORECASE)


def _names(text: str, start: int = 0) -> Iterator[re.Match[str]]:
    """Yield the names of a list such as `#3, #4 (the parser) and owner/name#5`."""
    kind = BEFORE_NAME.match(text, start)
    while kind and (name := NAME.match(text, kind.end())):
        yield name
        between = BETWEEN_NAMES.match(text, name.end())
        kind = BEFORE_NAME.match(text, between.end()) if between else None


def _refs(names: Iterable[re.Match[str]], issue: Issue) -> Iterator[IssueRef]:
    own, host = issue.ref.repository, issue.url.partition("://")[2].partition("/")[0].casefold()
    for name in names:
        repository = name["repository"] or name["path"] or own
        is_own = repository.casefold() == own.casefold()
        if name["host"] is None or name["host"].casefold() == host:
            yield IssueRef(own if is_own else repository, int(name["number"] or name["at"]))


# Lines that say so.

WORDS = re.compile(r"depends|blocked", re.IGNORECASE)
"""One of them is in every text that names a dependency."""

OPENING = re.compile(
    r"[^\w\"'“”‘’«`]*(?:depends[\s-]+on|blocked[\s-]+by)\b[\s:]*",
    re.IGNORECASE,
)
"""The words at the beginning of a line, with a symbol or an emoji before them."""


def _sentences(lines: "Iterable[Line]") -> Iterator[tuple[str, Iterator[re.Match[str]]]]:
    """Yield the lines that name dependencies, with the names.

    If the words are alone on their line, the names begin the lines of the next list or paragraph.
    """
    words: Line | None = None
    inside: int | None = None
    for line in lines:
        if opening := OPENING.match(line.text):
            is_alone = opening.end() == len(line.text)
            words, inside = (line, None) if is_alone and not line.is_done else (None, None)
            if not line.is_done:
                yield line.text, _names(line.text, opening.end())
        elif words is None or not line.text:
            continue
        elif inside is None and not any(_names(line.text)):
            words = None
        else:
            inside = inside if inside is not None else _block_below(words, line)
            if inside not in line.blocks:
                words = None
            elif not line.is_done:
                yield f"{words.text} {line.text}", _names(line.text)


def _block_below(words: "Line", line: "Line") -> int:
    """Return the block of a line that does not contain the words; else their paragraph."""
    return next((block for block in line.blocks if block not in words.blocks), line.blocks[-1])
