"""Any place for artifacts keeps whole files under names that lead nowhere else (port Artifacts)."""

from collections.abc import Generator
from pathlib import Path

import pytest

from mulligan.domain.issue import IssueRef
from mulligan.errors import UnavailableError
from mulligan.ports import Artifacts
from mulligan.state.artifacts import FileArtifacts, ScratchArtifacts

REF = IssueRef("octo/hello.world", 12)


@pytest.fixture(params=["files", "scratch"])
def artifacts(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Artifacts]:
    if request.param == "files":
        yield FileArtifacts(tmp_path / "artifacts")
        return
    with ScratchArtifacts() as scratch:
        yield scratch


def test_what_was_written_is_read_by_the_name_that_was_given(artifacts: Artifacts) -> None:
    name = artifacts.write(REF, 3, "prompt.md", b"Mend it.\x00\xff")
    assert name == "octo/hello.world/12/3/prompt.md"
    assert artifacts.read(name) == b"Mend it.\x00\xff"


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
    with pytest.raises(UnavailableError, match=r"octo/x/1/1/agent\.log is not there any more"):
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
