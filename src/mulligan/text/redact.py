"""Take secrets out of text: those of the configuration, and what has the shape of a token. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter

from pydantic import JsonValue

from mulligan.text.secret_forms import forms_of
from mulligan.text.token_shapes import SHAPES

REDACTED = b"[redacted]"
LEAST = 8
"""Shorter values are no secrets: they would take ordinary words out of every text."""

LONGEST = 32 * 1024
"""How much of a stream is held back at most, while it may yet turn out to be a secret."""

OVERLAP = 8 * 1024
"""How much of a line without end is held back, in case that a token goes on in the next piece."""

KEY_BEGIN, KEY_END = b"-----BEGIN ", b"-----END "
KEY_LINE = 80
"""The longest line of a private key that is told by what follows it."""

Span = tuple[int, int]


@dataclass(frozen=True)
class Redactor:
    """The one filter for every place that text goes to (SPEC S5); `values` are the known secrets.

    Redacting twice gives the same as once. Texts without a secret come back as they are.
    """

    values: tuple[str, ...] = ()

    def text(self, text: str) -> str:
        """Redact text."""
        found = self.content(text.encode(errors="surrogatepass"))
        return found.decode(errors="surrogatepass")

    def content(self, content: bytes) -> bytes:
        """Redact bytes, whatever their encoding, as long as it holds ASCII."""
        while spans := self.spans(content):
            clean = _without(content, spans)
            if clean == content:
                break
            # What stood close to a secret may show as one only now.
            content = clean
        return content

    def tree(self, value: JsonValue) -> JsonValue:
        """Redact every text in a JSON value, its keys left alone."""
        match value:
            case str():
                return self.text(value)
            case list():
                return [self.tree(each) for each in value]
            case dict():
                return {key: self.tree(each) for key, each in value.items()}
            case _:
                return value

    def stream(self) -> "Redaction":
        """Begin to redact output that comes in pieces."""
        return Redaction(self)

    def spans(self, content: bytes) -> list[Span]:
        """Find the secrets, in their order; those that touch or overlap are one."""
        found = sorted({*self._known(content), *_shaped(content)}, key=itemgetter(0))
        merged = list[Span]()
        for start, end in found:
            if merged and start <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((start, end))
        return merged

    def knows_of(self, content: bytes) -> bool:
        """Tell whether a known secret stands in bytes, however it is written."""
        return next(self._known(content), None) is not None

    def _known(self, content: bytes) -> Iterator[Span]:
        for form in self._forms:
            start = content.find(form)
            while start >= 0:
                yield start, start + len(form)
                start = content.find(form, start + len(form))

    @cached_property
    def _forms(self) -> tuple[bytes, ...]:
        """Every way in which a value may be written; a value of several lines, each line too."""
        values = {value.strip() for value in self.values}
        lines = {line.strip() for value in values for line in value.splitlines()}
        wanted = [value for value in values | lines if len(value) >= LEAST]
        return tuple(sorted({form for value in wanted for form in forms_of(value)}))


class Redaction:
    """Output that comes in pieces: what may be the beginning of a secret waits for the next one."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = b""

    @property
    def held_bytes(self) -> int:
        """Say how much is held back now."""
        return len(self._held)

    def feed(self, piece: bytes) -> bytes:
        """Take a piece; give what can be shown by now: as a rule, all lines that have ended."""
        self._held += piece
        if len(self._held) < LONGEST and b"\n" not in piece and b"\r" not in piece:
            return b""
        spans = self._redactor.spans(self._held)
        cut = self._cut(spans)
        shown, self._held = self._held[:cut], self._held[cut:]
        clean = _without(shown, [(start, min(end, cut)) for start, end in spans if start < cut])
        return self._redactor.content(clean) if clean != shown else shown

    def end(self) -> bytes:
        """Give what was held back, when nothing more comes."""
        rest, self._held = self._held, b""
        return self._redactor.content(rest)

    def _cut(self, spans: list[Span]) -> int:
        """Find the place up to which nothing that comes can change what is a secret."""
        held = self._held
        cut = max(held.rfind(b"\n"), held.rfind(b"\r")) + 1
        if len(held) - cut >= LONGEST:
            cut = len(held) - OVERLAP
        open_at = [
            start for start, end in spans if start < cut and self._may_go_on(start, end, cut)
        ]
        if open_at and len(held) - open_at[0] < LONGEST:
            return open_at[0]
        return cut

    def _may_go_on(self, start: int, end: int, cut: int) -> bool:
        """Tell whether a secret reaches the cut; a key of several lines may, short of its end."""
        span = self._held[start:end]
        key = span.rfind(KEY_BEGIN) > span.rfind(KEY_END)
        return end >= cut - KEY_LINE if key else end >= cut


def _shaped(content: bytes) -> Iterator[Span]:
    for shape in SHAPES:
        # Looking for a few letters is a hundred times as fast as trying the pattern everywhere.
        if any(hint in content for hint in shape.hints):
            for match in shape.pattern.finditer(content):
                yield match.span(match.lastindex or 0)


def _without(content: bytes, spans: Iterable[Span]) -> bytes:
    kept, at = list[bytes](), 0
    for start, end in spans:
        kept += (content[at:start], REDACTED)
        at = end
    return b"".join((*kept, content[at:]))
