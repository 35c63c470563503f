"""An image is named by its content, whatever its tag points to later (IMAGE-1)."""

from dataclasses import replace
from pathlib import Path

import pytest

from mulligan.domain.image import Image

pytestmark = pytest.mark.pure


def test_the_name_of_an_image_has_its_digest_once() -> None:
    digest = f"sha256:{'1' * 64}"
    tagged = Image("ghcr.io/octo/ci:1", digest, Path("/srv/images/1"), {})
    assert tagged.name == f"ghcr.io/octo/ci:1@{digest}"
    assert (
        replace(tagged, reference=f"ghcr.io/octo/ci@{digest}").name == f"ghcr.io/octo/ci@{digest}"
    )
