"""Redact secrets in text: those of the configuration, and texts shaped like tokens. Pure."""

import base64
import json
import re
import string
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter

from pydantic import JsonValue

# Shapes of tokens


@dataclass(frozen=True, slots=True)
class Shape:
    """A pattern: its first group is the secret, else all of it; one of `hints` is always there."""

    hints: tuple[bytes, ...]
    pattern: re.Pattern[bytes]


ALONE = rb"(?<![A-Za-z0-9_])"
"""What stands before a token: not the middle of a word."""


def _token(pattern: bytes, *hints: bytes) -> Shape:
    return Shape(hints, re.compile(ALONE + pattern))


def _after(pattern: bytes, *hints: bytes) -> Shape:
    return Shape(hints, re.compile(pattern))


PRIVATE_KEY = (
    rb"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    rb"(?:[ \t]*(?:\r?\n|\\r|\\n)[+ \t]*(?:Proc-Type|DEK-Info|Version|Comment):[^\r\n\\]*)*"
    rb"(?:[\s\"',]|\\[nr]|[A-Za-z0-9+/=]{20,}|[A-Za-z0-9+/=]{1,76}(?=[\s\"'+\\nr]{0,12}-----END))*"
    rb"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?"
)
"""A block as ssh-keygen, OpenSSL and GnuPG write it, in a file, a diff or a quoted string."""

SHAPES = (
    _token(rb"gh[pousr]_[A-Za-z0-9_]{20,}", b"ghp_", b"gho_", b"ghu_", b"ghs_", b"ghr_"),
    _token(rb"github_pat_[A-Za-z0-9_]{20,}", b"github_pat_"),
    # Anthropic, OpenAI and those that write their keys like them.
    _token(rb"sk-(?=[A-Za-z_-]{0,200}[0-9])[A-Za-z0-9_-]{20,}", b"sk-"),
    _token(rb"AIza[A-Za-z0-9_-]{35}", b"AIza"),
    _token(rb"ya29\.[A-Za-z0-9_-]{20,}", b"ya29."),
    _token(rb"GOCSPX-[A-Za-z0-9_-]{20,}", b"GOCSPX-"),
    _token(rb"(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])", b"AKIA", b"ASIA"),
    _after(
        rb"(?i:aws_?secret_?(?:access_?)?key)[\"']?\s{0,4}[:=]\s{0,4}[\"']?([A-Za-z0-9/+]{40})",
        *(b"secret", b"Secret", b"SECRET"),
    ),
    _token(rb"xox[abeoprs]-[A-Za-z0-9-]{10,}", b"xox"),
    _token(rb"xapp-[A-Za-z0-9-]{10,}", b"xapp-"),
    _after(rb"hooks\.slack\.com/services/([A-Za-z0-9/_-]{20,})", b"hooks.slack.com"),
    _token(rb"npm_[A-Za-z0-9]{30,}", b"npm_"),
    _token(rb"pypi-[A-Za-z0-9_-]{30,}", b"pypi-"),
    _token(rb"glpat-[A-Za-z0-9_-]{20,}", b"glpat-"),
    _token(rb"hf_[A-Za-z0-9]{30,}", b"hf_"),
    _token(rb"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}", b"eyJ"),
    _after(rb"://[^\s/:@\"'<>]{0,128}:([^\s/@\"'<>]{1,256})@", b"://"),
    _after(
        rb"(?i:authorization)[\"']?\s{0,4}[:=]\s{0,4}[\"']?"
        rb"(?i:bearer|basic|token)\s{1,4}([^\s\"',;]{8,})",
        *(b"uthorization", b"UTHORIZATION"),
    ),
    _after(PRIVATE_KEY, b"PRIVATE KEY"),
)


# Removing secrets

REDACTED = b"[redacted]"

LEAST = 8
"""Characters of a secret, at least: shorter values would redact ordinary words."""

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
        """Redact every text in a JSON value, but no keys."""
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


LONGEST = 32 * 1024
"""Bytes of a stream that are held back at most, since they may begin a secret."""

OVERLAP = 8 * 1024
"""Bytes of an endless line that are held back, since a token may continue in the next piece."""

KEY_BEGIN, KEY_END = b"-----BEGIN ", b"-----END "

KEY_LINE = 80
"""Characters of the longest line of a private key."""


class Redaction:
    """Output that comes in pieces: what may be the beginning of a secret waits for the next one."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = b""

    @property
    def held_bytes(self) -> int:
        """Give the number of bytes that are held back now."""
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


# The ways in which a value may be written


def forms_of(value: str) -> set[bytes]:
    """Give every form: plain, JSON, percent-encoded, hex, Base64 (at any place in other text)."""
    raw = value.encode(errors="surrogatepass")
    texts = {
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        raw.hex(),
        raw.hex().upper(),
        _percent(raw),
        _percent(raw).replace("%2F", "/"),
        _percent(raw).replace("%20", "+"),
    }
    encoded = {text.encode(errors="surrogatepass") for text in texts}
    return {raw, *encoded, *_base64_forms(raw)}


UNRESERVED = frozenset(f"{string.ascii_letters}{string.digits}-._~".encode())
"""Bytes that percent-encoding does not change (RFC 3986)."""


def _percent(raw: bytes) -> str:
    return "".join(chr(byte) if byte in UNRESERVED else f"%{byte:02X}" for byte in raw)


def _base64_forms(raw: bytes) -> Iterator[bytes]:
    """Give what is the same in Base64 whatever stands before and after, for all three places."""
    for before in range(3):
        first = -(-before * 8 // 6)
        last = (before + len(raw)) * 8 // 6
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            yield encode(b"\0" * before + raw)[first:last]
