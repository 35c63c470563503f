"""Join what a report says with what the output says of the same failures. Pure."""

import re
from collections.abc import Sequence

from mulligan.domain.result import Finding
from mulligan.verification.digest.family import Found

WORDS = re.compile(r"[A-Za-z0-9_]+")
NOISE = {"py", "test", "tests", "js", "ts"}


def merged(report: Sequence[Found], output: Sequence[Found]) -> tuple[Found, ...]:
    """List the report's findings, each as the output shows it where that tells more; then the rest.

    What the output alone says is kept unless it is of a place, or in words, that the report names.
    """
    waiting = list(output)
    told = list[Found]()
    for found in report:
        alike = [other for other in waiting if _is_same(found.finding, other.finding)]
        same = max(alike, key=lambda other: _likeness(found.finding, other.finding), default=None)
        if same and not _is_nearer(same.finding, found.finding, report):
            waiting.remove(same)
        told.append(_better(found, same) if same else found)
    return (*told, *(found for found in waiting if _adds(found, told)))


def _better(report: Found, output: Found) -> Found:
    """Take the output's telling, with the report's message where the output says another."""
    one, other = report.finding, output.finding
    message = other.message if _says(output, one.message) else one.message
    told = other.model_copy(
        update={
            "message": message,
            "test_id": max(one.test_id or "", other.test_id or "", key=len) or None,
            "summary": other.summary if message == other.message else one.summary,
            "hint": one.hint or other.hint,
            "file": other.file or one.file,
            "line": other.line if other.file else one.line,
        }
    )
    detail = output.detail if message == other.message else (*report.detail, *output.detail)
    heading = output.heading if other.file else report.heading
    return Found(told, output.at, heading, detail)


def _likeness(one: Finding, other: Finding) -> tuple[bool, bool, bool]:
    """Say how sure it is that two findings are of one failure."""
    return (
        one.test_id == other.test_id,
        _ends_alike(one.file or "", other.file or ""),
        bool(one.message) and one.message.partition("\n")[0] in other.message,
    )


def _is_nearer(output: Finding, reported: Finding, report: Sequence[Found]) -> bool:
    """Tell whether what the output says is rather of another failure that the report names."""
    here = _likeness(reported, output)
    alike = (other.finding for other in report if _is_same(other.finding, output))
    return any(_likeness(other, output) > here for other in alike)


def _says(output: Found, message: str) -> bool:
    """Tell whether the output says this message, with or without the name of its exception."""
    first = message.partition("\n")[0]
    bare = first.partition(": ")[2] or first
    return any(bare in said for said in (output.finding.message, *output.detail))


def _adds(found: Found, told: Sequence[Found]) -> bool:
    """Tell whether a finding of the output alone speaks of something that the report leaves out."""
    one = found.finding
    if one.test_id is None and one.file is None:
        return not any(_says(other, one.message) for other in told)
    places = {(other.finding.file, other.finding.line) for other in told}
    return one.file is None or (one.file, one.line) not in places


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
