"""`go test -json`: events, one a line; what a test printed comes before its verdict. Pure."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from mulligan.verification.digest.families.go import found_of
from mulligan.verification.digest.family import Found, Reading
from mulligan.verification.digest.reports.documents import Document
from mulligan.verification.digest.reports.fields import Row, rows_in, text_of

ACTIONS = {"run", "output", "fail", "pass", "skip", "start", "pause", "cont", "build-output"}
NOISE = re.compile(r"^(?:=== \w+|\s*--- (?:FAIL|PASS|SKIP)|FAIL\b|ok\b|PASS$|exit status)")


def read_go(document: Document) -> Reading:
    """Find the tests that failed, and the packages that failed with no test of theirs."""
    events = [row for row in rows_in(document.value) if text_of(row, ("Action",)) in ACTIONS]
    if not document.is_lines or not events:
        return Reading()
    said = defaultdict[tuple[str, str], list[str]](list)
    for event in events:
        output = text_of(event, ("Output",)).rstrip("\n")
        if output and not NOISE.match(output):
            said[_key(event)].append(output)
    failed = list(dict.fromkeys(_key(e) for e in events if text_of(e, ("Action",)) == "fail"))
    found = tuple(_leaves(failed, said))
    return Reading(found, len(found))


def _key(event: Row) -> tuple[str, str]:
    package = text_of(event, ("Package",)) or text_of(event, ("ImportPath",))
    return package.partition(" ")[0], text_of(event, ("Test",))


def _leaves(
    failed: Sequence[tuple[str, str]], said: dict[tuple[str, str], list[str]]
) -> Iterator[Found]:
    """Yield those that failed for a reason of their own, not for that of a part."""
    for package, test in failed:
        parts = [
            other
            for where, other in failed
            if where == package and other.startswith(f"{test}/" if test else "") and other != test
        ]
        lines = said.get((package, test), [])
        if not parts:
            yield found_of(package, test, lines)
