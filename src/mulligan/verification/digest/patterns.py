"""What a repository's own patterns find: regular expressions with named groups (SPEC D7). Pure."""

import re
from collections.abc import Iterator, Sequence

from mulligan.verification.digest.family import Found
from mulligan.verification.digest.findings import finding
from mulligan.verification.digest.locations import Place, number
from mulligan.verification.digest.log import Log


def found_by(patterns: Sequence[str], log: Log) -> Iterator[Found]:
    """Yield a finding for each line that a pattern matches.

    The groups file, line, column, code, message and test_id are read, each where it is there; a
    pattern that is no regular expression finds nothing.
    """
    rules = [rule for pattern in patterns if (rule := _compiled(pattern))]
    for at, line in enumerate(log.lines):
        match = next((found for rule in rules if (found := rule.search(line))), None)
        if match:
            yield _found(at, line, match)


def _compiled(pattern: str) -> re.Pattern[str] | None:
    try:
        return re.compile(pattern)
    except re.error:
        return None


def _found(at: int, line: str, match: re.Match[str]) -> Found:
    said = match.groupdict()
    file = said.get("file")
    place = Place(file, number(said.get("line")), number(said.get("column"))) if file else None
    message = said.get("message") or match[0]
    told = finding(message, place, test_id=said.get("test_id"), code=said.get("code"))
    return Found(told, at, " ".join(line.split()))
