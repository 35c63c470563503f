"""Find the attachments in a text, and read what was attached by its content (TRUST-6). Pure."""

import re
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from io import BytesIO

from bs4 import Tag

from mulligan.domain.attachment import MOST_BYTES, MOST_PIXELS, Withheld
from mulligan.text.escape import visible
from mulligan.text.hidden import strip_invisible
from mulligan.text.rendered import rendered
from mulligan.text.visible import MOST_BYTES as MOST_TEXT
from mulligan.text.visible import MOST_HTML, cut

# In a text

ADDRESS = re.compile(r"https?://[^\s\"'<>()\[\]]+")
"""An address in a text or in HTML, up to a bracket or quotation mark."""


@dataclass(frozen=True, slots=True)
class Link:
    """A picture, or a link to a file; `address` may have a query with a signature."""

    address: str
    is_picture: bool


SMALLEST = 16
"""Pixels; a picture of less width or height than that is a decoration, or hides."""


def links_in(
    markdown: str, html: str, is_upload: Callable[[str], bool], *, most: int = MOST_TEXT
) -> Iterator[Link]:
    """Yield the uploads that a reader of a text sees; the arguments are those of visible_text."""
    within, over = cut(markdown, most)
    if not any(map(is_upload, ADDRESS.findall(html or within))):
        return
    page = rendered(within, Counter(), "" if over or len(html) > MOST_HTML * most else html)
    pictures = [tag for tag in page.find_all("img") if _is_large(tag)]
    for tag in (*pictures, *page.find_all("a")):
        address = str(tag.get("src") or tag.get("href") or "")
        if is_upload(address):
            yield Link(address, is_picture=tag.name == "img")


def _is_large(picture: Tag) -> bool:
    sizes = (str(picture.get(name) or "") for name in ("width", "height"))
    return all(int(size[:9]) >= SMALLEST for size in sizes if size.isdecimal())


def without_query(address: str) -> str:
    """Return an address that stays the same: without a signature, which soon expires."""
    return address.partition("?")[0].partition("#")[0]


# By its content


TEXT = "txt"


@dataclass(frozen=True, slots=True)
class Readable:
    """A picture as it was sent, or a text in UTF-8 without invisible characters."""

    content: bytes
    ending: str

    @property
    def is_text(self) -> bool:
        """Return whether it is a text."""
        return self.ending == TEXT


PICTURES: Mapping[str, tuple[bytes, bytes]] = {
    "png": (b"\x89PNG\r\n\x1a\n", b""),
    "jpg": (b"\xff\xd8\xff", b""),
    "gif": (b"GIF8", b""),
    "webp": (b"RIFF", b"WEBP"),
}
"""How a picture begins, and what stands at its byte 8."""


def read_attachment(content: bytes, *, is_picture: bool) -> Readable | Withheld:
    """Return what an agent can read; text only where a link shows a file, not a picture."""
    if len(content) > MOST_BYTES:
        return Withheld.TOO_LARGE
    for ending, (first, eighth) in PICTURES.items():
        if content.startswith(first) and content.startswith(eighth, 8 if eighth else 0):
            return _picture(content, ending)
    return Withheld.UNREADABLE if is_picture else _text(content)


def _picture(content: bytes, ending: str) -> Readable | Withheld:
    # The package has no types.
    sides: tuple[int, int] = import_module("imagesize").get(BytesIO(content))
    if min(sides) < 1:
        return Withheld.UNREADABLE
    return Withheld.TOO_WIDE if max(sides) > MOST_PIXELS else Readable(content, ending)


ENCODINGS = {BOM_UTF8: "utf-8-sig", BOM_UTF16_LE: "utf-16", BOM_UTF16_BE: "utf-16"}
"""Of a text by its first bytes; PowerShell writes logs in UTF-16."""


def _text(content: bytes) -> Readable | Withheld:
    encoding = next((ENCODINGS[mark] for mark in ENCODINGS if content.startswith(mark)), "utf-8")
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError:
        return Withheld.UNREADABLE
    if "\0" in text:
        return Withheld.UNREADABLE
    return Readable(visible(strip_invisible(text, Counter())).encode(), TEXT)
