"""Complaints in JSON of whatever shape: an object with a message and a place is one. Pure.

One walk serves ruff, eslint, pyright, mypy, cargo, pylint, shellcheck, golangci-lint, rubocop, gcc
and most others: the objects differ in the names of their fields (see fields.py) and in depth.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from mulligan.verification.digest.family import Found, Reading
from mulligan.verification.digest.findings import finding
from mulligan.verification.digest.locations import Place
from mulligan.verification.digest.reports.documents import Document, Json
from mulligan.verification.digest.reports.fields import (
    FILE,
    LINE,
    Row,
    number_of,
    place_in,
    text_of,
)

MESSAGE = (
    *("message", "Message", "msg", "text", "Text", "description", "issue_text", "reason", "detail"),
    "check_name",
)
CODE = (
    *("rule", "ruleId", "rule_id", "message-id", "code", "cop_name", "check_id", "test_id"),
    *("symbol", "RuleID", "FromLinter", "name", "id", "check", "category"),
)
SEVERITY = ("severity", "level", "type", "Severity", "issue_severity", "kind")
BAD = {"error", "fatal", "critical", "high", "blocker", "e", "f", "convention", "refactor"}
MILD = {"warning", "warn", "medium", "minor", "low", "w", "style", "info", "information", "i"}
SILENT = {"note", "hint", "help", "notice", "none", "off", "failure-note"}
ESLINT_WARNING = 1
DEEPEST = 12
MOST = 5000


@dataclass(frozen=True, slots=True)
class _Issue:
    message: str
    place: Place
    code: str
    is_mild: bool


def read_issues(document: Document) -> Reading:
    """Find the complaints; the errors first, and they alone count where there are any."""
    issues = list(_walk(document.value, "", DEEPEST))[:MOST] if not document.is_xml else []
    worse = [issue for issue in issues if not issue.is_mild]
    ordered = list(dict.fromkeys([*worse, *issues]))
    return Reading(tuple(map(_found, ordered)), len(set(worse)) or len(ordered))


def _walk(value: Json, file: str, depth: int) -> Iterator[_Issue]:
    """Yield the issues in a value; `file` is named by what they are in."""
    if depth == 0:
        return
    if isinstance(value, list):
        for part in value:
            yield from _walk(part, file, depth - 1)
    elif isinstance(value, dict):
        issue = _issue(value, file)
        if issue:
            yield issue
            return
        file = text_of(value, FILE) or file
        for part in value.values():
            if isinstance(part, (dict, list)):
                yield from _walk(part, file, depth - 1)


def _issue(row: Row, file: str) -> _Issue | None:
    message = text_of(row, MESSAGE)
    severity = text_of(row, SEVERITY).lower()
    if not message or severity in SILENT:
        return None
    place = place_in(row, file)
    judged = severity in BAD | MILD or number_of(row, ("severity",)) is not None
    if place is None or (place.line is None and not judged):
        return None
    mild = severity in MILD or number_of(row, ("severity",)) == ESLINT_WARNING
    return _Issue(message, place, _code(row), mild)


def _code(row: Row) -> str:
    """Give the code of a rule: a text, a number (shellcheck's), or an object that has it."""
    if code := text_of(row, CODE):
        return code
    number = number_of(row, ("code",))
    if number is not None:
        return f"SC{number}" if number_of(row, LINE) else str(number)
    within = row.get("code")
    return text_of(within, ("code", "name", "value")) if isinstance(within, dict) else ""


def _found(issue: _Issue) -> Found:
    told = finding(issue.message, issue.place, code=issue.code or None)
    first, *rest = issue.message.strip().splitlines()
    code = f"{issue.code} " if issue.code and issue.code not in first.split() else ""
    heading = " ".join(f"{issue.place}: {code}{first}".split())
    return Found(told, None, heading, tuple(line for line in rest if line.strip()))
