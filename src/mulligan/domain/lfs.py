"""Pointers of Git LFS, by the specification in the repository git-lfs/git-lfs. Pure."""

import re
from typing import NamedTuple

MAX_POINTER_BYTES = 1024
"""The limit of a pointer."""

POINTER = re.compile(
    rb"version https://(?:git-lfs\.github|hawser\.github)\.com/spec/v1\n"
    rb"(?:[a-z0-9.-]+ [^\n]*\n)*oid sha256:(?P<oid>[0-9a-f]{64})\nsize (?P<size>\d+)\n"
)

EXTENSION = re.compile(rb"^ext-", re.MULTILINE)


class LfsObject(NamedTuple):
    """The content of a file: its SHA-256 in hex, and its size in bytes."""

    oid: str
    size: int


def read_pointer(text: bytes) -> LfsObject | None:
    """Parse a pointer; None if it is none, or needs an extension to be read."""
    found = POINTER.fullmatch(text)
    if found is None or EXTENSION.search(text):
        return None
    return LfsObject(found["oid"].decode(), int(found["size"]))
