"""Keep of an output what a digest can be made of: its ends, and the lines that speak of failure.

Lines are compared as templates (all digits made equal): in every large output most are alike, and
one look serves them all. Pure.
"""

import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from mulligan.verification.digest.clean import SAME_DIGITS, as_text, clip_line
from mulligan.verification.digest.log import Log
from mulligan.verification.digest.signals import CODED, PLACE_SHAPES, STEMS, STRONG, Weight, weigh

HEAD_BYTES = 64 * 1024
TAIL_BYTES = 96 * 1024
STRONG_BYTES = 320 * 1024
WEAK_BYTES = 32 * 1024
ALIKE_STRONG, ALIKE_WEAK = 100, 20
"""Telling lines of one template that are kept, with their surroundings."""
JUDGED = 250
"""New templates of one chunk that are weighed; the others count as weak."""
UNJUDGED = 100
REMEMBERED = 5000
BEFORE, AFTER_STRONG, AFTER_WEAK = 3, 12, 4

BYTE_STEMS = tuple(stem.encode() for stem in STEMS)
FEW_STEMS = (
    b"error",
    b"fail",
    b"fatal",
    b"panic",
    b"exception",
    b"assert",
    b"undefined",
    b"cannot",
)
SMALL = 256 * 1024
VARIED = 0.5
"""The share of a chunk that is new, from which on only the few stems are looked for."""
PER_STEM = 1000
FEW_SHAPES = tuple(re.compile(stem.encode()) for stem in PLACE_SHAPES)
BYTE_SHAPES = (*FEW_SHAPES, re.compile(CODED.pattern.encode()))

Numbered = tuple[int, bytes]


def sift(chunks: Iterable[bytes]) -> Log:
    """Reduce clean chunks of whole lines to under a megabyte; a smaller output stays whole."""
    sieve = _Sieve()
    for chunk in chunks:
        sieve.take(chunk)
    return sieve.log()


@dataclass(slots=True)
class _Store:
    """Lines within a number of bytes: the first half of it as they come, then the latest ones."""

    room: int
    first: list[Numbered] = field(default_factory=list[Numbered])
    latest: deque[Numbered] = field(default_factory=deque[Numbered])
    size_first: int = 0
    size_latest: int = 0
    kept_to: int = 0

    def add(self, number: int, line: bytes) -> None:
        self.kept_to = number
        line = clip_line(line)
        size = len(line) + 1
        if self.size_first + size <= self.room // 2:
            self.size_first += size
            self.first.append((number, line))
            return
        self.size_latest += size
        self.latest.append((number, line))
        while self.size_latest > self.room // 2:
            self.size_latest -= len(self.latest.popleft()[1]) + 1


@dataclass(slots=True)
class _Sieve:
    """What was kept so far of an output that is passing by."""

    head: list[Numbered] = field(default_factory=list[Numbered])
    recent: deque[tuple[int, Sequence[bytes]]] = field(default_factory=lambda: deque(maxlen=2))
    strong: _Store = field(default_factory=lambda: _Store(STRONG_BYTES))
    weak: _Store = field(default_factory=lambda: _Store(WEAK_BYTES))
    weights: dict[bytes, Weight] = field(default_factory=dict[bytes, Weight])
    seen: Counter[bytes] = field(default_factory=Counter[bytes])
    total: int = 0
    owed: int = 0

    def take(self, chunk: bytes) -> None:
        """Look through the next lines of the output."""
        lines = chunk.split(b"\n")
        if not self.total:
            self.head = list(_within(HEAD_BYTES, enumerate(lines, start=1)))
        for index, after in self._hits(chunk.translate(SAME_DIGITS).split(b"\n")):
            store = self.strong if after == AFTER_STRONG else self.weak
            self._keep(lines, index - BEFORE, index + after, store)
        self.recent.append((self.total, lines))
        self.total += len(lines)

    def _hits(self, templates: Sequence[bytes]) -> Iterator[tuple[int, int]]:
        """Yield where a line tells something, and how many lines after it may belong to it."""
        owed, self.owed = self.owed, 0
        if owed:
            yield 0, owed
        unjudged = 0
        speaking = self._speaking(templates)
        for index in [at for at, template in enumerate(templates) if template in speaking]:
            template = templates[index]
            weight = self.weights.get(template)
            strong = weight is not None and weight >= STRONG
            unjudged += weight is None
            alike = ALIKE_STRONG if strong else ALIKE_WEAK
            if (weight is None and unjudged > UNJUDGED) or self.seen[template] >= alike:
                continue
            self.seen[template] += 1
            yield index, AFTER_STRONG if strong else AFTER_WEAK

    def _speaking(self, templates: Sequence[bytes]) -> set[bytes]:
        """Pick the templates that weigh something, or were too many to be weighed."""
        different = dict.fromkeys(templates)
        text = b"\n".join(different)
        varied = len(text) > max(SMALL, VARIED * sum(map(len, templates)))
        stems, shapes = (FEW_STEMS, FEW_SHAPES) if varied else (BYTE_STEMS, BYTE_SHAPES)
        found = dict.fromkeys(_with_stems(text, stems, shapes))
        new = [template for template in found if template not in self.weights]
        if len(self.weights) > REMEMBERED:
            self.weights.clear()
            self.seen.clear()
        for template in new[:JUDGED]:
            self.weights[template] = weigh(as_text(clip_line(template)))
        return {template for template in found if self.weights.get(template, Weight.WORD)}

    def _keep(self, lines: Sequence[bytes], start: int, end: int, store: _Store) -> None:
        self.owed = max(self.owed, end - len(lines))
        for index in range(max(start, store.kept_to - self.total, 0), min(end, len(lines))):
            store.add(self.total + index + 1, lines[index])

    def log(self) -> Log:
        """Put together what was kept."""
        last = [(at + n, line) for at, lines in self.recent for n, line in enumerate(lines, 1)]
        tail = _within(TAIL_BYTES, reversed(last))
        stores = (self.strong.first, self.strong.latest, self.weak.first, self.weak.latest)
        kept = dict(line for part in (self.head, *stores, tail) for line in part)
        numbers = tuple(sorted(kept))
        return Log(tuple(as_text(kept[number]) for number in numbers), numbers, self.total)


def _within(room: int, lines: Iterable[Numbered]) -> Iterator[Numbered]:
    for number, line in lines:
        clipped = clip_line(line)
        room -= len(clipped) + 1
        if room < 0:
            return
        yield number, clipped


def _with_stems(
    text: bytes, stems: Iterable[bytes], shapes: Iterable[re.Pattern[bytes]]
) -> Iterator[bytes]:
    """Find the lines of a text that have a stem of a telling word, a place or a code."""
    lowered = text.lower()
    for stem in stems:
        at = lowered.find(stem)
        for _ in range(PER_STEM):
            if at < 0:
                break
            start, end = _bounds(text, at)
            yield text[start:end]
            at = lowered.find(stem, end)
    for shape in shapes:
        for found in islice(shape.finditer(text), PER_STEM):
            start, end = _bounds(text, found.start())
            yield text[start:end]


def _bounds(text: bytes, at: int) -> tuple[int, int]:
    end = text.find(b"\n", at)
    return text.rfind(b"\n", 0, at) + 1, end if end >= 0 else len(text)
