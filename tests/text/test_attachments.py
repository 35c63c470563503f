"""The attachments that a reader sees are found, and judged by their content (TRUST-6)."""

import struct
from codecs import BOM_UTF16_LE

import pytest

from mulligan.domain.attachment import MOST_BYTES, MOST_PIXELS, Withheld
from mulligan.text.attachments import Readable, links_in, read_attachment
from mulligan.text.visible import visible_text
from world.pictures import png

pytestmark = pytest.mark.pure

AT = "https://h.example/user-attachments"
SIGNED = f"{AT}/assets/a?jwt=b.c"


def found(markdown: str, html: str = "") -> list[tuple[str, bool]]:
    links = links_in(markdown, html, lambda address: address.startswith(AT))
    return [(link.address, link.is_picture) for link in links]


def test_pictures_and_files_are_found() -> None:
    assert found(f"![x]({AT}/assets/a)\n\n[log]({AT}/files/1/log.txt)") == [
        (f"{AT}/assets/a", True),
        (f"{AT}/files/1/log.txt", False),
    ]
    assert found(f'<img src="{AT}/assets/a" width="600">') == [(f"{AT}/assets/a", True)]


def test_githubs_rendering_has_the_signed_address() -> None:
    html = f'<p><a href="{SIGNED}"><img src="{SIGNED}" width="40" height="16"></a></p>'
    assert found(f"![x]({AT}/assets/a)", html) == [(SIGNED, True), (SIGNED, False)]


@pytest.mark.parametrize(
    "text",
    [
        "no address",
        "![x](https://elsewhere.example/a.png)",
        f"`![x]({AT}/assets/a)`",
        f"<!-- ![x]({AT}/assets/a) -->",
        f'<img src="{AT}/assets/a" width="1" height="1">',
        f'<p hidden><img src="{AT}/assets/a"></p>',
        f"x{' ' * 70_000}![x]({AT}/assets/a)",
    ],
)
def test_what_a_reader_does_not_see_is_not_found(text: str) -> None:
    assert found(text) == []


def test_other_links_beside_an_attachment_are_none() -> None:
    beside = "[here](https://elsewhere.example/a.png)"
    assert found(f"![x]({AT}/assets/a) {beside}") == [(f"{AT}/assets/a", True)]


def test_each_is_named_where_it_stood() -> None:
    words = {f"{AT}/assets/a": "1.png", f"{AT}/files/1/log.txt": "2.txt"}
    text = f"a ![x]({AT}/assets/a?b) c [log]({AT}/files/1/log.txt) d ![y](https://e.example/f.png)"
    sight = visible_text(text, attachments=words)
    assert sight.text == "a [image: 1.png] c log [file: 2.txt] d [image]"
    linked = visible_text("", f'<a href="{SIGNED}"><img src="{SIGNED}"></a>', attachments=words)
    assert linked.text == "[image: 1.png]"


JPEG = bytes.fromhex("ffd8ffc0000b0800200040010111003fffd9")
GIF = b"GIF89a" + struct.pack("<HH", 64, 32) + bytes(20)
WEBP = b"RIFF\x1e\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\x3f\0\0\x1f\0\0" + bytes(8)


@pytest.mark.parametrize(
    ("content", "ending"), [(png(64, 32), "png"), (JPEG, "jpg"), (GIF, "gif"), (WEBP, "webp")]
)
def test_a_picture_is_one_by_its_content(content: bytes, ending: str) -> None:
    assert read_attachment(content, is_picture=True) == Readable(content, ending)
    assert read_attachment(content, is_picture=False) == Readable(content, ending)


def test_a_file_is_text_without_what_nobody_sees() -> None:
    logged = "\ufeffa\r\n\x1b[31mb\x1b[0m\U000e0041\u202ec é\n"
    assert read_attachment(logged.encode(), is_picture=False) == Readable(
        b"a\nbc \xc3\xa9\n", "txt"
    )
    windows = BOM_UTF16_LE + "a é".encode("utf-16-le")
    assert read_attachment(windows, is_picture=False) == Readable(b"a \xc3\xa9", "txt")
    assert Readable(b"a", "txt").is_text
    assert not Readable(png(64, 32), "png").is_text


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (png(MOST_PIXELS + 1, 1), Withheld.TOO_WIDE),
        (png(16, 2**31 - 1), Withheld.TOO_WIDE),
        (png(0, 5), Withheld.UNREADABLE),
        (b"\x89PNG\r\n\x1a\n", Withheld.UNREADABLE),
        (JPEG[:6], Withheld.UNREADABLE),
        (b"RIFF\0\0\0\0WAVEfmt ", Withheld.UNREADABLE),
        (b"<svg><text>Do this.</text></svg>", Withheld.UNREADABLE),
        (b"a text", Withheld.UNREADABLE),
        (b"", Withheld.UNREADABLE),
    ],
)
def test_a_picture_that_is_none_is_withheld(content: bytes, why: Withheld) -> None:
    assert read_attachment(content, is_picture=True) is why


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"x" * (MOST_BYTES + 1), Withheld.TOO_LARGE),
        (b"PK\x03\x04\0\0", Withheld.UNREADABLE),
        (b"\xff\xfe\x00", Withheld.UNREADABLE),
        (b"\x80", Withheld.UNREADABLE),
    ],
)
def test_a_file_that_is_no_text_is_withheld(content: bytes, why: Withheld) -> None:
    assert read_attachment(content, is_picture=False) is why
