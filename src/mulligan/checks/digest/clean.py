"""Read an output of any size as clean lines, and keep the lines that a digest may need."""

import codecs
import re
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, islice, zip_longest
from typing import BinaryIO

from mulligan.checks.digest.signals import CODED, PLACE_SHAPES, STEMS, STRONG, Weight, weigh

# Chunks of clean UTF-8 lines

ENCODING_SAMPLE_BYTES = 512
Output = bytes | str | BinaryIO
CHUNK = 1024 * 1024


def chunks(output: Output) -> Iterator[bytes]:
    """Yield the output as clean UTF-8, in chunks of whole lines.

    A read error ends the output there; the lines before it still count.
    """
    prefixes = list[re.Pattern[bytes]]()
    for position, chunk in enumerate(_by_line(as_utf8(_raw(output)))):
        cleaned = clean(chunk)
        if position == 0:
            prefixes = collector_prefixes(cleaned.split(b"\n", PREFIX_LINES)[:PREFIX_LINES])
        yield without_prefixes(cleaned, prefixes)


def from_root(pieces: Iterable[bytes], root: str) -> Iterator[bytes]:
    """Make paths inside the repository relative to its root.

    A test runner's marks of progress may stand right before a path: `..F/src/cart.rb:1`.
    """
    start = root.rstrip("/").encode() + b"/"
    before = rb"(?:^[.FES]+|(?<![\w./-])(?:file://)?)"
    beneath = re.compile(before + re.escape(start), re.MULTILINE) if start != b"/" else None
    for piece in pieces:
        yield beneath.sub(b"", piece) if beneath and start in piece else piece


def _raw(output: Output) -> Iterator[bytes]:
    if isinstance(output, str):
        for start in range(0, len(output), CHUNK):
            yield output[start : start + CHUNK].encode(errors="replace")
    elif isinstance(output, (bytes, bytearray, memoryview)):
        view = memoryview(output)
        for start in range(0, len(view), CHUNK):
            yield bytes(view[start : start + CHUNK])
    else:
        yield from _read(output)


def _read(stream: BinaryIO) -> Iterator[bytes]:
    """Read a file or a pipe, opened as bytes or as text."""
    while True:
        try:
            piece: bytes | str | None = stream.read(CHUNK)
        except (OSError, ValueError):
            return
        if not piece:
            return
        yield piece.encode(errors="replace") if isinstance(piece, str) else piece


def as_utf8(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Turn UTF-16 into UTF-8; any other encoding stays as it is."""
    first = next(pieces, b"")
    name = _encoding(first)
    rest = chain([first], pieces)
    if name is None:
        yield from (piece.removeprefix(codecs.BOM_UTF8) for piece in rest)
        return
    decoder = codecs.getincrementaldecoder(name)(errors="replace")
    for piece in rest:
        yield decoder.decode(piece).encode(errors="replace")


def _encoding(start: bytes) -> str | None:
    """Detect UTF-16 by its byte order mark, or by a zero in every second byte at the start."""
    look = start[:ENCODING_SAMPLE_BYTES]
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and b"\0" in look:
        return "utf-16"
    for name, offset in (("utf-16-le", 1), ("utf-16-be", 0)):
        half = look[offset::2]
        if len(half) > 1 and half.count(0) > 0.8 * len(half) and look.count(0) < 0.6 * len(look):
            return name
    return None


def _by_line(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Cut at line ends; cut a longer line at a carriage return, or anywhere."""
    kept = b""
    for piece in pieces:
        kept += piece
        if len(kept) < CHUNK:
            continue
        cut = kept.rfind(b"\n") + 1 or kept.rfind(b"\r", 0, -1) + 1 or len(kept)
        yield kept[: cut - 1] if kept[cut - 1 : cut] == b"\n" else kept[:cut]
        kept = kept[cut:]
    if kept:
        yield kept.removesuffix(b"\n")


# Escape sequences, control characters, and lines printed over

COLOURS = re.compile(rb"\x1b\[[0-9;]*m")
MOVES = re.compile(rb"\x1b\[[0-9;]*[ABEFHfd]")
TO_COLUMN = re.compile(rb"\x1b\[[0-9]*G")
FORWARD = re.compile(rb"\x1b\[[0-9]*C")

ESCAPES = re.compile(
    rb"\x1b\[[0-?]*[ -/]*[@-~]"  # erasing, modes
    rb"|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)?"  # titles, links
    rb"|\x1b[PX^_][^\x1b\n]*(?:\x1b\\)?"  # device strings
    rb"|\x1b[ -/]*[0-~]?"
)

BACKSPACES = re.compile(r"(?:[^\n\x08]?\x08)++")

CONTROLS = bytes(set(range(32)) - set(b"\b\t\n\r\x1b")) + b"\x7f"
BINARY = CONTROLS.replace(b"\0", b"")
"""Tools rarely print these; of random bytes they are a tenth. Zeros come from other encodings."""
BINARY_SHARE = 0.02
SAME_DIGITS = bytes.maketrans(b"0123456789", b"1" * 10)


def _is_binary(data: bytes) -> bool:
    rest = data.translate(None, BINARY)
    return len(data) - len(rest) > BINARY_SHARE * len(data) and not _is_utf8(data)


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def clean(chunk: bytes) -> bytes:
    """Remove binary data, escape sequences, controls and overprinted text; keep the lines."""
    if _is_binary(chunk):
        chunk = b"\n".join(b"" if _is_binary(line) else line for line in chunk.split(b"\n"))
    if b"\x1b" in chunk:
        chunk = COLOURS.sub(b"", chunk)
    if b"\x1b" in chunk:
        chunk = MOVES.sub(b"\n", chunk)
        chunk = TO_COLUMN.sub(b"\r", chunk)
        chunk = FORWARD.sub(b" ", chunk)
        chunk = ESCAPES.sub(b"", chunk)
    chunk = chunk.translate(None, CONTROLS)
    if b"webpack:///" in chunk:
        chunk = chunk.replace(b"webpack:///./", b"").replace(b"webpack:///", b"")
    if b"\b" in chunk:
        text = chunk.decode(errors="surrogateescape")
        chunk = BACKSPACES.sub("", text).encode(errors="surrogateescape")
    if b"\r" in chunk:
        chunk = b"\n".join(_as_seen(line) for line in chunk.split(b"\n"))
    return chunk


FAILURE_STEMS = (
    b"error",
    b"fail",
    b"fatal",
    b"panic",
    b"exception",
    b"denied",
    b"not found",
    b"abort",
)
"""Words that keep a line even if it was overprinted or is very long."""


def _as_seen(line: bytes) -> bytes:
    """Return the final state of an overprinted line, and earlier states that name a failure."""
    if b"\r" not in line:
        return line
    states = [state for state in line.split(b"\r") if state.strip()]
    alike = {state.translate(SAME_DIGITS): state for state in states[:-1]}
    said = [
        state for state in alike.values() if any(word in state.lower() for word in FAILURE_STEMS)
    ]
    return b"\n".join([*said, *states[-1:]])


# Prefixes of log collectors

STAMP = rb"\[?(?:\d{4}[-/]\d\d[-/]\d\d[T ])?\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]?[ \t]"

PREFIXES = (
    re.compile(rb"\n#\d+ \d+\.\d+ "),
    re.compile(rb"\n(?P<unit>[A-Za-z][\w.-]*)[ \t]*\|(?: (?:" + STAMP + rb")?|(?=\n|$))"),
    re.compile(rb"\n(?P<unit>@?[\w/.-]+:[a-z][\w-]*):(?: |(?=\n|$))"),
    re.compile(rb"\n(?P<unit>[\w@.-]*/[\w@./-]+) [a-z][\w:-]*(?:\$ |:(?: |(?=\n|$)))"),
    re.compile(rb"\n(?P<unit>@[\w.-]+/[\w.-]+):(?: |(?=\n|$))"),
    re.compile(rb"\n" + STAMP),
    re.compile(rb"\n(?!FAIL\t|PASS\t|SKIP\t|ok\t)(?P<unit>[\w@./:-]+)\t"),
    re.compile(rb"\n[IOE]:(?: |(?=\n|$))"),
    re.compile(
        rb"\n\[(?!gw\d|(?i:info|error|warn|warning|debug|trace|fatal|notice|err|fail|ok)\])"
        rb"(?P<unit>[A-Za-z][\w@/.:-]*)\](?: |(?=\n|$))"
    ),
)
"""The prefix that log collectors put before each line: a build step, a service, a time, a task."""

MIN_PREFIX_LINES, PREFIX_LINES = 4, 300
"""Lines that tell a prefix, at least and at most."""
PREFIX_SHARE, LEAST_SHARE, MAX_PREFIXES = 0.8, 0.5, 3
"""The share of lines with a prefix, from the first to the last program's line, and of all lines."""
MAX_UNITS = 60
"""Names that a prefix may have; more are no names of programs."""

UNIT, UNITS_END = b"==> ", b"<=="
"""The lines over the output of one of several programs, and after that of the last."""


def collector_prefixes(lines: Sequence[bytes]) -> list[re.Pattern[bytes]]:
    """Find the prefixes, one after the other, that nearly all of these lines carry."""
    found = list[re.Pattern[bytes]]()
    while len(found) < MAX_PREFIXES and (prefix := _prefix(lines)):
        found.append(prefix)
        lines = [prefix.sub(b"", b"\n" + line).removeprefix(b"\n") for line in lines]
    return found


def _prefix(lines: Sequence[bytes]) -> re.Pattern[bytes] | None:
    full = [b"\n" + line for line in lines if line.strip()]
    if len(full) < MIN_PREFIX_LINES:
        return None
    for prefix in PREFIXES:
        found = [(at, match) for at, line in enumerate(full) if (match := prefix.match(line))]
        matches = [match for _, match in found]
        span = found[-1][0] - found[0][0] + 1 if found and prefix.groups else len(full)
        if len(matches) < max(PREFIX_SHARE * span, LEAST_SHARE * len(full)):
            continue
        if len({match["unit"] for match in matches} if prefix.groups else ()) <= MAX_UNITS:
            return prefix
    return None


def without_prefixes(chunk: bytes, prefixes: Iterable[re.Pattern[bytes]]) -> bytes:
    """Take the prefixes off; put the lines of each program together, under its name."""
    for prefix in prefixes:
        chunk = (_by_unit if prefix.groups else _without)(prefix, chunk)
    return chunk


def _without(prefix: re.Pattern[bytes], chunk: bytes) -> bytes:
    return prefix.sub(b"\n", b"\n" + chunk)[1:]


def _by_unit(prefix: re.Pattern[bytes], chunk: bytes) -> bytes:
    """Sort the lines by their program, if there are several; lines of none stay outside."""
    before, *pieces = prefix.split(b"\n" + chunk)
    units, texts = pieces[::2], pieces[1::2]
    after = list[bytes]()
    if chunk.count(b"\n") - before.count(b"\n") >= len(texts):
        after = [other for text in texts for other in text.split(b"\n")[1:]]
        texts = [text.partition(b"\n")[0] for text in texts]
    lines_of = {unit: [UNIT + unit] for unit in dict.fromkeys(units)}
    if not 1 < len(lines_of) <= MAX_UNITS:
        return _without(prefix, chunk)
    for unit, text in zip(units, texts, strict=True):
        lines_of[unit].append(text)
    parts = map(b"\n".join, lines_of.values())
    return b"\n".join([*before.split(b"\n")[1:], *parts, UNITS_END, *after])


# Single lines

LONG_LINE = 1250
LINE_END = 300
AROUND_WORD = 150


def clip_line(line: bytes) -> bytes:
    """Shorten a long line to its ends and the surroundings of words about failure."""
    if len(line) <= LONG_LINE:
        return line
    parts, done = [line[:LINE_END]], LINE_END
    for at in sorted(_failure_word_positions(line.lower())):
        start, end = max(done, at - AROUND_WORD), min(at + AROUND_WORD, len(line) - LINE_END)
        if start < at < end and sum(map(len, parts)) < LONG_LINE - 2 * LINE_END:
            parts.append(line[start:end])
            done = end
    return b" ... ".join([*parts, line[-LINE_END:]])


def _failure_word_positions(lowered: bytes) -> set[int]:
    """Return the first and the last position of each word about failure."""
    ends = ((lowered.find(word), lowered.rfind(word)) for word in FAILURE_STEMS)
    return {at for places in ends for at in places if at >= 0}


def as_text(line: bytes) -> str:
    """Decode a line of any bytes, without trailing spaces and control characters."""
    text = line.decode(errors="replace").rstrip()
    return text if text.isprintable() else "".join(filter(_is_plain, text))


def _is_plain(character: str) -> bool:
    return character == "\t" or not ("\x7f" <= character <= "\x9f" or character in "\u2028\u2029")


# Reducing an output to the lines worth reading

ALIKE_STRONG, ALIKE_WEAK = 100, 20
"""The number of relevant lines of one shape that are kept, with their surroundings."""

MAX_WEIGHED, MAX_UNWEIGHED = 250, 100
"""The number of shapes of a chunk that are weighed; as many more count as weak."""

MAX_REMEMBERED_SHAPES, MAX_KNOWN_SHAPES = 5000, 200_000

VARYING = b"0123456789abcdef"
"""The parts that a line's shape omits, so that lines with other numbers and hashes are alike."""

BEFORE, AFTER_STRONG, AFTER_WEAK = 3, 12, 4
SMALL_OUTPUT_BYTES = 256 * 1024
"""The number of new shapes of a chunk that are read; only a few stems are searched in others."""

PER_STEM = 1000


NOISE = 20
"""A line is noise if more lines than this equal it, apart from numbers and names with numbers."""

NOISE_CHARS = 25
VARIABLE = re.compile(r"\b(?:(?=[a-zA-Z_]*\d)\w+|[a-f]{5,}\b)")


@dataclass(frozen=True)
class CleanLog:
    """The kept lines of an output of `total` lines; `lines[i]` was line `numbers[i]` (from 1).

    `dropped` counts, by shape, the relevant lines that are missing because many are alike.
    """

    lines: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    total: int = 0
    dropped: Mapping[bytes, int] = field(default_factory=dict[bytes, int])

    @classmethod
    def of(cls, text: str) -> "CleanLog":
        """Make a log from a complete, clean text."""
        lines = tuple(text.split("\n"))
        return cls(lines, tuple(range(1, len(lines) + 1)), len(lines))

    @cached_property
    def is_blank(self) -> bool:
        """Return whether all lines are blank."""
        return not any(line.strip() for line in self.lines)

    @cached_property
    def _shapes(self) -> tuple[str, ...]:
        """Return the lines with a placeholder for each number, and each name with a number."""
        if len(self.lines) <= NOISE:
            return ("",) * len(self.lines)
        return tuple(
            VARIABLE.sub("1", line) if len(line) > NOISE_CHARS else "" for line in self.lines
        )

    @cached_property
    def common(self) -> frozenset[int]:
        """Return the lines that many other lines equal in shape."""
        often = Counter(self._shapes)
        shapes = enumerate(self._shapes)
        return frozenset(at for at, shape in shapes if shape and often[shape] > NOISE)

    @cached_property
    def noise(self) -> frozenset[int]:
        """Return the lines of the program's own log: frequent ones that report no clear failure."""
        weights = dict[str, Weight]()
        for at in self.common:
            if self._shapes[at] not in weights:
                weights[self._shapes[at]] = weigh(self.lines[at])
        return frozenset(at for at in self.common if weights[self._shapes[at]] <= Weight.WORD)

    def without(self, indices: Collection[int]) -> "CleanLog":
        """Return the log with some lines made empty."""
        lines = ("" if at in indices else line for at, line in enumerate(self.lines))
        return CleanLog(tuple(lines), self.numbers, self.total, self.dropped)

    def omitted_before(self, index: int) -> int:
        """Count the omitted lines right before a kept line."""
        before = self.numbers[index - 1] if index else 0
        return self.numbers[index] - before - 1


def reduce_output(chunks: Iterable[bytes]) -> CleanLog:
    """Reduce clean chunks of whole lines to WHOLE_BYTES; a smaller output stays whole."""
    sieve = _LineFilter()
    for chunk in chunks:
        sieve.take(chunk)
    return sieve.log()


WHOLE_BYTES = 96 * 1024
"""An output of at most this size is read whole; of a larger one, somewhat less."""
HEAD_BYTES = 6 * 1024
TAIL_BYTES = 24 * 1024
STRONG_BYTES = 52 * 1024
WEAK_BYTES = 8 * 1024
LINE_COST = 20
"""Bytes that each line counts in addition to its own: many short lines take long to read."""

Numbered = tuple[int, bytes]


@dataclass(slots=True)
class _LineBuffer:
    """Lines within a limit of bytes: the first lines fill one half, the latest ones the other."""

    room: int
    first: list[Numbered] = field(default_factory=list[Numbered])
    latest: deque[Numbered] = field(default_factory=deque[Numbered])
    size_first: int = 0
    size_latest: int = 0
    kept_to: int = 0

    def add(self, number: int, line: bytes) -> None:
        self.kept_to = number
        line = clip_line(line)
        size = len(line) + LINE_COST
        if self.size_first + size <= self.room // 2:
            self.size_first += size
            self.first.append((number, line))
            return
        self.size_latest += size
        self.latest.append((number, line))
        while self.size_latest > self.room // 2:
            self.size_latest -= len(self.latest.popleft()[1]) + LINE_COST

    @property
    def size(self) -> int:
        return self.size_first + self.size_latest

    def within(self, room: int) -> Iterator[Numbered]:
        """Yield the lines within a smaller limit."""
        room = self.room if self.size <= room else room
        yield from _within(room // 2, self.first)
        yield from _within(room // 2, reversed(self.latest))


@dataclass(slots=True)
class _LineFilter:
    """The lines kept so far of a streamed output."""

    head: list[Numbered] = field(default_factory=list[Numbered])
    recent: deque[tuple[int, Sequence[bytes]]] = field(default_factory=lambda: deque(maxlen=2))
    named: _LineBuffer = field(default_factory=lambda: _LineBuffer(STRONG_BYTES))
    strong: _LineBuffer = field(default_factory=lambda: _LineBuffer(STRONG_BYTES))
    weak: _LineBuffer = field(default_factory=lambda: _LineBuffer(WEAK_BYTES))
    weights: dict[bytes, Weight] = field(default_factory=dict[bytes, Weight])
    wanted: dict[bytes, int] = field(default_factory=dict[bytes, int])
    known: set[bytes] = field(default_factory=set[bytes])
    total: int = 0
    size: int = 0
    owed: tuple[int, _LineBuffer] | None = None
    """How many lines after the last chunk belong to what it has, and where they are kept."""
    dropped: Counter[bytes] = field(default_factory=Counter[bytes])

    def take(self, chunk: bytes) -> None:
        """Process the next lines of the output."""
        lines = chunk.split(b"\n")
        if not self.total:
            self.head = list(_within(HEAD_BYTES, enumerate(lines, start=1)))
        shapes = chunk.translate(None, VARYING).split(b"\n")
        owed, self.owed = self.owed, None
        if owed:
            self._keep(lines, 0, *owed)
        for index, weight in self._hits(lines, shapes):
            store = self._buffer_of(weight)
            after = AFTER_WEAK if store is self.weak else AFTER_STRONG
            self._keep(lines, index - BEFORE, index + after, store)
        self.recent.append((self.total, lines))
        self.total += len(lines)
        self.size += len(chunk) + LINE_COST * len(lines)

    def _buffer_of(self, weight: Weight) -> _LineBuffer:
        if weight < STRONG:
            return self.weak
        return self.named if weight >= Weight.CRASH else self.strong

    def _hits(
        self, lines: Sequence[bytes], shapes: Sequence[bytes]
    ) -> Iterator[tuple[int, Weight]]:
        """Yield the index and the weight of each relevant line."""
        self._weigh_new(lines, shapes)
        weights, wanted = self.weights, self.wanted
        often = Counter(shapes if weights else ())
        # The search ends at the last line that is wanted.
        count = sum(min(often[shape], wanted[shape]) for shape in wanted.keys() & often.keys())
        places = (at for at, shape in enumerate(shapes) if shape in wanted)
        for index in islice(places, count):
            shape = shapes[index]
            wanted[shape] -= 1
            self.dropped[shape] -= 1
            if not wanted[shape]:
                del wanted[shape]
            yield index, weights[shape]
        self.dropped.update({shape: often[shape] for shape in weights.keys() & often.keys()})

    def _weigh_new(self, lines: Sequence[bytes], shapes: Sequence[bytes]) -> None:
        """Weigh one line of each new shape; forget the shapes without weight."""
        new = {*shapes} - self.known
        if not new:
            return
        if len(self.known) > MAX_KNOWN_SHAPES:
            self.known.clear()
        if len(self.weights) > MAX_REMEMBERED_SHAPES:
            self.weights.clear()
            self.wanted.clear()
        self.known |= new
        of_shape = dict(zip(shapes, lines, strict=True))
        # In the order of the output, the last first; of a set, it changes with each process.
        shape_of = {line: shape for shape, line in reversed(of_shape.items()) if shape in new}
        for line, weight in _weighed(shape_of):
            shape = shape_of[line]
            if shape not in self.weights:
                self.wanted[shape] = ALIKE_STRONG if weight >= STRONG else ALIKE_WEAK
            self.weights[shape] = weight

    def _keep(self, lines: Sequence[bytes], start: int, end: int, store: _LineBuffer) -> None:
        left = end - len(lines)
        if left > (self.owed[0] if self.owed else 0):
            self.owed = (left, store)
        for index in range(max(start, store.kept_to - self.total, 0), min(end, len(lines))):
            store.add(self.total + index + 1, lines[index])

    def log(self) -> CleanLog:
        """Return the kept lines as a log."""
        recent = (
            (at + n, lines[n - 1])
            for at, lines in reversed(self.recent)
            for n in range(len(lines), 0, -1)
        )
        tail = _within(WHOLE_BYTES if self.size <= WHOLE_BYTES else TAIL_BYTES, recent)
        half = STRONG_BYTES // 2
        named = self.named.within(max(half, STRONG_BYTES - self.strong.size))
        strong = self.strong.within(max(half, STRONG_BYTES - self.named.size))
        kept = dict(chain(self.head, named, strong, self.weak.within(WEAK_BYTES), tail))
        numbers = tuple(sorted(kept))
        lines = tuple(as_text(kept[number]) for number in numbers)
        dropped = self.dropped if len(lines) < self.total else Counter[bytes]()
        return CleanLog(lines, numbers, self.total, dropped)


def _within(room: int, lines: Iterable[Numbered]) -> Iterator[Numbered]:
    for number, line in lines:
        clipped = clip_line(line)
        room -= len(clipped) + LINE_COST
        if room < 0:
            return
        yield number, clipped


def _weighed(lines: Collection[bytes]) -> Iterator[tuple[bytes, Weight]]:
    """Yield the lines that have a weight; beyond a limit, the last ones count as weak."""
    text = b"\n".join(lines)
    varied = len(text) > SMALL_OUTPUT_BYTES
    stems, patterns = (FEW_STEMS, FEW_SHAPES) if varied else (BYTE_STEMS, BYTE_SHAPES)
    speaking = (line for line in dict.fromkeys(_with_stems(text, stems, patterns)) if line in lines)
    for position, line in enumerate(islice(speaking, MAX_WEIGHED + MAX_UNWEIGHED)):
        weight = weigh(as_text(clip_line(line))) if position < MAX_WEIGHED else Weight.WORD
        if weight:
            yield line, weight


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

FEW_SHAPES = tuple(re.compile(stem.encode()) for stem in PLACE_SHAPES)
BYTE_SHAPES = (*FEW_SHAPES, re.compile(CODED.pattern.encode()))


LOUD = (
    *(b"Traceback (most", b"panicked at", b"panic: ", b"--- FAIL", b"not ok ", b"FAILED", b"FAIL"),
    *(b": error: ", b"error[", b"Error: ", b"Exception: ", b"Exception in", b"error: ", b"ERROR"),
    *(b"FATAL", b"fatal: ", b"fatal error", b"Failure", b"Fault", b"fault", b"Error ", b"Error("),
    *(b"ssertion", b"undefined reference", b"Uncaught", b"Caused by", b"anitizer", b"Killed"),
    *("✗".encode(), "✖".encode(), "✕".encode(), "●".encode(), "×".encode()),
)
"""Words of the worst lines, in their spelling; searched before any stem."""

PER_LOUD = 60
"""The number of lines of each kind that are taken from a chunk, before more of any kind."""


def _loudest(text: bytes) -> Iterator[bytes]:
    """Return the lines with the worst words, the first of each kind before the second of any."""
    kinds = [islice(_lines_with(text, text, word), PER_LOUD) for word in LOUD]
    for alike in zip_longest(*kinds):
        yield from (line for line in alike if line is not None)


def _lines_with(text: bytes, searched: bytes, word: bytes) -> Iterator[bytes]:
    at = searched.find(word)
    while at >= 0:
        start, end = _bounds(text, at)
        yield text[start:end]
        at = searched.find(word, end)


def _with_stems(
    text: bytes, stems: Iterable[bytes], shapes: Iterable[re.Pattern[bytes]]
) -> Iterator[bytes]:
    """Return the lines of a text that have the stem of a word about failure, a place or a code."""
    yield from _loudest(text)
    lowered = text.lower()
    for stem in stems:
        yield from islice(_lines_with(text, lowered, stem), PER_STEM)
    for shape in shapes:
        for found in islice(shape.finditer(text), PER_STEM):
            start, end = _bounds(text, found.start())
            yield text[start:end]


def _bounds(text: bytes, at: int) -> tuple[int, int]:
    end = text.find(b"\n", at)
    return text.rfind(b"\n", 0, at) + 1, end if end >= 0 else len(text)
