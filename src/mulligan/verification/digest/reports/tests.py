"""Test results in JSON of whatever shape: an object with a name and a failed status is one. Pure.

One walk serves jest, vitest, mocha, rspec, pytest-json-report, node and most others.
"""

import re
from collections.abc import Iterator

from mulligan.verification.digest.family import Found, Reading
from mulligan.verification.digest.reports.documents import Document, Json
from mulligan.verification.digest.reports.failure import failure, of_file
from mulligan.verification.digest.reports.fields import FILE, Row, place_in, text_of

NAME = (
    *("fullName", "full_description", "fullTitle", "nodeid", "test_id", "test_name", "testName"),
    *("title", "name", "description", "displayName"),
)
STATUS = ("status", "outcome", "result", "state", "Status")
BAD = {"failed", "failure", "fail", "error", "errored", "broken", "timedout"}
REASON = (
    *("failureMessages", "failureMessage", "err", "error", "errors", "exception", "failure"),
    *(
        "failures",
        "longrepr",
        "crash",
        "call",
        "setup",
        "teardown",
        "message",
        "stack",
        "backtrace",
    ),
    *("failedExpectations", "failureDetails", "statusDetails", "reason", "text"),
)
MOCHA = "fullTitle"
"""Mocha gives no status, but each test an error, which is empty where it passed."""
FILE_NAME = re.compile(r"[/\\].*\.\w{1,5}$")
TESTS = ("assertionResults", "tests", "testcases", "specs")
ASIDE = {"err", "error", "call"}
DEEPEST = 14
REASON_DEPTH = 4


def read_tests(document: Document) -> Reading:
    """Find the tests that failed."""
    if document.is_xml:
        return Reading()
    found = tuple(dict.fromkeys(_walk(document.value, "", DEEPEST)))
    return Reading(found, len(found))


def _walk(value: Json, file: str, depth: int) -> Iterator[Found]:
    """Yield the failed tests in a value; a suite that failed only for its tests is none."""
    if depth == 0:
        return
    if isinstance(value, list):
        for part in value:
            yield from _walk(part, file, depth - 1)
    elif isinstance(value, dict):
        file = text_of(value, FILE) or _as_file(value) or file
        inner = [
            found
            for name, part in value.items()
            if isinstance(part, (dict, list)) and name not in ASIDE
            for found in _walk(part, file, depth - 1)
        ]
        yield from inner
        if not inner and _failed(value):
            yield _found(value, file)


def _as_file(row: Row) -> str:
    """Give the name of a suite of tests that is a file's, as Jest and Vitest write it."""
    name = text_of(row, ("name",))
    return (
        name if FILE_NAME.search(name) and any(isinstance(row.get(k), list) for k in TESTS) else ""
    )


def _failed(row: Row) -> bool:
    if not text_of(row, (*NAME, *FILE)):
        return False
    status = text_of(row, STATUS).lower()
    return status in BAD or (not status and MOCHA in row and bool(row.get("err")))


def _found(row: Row, file: str) -> Found:
    parents = row.get("ancestorTitles")
    title = text_of(row, NAME)
    if isinstance(parents, list) and title == text_of(row, ("title",)):
        title = " › ".join([*(str(part) for part in parents), title])
    reasons = "\n".join(dict.fromkeys(_reasons(row, REASON_DEPTH)))
    return failure(of_file(title.strip(), file), reasons, place_in(row, file))


def _reasons(value: Json, depth: int) -> Iterator[str]:
    """Yield the texts that say why, wherever they are beneath the fields that hold them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for part in value:
            yield from _reasons(part, depth)
    elif isinstance(value, dict) and depth:
        for name in REASON:
            yield from _reasons(value.get(name), depth - 1)
