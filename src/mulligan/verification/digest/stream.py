"""Read an output of any kind and size as clean chunks of whole lines, holding a few at a time."""

import codecs
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import BinaryIO

from mulligan.verification.digest.clean import clean, collector_prefix

CHUNK = 1024 * 1024
LOOK = 512

Output = bytes | str | BinaryIO


def chunks(output: Output) -> Iterator[bytes]:
    """Yield the output as UTF-8 in chunks that end where a line ends, cleaned.

    An error while reading ends the output there: what was read is still worth telling.
    """
    prefix = None
    for position, chunk in enumerate(_by_line(as_utf8(_raw(output)))):
        cleaned = clean(chunk)
        if position == 0:
            prefix = collector_prefix(cleaned.split(b"\n", 1000)[:1000])
        yield prefix.sub(b"", cleaned) if prefix else cleaned


def from_root(pieces: Iterable[bytes], root: str) -> Iterator[bytes]:
    """Leave the path of the repository out of the paths of what lies in it."""
    start = re.escape(root.rstrip("/").encode()) + b"/"
    beneath = re.compile(rb"(?<![\w./-])(?:file://)?" + start) if start != b"/" else None
    for piece in pieces:
        yield beneath.sub(b"", piece) if beneath else piece


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
    """Read a file or a pipe; one opened as text is taken too."""
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
    """Tell UTF-16 by its mark, or by every second byte of its beginning being nothing."""
    look = start[:LOOK]
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and b"\0" in look:
        return "utf-16"
    for name, offset in (("utf-16-le", 1), ("utf-16-be", 0)):
        half = look[offset::2]
        if len(half) > 1 and half.count(0) > 0.8 * len(half) and look.count(0) < 0.6 * len(look):
            return name
    return None


def _by_line(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Cut at line ends; a longer line is cut where it was printed over, or anywhere."""
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
