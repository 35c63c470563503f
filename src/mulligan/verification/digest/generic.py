"""The family of all tools: whatever speaks of failure, with what belongs to it. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from mulligan.verification.digest.blocks import block_end, paragraph_end, worth_showing
from mulligan.verification.digest.family import Family, Found, Reading
from mulligan.verification.digest.findings import finding
from mulligan.verification.digest.fingerprint import normalise
from mulligan.verification.digest.heads import FILE_ALONE, Head, Rank, find_heads
from mulligan.verification.digest.locations import DIAGNOSTIC, Place, best_place, pointed_at
from mulligan.verification.digest.log import Log
from mulligan.verification.digest.signals import Weight, weigh
from mulligan.verification.digest.totals import count_bad, total_lines

MOST_HEADS = 5000
STEP = 4
"""With more places than this beneath it, a failed name is a step, not a test."""
COMMON = 3
"""Said more often than this, an error without a place is the program's own log rather."""
BEFORE = 6
FRAMES = 6
DETAIL = 30


def read(log: Log) -> Reading:
    """Find what failed, the most certain first."""
    scan = _Scan(log.lines, [weigh(line) for line in log.lines])
    merged = _told_once(_by_test(scan.complete()))
    ranked = _relevant(sorted(merged, key=lambda head: head.rank))
    totals = total_lines(log.lines)
    count = max([0, *(count_bad(line) for line in totals)])
    return Reading(tuple(_found(head, log.lines) for head in ranked), count, totals)


GENERIC = Family("generic", lambda _log, _command: True, read)


@dataclass(frozen=True, slots=True)
class _Scan:
    """The lines of an output with their weights."""

    lines: Sequence[str]
    weights: Sequence[Weight]

    def complete(self) -> Iterator[Head]:
        """Yield every head with its block, and with what its block says of it."""
        heads = list(find_heads(self.lines, self.weights))[:MOST_HEADS]
        groups = _groups(heads or self._last_resort())
        for group, following in zip(groups, [*groups[1:], None], strict=True):
            limit = following[0].at if following else len(self.lines)
            if group[0].test_id:
                yield from self._test(group, limit)
            else:
                yield from self._each(group, limit)

    def _last_resort(self) -> list[Head]:
        """Where nothing is certain, take the lines that weigh most."""
        top = max(self.weights, default=Weight.NOTHING)
        places = [at for at, weight in enumerate(self.weights) if weight == top > Weight.MENTION]
        return [Head(at, Rank.LIKELY, self.lines[at].strip()) for at in places]

    def _test(self, group: Sequence[Head], limit: int) -> Iterator[Head]:
        """Let a failed test take what is said beneath it."""
        test, *rest = group
        end = block_end(self.lines, test.at, limit)
        inside = [head for head in rest if head.at < end]
        if sum(head.place is not None for head in inside) > STEP:
            inside = []
        told = next((head for head in inside if head.message), None)
        place = test.place or next((head.place for head in inside if head.place), None)
        place = place or best_place(self.lines[test.at + 1 : end])
        message = test.message or (told.message if told else "")
        yield replace(test, message=message, place=place, end=end)
        yield from self._each([head for head in rest if head not in inside], limit)

    def _each(self, heads: Sequence[Head], limit: int) -> Iterator[Head]:
        """Give each error its paragraph, and the place that it or its surroundings point to."""
        last = -1
        for head, following in zip(heads, [*heads[1:], None], strict=True):
            near = head.rank is Rank.LIKELY and head.place is None and head.at == last + 1
            last = head.at
            if near:
                continue
            stop = following.at if following else limit
            end = head.end or paragraph_end(self.lines, self.weights, head.at, stop)
            place = head.place or best_place(self.lines[head.at + 1 : end])
            place = place or self._place_above(head.at)
            sure = head.rank is Rank.LIKELY and place is not None and place.is_own
            yield replace(head, end=end, place=place, rank=Rank.FAILURE if sure else head.rank)

    def _place_above(self, at: int) -> Place | None:
        """Find a line right above that only names a place, as node and Python's parser write it."""
        for line in reversed(self.lines[max(0, at - BEFORE) : at]):
            found = DIAGNOSTIC.search(line) if line.strip() else None
            if 'File "' in line or (found and not found["rest"]):
                return pointed_at(line)
        return None


def _groups(heads: Iterable[Head]) -> list[list[Head]]:
    """Cut the heads so that each test opens a group."""
    groups = list[list[Head]]()
    for head in heads:
        if head.test_id or not groups:
            groups.append([])
        groups[-1].append(head)
    return groups


def _by_test(heads: Iterable[Head]) -> list[Head]:
    """Put together what is said of one test in several places."""
    tests, others = dict[str, Head](), list[Head]()
    for head in heads:
        if head.test_id is None:
            others.append(head)
            continue
        name = head.test_id
        before = tests.get(name)
        if before is None or (head.message and not before.message):
            place = head.place or (before.place if before else None)
            tests[name] = replace(head, place=place)
        elif before.place is None:
            tests[name] = replace(before, place=head.place)
    return [*_without_short_names(tests), *others]


def _without_short_names(tests: dict[str, Head]) -> Iterator[Head]:
    """Drop `adds` where there is `sum › adds`: runners list tests by both."""
    ends = {name[at:] for name in tests for at in _starts_of_words(name)}
    for name, head in tests.items():
        if head.message or name not in ends:
            yield head


def _starts_of_words(name: str) -> Iterator[int]:
    return (at for at in range(1, min(len(name), 300)) if name[at - 1] in " :./#" and name[at] != " ")


def _told_once(heads: Iterable[Head]) -> list[Head]:
    """Drop what was said before in the same words of the same file."""
    known = dict[tuple[str | None, ...], Head]()
    for head in heads:
        file = head.place.file if head.place else None
        key = (head.test_id, None if head.test_id else file, head.code, normalise(head.message))
        known.setdefault(key, head)
    return list(known.values())


def _relevant(heads: Sequence[Head]) -> list[Head]:
    """Keep what is sure; what is not sure only where nothing is, or where it is rare."""
    best = heads[0].rank if heads else Rank.FAILURE
    often = Counter(_template(head) for head in heads)
    return [
        head
        for head in heads
        if head.rank is best or (head.rank is Rank.LIKELY and often[_template(head)] <= COMMON)
    ]


def _template(head: Head) -> str:
    return "".join("1" if letter.isdigit() else letter for letter in head.message[:60])


def _found(head: Head, lines: Sequence[str]) -> Found:
    told = finding(head.message or head.test_id or "", head.place, test_id=head.test_id, code=head.code)
    line = " ".join(lines[head.at].split())
    heading = head.test_id or line
    if head.place and head.place.file not in heading:
        heading = f"{heading} ({head.place})"
    if head.start is not None:
        detail = worth_showing(lines[head.start + 1 : head.at])[-FRAMES:]
    else:
        detail = worth_showing(lines[head.at + 1 : head.end])[:DETAIL]
    opening = head.message.partition("\n")[0]
    if head.test_id and opening and not any(opening in shown for shown in detail):
        detail = (opening, *detail)
    return Found(told, head.at, heading, detail)
