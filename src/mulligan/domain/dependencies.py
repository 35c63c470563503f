"""`Depends on #n` and `Blocked by #n` in the text of an issue (SPEC H4). Pure."""

import re
from collections import deque
from collections.abc import Callable

from mulligan.domain.issue import REPOSITORY, IssueRef

MOST = 10
"""How many issues one may wait for; others are not looked at."""

NAME = rf"(?:{REPOSITORY.pattern})?#[1-9][0-9]{{0,9}}\b"
SAID = re.compile(
    rf"\b(?:depends on|blocked by):?\s+({NAME}(?:(?:\s*,\s*(?:and\s+)?|\s+and\s+){NAME})*)",
    re.IGNORECASE,
)
NAMED = re.compile(NAME)
CODE = re.compile(r"^ {0,3}(`{3,}|~{3,}).*?(?:^ {0,3}\1|\Z)|`[^`\n]*`", re.MULTILINE | re.DOTALL)
QUOTED = re.compile(r"^ {0,3}>.*$", re.MULTILINE)


def dependencies(text: str, of: IssueRef) -> tuple[IssueRef, ...]:
    """List the issues that an issue says it waits for; code and quotations say nothing."""
    return tuple(ref for ref in _named(text, of) if ref != of)[:MOST]


def depends_on_itself(text: str, of: IssueRef) -> bool:
    """Tell whether an issue names itself, which nobody can wait for."""
    return of in _named(text, of)


def way_back(of: IssueRef, named: Callable[[IssueRef], tuple[IssueRef, ...]]) -> list[IssueRef]:
    """Find the shortest way from one dependency to the next that ends at its beginning.

    Gives the issues on it, the first one left out; none where there is no such way, or it is
    longer than what is looked at. `named` gives what an issue waits for.
    """
    ways, seen = deque([[of]]), {of}
    while ways and len(seen) <= MOST:
        way = ways.popleft()
        for ref in named(way[-1]):
            if ref == of:
                return way[1:]
            if ref not in seen:
                seen.add(ref)
                ways.append([*way, ref])
    return []


def _named(text: str, of: IssueRef) -> tuple[IssueRef, ...]:
    plain = QUOTED.sub("", CODE.sub("", text))
    named = (name for said in SAID.finditer(plain) for name in NAMED.findall(said[1]))
    return tuple(dict.fromkeys(_ref(name, of.repository) for name in named))


def _ref(name: str, here: str) -> IssueRef:
    return IssueRef.parse(f"{here}{name}" if name.startswith("#") else name)


def waiting_for(ref: IssueRef, of: IssueRef, *, is_pull_request: bool, left: str) -> str:
    """Say that an issue waits for one that is open; `left` is why Mulligan has left that one."""
    name = _short(ref, of)
    if is_pull_request:
        return f"It waits until the pull request {name} is merged or closed."
    if left:
        return f"It waits for {name}, which is open, but Mulligan has left it ({left.rstrip('.')})."
    return f"It waits until {name} is closed."


def in_a_circle(of: IssueRef, way: list[IssueRef]) -> str:
    """Say that an issue waits for itself in the end, over those on the way."""
    names = ", which waits for ".join(_short(ref, of) for ref in way)
    return (
        f"It waits for {names}, which waits for this one in turn; take `Depends on` out of one of "
        "them."
    )


def overlooked(of: IssueRef, missing: list[IssueRef], *, itself: bool) -> str:
    """Say what is named and not waited for; empty for nothing."""
    names = [*(["itself"] if itself else []), *(_short(ref, of) for ref in missing)]
    if not names:
        return ""
    why = "which is not there" if missing else "which nobody can wait for"
    return f"It says that it depends on {', '.join(names)}, {why}; that holds nothing up."


def _short(ref: IssueRef, of: IssueRef) -> str:
    return f"#{ref.number}" if ref.repository == of.repository else str(ref)
