"""The family of all tools: whatever speaks of failure, with what belongs to it. Pure."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from mulligan.verification.digest.blocks import worth_showing
from mulligan.verification.digest.family import Family, Found, Reading
from mulligan.verification.digest.findings import finding, telling_part
from mulligan.verification.digest.fingerprint import normalise
from mulligan.verification.digest.head import Head, Rank
from mulligan.verification.digest.log import Log
from mulligan.verification.digest.names import named_test
from mulligan.verification.digest.scan import Scan
from mulligan.verification.digest.signals import Weight, weigh
from mulligan.verification.digest.totals import count_bad, total_lines
from mulligan.verification.digest.traceback import LINK, START
from mulligan.verification.digest.units import with_units

ALIKE = 100
SAME_DIGITS = str.maketrans("023456789", "1" * 9)
NUMBER = re.compile(r"\d+")
COMMON = 3
"""Said more often than this, an error without a place is the program's own log rather."""
COMMON_LIKELY = 9
"""Comes after all ranks."""
METHOD_OF = re.compile(r"^(?P<name>\w+)\((?P<owner>[\w.$]*[A-Z][\w$]*)\)$")
ABSOLUTE = re.compile(r"/|[A-Za-z]:[\\/]")
TEMPLATE_CHARS = 60
ORDINAL = re.compile(r"\s*(?:\d+\)|not ok \d+)")
FRAMES = 6
DETAIL = 30


def read(log: Log) -> Reading:
    """Find what failed, the most certain first."""
    heads = list(Scan(log.lines, list(_weights(log.lines))).heads())
    often = Counter(map(_template, heads))
    ranked = _relevant(_told_once(_by_test(with_units(heads, log.lines))), often)
    totals = total_lines(log.lines)
    count = max([0, *(count_bad(line) for line in totals)])
    doubtful = not any(head.rank is Rank.FAILURE for head in ranked)
    found = tuple(_found(head, log.lines) for head in ranked)
    return Reading(found, count, totals, doubtful=doubtful)


GENERIC = Family("generic", lambda _log, _command: True, read)


def _weights(lines: Iterable[str]) -> Iterator[Weight]:
    """Weigh the lines; one that is like hundreds before it weighs nothing any more."""
    seen = Counter[str]()
    for line in lines:
        template = line.translate(SAME_DIGITS)
        seen[template] += 1
        yield weigh(line) if seen[template] <= ALIKE else Weight.NOTHING


def _by_test(heads: Iterable[Head]) -> list[Head]:
    """Put together what is said of one test in several places."""
    tests, others = dict[str, list[Head]](), list[Head]()
    for head in heads:
        if head.test_id is None:
            others.append(head)
            continue
        alike = tests.setdefault(head.test_id, [])
        same = next((at for at, each in enumerate(alike) if not _is_another(head, each)), None)
        if same is None:
            alike.append(head)
        else:
            best = max(alike[same], head, key=_worth)
            alike[same] = replace(best, place=best.place or alike[same].place or head.place)
    return [*_without_short_names([head for each in tests.values() for head in each]), *others]


def _is_another(one: Head, other: Head) -> bool:
    """Tell whether two tests of one name are two: told in full, in the same way, and not alike."""
    if not (one.message and other.message):
        return False
    one_number, other_number = ORDINAL.match(one.written), ORDINAL.match(other.written)
    if one_number and other_number and one_number[0] != other_number[0]:
        return True
    one_way, other_way = named_test(one.written), named_test(other.written)
    if (one_way and one_way.re) is not (other_way and other_way.re):
        return False
    files = {head.place.file for head in (one, other) if head.place}
    return len(files) > 1 or normalise(one.message) != normalise(other.message)


def _worth(head: Head) -> tuple[bool, bool]:
    return bool(head.message), head.place is not None


def _without_short_names(tests: Sequence[Head]) -> Iterator[Head]:
    """Drop `adds` where there is `sum › adds`: runners list tests by both.

    One that names its package or file is another than one of a longer path, unless that is whole.
    """
    wholes = {_class_first(head.test_id or "") for head in tests}
    ends = {name[at:] for name in wholes for at in _starts_of_words(name)}
    whole_paths = {name for name in wholes if ABSOLUTE.match(name)}
    of_paths = {name[at:] for name in whole_paths for at in _starts_of_words(name)}
    for head in tests:
        name = head.test_id or ""
        is_short = not head.message or "." in name
        if not (name in of_paths if head.unit else is_short and name in ends):
            yield head


def _class_first(name: str) -> str:
    """Write `adds(app.CartTest)` as `app.CartTest.adds`."""
    found = METHOD_OF.match(name)
    return f"{found['owner']}.{found['name']}" if found else name


def _starts_of_words(name: str) -> Iterator[int]:
    return (
        at for at in range(1, min(len(name), 300)) if name[at - 1] in " :./#" and name[at] != " "
    )


def _told_once(heads: Iterable[Head]) -> list[Head]:
    """Drop what was said before in the same words of the same place."""
    known = dict[tuple[object, ...], Head]()
    for head in heads:
        where = id(head) if head.test_id else str(head.place or "")
        known.setdefault((where, head.code, normalise(head.message)), head)
    return list(known.values())


def _relevant(heads: Sequence[Head], often: Counter[str]) -> list[Head]:
    """Keep what is sure; what is not sure only where it is rare, or where nothing else is."""

    def certainty(head: Head) -> int:
        common = head.rank is Rank.LIKELY and often[_template(head)] > COMMON
        return COMMON_LIKELY if common else head.rank

    told = [head for head in heads if head.rank is not Rank.WARNING or head.place]
    best = min(map(certainty, told), default=Rank.FAILURE)
    kept = {best, Rank.LIKELY} if best is Rank.FAILURE else {best}
    return sorted((head for head in told if certainty(head) in kept), key=certainty)


def _template(head: Head) -> str:
    return NUMBER.sub("1", head.message[:TEMPLATE_CHARS])


def _found(head: Head, lines: Sequence[str]) -> Found:
    told = finding(
        head.message or head.test_id or "", head.place, test_id=head.test_id, code=head.code
    )
    heading = head.test_id or telling_part(lines[head.at])
    where = str(head.place) if head.test_id else head.place.file if head.place else ""
    if head.place and where not in heading:
        heading = f"{heading} ({head.place})"
    if head.start is not None:
        frames = [line for line in lines[head.start + 1 : head.at] if not LINK.match(line)]
        detail = worth_showing([line for line in frames if not START.match(line)])[-FRAMES:]
    else:
        detail = worth_showing(lines[head.at + 1 : head.end])[:DETAIL]
    opening = head.message.partition("\n")[0]
    if head.test_id and opening and not any(opening in shown for shown in detail):
        detail = (opening, *detail)
    return Found(told, head.at, heading, detail)
