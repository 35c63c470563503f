"""Git LFS in bare repositories of this disk: pointers, and objects where git-lfs keeps them."""

import hashlib
from pathlib import Path

VERSION = "version https://git-lfs.github.com/spec/v1"


def oid_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def pointer(content: bytes, *, size: int | None = None) -> str:
    """Write the pointer of a content."""
    return (
        f"{VERSION}\noid sha256:{oid_of(content)}\nsize {len(content) if size is None else size}\n"
    )


def place(repository: Path, oid: str) -> Path:
    return repository / "lfs/objects" / oid[:2] / oid[2:4] / oid


def store(repository: Path, content: bytes) -> str:
    """Put an object into a bare repository, as `git lfs push` to a local path does."""
    file = place(repository, oid_of(content))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return pointer(content)
