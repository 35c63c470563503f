"""Read the failures in any output, each with message, place and block. Pure."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, takewhile

from mulligan.checks.digest.blocks import (
    LINK,
    START,
    block_end,
    depth_of,
    paragraph_end,
    said_in,
    worth_showing,
)
from mulligan.checks.digest.clean import NOISE, VARYING, CleanLog
from mulligan.checks.digest.findings import (
    MAX_FINDINGS,
    FindingBlock,
    Reading,
    finding,
    relevant_part,
)
from mulligan.checks.digest.heads import FindingHead, Rank, find_heads, named_test
from mulligan.checks.digest.identity import without_positions
from mulligan.checks.digest.locations import Place, best_place, find_lone_place, find_place
from mulligan.checks.digest.qualified_names import with_units
from mulligan.checks.digest.signals import (
    Weight,
    count_bad,
    has_phrase,
    is_total,
    total_lines,
    weigh,
)

ALIKE = 100
SAME_DIGITS = str.maketrans("023456789", "1" * 9)


def read_any(log: CleanLog) -> Reading:
    """Return the failures, the most certain first."""
    printed = {*log.noise, *_printed_by_tests(log.lines)}
    log = log.without(printed) if printed else log
    weights, alike = _weights(log.lines)
    scan = Scan(log.lines, weights)
    opened = find_heads(scan.lines, scan.weights)
    heads = list(scan.heads(_foremost(opened)))
    often = Counter(map(_template, heads))
    named = _without_repeats(_by_test(with_units(heads, log.lines)))
    ranked = _relevant(named, often)
    totals = total_lines(log.lines)
    count = _counted(totals, len(ranked), log)
    if len(opened) > MAX_FINDINGS:
        count = max(count, len(opened))
    if not count and (
        missing := _left_out({head.written or log.lines[head.at] for head in ranked}, alike, log)
    ):
        count = len(ranked) + missing
    doubtful = not any(head.rank is Rank.FAILURE for head in ranked)
    found = tuple(_found(head, log.lines) for head in ranked)
    return Reading(found, count, totals, doubtful=doubtful)


def _counted(totals: Iterable[str], named: int, log: CleanLog) -> int:
    """Return the failures that the totals count; if as many are named, those of several runs."""
    of_runs = Counter[str]()
    for line in filter(is_total, log.lines):
        of_runs[NUMBER.sub("1", line)] += count_bad(line)
    return named if named in of_runs.values() else max([0, *map(count_bad, totals)])


CONSOLE = re.compile(r"  ● Console$| {2,4}console\.\w+$")
FRAME = re.compile(r"      at .*:\d+:\d+\)?$")


def _printed_by_tests(lines: Sequence[str]) -> Iterator[int]:
    """Yield the lines that Jest shows of what a test printed: to the place that printed it."""
    inside = ends = False
    for at, line in enumerate(lines):
        ends = ends or bool(inside and FRAME.match(line))
        inside = inside and (not line or line.startswith("  ")) and not (ends and not line)
        if CONSOLE.match(line):
            inside, ends = True, False
        if inside:
            yield at


def _weights(lines: Iterable[str]) -> tuple[list[Weight], Counter[str]]:
    """Weigh the lines, and count the lines of each template.

    A line that is like hundreds before it has no weight.
    """
    seen, weights = Counter[str](), list[Weight]()
    for line in lines:
        template = line.translate(SAME_DIGITS)
        seen[template] += 1
        weights.append(weigh(line) if seen[template] <= ALIKE else Weight.NOTHING)
    return weights, seen


def _left_out(heads: Collection[str], often: Mapping[str, int], log: CleanLog) -> int:
    """Count the lines that are like a failure's first line but were not read."""
    templates = {line.translate(SAME_DIGITS) for line in heads}
    shapes = {line.encode().translate(None, VARYING) for line in heads}
    unread = sum(max(0, often[template] - ALIKE) for template in templates)
    return max(unread, sum(log.dropped.get(shape, 0) for shape in shapes))


# The block, message and place of each head


def _foremost(heads: Sequence[FindingHead]) -> Sequence[FindingHead]:
    """Choose the first of the best rank, in their order."""
    best = sorted(heads, key=lambda head: head.rank)[:MAX_FINDINGS]
    return sorted(best, key=lambda head: head.at) if len(heads) > MAX_FINDINGS else heads


STEP = 4
"""A failed name with more places than this below it is a step, not a test."""

BEFORE, ABOVE = 10, 15
DEEPER = re.compile(r"^\[\w+\] {2}")

EMPTY_MESSAGE = re.compile(
    r"[|>]-?$|^\W*+(?:(?:(?:fatal )?error|warning|failure|failed)\W*+)?(?:(?<=\[)[\w-]++\]\W*+)?$"
    r"|^[\w.:]*(?:error|exception):$",
    re.IGNORECASE,
)
"""A message without content, whose text follows on the next lines."""

SHORT = 60
LABEL = re.compile(r"^\W*+(?:[A-Z]\w*+(?: \w++)?\W*+)?$")


@dataclass(frozen=True, slots=True)
class Scan:
    """The lines of an output with their weights."""

    lines: Sequence[str]
    weights: Sequence[Weight]

    def heads(self, opened: Sequence[FindingHead]) -> Iterator[FindingHead]:
        """Yield every complete head; without heads, yield the lines with the highest weight."""
        groups = _groups(opened or self._last_resort())
        for group, following in zip(groups, [*groups[1:], None], strict=False):
            limit = following[0].at if following else len(self.lines)
            if group[0].test_id:
                yield from self._test(group, limit)
            else:
                yield from self._each(group, limit)

    def _last_resort(self) -> list[FindingHead]:
        top = max(self.weights, default=Weight.NOTHING)
        places = [at for at, weight in enumerate(self.weights) if weight == top > Weight.MENTION]
        lines = [(at, self.lines[at].strip()) for at in places]
        return [FindingHead(at, Rank.LIKELY, line, place=find_place(line)) for at, line in lines]

    def _test(self, group: Sequence[FindingHead], limit: int) -> Iterator[FindingHead]:
        """Return a failed test with the place and message of the lines below it."""
        test, *rest = group
        end = test.end or block_end(self.lines, test.at, limit)
        inside = [head for head in rest if head.at < end]
        if sum(head.place is not None for head in inside) > STEP:
            inside = []
        place = test.place or next((head.place for head in inside if head.place), None)
        place = place or best_place(self.lines[test.at + 1 : end]) or self._place_above(test.at)
        message = "" if test.message.endswith(":") else test.message
        message = message or self._message_of(test, inside) or self._beneath(test, end)
        yield replace(test, message=message, place=place, end=end)
        yield from self._each([head for head in rest if head not in inside], limit)

    def _message_of(self, test: FindingHead, inside: Iterable[FindingHead]) -> str:
        """Return the message of the first error inside a test's block."""
        name = test.test_id or ""
        heads = [head for head in inside if head.rank is not Rank.AFTERMATH]
        # A message right above a traceback only introduces it.
        starts = {head.start for head in heads}
        messages = (self._said(head) for head in heads if head.at + 1 not in starts)
        return next((message for message in messages if message.strip(" :") not in name), "")

    def _beneath(self, test: FindingHead, end: int) -> str:
        """Return the message right below a test's name, unless it is about another subject."""
        depth, near = depth_of(self.lines[test.at]), test.at + 1
        name = test.test_id or ""
        for at in range(test.at + 1, end):
            line = self.lines[at].strip()
            if find_lone_place(line):
                near += at == near
            elif not (LABEL.match(line) or line.strip(" :") in name or name in line):
                below = depth_of(self.lines[at]) - depth
                is_near = below > 0 or (at == near and below == 0)
                is_relevant = is_near or test.place or self.weights[at] >= Weight.WORD
                return line if is_relevant else ""
        return ""

    def _each(self, heads: Sequence[FindingHead], limit: int) -> Iterator[FindingHead]:
        """Yield each error with its paragraph, and the place that it or its surroundings name."""
        kept = list(self._without_followers(heads))
        previous = -1
        for head, following in zip(kept, [*kept[1:], None], strict=False):
            stop = following.start or following.at if following else limit
            end = head.end or paragraph_end(self.lines, self.weights, head.at, stop)
            place, above = head.place, None
            if place is None:
                place, above = self._nearest(head.at, end, previous)
            elif not place.is_own:
                place = self._place_above(head.at, previous) or place
            previous = head.at
            sure = head.rank is Rank.LIKELY and place is not None and place.is_own
            rank = Rank.FAILURE if sure else head.rank
            message = self._said(head)
            yield replace(head, message=message, end=end, place=place, rank=rank, above=above)

    def _without_followers(self, heads: Iterable[FindingHead]) -> Iterator[FindingHead]:
        """Drop heads that continue the line above: repeated failures, and deeper tagged lines."""
        before: FindingHead | None = None
        for head in heads:
            near = before is not None and head.at == before.at + 1
            after = before is not None and before.rank is head.rank is Rank.AFTERMATH
            before = head
            if not near or not (after or DEEPER.match(self.lines[head.at])):
                yield head

    def _nearest(self, at: int, end: int, previous: int) -> tuple[Place | None, int | None]:
        """Return the place of an error that names none, and the line above that names it.

        A line below that names only a place belongs to the next error.
        """
        above = range(at - 1, max(-1, at - 1 - BEFORE, previous), -1)
        alone = next((n for n in above if self._is_own_place(n)), None)
        below = next((n for n in range(at + 1, end) if find_place(self.lines[n])), end)
        if alone is not None and (below == end or find_lone_place(self.lines[below])):
            return find_lone_place(self.lines[alone]), alone
        place = best_place(self.lines[at + 1 : end])
        if place is None or not place.is_own:
            place = self._place_above(at, previous) or place
        return place, alone if alone is not None and place == find_lone_place(
            self.lines[alone]
        ) else None

    def _is_own_place(self, at: int) -> bool:
        place = find_lone_place(self.lines[at])
        return place is not None and place.is_own

    def _place_above(self, at: int, previous: int = -1) -> Place | None:
        """Find a line right above that only names a place, as node, shellcheck and Python do."""
        above = self.lines[max(0, at - ABOVE, previous + 1) : at]
        alone = (find_lone_place(line) for line in reversed(above[-BEFORE:]))
        via = (find_place(line) for line in reversed(above) if "required from" in line)
        return next((place for place in chain(alone, via) if place and place.is_own), None)

    def _said(self, head: FindingHead) -> str:
        """Return the message from the following lines, if it does not start on the line itself."""
        if len(head.message) > SHORT or not EMPTY_MESSAGE.search(head.message):
            return head.message
        depth = depth_of(self.lines[head.at])
        beneath = self.lines[head.at + 1 : head.at + 6]
        if head.message.endswith("-"):
            beneath = takewhile(lambda line: not line.strip() or depth_of(line) > depth, beneath)
        said = [line.strip() for line in beneath if line.strip()]
        empty = sum(1 for _ in takewhile(EMPTY_MESSAGE.search, said))
        size = max(2 if depth else 1, empty + 1)
        return " ".join([head.message.strip("|>- "), *said[:size]]).strip()


def _groups(heads: Iterable[FindingHead]) -> list[list[FindingHead]]:
    """Group the heads; each test starts a group."""
    groups = list[list[FindingHead]]()
    for head in heads:
        if head.test_id or not groups:
            groups.append([])
        groups[-1].append(head)
    return groups


# Heads about the same test


def _by_test(heads: Iterable[FindingHead]) -> list[FindingHead]:
    """Merge the heads about one test from several places."""
    tests, others = dict[str, list[FindingHead]](), list[FindingHead]()
    for head in heads:
        if head.test_id is None:
            others.append(head)
            continue
        alike = tests.setdefault(head.test_id, [])
        near = range(max(0, len(alike) - NAMESAKES), len(alike))
        same = next((at for at in near if not _is_another(head, alike[at])), None)
        if same is None:
            alike.append(head)
        else:
            best = max(alike[same], head, key=_worth)
            alike[same] = replace(best, place=best.place or alike[same].place or head.place)
    return [*_without_short_names([head for each in tests.values() for head in each]), *others]


NAMESAKES = 20
"""The maximum number of heads with one name that are compared with each other."""

ORDINAL = re.compile(r"\s*(?:\d+\)|not ok \d+)")


def _is_another(one: FindingHead, other: FindingHead) -> bool:
    """Return whether two heads with one name are of two tests.

    They are if both are complete, in one format, and different.
    """
    if not (one.message and other.message):
        return False
    one_number, other_number = ORDINAL.match(one.written), ORDINAL.match(other.written)
    if one_number and other_number and one_number[0] != other_number[0]:
        return True
    one_way, other_way = named_test(one.written), named_test(other.written)
    if (one_way and one_way.re) is not (other_way and other_way.re):
        return False
    files = {head.place.file for head in (one, other) if head.place}
    return len(files) > 1 or without_positions(one.message) != without_positions(other.message)


def _worth(head: FindingHead) -> tuple[bool, bool]:
    return bool(head.message), head.place is not None


ABSOLUTE = re.compile(r"/|[A-Za-z]:[\\/]")


def _without_short_names(tests: Sequence[FindingHead]) -> Iterator[FindingHead]:
    """Drop `adds` if there is `sum › adds`: runners list a test by both names.

    A name with its package or file differs from one with a longer path, unless that path is
    complete.
    """
    wholes = {_class_first(head.test_id or "") for head in tests}
    told = {(_of_project(head.test_id or "")[0], head.message) for head in tests if head.unit}
    ends = {(of, name[at:]) for of, name in wholes for at in _starts_of_words(name)}
    of_paths = {
        (of, name[at:])
        for of, name in wholes
        if ABSOLUTE.match(name)
        for at in _starts_of_words(name)
    }
    for head in tests:
        of, name = _of_project(head.test_id or "")
        is_short = not head.message or "." in name or (of, head.message) in told
        if not ((of, name) in of_paths if head.unit else is_short and (of, name) in ends):
            yield head


PROJECT = re.compile(r"(?P<project>\[[^\s\]]+\] )?(?P<name>.*)", re.DOTALL)


def _of_project(test_id: str) -> tuple[str, str]:
    """Part a name from the project before it."""
    found = PROJECT.match(test_id)
    return (found["project"] or "", found["name"]) if found else ("", test_id)


METHOD_OF = re.compile(r"^(?P<name>\w+)\((?P<owner>[\w.$]*[A-Z][\w$]*)\)$")


def _class_first(test_id: str) -> tuple[str, str]:
    """Write `adds(app.CartTest)` as `app.CartTest.adds`, apart from its project."""
    project, name = _of_project(test_id)
    found = METHOD_OF.match(name)
    return project, f"{found['owner']}.{found['name']}" if found else name


def _starts_of_words(name: str) -> Iterator[int]:
    return (
        at for at in range(1, min(len(name), 300)) if name[at - 1] in " :./#" and name[at] != " "
    )


# The heads that are shown


def _without_repeats(heads: Iterable[FindingHead]) -> list[FindingHead]:
    """Drop heads that repeat the message and place of an earlier one."""
    known = dict[tuple[object, ...], FindingHead]()
    for head in heads:
        where = id(head) if head.test_id else str(head.place or "")
        known.setdefault((where, head.code, without_positions(head.message)), head)
    return list(known.values())


COMMON = 3
"""An error without a place counts as the program's own log if it occurs more often."""

COMMON_LIKELY = 9
"""Comes after all ranks."""


def _relevant(heads: Sequence[FindingHead], often: Counter[str]) -> list[FindingHead]:
    """Keep certain heads; keep uncertain ones only if they are rare or the only ones."""

    def certainty(head: FindingHead) -> int:
        common = head.rank is Rank.LIKELY and often[_template(head)] > COMMON
        return COMMON_LIKELY if common else head.rank

    def certain(head: FindingHead) -> bool:
        explicit = head.test_id or head.code or head.start is not None
        return head.rank is Rank.FAILURE and bool(explicit or head.severe)

    candidates = [head for head in heads if head.rank is not Rank.WARNING or head.place]
    if any(map(certain, candidates)):
        severe = {head.place.file for head in candidates if head.place and head.severe}
        candidates = [
            head
            for head in candidates
            if certain(head) or (often[_template(head)] <= NOISE and not _is_progress(head, severe))
        ]
    best = min(map(certainty, candidates), default=Rank.FAILURE)
    kept = {best, Rank.LIKELY} if best is Rank.FAILURE else {best}
    after = [head for head in candidates if head.rank is Rank.AFTERMATH]
    if best is Rank.AFTERMATH and len(after) < len(candidates) and all(map(_is_total, after)):
        kept = {Rank.WARNING}
    shown = (head for head in candidates if certainty(head) in kept)
    return sorted(shown, key=lambda head: (certainty(head), not (head.message or head.place)))


def _is_total(head: FindingHead) -> bool:
    return is_total(head.message)


def _is_progress(head: FindingHead, severe: Collection[str]) -> bool:
    """Return whether a line only names a place, in a file in which other lines name errors."""
    in_file = head.place is not None and head.place.file in severe
    return in_file and not has_phrase(head.message)


TEMPLATE_CHARS = 60
NUMBER = re.compile(r"\d+")


def _template(head: FindingHead) -> str:
    return NUMBER.sub("1", head.message[:TEMPLATE_CHARS])


FRAMES = 6
DETAIL = 30
NEAR = 3


VALUE = re.compile(
    r"^[^\w'\"]*(?:expected|actual|received|got|want|left|right|found|which is|symbol)\b"
    r"[^:=]{0,20}[:=]",
    re.IGNORECASE,
)
"""A line below a complaint that tells a value; the complaint alone may be the same for others."""

MAX_VALUES = 4


def _with_values(head: FindingHead, lines: Sequence[str]) -> str:
    """Return the message with the values that stand below it."""
    message = head.message or head.test_id or ""
    below = lines[head.at + 1 : min(head.end or 0, head.at + 1 + DETAIL)]
    values = (" ".join(line.split()) for line in below if VALUE.match(line))
    told = list(islice((value for value in values if value not in message), MAX_VALUES))
    return "\n".join([message, *told]) if head.rank is Rank.FAILURE else message


def _beyond(message: str, lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines that say more than a message."""
    parts = [part.strip() for part in message.split("\n") if part.strip()]
    for line in lines:
        text = line.strip()
        if text not in message and not any(part in text for part in parts):
            yield line


def _found(head: FindingHead, lines: Sequence[str]) -> FindingBlock:
    message = _with_values(head, lines)
    reported = finding(message, head.place, test_id=head.test_id, code=head.code)
    heading = head.test_id or " ".join(head.heading.split()) or relevant_part(lines[head.at])
    where = str(head.place) if head.test_id else head.place.file if head.place else ""
    if head.place and where not in heading:
        heading = f"{heading} ({head.place})"
    if head.start is not None:
        frames = [line for line in lines[head.start + 1 : head.at] if not LINK.match(line)]
        detail = worth_showing([line for line in frames if not START.match(line)])[-FRAMES:]
    else:
        over = lines[head.above : head.at] if head.above is not None else ()
        detail = worth_showing([*over, *lines[head.at + 1 : head.end]])[:DETAIL]
    opening = head.message.partition("\n")[0]
    if head.test_id and opening and not any(opening in shown for shown in detail[:NEAR]):
        detail = (opening, *(shown for shown in detail if opening not in shown))
    # What comes after the verdict on another test is not said of this one.
    own = takewhile(lambda line: weigh(line) < Weight.TEST, detail)
    said = (*said_in([reported.message, *_beyond(reported.message, own)]),) if head.test_id else ()
    is_mild = head.rank is not Rank.FAILURE
    return FindingBlock(reported, head.at, heading, detail, is_mild=is_mild, said=said)
