"""Give each head of an output its block, and what the block says of it: message and place. Pure."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, takewhile

from mulligan.verification.digest.blocks import block_end, depth_of, paragraph_end
from mulligan.verification.digest.head import Head, Rank
from mulligan.verification.digest.heads import find_heads
from mulligan.verification.digest.locations import Place, best_place, place_alone, pointed_at
from mulligan.verification.digest.signals import Weight

MOST_HEADS = 5000
STEP = 4
"""With more places than this beneath it, a failed name is a step, not a test."""
BEFORE, ABOVE = 10, 15
DEEPER = re.compile(r"^\[\w+\] {2}")
EMPTY_MESSAGE = re.compile(
    r"(?:[|>]-?|^\W*(?:(?:fatal )?error|warning|failure|failed)?\W*(?:\[[\w-]+\])?\W*)$",
    re.IGNORECASE,
)
"""A message that says nothing but that more follows."""
SHORT = 60
LABEL = re.compile(r"^\W*(?:[A-Z]\w*(?: \w+)?)?\W*:?$")


@dataclass(frozen=True, slots=True)
class Scan:
    """The lines of an output with their weights."""

    lines: Sequence[str]
    weights: Sequence[Weight]

    def heads(self) -> Iterator[Head]:
        """Yield every head, complete; where nothing opens a finding, the lines that weigh most."""
        groups = _groups(find_heads(self.lines, self.weights)[:MOST_HEADS] or self._last_resort())
        for group, following in zip(groups, [*groups[1:], None], strict=False):
            limit = following[0].at if following else len(self.lines)
            if group[0].test_id:
                yield from self._test(group, limit)
            else:
                yield from self._each(group, limit)

    def _last_resort(self) -> list[Head]:
        top = max(self.weights, default=Weight.NOTHING)
        places = [at for at, weight in enumerate(self.weights) if weight == top > Weight.MENTION]
        lines = [(at, self.lines[at].strip()) for at in places]
        return [Head(at, Rank.LIKELY, line, place=pointed_at(line)) for at, line in lines]

    def _test(self, group: Sequence[Head], limit: int) -> Iterator[Head]:
        """Let a failed test take what is said beneath it."""
        test, *rest = group
        end = test.end or block_end(self.lines, test.at, limit)
        inside = [head for head in rest if head.at < end]
        if sum(head.place is not None for head in inside) > STEP:
            inside = []
        place = test.place or next((head.place for head in inside if head.place), None)
        place = place or best_place(self.lines[test.at + 1 : end]) or self._place_above(test.at)
        message = test.message or self._told(test, inside) or self._beneath(test, end)
        yield replace(test, message=message, place=place, end=end)
        yield from self._each([head for head in rest if head not in inside], limit)

    def _told(self, test: Head, inside: Iterable[Head]) -> str:
        """Take what the first error inside a test's block says."""
        name = test.test_id or ""
        said = (self._said(head) for head in inside)
        return next((message for message in said if message.strip(" :") not in name), "")

    def _beneath(self, test: Head, end: int) -> str:
        """Find what is said right beneath a test's name, unless it speaks of something else."""
        depth = depth_of(self.lines[test.at])
        for at in range(test.at + 1, end):
            line = self.lines[at].strip()
            if LABEL.match(line) or line.strip(" :") in (test.test_id or ""):
                continue
            near = at == test.at + 1 or depth_of(self.lines[at]) > depth
            return line if near or test.place or self.weights[at] >= Weight.WORD else ""
        return ""

    def _each(self, heads: Sequence[Head], limit: int) -> Iterator[Head]:
        """Give each error its paragraph, and the place that it or its surroundings point to."""
        kept = list(self._without_followers(heads))
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

    def _without_followers(self, heads: Iterable[Head]) -> Iterator[Head]:
        """Drop what only goes on with the line above it: aftermath, and deeper tagged lines."""
        before: Head | None = None
        for head in heads:
            near = before is not None and head.at == before.at + 1
            after = before is not None and before.rank is head.rank is Rank.AFTERMATH
            before = head
            if not near or not (after or DEEPER.match(self.lines[head.at])):
                yield head

    def _place_above(self, at: int, previous: int = -1) -> Place | None:
        """Find a line right above that only names a place, as node, shellcheck and Python do."""
        above = self.lines[max(0, at - ABOVE, previous + 1) : at]
        alone = (place_alone(line) for line in reversed(above[-BEFORE:]))
        via = (pointed_at(line) for line in reversed(above) if "required from" in line)
        return next((place for place in chain(alone, via) if place and place.is_own), None)

    def _said(self, head: Head) -> str:
        """Read on where a message only starts on the following lines."""
        if len(head.message) > SHORT or not EMPTY_MESSAGE.search(head.message):
            return head.message
        depth = depth_of(self.lines[head.at])
        beneath = self.lines[head.at + 1 : head.at + 6]
        if head.message.endswith("-"):
            beneath = takewhile(lambda line: not line.strip() or depth_of(line) > depth, beneath)
        said = [line.strip() for line in beneath if line.strip()]
        return " ".join([head.message.strip("|>- "), *said[: 2 if depth else 1]]).strip()


def _groups(heads: Iterable[Head]) -> list[list[Head]]:
    """Cut the heads so that each test opens a group."""
    groups = list[list[Head]]()
    for head in heads:
        if head.test_id or not groups:
            groups.append([])
        groups[-1].append(head)
    return groups
