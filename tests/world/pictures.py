"""Pictures that tests attach to issues, and a program that reads a number from one."""

import struct
import zlib

SCALE = 8

GLYPHS = {
    "0": "111101101101111",
    "1": "010110010010111",
    "2": "111001111100111",
    "3": "111001111001111",
    "4": "101101111001001",
    "5": "111100111001111",
    "6": "111100111101111",
    "7": "111001001001001",
    "8": "111101111101111",
    "9": "111101111001111",
}
"""Each digit as five rows of three dots."""


def png(width: int, height: int, rows: bytes = b"") -> bytes:
    """Write a picture in shades of grey; without `rows`, only its header is true."""
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = (_chunk(b"IHDR", header), _chunk(b"IDAT", zlib.compress(rows)), _chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def _chunk(kind: bytes, content: bytes) -> bytes:
    checked = kind + content
    return struct.pack(">I", len(content)) + checked + struct.pack(">I", zlib.crc32(checked))


def picture_of(number: str) -> bytes:
    """Draw a number."""
    rows = list[bytes]()
    for row in range(5):
        dots = "0".join(GLYPHS[digit][3 * row : 3 * row + 3] for digit in number)
        line = b"\0" + b"".join((b"\0" if dot == "1" else b"\xff") * SCALE for dot in dots)
        rows += [line] * SCALE
    return png(SCALE * (4 * len(number) - 1), SCALE * 5, b"".join(rows))


READER = f"""
import struct, zlib

def read_number(picture):
    width, height = struct.unpack(">II", picture[16:24])
    start = picture.index(b"IDAT")
    size = struct.unpack(">I", picture[start - 4:start])[0]
    rows = zlib.decompress(picture[start + 4:start + 4 + size])
    dark = lambda x, y: rows[y * (width + 1) + 1 + x] == 0
    glyphs = {{shape: digit for digit, shape in {GLYPHS!r}.items()}}
    number = ""
    for left in range(0, width, 4 * {SCALE}):
        number += glyphs["".join(
            str(int(dark(left + x * {SCALE} + 4, y * {SCALE} + 4)))
            for y in range(5) for x in range(3)
        )]
    return number
"""
"""The source of a function that reads what `picture_of` drew, from its pixels."""
