"""Any place for artifacts keeps whole files under names that lead nowhere else (port Artifacts)."""

import os
from collections.abc import Generator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from mulligan.domain.errors import UnavailableError
from mulligan.domain.issue import IssueRef
from mulligan.domain.retention import AttemptFiles
from mulligan.implement.ports import Artifacts
from mulligan.storage.artifacts import FileArtifacts, SharedArtifacts, scratch_artifacts
from mulligan.storage.database import open_database
from mulligan.text.redact import Redactor
from world.ledgers import TickingClock, migrated

NOW = datetime(2025, 3, 4, 12, 0, tzinfo=UTC)
REF = IssueRef("octo/hello.world", 12)


@pytest.fixture(params=["files", "scratch", "shared"])
def artifacts(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Artifacts]:
    if request.param == "files":
        yield FileArtifacts(tmp_path / "artifacts")
        return
    if request.param == "shared":
        with open_database(migrated(tmp_path / "ledger.db")) as database:
            yield SharedArtifacts(FileArtifacts(tmp_path / "artifacts"), database, TickingClock())
        return
    with scratch_artifacts(Redactor()) as scratch:
        yield scratch


def test_what_was_written_is_read_by_the_name_that_was_given(artifacts: Artifacts) -> None:
    name = artifacts.write(REF, 3, "prompt.md", b"Mend it.\x00\xff")
    assert name == "octo/hello.world/12/3/prompt.md"
    assert artifacts.read(name) == b"Mend it.\x00\xff"
    assert artifacts.read(name, last=2) == b"\x00\xff"
    assert artifacts.read(name, last=100) == b"Mend it.\x00\xff"


def test_a_second_writing_takes_the_place_of_the_first(artifacts: Artifacts) -> None:
    artifacts.write(REF, 1, "context.json", b"a longer text")
    name = artifacts.write(REF, 1, "context.json", b"short")
    assert artifacts.read(name) == b"short"
    assert [file.name for file in artifacts.path(REF, 1, "x").parent.iterdir()] == ["context.json"]


def test_attempts_and_issues_do_not_share_files(artifacts: Artifacts) -> None:
    first = artifacts.write(REF, 1, "changes.diff", b"1")
    second = artifacts.write(REF, 2, "changes.diff", b"2")
    other = artifacts.write(IssueRef("octo/hello.world", 1), 21, "changes.diff", b"3")
    assert [artifacts.read(name) for name in (first, second, other)] == [b"1", b"2", b"3"]


def test_a_file_that_somebody_else_writes_has_a_name_too(artifacts: Artifacts) -> None:
    log = artifacts.path(REF, 1, "agent.log")
    log.write_bytes(b"working")
    assert artifacts.read(artifacts.name(log)) == b"working"


def test_an_artifact_that_is_gone_is_a_sentence(artifacts: Artifacts) -> None:
    with pytest.raises(UnavailableError, match=r"octo/x/1/1/agent\.log no longer exists"):
        artifacts.read("octo/x/1/1/agent.log")


@pytest.mark.parametrize(
    "name",
    [
        "../secret",
        "octo/../../secret",
        "octo/x/1/1/../../../../../secret",
        "/etc/passwd",
        "a\x00b",
        "octo/hello.world/12/2/../1/prompt.md",
    ],
)
def test_no_name_leads_out_of_the_artifacts(artifacts: Artifacts, name: str) -> None:
    artifacts.write(REF, 1, "prompt.md", b"")
    with pytest.raises(UnavailableError, match="is not an artifact"):
        artifacts.read(name)


def test_a_link_that_leads_out_is_not_followed(artifacts: Artifacts, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(b"hidden")
    artifacts.path(REF, 1, "agent.log").symlink_to(outside)
    with pytest.raises(UnavailableError, match="is not an artifact"):
        artifacts.read("octo/hello.world/12/1/agent.log")


def test_a_file_name_that_climbs_is_refused(artifacts: Artifacts) -> None:
    with pytest.raises(UnavailableError, match="is not an artifact"):
        artifacts.write(REF, 1, "../../../../../../evil", b"")


def test_a_directory_is_not_an_artifact(artifacts: Artifacts) -> None:
    artifacts.write(REF, 1, "prompt.md", b"")
    with pytest.raises(UnavailableError, match="cannot be used"):
        artifacts.read("octo/hello.world")


def test_attempts_are_listed_with_their_size_and_the_time_of_their_newest_file(
    artifacts: Artifacts,
) -> None:
    assert list(artifacts.attempts()) == []
    artifacts.write(REF, 1, "prompt.md", b"12345")
    log = artifacts.path(REF, 1, "agent.log")
    log.write_bytes(b"123")
    os.utime(log, (NOW.timestamp() + 60, NOW.timestamp() + 60))
    os.utime(log.with_name("prompt.md"), (NOW.timestamp(), NOW.timestamp()))
    artifacts.path(REF, 12, "agent.log")
    first, second = sorted(artifacts.attempts(), key=lambda files: files.number)
    assert first == AttemptFiles(REF, 1, 8, NOW + timedelta(minutes=1))
    assert (second.issue, second.number, second.size) == (REF, 12, 0)


def test_what_is_nobodys_attempt_is_not_listed(artifacts: Artifacts) -> None:
    place = artifacts.path(REF, 1, "agent.log").parent
    place.with_name("2").symlink_to(place)
    place.with_name("3").write_bytes(b"a file")
    place.with_name("notes").mkdir()
    assert [files.number for files in artifacts.attempts()] == [1]


def test_what_is_removed_is_gone_and_the_rest_stays(artifacts: Artifacts) -> None:
    gone, kept = (artifacts.write(REF, number, "prompt.md", b"x") for number in (1, 2))
    for _ in range(2):
        artifacts.remove(REF, 1)
    with pytest.raises(UnavailableError, match="retention removed it"):
        artifacts.read(gone)
    assert artifacts.read(kept) == b"x"
    artifacts.remove(REF, 2)
    assert list(artifacts.attempts()) == []
    assert artifacts.read(artifacts.write(REF, 3, "prompt.md", b"new")) == b"new"
