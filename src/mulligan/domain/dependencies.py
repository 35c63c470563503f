"""`Depends on #n` and `Blocked by #n` in the text of an issue (SPEC H4). Pure."""

import re

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
    plain = QUOTED.sub("", CODE.sub("", text))
    named = (name for said in SAID.finditer(plain) for name in NAMED.findall(said[1]))
    refs = (_ref(name, of.repository) for name in named)
    return tuple(dict.fromkeys(ref for ref in refs if ref != of))[:MOST]


def _ref(name: str, here: str) -> IssueRef:
    return IssueRef.parse(f"{here}{name}" if name.startswith("#") else name)


def waiting_for(ref: IssueRef, of: IssueRef, *, returns: bool, left: str) -> str:
    """Say that an issue waits for one that is open.

    `returns` where that one waits for this in turn; `left` says why Mulligan has left it.
    """
    name = f"#{ref.number}" if ref.repository == of.repository else str(ref)
    if returns:
        return (
            f"It waits for {name}, which waits for this one in turn; take `Depends on` out of one "
            "of them."
        )
    if left:
        return f"It waits for {name}, which is open, but Mulligan has left it ({left.rstrip('.')})."
    return f"It waits until {name} is closed."
