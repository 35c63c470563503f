"""Find the lines that open a finding: a test, a place, a crash, an error. Pure."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from mulligan.verification.digest.aftermath import is_aftermath
from mulligan.verification.digest.codes import code_in
from mulligan.verification.digest.findings import telling_part
from mulligan.verification.digest.head import Head, Rank
from mulligan.verification.digest.locations import (
    DIAGNOSTIC,
    Place,
    file_in,
    place_of,
    pointed_at,
)
from mulligan.verification.digest.names import NUMBERED_LIST, UNFORMATTED, named_test, started
from mulligan.verification.digest.shapes import ARROW, ASIDE, above_arrow, numbered, patch, row
from mulligan.verification.digest.signals import CRASH, PHRASE, Weight
from mulligan.verification.digest.totals import is_total
from mulligan.verification.digest.traceback import traceback_at

SEVERITY = re.compile(r"^(?:fatal )?(?P<word>error|warning|warn|fatal)\b", re.IGNORECASE)
CODE_FIRST = re.compile(r"^\W*(?:\w+:\s*)?\[?[A-Z]{1,6}\d{3,5}\b")


def find_heads(lines: Sequence[str], weights: Sequence[Weight]) -> list[Head]:
    """List what opens a finding, in order; what lies inside a traceback opens none."""
    is_numbered = bool(NUMBERED_LIST.search("\n".join(lines)))
    heads, skip_to = list[Head](), 0
    for at, weight in enumerate(weights):
        if at < skip_to:
            continue
        head = _speaking(lines, at, weight) if weight else None
        if head is None and is_numbered:
            head = numbered(lines, at)
        head = head or above_arrow(lines, at) or row(lines, at) or patch(lines, at)
        if head:
            skip_to = head.end or 0
            heads.append(head)
    return list(_from_their_start(heads, lines))


def _from_their_start(heads: Sequence[Head], lines: Sequence[str]) -> Iterator[Head]:
    """Move a failed test up to where it was started, if what went wrong was said on the way."""
    starts = defaultdict[str, list[int]](list)
    for at, line in enumerate(lines):
        if name := started(line):
            starts[name].append(at)
    others = [head.at for head in heads if head.test_id is None]
    moved = list[Head]()
    for head in heads:
        before = (at for at in reversed(starts.get(head.test_id or "", [])) if at < head.at)
        start = next(before, head.at)
        between = any(start < at < head.at for at in others) if start < head.at else False
        moved.append(replace(head, at=start, end=head.at) if between else head)
    return iter(sorted(moved, key=lambda head: head.start or head.at))


def _speaking(lines: Sequence[str], at: int, weight: Weight) -> Head | None:
    line = lines[at]
    if "Traceback" in line and (trace := traceback_at(lines, at)):
        said = "\n".join([trace.message, *(f"after {cause}" for cause in trace.causes)])
        place, rank = trace.place, Rank.FAILURE
        return Head(trace.at, rank, said, place=place, start=at, end=trace.end)
    if is_aftermath(line) or is_total(line):
        return Head(at, Rank.AFTERMATH, line.strip())
    if weight >= Weight.WORD and (named := named_test(line)):
        return _of_name(at, named, line)
    if ARROW.match(line) or (line.startswith("Caused by:") and at and lines[at - 1]):
        return None
    return (
        above_arrow(lines, at)
        or _unformatted(at, line)
        or _of_place(at, line, weight)
        or _of_words(at, line, weight)
    )


def _of_name(at: int, named: re.Match[str], line: str) -> Head:
    said = named.groupdict()
    place = place_of(named) if said.get("file") else None
    message, name = said.get("message") or "", said["test"].strip()
    return Head(at, Rank.FAILURE, message, name, place, written=line)


def _unformatted(at: int, line: str) -> Head | None:
    found = UNFORMATTED.match(line)
    return Head(at, Rank.LIKELY, line.strip(), place=Place(found["file"])) if found else None


def _of_place(at: int, line: str, weight: Weight) -> Head | None:
    found = DIAGNOSTIC.search(line.replace("file://", "")) if weight >= Weight.WARNING else None
    if found is None or ASIDE.search(found["rest"]):
        return None
    rest = found["rest"]
    severity = (found["severity"] or "").lower()
    if said := SEVERITY.match(rest):
        severity = said["word"].lower()
    code = code_in(rest)
    rank = Rank.FAILURE if severity or code or PHRASE.search(rest) else Rank.LIKELY
    if severity.startswith("warn"):
        rank = Rank.WARNING
    return Head(at, rank, rest.strip(), place=place_of(found), code=code)


def _of_words(at: int, line: str, weight: Weight) -> Head | None:
    place = pointed_at(line)
    if weight is Weight.WARNING:
        return Head(at, Rank.WARNING, line.strip(), place=place)
    if weight < Weight.ERROR and not (weight is Weight.PHRASE and CODE_FIRST.match(line)):
        return None
    rank = Rank.FAILURE if CRASH.search(line) else Rank.LIKELY
    return Head(at, rank, telling_part(line), place=place or file_in(line), code=code_in(line))
