"""Join what a report says with what the output says of the same failures. Pure."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from mulligan.domain.result import Finding
from mulligan.verification.digest.family import Found

WORDS = re.compile(r"[A-Za-z0-9_]+")
NOISE = {"py", "test", "tests", "js", "ts"}


def merged(report: Sequence[Found], output: Sequence[Found]) -> tuple[Found, ...]:
    """List the report's findings, each as the output shows it where that tells more; then the rest.

    Of the rest only what has a place or a test is kept: the report knows its own failures.
    """
    waiting = list(output)
    told = list[Found]()
    for found in report:
        same = next((other for other in waiting if _is_same(found.finding, other.finding)), None)
        if same:
            waiting.remove(same)
        told.append(_better(found, same) if same else found)
    return (*told, *(found for found in waiting if _adds(found, told)))


def _better(report: Found, output: Found) -> Found:
    """Take the output's telling where it has message and place; the place is kept in any case."""
    if output.finding.file and output.finding.message.strip() and output.finding.message != "FAIL":
        return output
    place = report.finding.file or output.finding.file
    if place == report.finding.file:
        return replace(report, at=output.at)
    known = {"file": output.finding.file, "line": output.finding.line}
    heading = f"{report.heading} ({output.finding.file}:{output.finding.line})"
    told = report.finding.model_copy(update=known)
    return replace(report, at=output.at, finding=told, heading=heading)


def _adds(found: Found, told: Iterable[Found]) -> bool:
    """Tell whether a finding of the output alone speaks of something that the report leaves out."""
    one = found.finding
    if one.test_id is None and one.file is None:
        return False
    return not any(
        other.finding.file == one.file and other.finding.line == one.line and one.file
        for other in told
    )


def _is_same(one: Finding, other: Finding) -> bool:
    if one.test_id and other.test_id:
        return _is_same_test(_words(one.test_id), _words(other.test_id))
    if one.test_id or other.test_id:
        return False
    same_file = _ends_alike(one.file or "", other.file or "")
    return (
        same_file and one.line == other.line and (one.code or "") == (other.code or one.code or "")
    )


def _words(name: str) -> list[str]:
    return [word for word in WORDS.findall(name) if word.lower() not in NOISE]


def _is_same_test(one: Sequence[str], other: Sequence[str]) -> bool:
    """Tell whether the shorter name is how the longer one ends."""
    shorter, longer = sorted((one, other), key=len)
    return bool(shorter) and list(longer[-len(shorter) :]) == list(shorter)


def _ends_alike(one: str, other: str) -> bool:
    shorter, longer = sorted((one, other), key=len)
    return one == other or (bool(shorter) and longer.endswith("/" + shorter.removeprefix("./")))
