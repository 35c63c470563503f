"""Find the documents, JSON or XML, that a text consists of or holds. Pure."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

Json = str | int | float | bool | list["Json"] | dict[str, "Json"] | None

OPENS = re.compile(r"^\s*(?:[\[{]|<\?xml|<testsuites?\b|<checkstyle\b)", re.MULTILINE)

XML = re.compile(r"<\?xml\b|<(?:testsuites?|checkstyle)\b")

XML_END = re.compile(r"</(?:testsuites?|checkstyle)>")

BEGINS = re.compile(
    r'^\s*(?:\{(?=\s*["}])|\[(?=\s*(?:["\[{\]\d-]|true|false|null|NaN|Infinity)))', re.MULTILINE
)
"""Where JSON may begin: what follows a bracket there can follow it in JSON, unlike in `[ok]`."""

MAX_DOCUMENTS = 1000
"""Documents, and failed attempts to read one, in a text."""

SNIFF_CHARS = 64 * 1024

MAX_DOCUMENT_CHARS = 8 * 1024 * 1024
"""Bytes; of an output that is longer no report is read."""


@dataclass(frozen=True, slots=True)
class Document:
    """What stands in lines `first` to `last` (from 1): parsed JSON, or the text of XML.

    Lines of JSON that follow each other are one document, a list.
    """

    value: Json
    first: int
    last: int
    is_xml: bool = False
    is_lines: bool = False
    rows: frozenset[int] = frozenset()
    """The lines that are of it, where others stand between them."""


def looks_structured(start: str) -> bool:
    """Tell whether a document may begin within this beginning of a text."""
    return bool(OPENS.search(start))


def documents(text: str) -> list[Document]:
    """Find the documents of a text, whatever stands between them."""
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
    """Yield the lines that are each an object, with their numbers."""
    for number, line in enumerate(lines, start=1):
        if line[:1] == "{" and line.rstrip()[-1:] == "}":
            value = _parsed(line)
            if isinstance(value, dict):
                yield number, value


def _parsed(text: str) -> Json:
    try:
        value: Json = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None
    return value


def _whole(text: str) -> Iterator[Document]:
    """Yield the values that begin where a line begins."""
    decoder, done = json.JSONDecoder(strict=False), 0
    for tried, opening in enumerate(BEGINS.finditer(text)):
        start = opening.end() - 1
        if start < done or tried > MAX_DOCUMENTS:
            continue
        try:
            found: tuple[Json, int] = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        value, done = found
        yield Document(value, _line_at(text, start), _line_at(text, done))


def _line_at(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


@dataclass(slots=True)
class BufferedOutput:
    """Chunks of an output that may be a report; none where it is too long or is none."""

    chunks: list[bytes] = field(default_factory=list[bytes])
    room: int = MAX_DOCUMENT_CHARS

    def passing(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the chunks as they are; keep them as long as there is room."""
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
        """What was kept, its lines numbered as in the output."""
        return b"\n".join(self.chunks).decode(errors="replace")
