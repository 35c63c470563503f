"""Redact secrets in text: those of the configuration, and what `secret_shapes` finds. Pure."""

import base64
import html
import json
import re
import string
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import accumulate, compress

from pydantic import JsonValue

from mulligan.text.secret_shapes import Span, possible_tokens, shaped

# Removing secrets

REDACTED = b"[redacted]"

LEAST = 8
"""Minimum length of a secret: shorter values would redact ordinary words."""

COLOURS = re.compile(rb"\x1b\[[0-?]*+[ -/]*+[@-~]")
CONTROLS = bytes(sorted({*range(32), 127} - {*b"\t\n"}))
"""Control characters that a terminal does not show, such as carriage returns and colours."""

LINE_ENDS = b"\r\n"
"""Programs such as base64 break long lines."""
JSON_LINE_ENDS = (b"\\n", b"\\r")
"""Line ends in a string of JSON, as agents report the output of programs."""

HEX_MARKS = (b"0x", b"\\x", b"\\u00", b"&#x")
HEX_SEPARATORS = b" \t\r\n:,.-%=;"
"""Characters that programs write before and between bytes in hex: dumps, escapes, entities."""

CHUNK = 4096
"""Size in bytes of the steps in which kept positions are counted."""


@dataclass(frozen=True)
class Redactor:
    """The one filter for all text that leaves Mulligan (SECURITY-5); `values` are known secrets.

    Idempotent; text without a secret stays unchanged. `places` maps paths of this machine to the
    names to show instead; files keep the paths.
    """

    values: tuple[str, ...] = ()
    places: tuple[tuple[re.Pattern[str], str], ...] = ()

    def text(self, text: str) -> str:
        """Redact a text."""
        found = self.content(text.encode(errors="surrogatepass")).decode(errors="surrogatepass")
        for place, name in self.places:
            found = place.sub(name, found)
        return found

    def content(self, content: bytes) -> bytes:
        """Redact bytes in any encoding that contains ASCII."""
        while True:
            spans = self.spans(content)
            clean = _without(content, spans)
            if clean == content or not _touch_a_word(content, spans):
                return clean
            # Removing one secret may reveal another beside it; this ends after three rounds.
            content = clean

    def tree(self, value: JsonValue) -> JsonValue:
        """Redact every string in a JSON value, except keys."""
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
        """Return a redactor for output that arrives in pieces."""
        return Redaction(self)

    def spans(self, content: bytes) -> list[Span]:
        """Find the secrets, in order; merge those that touch or overlap."""
        found = [*self._known(content), *shaped(content, possible_tokens(content))]
        found += self._interrupted(content, shapes=True)
        found.sort()
        merged = list[Span]()
        began, ended = found[0] if found else (0, 0)
        for start, end in found:
            if start > ended:
                merged.append((began, ended))
                began, ended = start, end
            elif end > ended:
                ended = end
        return [*merged, (began, ended)] if found else merged

    def _interrupted(self, content: bytes, *, shapes: bool = False) -> set[Span]:
        """Find secrets whose bytes are interrupted by others that a reader does not see.

        These are control characters, which a terminal does not show, line ends, and separators
        between the hex digits of a dump. With `shapes`, also find text shaped like a token.
        """
        found = set[Span]()
        blanked = COLOURS.sub(b"\0", content) if b"\x1b[" in content else content
        if len(seen := blanked.translate(None, CONTROLS)) < len(blanked):
            possible = possible_tokens(seen) if shapes else []
            shown = {*self._known(seen), *(shaped(seen, possible) if shapes else ())}
            found |= _places(shown, blanked, CONTROLS)
            if blanked is not content:
                # A colour may end a word, so that a token begins after it.
                found |= {*(shaped(blanked, possible) if shapes else ())}
                found = _places_before_blanking(found, content)
        marked = content
        for mark in JSON_LINE_ENDS:
            marked = marked.replace(mark, b"\n" * len(mark))
        found |= _places({*self._known(marked.translate(None, LINE_ENDS))}, marked, LINE_ENDS)
        marked = content
        for mark in HEX_MARKS:
            marked = marked.replace(mark, b" " * len(mark))
        digits = marked.translate(None, HEX_SEPARATORS).lower()
        dumped = {span for form in self._hex_forms for span in _occurrences(form, digits)}
        return found | _places(dumped, marked, HEX_SEPARATORS)

    def contains_secret(self, content: bytes) -> bool:
        """Return whether bytes contain a known secret in any form."""
        return next(self._known(content), None) is not None or bool(self._interrupted(content))

    def begins(self, content: bytes) -> int:
        """Return where a known secret may begin that goes on after the last line; else the end."""
        end = content[-2 * LONGEST_FORM :].translate(None, LINE_ENDS)
        begun = max((_begun(form, end) for form in self._forms), default=0)
        if not begun:
            return len(content)
        ((start, _),) = _places(
            {(len(end) - begun, len(end))}, content[-2 * LONGEST_FORM :], LINE_ENDS
        )
        return max(0, len(content) - 2 * LONGEST_FORM) + start

    def _known(self, content: bytes) -> Iterator[Span]:
        for form in self._forms:
            yield from _occurrences(form, content)

    @cached_property
    def _forms(self) -> tuple[bytes, ...]:
        """Every form in which a value may be written."""
        return tuple(sorted({form for value in self._wanted for form in forms_of(value)}))

    @cached_property
    def _hex_forms(self) -> tuple[bytes, ...]:
        """Every value as lower-case hex digits."""
        return tuple(value.encode(errors="surrogatepass").hex().encode() for value in self._wanted)

    @cached_property
    def _wanted(self) -> tuple[str, ...]:
        """The values that are long enough; of a multi-line value, each line too."""
        values = {value.strip() for value in self.values}
        lines = {line.strip() for value in values for line in value.splitlines()}
        return tuple(sorted(value for value in values | lines if len(value) >= LEAST))


LONGEST = 32 * 1024
"""Limit of bytes of a stream to hold back because they may begin a secret."""

LONGEST_FORM = 1024
"""Bytes of the longest secret that is found across the pieces of a stream and its line ends."""

OVERLAP = 8 * 1024
"""Bytes of an endless line to hold back, since a token may continue in the next piece."""

KEY_BEGIN, KEY_END = b"-----BEGIN ", b"-----END "

KEY_LINE = 80
"""Characters of the longest line of a private key."""


class Redaction:
    """A redactor for output in pieces; holds back the possible beginning of a secret."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = b""

    def feed(self, piece: bytes) -> bytes:
        """Add a piece; return the output that is safe to show: usually all complete lines."""
        self._held += piece
        if len(self._held) < LONGEST and b"\n" not in piece:
            return b""
        spans = self._redactor.spans(self._held)
        cut = self._cut(spans)
        shown, self._held = self._held[:cut], self._held[cut:]
        clean = _without(shown, [(start, min(end, cut)) for start, end in spans if start < cut])
        return self._redactor.content(clean) if clean != shown else shown

    def end(self) -> bytes:
        """Return the bytes held back, at the end of the output."""
        rest, self._held = self._held, b""
        return self._redactor.content(rest)

    def _cut(self, spans: list[Span]) -> int:
        """Return the position before which later output cannot change the result."""
        held = self._held
        cut = held.rfind(b"\n") + 1
        if len(held) - cut >= LONGEST:
            cut = len(held) - OVERLAP
        open_at = [
            start for start, end in spans if start < cut and self._may_go_on(start, end, cut)
        ]
        begin = self._redactor.begins(held[:cut])
        within = [start for start, end in spans if start < begin < end]
        begin = min([begin, *within, *open_at[:1]])
        return begin if len(held) - begin < LONGEST else cut

    def _may_go_on(self, start: int, end: int, cut: int) -> bool:
        """Return whether a secret may continue beyond the cut, like an incomplete private key."""
        span = self._held[start:end]
        key = span.rfind(KEY_BEGIN) > span.rfind(KEY_END)
        return end >= cut - KEY_LINE if key else end >= cut


def _begun(form: bytes, text: bytes) -> int:
    """Count the bytes at the end of a text that are the beginning of a form."""
    sizes = range(min(len(form) - 1, len(text)), 0, -1)
    return next((size for size in sizes if text.endswith(form[:size])), 0)


def _without(content: bytes, spans: Sequence[Span]) -> bytes:
    starts, ends = [start for start, _ in spans], [end for _, end in spans]
    kept = zip([0, *ends], [*starts, len(content)], strict=True)
    return REDACTED.join([content[start:end] for start, end in kept])


def _occurrences(form: bytes, content: bytes) -> Iterator[Span]:
    start = content.find(form)
    while start >= 0:
        yield start, start + len(form)
        start = content.find(form, start + len(form))


def _places_before_blanking(spans: set[Span], content: bytes) -> set[Span]:
    """Map spans found with one byte for each colour to positions in the text with colours."""
    if not spans:
        return spans
    colours = [found.span() for found in COLOURS.finditer(content)]
    lengths = [0, *accumulate(end - start - 1 for start, end in colours)]
    blanks = [start - shorter for (start, _), shorter in zip(colours, lengths, strict=False)]

    def place(index: int) -> int:
        return index + lengths[bisect_left(blanks, index)]

    return {(place(start), place(end)) for start, end in spans}


def _places(spans: Iterable[Span], content: bytes, dropped: bytes) -> set[Span]:
    """Map spans found without the `dropped` bytes to positions in the text with them."""
    wanted = {*spans}
    if not wanted:
        return wanted
    chunks = [content[at : at + CHUNK] for at in range(0, len(content), CHUNK)]
    before = [0, *accumulate(len(chunk.translate(None, dropped)) for chunk in chunks)]
    kept = bytes(byte not in dropped for byte in range(256))

    @cache
    def places_in(chunk: int) -> list[int]:
        start = chunk * CHUNK
        marks = chunks[chunk].translate(kept)
        return [*compress(range(start, start + len(marks)), marks)]

    def place(index: int) -> int:
        chunk = bisect_right(before, index) - 1
        return places_in(chunk)[index - before[chunk]]

    return {(place(start), place(end - 1) + 1) for start, end in wanted}


AFTER = frozenset(string.ascii_letters.encode())
SPACES = frozenset(b" \t\r\n")
BEFORE = AFTER | frozenset(string.digits.encode()) | frozenset(range(128, 256))


def _touch_a_word(content: bytes, spans: Iterable[Span]) -> bool:
    """Return whether a word touches a secret: without the secret, the word might look like one."""
    padded = b" %b " % content
    return any(
        (padded[end + 1] in AFTER and content[end - 1] not in SPACES) or padded[start] in BEFORE
        for start, end in spans
    )


# The ways in which a value may be written


def forms_of(value: str) -> set[bytes]:
    """Return every form: reversed, JSON, HTML, percent-encoded, hex, Base64 (at any offset)."""
    raw = value.encode(errors="surrogatepass")
    quoted = json.dumps(value)[1:-1]
    texts = {
        value[::-1],
        quoted,
        json.dumps(value, ensure_ascii=False)[1:-1],
        # As PHP, Go and Gson write it.
        quoted.replace("/", "\\/"),
        *(_escaped(quoted, signs) for signs in ("<>&", "<>&='")),
        *(html.escape(value, quote=quote) for quote in (True, False)),
        html.escape(value).replace("&#x27;", "&#39;"),
        raw.hex(),
        raw.hex().upper(),
        _percent(raw),
        _percent(raw, "%{:02x}"),
        _percent(raw).replace("%2F", "/"),
        _percent(raw).replace("%20", "+"),
    }
    encoded = {text.encode(errors="surrogatepass") for text in texts}
    return {raw, *encoded, *_base64_forms(raw)}


UNRESERVED = frozenset(f"{string.ascii_letters}{string.digits}-._~".encode())
"""Bytes that percent-encoding does not change (RFC 3986)."""


def _percent(raw: bytes, form: str = "%{:02X}") -> str:
    return "".join(chr(byte) if byte in UNRESERVED else form.format(byte) for byte in raw)


def _escaped(text: str, signs: str) -> str:
    return "".join(f"\\u{ord(sign):04x}" if sign in signs else sign for sign in text)


def _base64_forms(raw: bytes) -> Iterator[bytes]:
    """Yield the part of the Base64 form that is the same beside any text, for each offset."""
    for before in range(3):
        first = -(-before * 8 // 6)
        last = (before + len(raw)) * 8 // 6
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            yield encode(b"\0" * before + raw)[first:last]
