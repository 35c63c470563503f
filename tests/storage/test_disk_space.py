"""How much room there is for a directory, be it there already or not."""

import os
from pathlib import Path

import pytest

from mulligan.domain.errors import UnavailableError
from mulligan.storage.state_directory import disk_space_for


def test_a_directory_that_is_not_there_is_judged_by_where_it_would_be(tmp_path: Path) -> None:
    found = disk_space_for(tmp_path / "a" / "b")
    assert found.path == tmp_path / "a" / "b"
    assert found.writable
    assert found.free > 0
    assert found.free_files is None or found.free_files > 0
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_way_cannot_be_written_into(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert not disk_space_for(tmp_path / "file").writable


@pytest.mark.skipif(os.getuid() == 0, reason="root may write anywhere")
def test_a_directory_without_rights_cannot_be_written_to(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert not disk_space_for(tmp_path / "new").writable


def test_a_name_that_cannot_be_is_one_sentence() -> None:
    with pytest.raises(UnavailableError, match="could not be read"):
        disk_space_for(Path("/", "x" * 300, "y"))
