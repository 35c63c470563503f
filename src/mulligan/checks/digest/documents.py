"""Find the JSON and XML documents in a text, and the records of JSON logs. Pure."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from mulligan.checks.digest.clean import VARYING

Json = str | int | float | bool | list["Json"] | dict[str, "Json"] | None

OPENS = re.compile(r"^[ \t]*+(?:[\[{]|<\?xml|<testsuites?\b|<checkstyle\b)", re.MULTILINE)

XML = re.compile(r"<\?xml\b|<(?:testsuites?|checkstyle)\b")

XML_END = re.compile(r"</(?:testsuites?|checkstyle)>")

BEGINS = re.compile(
    r'^[ \t]*+(?:\{(?=\s*["}])|\[(?=\s*(?:["\[{\]\d-]|true|false|null|NaN|Infinity)))', re.MULTILINE
)
"""Where JSON may begin: a bracket with a continuation that JSON allows, unlike `[ok]`."""

DECODER = json.JSONDecoder(strict=False)

MAX_DOCUMENTS = 1000
"""The maximum number of documents, and of failed attempts to read one, in a text."""

SNIFF_CHARS = 64 * 1024

MAX_DOCUMENT_CHARS = 8 * 1024 * 1024
"""In bytes; a longer output is not read as a report."""


@dataclass(frozen=True, slots=True)
class Document:
    """Parsed JSON, or the text of XML, in the lines `first` to `last` (from 1).

    Consecutive lines of JSON are one document, a list.
    """

    value: Json
    first: int
    last: int
    is_xml: bool = False
    is_lines: bool = False
    rows: frozenset[int] = frozenset()
    """The lines of the document, if other lines are between them."""


def looks_structured(start: str) -> bool:
    """Return whether a document may begin within this beginning of a text."""
    return bool(OPENS.search(start))


def documents(text: str) -> list[Document]:
    """Return the documents of a text, with anything between them."""
    if found := _xml(text):
        return [found]
    lines = text.split("\n")
    rows = list(_rows(lines))
    if len(rows) > 1:
        value: list[Json] = [row for _, row in rows]
        numbers = frozenset(number for number, _ in rows)
        return [Document(value, rows[0][0], rows[-1][0], is_lines=True, rows=numbers)]
    return list(_whole(text))


def _xml(text: str) -> Document | None:
    start = XML.search(text)
    if start is None:
        return None
    ends = [found.end() for found in XML_END.finditer(text, start.start())]
    end = ends[-1] if ends else len(text)
    first, last = _line_at(text, start.start()), _line_at(text, end)
    return Document(text[start.start() : end], first, last, is_xml=True)


def _rows(lines: Sequence[str]) -> Iterator[tuple[int, Json]]:
    """Yield the lines that are a JSON object each, with their numbers."""
    for number, line in enumerate(lines, start=1):
        if line[:1] == "{" and line.rstrip()[-1:] == "}":
            value = _parsed(line)
            if isinstance(value, dict):
                yield number, value


def _parsed(text: str) -> Json:
    try:
        value: Json = DECODER.decode(text)
    except (ValueError, RecursionError):
        return None
    return value


def _whole(text: str) -> Iterator[Document]:
    """Yield the values that start at the beginning of a line.

    All failed attempts together may read the text once, so that the time grows no faster than the
    text.
    """
    done, line, room = 0, 1, len(text)
    for opening in islice(BEGINS.finditer(text), MAX_DOCUMENTS):
        start = opening.end() - 1
        if start < done:
            continue
        try:
            found: tuple[Json, int] = DECODER.raw_decode(text, start)
        except json.JSONDecodeError as error:
            room -= error.pos - start
            if room < 0:
                return
            continue
        except (ValueError, RecursionError):
            return
        first = line + text.count("\n", done, start)
        line = first + text.count("\n", start, found[1])
        value, done = found
        yield Document(value, first, line)


def _line_at(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


@dataclass(slots=True)
class BufferedOutput:
    """Chunks of an output that may be a report; empty if it is too long or not a report."""

    chunks: list[bytes] = field(default_factory=list[bytes])
    room: int = MAX_DOCUMENT_CHARS

    def passing(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the chunks unchanged; keep them while there is room."""
        for position, chunk in enumerate(chunks):
            if position == 0 and not looks_structured(chunk[:SNIFF_CHARS].decode(errors="replace")):
                self.room = 0
            self.room -= len(chunk)
            if self.room >= 0:
                self.chunks.append(chunk)
            else:
                self.chunks.clear()
            yield chunk

    @property
    def text(self) -> str:
        """The kept text, with the line numbers of the output."""
        return b"\n".join(self.chunks).decode(errors="replace")


# Records of a log, each an object on a line

RECORD_LEVEL = (
    *("level", "levelname", "severity", "lvl", "log.level", "loglevel", "log_level", "@l"),
)
LEVEL_KEYS = tuple(f'"{name}"'.encode() for name in RECORD_LEVEL)

_NAMED = rb' ?: ?(?:\{[^{}]{0,60}?"name" ?: ?)?'

QUIET_LEVEL = re.compile(
    _NAMED
    + rb'(?:"(?i:info|information|informational|debug|trace|verbose|notice|fine|finer|finest)"'
    rb"|(?:10|20|30)(?=[,}\s]))"
)
LOUD_LEVEL = re.compile(
    _NAMED
    + rb'(?:"(?i:warn|warning|err|error|severe|critical|crit|fatal|panic|alert|emergency|emerg)"'
    rb"|[4-6]0(?=[,}\s]))"
)

TIMES = ("ts", "time", "timestamp", "@timestamp", "@t", "asctime", "datetime", "date", "t")

RECORD_KEYS = tuple(
    f'"{name}"'.encode()
    for name in (
        *TIMES,
        *("logger", "logger_name", "exc_info", "stack", "stack_trace", "stacktrace", "exception"),
        *("pid", "hostname"),
    )
)
"""Keys that only a log record has: the report of a tool has no times."""

MILD_LEVELS = {"warn", "warning", "40"}

RECORD_MESSAGE = ("message", "msg", "@m", "text", "event", "short_message", "log", "body")
RECORD_FILE = ("file", "filename", "pathname", "source", "path", "caller", "module_path")
RECORD_LINE = ("line", "lineno", "line_number", "lineNumber")
TRACES = (
    *("exc_info", "exc_text", "exception", "stack", "stack_trace", "stacktrace", "stack_info"),
    *("traceback", "err", "error", "error.stack", "error.message", "cause", "@x", "errorVerbose"),
)
DEEPEST_TRACE, MOST_PARTS = 3, 20
STACK = re.compile(r"Traceback \(most recent|\n\s+at \S")
"""What the text of a stack trace holds, in whatever field it is."""

FRAMES = ("frames", "stacktrace", "backtrace")
MOST_ALIKE = 30
"""The number of records that are kept of those that differ only in numbers and hashes."""

MAX_LOUD = 500
"""The number of records about failures that are kept from the start of a chunk, and from its end.
"""

SHAPE_BYTES = 300
LAST_RECORDS = 3
"""Quiet records that are kept from the end of a log."""


def without_quiet_records(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Write the records about failures of a JSON log as plain lines, and drop the others.

    Lines that are not records stay as they are. The last records stay too, because they show where
    the log ended.
    """
    alike = Counter[bytes]()
    for piece in pieces:
        if b"{" in piece and any(key in piece for key in LEVEL_KEYS):
            yield b"\n".join(_loud_lines(piece.split(b"\n"), alike))
        else:
            yield piece


def _loud_lines(lines: Iterable[bytes], alike: Counter[bytes]) -> list[bytes]:
    """Drop records that report no failure; `alike` counts the others by shape, over all pieces."""
    kept, last, loud = list[bytes](), list[bytes](), list[int]()
    usual = (LEVEL_KEYS[0], RECORD_KEYS[0])
    for line in lines:
        at = line.find(usual[0]) if line[:1] == b"{" else -1
        if line[:1] == b"{" and (at < 0 or usual[1] not in line):
            usual, at = _level_at(line) or (usual, -1)
        if at < 0:
            kept.append(line)
            continue
        value = at + len(usual[0])
        is_loud = LOUD_LEVEL.match(line, value) is not None
        if QUIET_LEVEL.match(line, value):
            last.append(line)
        elif not is_loud or _is_new(line, alike):
            loud += [len(kept)] * is_loud
            kept.append(line)
    read = {*loud[:MAX_LOUD], *loud[-MAX_LOUD:]}
    for at in loud:
        kept[at] = _as_plain(kept[at]) if at in read else b""
    return [*kept, *last[-LAST_RECORDS:]]


def _is_new(line: bytes, alike: Counter[bytes]) -> bool:
    shape = line.translate(None, VARYING)[:SHAPE_BYTES]
    alike[shape] += 1
    return alike[shape] <= MOST_ALIKE


def _level_at(line: bytes) -> tuple[tuple[bytes, bytes], int] | None:
    """Return the keys that make a line a record, and the position of its level."""
    if line[:1] != b"{" or line[-1:] not in {b"}", b"\r"}:
        return None
    level = next((key for key in LEVEL_KEYS if key in line), None)
    record = next((key for key in RECORD_KEYS if key in line), None)
    return ((level, record), line.find(level)) if level and record else None


def _as_plain(line: bytes) -> bytes:
    record = _parsed(line.decode(errors="replace"))
    if not isinstance(record, dict):
        return line
    for part in list(record.values()):
        if isinstance(part, dict) and not part.keys().isdisjoint(RECORD_LEVEL):
            record = part | record
    level = _first(record, RECORD_LEVEL)
    message, file, number = (
        _first(record, names) for names in (RECORD_MESSAGE, RECORD_FILE, RECORD_LINE)
    )
    kind = "WARNING" if level.lower() in MILD_LEVELS else "ERROR"
    traces = list(_traces({name: record[name] for name in TRACES if name in record}, DEEPEST_TRACE))
    traces += [
        text
        for text in record.values()
        if isinstance(text, str) and STACK.search(text) and text not in traces
    ]
    where = f"{file}:{number}: " if file and number.isdigit() else f"{file}: " if file else ""
    head = f"{where}{kind.lower()}: {message}" if where else f"{kind}: {message}"
    head = " ".join([head, *_fields(record)])
    return "\n".join([head, *traces]).encode(errors="replace")


NO_FIELDS = frozenset(
    (*RECORD_LEVEL, *RECORD_MESSAGE, *RECORD_FILE, *RECORD_LINE, *TRACES, *TIMES, "pid", "hostname")
)
MOST_FIELDS, FIELD_CHARS = 12, 80


def _fields(record: dict[str, Json]) -> Iterator[str]:
    """Yield `name=value` for the short fields that say what the message is about."""
    named = (
        f"{name}={value}"
        for name, value in record.items()
        if name not in NO_FIELDS and isinstance(value, (str, int, float))
    )
    yield from islice((text for text in named if len(text) <= FIELD_CHARS), MOST_FIELDS)


def _first(record: dict[str, Json], names: Iterable[str]) -> str:
    if record.keys().isdisjoint(names):
        return ""
    values = (record.get(name) for name in names)
    texts = (str(value) for value in values if isinstance(value, (str, int)) and value != "")
    return next(texts, "")


def _traces(value: Json, depth: int) -> Iterator[str]:
    """Yield the texts below the fields of an exception; a stack repeats its message."""
    if isinstance(value, str) and value.strip():
        yield value
    elif isinstance(value, list):
        for part in value[-MOST_PARTS:]:
            yield from _traces(part, depth)
    elif isinstance(value, dict) and (stack := _stack_of(value)):
        yield stack
    elif isinstance(value, dict) and depth:
        names = ("type", "name", "message", "stack", *TRACES)
        stacked = any(isinstance(value.get(name), str) and value.get(name) for name in ("stack",))
        shown = [
            name
            for name in dict.fromkeys(names)
            if name in value and not (stacked and name in names[:3])
        ]
        for name in shown:
            yield from _traces(value.get(name), depth - 1)


def _stack_of(value: dict[str, Json]) -> str:
    """Write an exception whose frames are objects as Python's traceback."""
    inner = next((value[name] for name in FRAMES if name in value), None)
    if isinstance(inner, dict):
        inner = inner.get("frames")
    frames = (
        [frame for frame in inner[-MOST_PARTS:] if isinstance(frame, dict)]
        if isinstance(inner, list)
        else []
    )
    if not frames:
        return ""
    lines = ["Traceback (most recent call last):"]
    for frame in frames:
        file, number, name = (
            _first(frame, names)
            for names in (RECORD_FILE, RECORD_LINE, ("name", "function", "method"))
        )
        lines.append(f'  File "{file}", line {number}, in {name}')
    kind = _first(value, ("exc_type", "type", "class", "name"))
    said = _first(value, ("exc_value", "value", "message"))
    return "\n".join([*lines, f"{kind}: {said}"])
