"""Mulligan on a GitHub that nobody here wrote: the npm package `emulate`.

It has no git (the clone is a bare repository whose hook tells it of pushes), no GraphQL, no
reactions and no ETag, and it lets anybody do anything.
"""

from collections.abc import Generator
from pathlib import Path

import pytest
from pydantic import JsonValue

from mulligan.domain.outcome import Outcome
from world.emulated import Emulate, emulating, installation_on
from world.place import MulliganInstallation
from world.repositories import read_branch

FILES = {"notes.txt": "one\n"}
CHECK: JsonValue = {
    "name": "two",
    "run": "grep -x two notes.txt || { echo 'E: no line' two; exit 1; }",
}
WRITE = "pathlib.Path('notes.txt').write_text('one\\ntwo\\n')\n"
SPOIL = "pathlib.Path('notes.txt').write_text('three\\n')\n"


@pytest.fixture(scope="module")
def emulate(tmp_path_factory: pytest.TempPathFactory) -> Generator[Emulate]:
    with emulating(tmp_path_factory.mktemp("emulate")) as running:
        yield running


@pytest.fixture
def here(emulate: Emulate, request: pytest.FixtureRequest, tmp_path: Path) -> MulliganInstallation:
    name = request.node.name.removeprefix("test_")[:80]
    return installation_on(emulate, tmp_path, name, FILES, checks=[CHECK], max_issue_attempts=2)


def repository(here: MulliganInstallation) -> str:
    (only,) = here.operator().repositories
    return only.name


def test_a_good_change_becomes_one_pull_request(
    here: MulliganInstallation, emulate: Emulate
) -> None:
    here.agent(WRITE)
    ref = emulate.label(emulate.issue(repository(here), "Two is missing: `$(date)` \U0001f426"))
    done = here.run("once")
    assert (done.returncode, done.stderr) == (0, "")
    (pull,) = emulate.pulls(repository(here))
    assert f"Closes #{ref.number}" in (pull.body or "")
    assert pull.head.ref == ref.branch
    assert [asked.login for asked in pull.requested_reviewers] == ["ada"]
    assert read_branch(here.bare, ref.branch, "notes.txt") == "one\ntwo"
    assert emulate.labels(ref) == ["mulligan:review"]
    (comment,) = emulate.comments(ref)
    assert "asks for a review" in (comment.body or "")
    assert here.run("once").stdout.strip() == "No issue is due."
    assert emulate.comments(ref) == [comment]
    assert len(emulate.pulls(repository(here))) == 1


@pytest.mark.deep
def test_a_red_change_is_mended_by_the_second_try(
    here: MulliganInstallation, emulate: Emulate
) -> None:
    here.agent(f"if 'no line two' in prompt:\n    {WRITE}else:\n    {SPOIL}")
    ref = emulate.label(emulate.issue(repository(here), "Two is missing"))
    assert here.run("once").returncode == 0
    assert [meta.outcome for meta in here.attempts(ref)] == [
        Outcome.CHECKS_FAILED,
        Outcome.SUCCEEDED,
    ]
    assert emulate.labels(ref) == ["mulligan:review"]
    assert len(emulate.pulls(repository(here))) == 1


@pytest.mark.deep
def test_a_hopeless_issue_reaches_a_person_and_comes_back(
    here: MulliganInstallation, emulate: Emulate
) -> None:
    here.agent(SPOIL)
    ref = emulate.label(emulate.issue(repository(here), "Two is missing"))
    assert here.run("once").returncode == 3
    assert len(here.attempts(ref)) == 2
    assert emulate.labels(ref) == ["mulligan:hitl"]
    status, cry = emulate.comments(ref)
    assert "needs human review (HITL)" in (status.body or "")
    assert "no line two" in (cry.body or "")
    assert emulate.pulls(repository(here)) == []
    here.agent(WRITE)
    emulate.label(ref)
    assert here.run("once").returncode == 0
    assert emulate.labels(ref) == ["mulligan:review"]
    assert len(emulate.comments(ref)) == 2


@pytest.mark.deep
def test_work_that_does_not_hold_is_a_draft_that_a_person_ends(
    emulate: Emulate, tmp_path: Path
) -> None:
    """It has no GraphQL, by which Mulligan would."""
    settings: JsonValue = {"draft_pr": True}
    more = {"checks": [CHECK], "max_issue_attempts": 1, "escalation": settings}
    here = installation_on(emulate, tmp_path, "drafts", FILES, **more)
    here.agent(SPOIL)
    ref = emulate.label(emulate.issue(repository(here), "Two is missing"))
    assert here.run("once").returncode == 3
    (pull,) = emulate.pulls(repository(here))
    assert (pull.draft, pull.title) == (True, "Not verified: Two is missing")
    here.agent(WRITE)
    emulate.label(ref)
    assert here.run("once").returncode == 0
    (same,) = emulate.pulls(repository(here))
    assert (same.number, same.draft, same.title) == (pull.number, True, "Two is missing")
    assert read_branch(here.bare, ref.branch, "notes.txt") == "one\ntwo"
    assert "please press *Ready for review*" in (emulate.comments(ref)[0].body or "")


@pytest.mark.deep
def test_nobody_starts_work_who_may_not(here: MulliganInstallation, emulate: Emulate) -> None:
    here.agent(WRITE)
    where = repository(here)
    at_birth = emulate.issue(where, "Labelled as it is opened", labels=["mulligan"])
    stranger = emulate.label(emulate.issue(where, "Labelled by anybody"), by="zoe")
    done = here.run("once")
    assert done.returncode == 0
    said = dict(line.split("  skipped: ") for line in done.stdout.splitlines())
    assert "wait, or add it again" in said[str(at_birth)]
    assert "zoe has the permission none" in said[str(stranger)]
    assert emulate.pulls(where) == []
    assert here.ask("status") == []
