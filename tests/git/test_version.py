"""Which git is there."""

from pathlib import Path

import pytest

from mulligan.domain.errors import MisconfiguredError
from mulligan.git.repository import version


def fake(directory: Path, said: str) -> dict[str, str]:
    (directory / "git").write_text(f"#!/bin/sh\necho {said!r}\n")
    (directory / "git").chmod(0o755)
    return {"PATH": str(directory)}


def test_git_is_asked_for_its_version(tmp_path: Path) -> None:
    assert version({}) >= (2, 20)
    assert version(fake(tmp_path, "git version 2.31.1.windows.1")) == (2, 31)


def test_a_git_that_is_none_is_told(tmp_path: Path) -> None:
    with pytest.raises(MisconfiguredError, match="install it"):
        version({"PATH": str(tmp_path)})
    with pytest.raises(MisconfiguredError, match="install git"):
        version(fake(tmp_path, "hello"))
