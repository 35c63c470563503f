"""A pointer of Git LFS is known by its text; what only looks like one stays as it is."""

import pytest

from mulligan.domain.lfs import LfsObject, read_pointer

pytestmark = pytest.mark.pure

VERSION = "version https://git-lfs.github.com/spec/v1\n"
OID = "ab" * 32
CONTENT = f"oid sha256:{OID}\nsize 12345\n"


@pytest.mark.parametrize(
    "text",
    [
        f"{VERSION}{CONTENT}",
        f"version https://hawser.github.com/spec/v1\n{CONTENT}",
        f"{VERSION}a-key with a value\n{CONTENT}",
    ],
)
def test_a_pointer_names_its_content(text: str) -> None:
    assert read_pointer(text.encode()) == LfsObject(OID, 12345)


@pytest.mark.parametrize(
    "text",
    [
        "",
        CONTENT,
        f"{VERSION}{CONTENT}more\n",
        f"{VERSION}oid sha256:{OID[1:]}\nsize 12345\n",
        f"{VERSION}oid sha256:{OID}\nsize many\n",
        f"version https://example.com/spec/v1\n{CONTENT}",
    ],
)
def test_what_only_looks_like_a_pointer_is_none(text: str) -> None:
    assert read_pointer(text.encode()) is None


def test_a_pointer_that_needs_an_extension_is_none() -> None:
    extension = f"ext-0-smudger sha256:{OID}\n"
    assert read_pointer(f"{VERSION}{extension}{CONTENT}".encode()) is None
