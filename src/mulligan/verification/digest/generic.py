"""The family of all tools: whatever speaks of failure, with what belongs to it. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, takewhile

from mulligan.verification.digest.blocks import block_end, depth_of, paragraph_end, worth_showing
from mulligan.verification.digest.family import Family, Found, Reading
from mulligan.verification.digest.findings import finding
from mulligan.verification.digest.fingerprint import normalise
from mulligan.verification.digest.heads import Head, Rank, find_heads
from mulligan.verification.digest.locations import Place, best_place, place_alone, pointed_at
from mulligan.verification.digest.log import Log
from mulligan.verification.digest.signals import Weight, weigh
from mulligan.verification.digest.totals import count_bad, total_lines
from mulligan.verification.digest.traceback import LINK, START

MOST_HEADS = 5000
STEP = 4
"""With more places than this beneath it, a failed name is a step, not a test."""
COMMON = 3
"""Said more often than this, an error without a place is the program's own log rather."""
COMMON_LIKELY = 9
"""Comes after all ranks."""
BEFORE, ABOVE = 6, 15
FRAMES = 6
DETAIL = 30


def read(log: Log) -> Reading:
    """Find what failed, the most certain first."""
    scan = _Scan(log.lines, [weigh(line) for line in log.lines])
    heads = list(scan.complete())
    often = Counter(map(_template, heads))
    ranked = _relevant(_told_once(_by_test(heads)), often)
    totals = total_lines(log.lines)
    count = max([0, *(count_bad(line) for line in totals)])
    doubtful = not any(head.rank is Rank.FAILURE for head in ranked)
    found = tuple(_found(head, log.lines) for head in ranked)
    return Reading(found, count, totals, doubtful=doubtful)


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
        for group, following in zip(groups, [*groups[1:], None], strict=False):
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
        message = test.message or (self._said(told) if told else self._beneath(test, end))
        yield replace(test, message=message, place=place, end=end)
        yield from self._each([head for head in rest if head not in inside], limit)

    def _beneath(self, test: Head, end: int) -> str:
        """Find what is said right beneath a test's name, unless it speaks of something else."""
        depth = depth_of(self.lines[test.at])
        for at in range(test.at + 1, end):
            line = self.lines[at]
            if not line.strip() or line.strip(" :") in (test.test_id or ""):
                continue
            about = test.place or depth_of(line) > depth or self.weights[at] >= Weight.WORD
            return line.strip() if about else ""
        return ""

    def _each(self, heads: Sequence[Head], limit: int) -> Iterator[Head]:
        """Give each error its paragraph, and the place that it or its surroundings point to."""
        kept = list(_without_followers(heads))
        previous = -1
        for head, following in zip(kept, [*kept[1:], None], strict=False):
            stop = following.start or following.at if following else limit
            end = head.end or paragraph_end(self.lines, self.weights, head.at, stop)
            place = head.place or best_place(self.lines[head.at + 1 : end])
            if place is None or not place.is_own:
                place = self._place_above(head.at, previous) or place
            previous = head.at
            sure = head.rank is Rank.LIKELY and place is not None and place.is_own
            rank = Rank.FAILURE if sure else head.rank
            yield replace(head, message=self._said(head), end=end, place=place, rank=rank)

    def _place_above(self, at: int, previous: int) -> Place | None:
        """Find a line right above that only names a place, as node, shellcheck and Python do."""
        above = self.lines[max(0, at - ABOVE, previous + 1) : at]
        alone = (place_alone(line) for line in reversed(above[-BEFORE:]))
        via = (pointed_at(line) for line in reversed(above) if "required from" in line)
        return next((place for place in chain(alone, via) if place and place.is_own), None)

    def _said(self, head: Head) -> str:
        """Read on where YAML puts a message onto the following lines."""
        if not head.message.endswith(("|-", "|", ">-")):
            return head.message
        depth = depth_of(self.lines[head.at])
        beneath = self.lines[head.at + 1 : head.at + 6]
        deeper = takewhile(lambda line: not line.strip() or depth_of(line) > depth, beneath)
        return " ".join(line.strip() for line in deeper if line.strip())


def _without_followers(heads: Iterable[Head]) -> Iterator[Head]:
    """Drop errors on the line after another of their kind: they go on with it."""
    before = None
    for head in heads:
        near = before is not None and head.at == before.at + 1 and head.rank is before.rank
        before = head
        if not near or head.place or head.rank is Rank.FAILURE:
            yield head


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
        before = tests.get(name, head)
        best = max(before, head, key=_worth)
        tests[name] = replace(best, place=best.place or before.place or head.place)
    return [*_without_short_names(tests), *others]


def _worth(head: Head) -> tuple[bool, bool]:
    return bool(head.message), head.place is not None


def _without_short_names(tests: dict[str, Head]) -> Iterator[Head]:
    """Drop `adds` where there is `sum › adds`: runners list tests by both."""
    ends = {name[at:] for name in tests for at in _starts_of_words(name)}
    for name, head in tests.items():
        is_short = not head.message or "." in name
        if not (is_short and name in ends):
            yield head


def _starts_of_words(name: str) -> Iterator[int]:
    return (
        at for at in range(1, min(len(name), 300)) if name[at - 1] in " :./#" and name[at] != " "
    )


def _told_once(heads: Iterable[Head]) -> list[Head]:
    """Drop what was said before in the same words of the same file."""
    known = dict[tuple[str | None, ...], Head]()
    for head in heads:
        file = head.place.file if head.place else None
        key = (head.test_id, None if head.test_id else file, head.code, normalise(head.message))
        known.setdefault(key, head)
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
    return "".join("1" if letter.isdigit() else letter for letter in head.message[:60])


def _found(head: Head, lines: Sequence[str]) -> Found:
    told = finding(
        head.message or head.test_id or "", head.place, test_id=head.test_id, code=head.code
    )
    line = " ".join(lines[head.at].split())
    heading = head.test_id or line
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
