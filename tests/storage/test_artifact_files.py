"""Files of attempts on a disk that fills up, and scratch ones that go with their process."""

import subprocess
import sys
from pathlib import Path

import pytest

from mulligan.domain.errors import UnavailableError
from mulligan.domain.issue import IssueRef
from mulligan.storage.artifacts import FileArtifacts, scratch_artifacts
from mulligan.text.redact import Redactor

REF = IssueRef("octo/hello", 12)
ON_A_SMALL_DISK = """
import resource, sys
from pathlib import Path
from mulligan.domain.issue import IssueRef
from mulligan.domain.errors import UnavailableError
from mulligan.storage.artifacts import FileArtifacts
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    ref = IssueRef("octo/hello", 12)
    FileArtifacts(Path(sys.argv[1])).write(ref, 1, "changes.diff", b"x" * 5000)
except UnavailableError as error:
    print(error)
"""
LEFT_OPEN = """
from mulligan.domain.issue import IssueRef
from mulligan.storage.artifacts import scratch_artifacts
from mulligan.text.redact import Redactor
scratch = scratch_artifacts(Redactor())
print(scratch.__enter__().path(IssueRef("octo/hello", 12), 1, "agent.log").parent)
"""


def run(code: str, *arguments: str) -> str:
    argv = [sys.executable, "-c", code, *arguments]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


def test_a_disk_that_fills_up_is_a_sentence_and_leaves_the_old_file(tmp_path: Path) -> None:
    artifacts = FileArtifacts(tmp_path)
    name = artifacts.write(REF, 1, "changes.diff", b"old")
    said = run(ON_A_SMALL_DISK, str(tmp_path))
    why = "cannot be used (File too large); check its permissions and its disk."
    assert said == f"{tmp_path / name} {why}\n"
    assert artifacts.read(name) == b"old"
    assert [file.name for file in (tmp_path / name).parent.iterdir()] == ["changes.diff"]


def test_a_root_that_is_a_file_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "artifacts").write_text("a file")
    with pytest.raises(UnavailableError, match=r"cannot be used \(Not a directory\)"):
        FileArtifacts(tmp_path / "artifacts").write(REF, 1, "prompt.md", b"")


def test_files_are_for_the_owner_alone(tmp_path: Path) -> None:
    name = FileArtifacts(tmp_path).write(REF, 1, "prompt.md", b"")
    assert (tmp_path / name).stat().st_mode & 0o077 == 0


def test_scratch_files_are_gone_when_they_are_closed() -> None:
    with scratch_artifacts(Redactor()) as scratch:
        place = scratch.path(REF, 1, "agent.log")
        place.write_bytes(b"working")
        assert place.exists()
    assert not place.exists()
    assert not place.parents[4].exists()


def test_scratch_files_that_nobody_closed_go_with_the_process() -> None:
    assert not Path(run(LEFT_OPEN).strip()).exists()


def test_two_dry_runs_do_not_meet() -> None:
    with scratch_artifacts(Redactor()) as first, scratch_artifacts(Redactor()) as second:
        name = first.write(REF, 1, "prompt.md", b"")
        with pytest.raises(UnavailableError, match="no longer exists"):
            second.read(name)
