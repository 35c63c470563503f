"""How one secret may be written: as it is, and in the encodings that logs and URLs use. Pure."""

import base64
import json
import string
from collections.abc import Iterator

UNRESERVED = frozenset(f"{string.ascii_letters}{string.digits}-._~".encode())
"""What percent-encoding leaves alone (RFC 3986)."""


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


def _percent(raw: bytes) -> str:
    return "".join(chr(byte) if byte in UNRESERVED else f"%{byte:02X}" for byte in raw)


def _base64_forms(raw: bytes) -> Iterator[bytes]:
    """Give what is the same in Base64 whatever stands before and after, for all three places."""
    for before in range(3):
        first = -(-before * 8 // 6)
        last = (before + len(raw)) * 8 // 6
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            yield encode(b"\0" * before + raw)[first:last]
