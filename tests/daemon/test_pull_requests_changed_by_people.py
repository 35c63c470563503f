"""What people change on Mulligan's pull request stays as they left it (PR-7)."""

from collections.abc import Generator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from github_simulator.records import Issue
from mulligan.daemon.once import run_once
from mulligan.domain.issue import IssueRef
from mulligan.storage.memory import MemoryLeases, MemoryLedger
from world.behaviours import AgentInput
from world.simulated import NAME
from world.workers import WorkerEnvironment, worker_environment

FILE = "src/tool.py"
NOTE = "Release note: tools count again.\r\n\r\n"
EDITED = "somebody edited its part of the text"


def write_more(given: AgentInput) -> None:
    """Write what no attempt before has written."""
    given.write(FILE, (given.directory / FILE).read_text() + f"Y = {len(given.prompt)}\n")
    given.say(f"Wrote {len(given.prompt)}")


@pytest.fixture
def here(tmp_path: Path) -> Generator[WorkerEnvironment]:
    with worker_environment(tmp_path) as made:
        made.policy |= {
            "review": {"settle": "0s"},
            "pull_request": {"labels": ["bot", "size/S"], "reviewers": ["ada", "mia"]},
        }
        yield made


def make_pass(here: WorkerEnvironment) -> None:
    here.desk.clock.time += timedelta(hours=1)
    assert run_once([NAME], here.context(write_more)).problems == ()


def pull_of(here: WorkerEnvironment) -> Issue:
    (pull,) = here.desk.hub.world.pulls_of(NAME)
    return pull


def published(here: WorkerEnvironment) -> tuple[IssueRef, IssueRef]:
    ref = here.desk.ready()
    make_pass(here)
    return ref, IssueRef(NAME, pull_of(here).number)


def work_again(here: WorkerEnvironment, pull: IssueRef, by: str = "wes") -> None:
    """Have a review request changes, and that be worked on."""
    attempts = len(here.ledger.history(IssueRef(NAME, 1)))
    here.desk.hub.world.review(pull, by, "REQUEST_CHANGES", "Please write more.")
    make_pass(here)
    assert len(here.ledger.history(IssueRef(NAME, 1))) == attempts + 1


def edit(
    here: WorkerEnvironment, pull: IssueRef, title: str | None = None, body: str | None = None
) -> None:
    """Edit as in a browser, which sends the whole text with its own ends of lines."""
    sent = body.replace("\r\n", "\n").replace("\n", "\r\n") if body is not None else None
    here.desk.hub.world.edit(pull, "mia", title=title, body=sent)


def test_a_new_title_and_words_around_the_text_stay_while_the_text_is_brought_up_to_date(
    here: WorkerEnvironment,
) -> None:
    ref, pull = published(here)
    before = pull_of(here).body or ""
    edit(here, pull, "Tools count again", f"{NOTE}{before}\n\nSigned-off-by: Mia")
    work_again(here, pull)
    found = pull_of(here)
    body = (found.body or "").replace("\r\n", "\n")
    assert found.title == "Tools count again"
    assert body.startswith(NOTE.replace("\r\n", "\n"))
    assert body.endswith("\n\nSigned-off-by: Mia")
    assert "Attempt 1 of 3 for this review made a change" in body
    assert body.count("Closes #1") == 1
    assert EDITED not in here.said(ref)[0]


def test_the_text_follows_further_attempts_after_a_person_wrote_around_it(
    here: WorkerEnvironment,
) -> None:
    _, pull = published(here)
    edit(here, pull, body=f"{NOTE}{pull_of(here).body}")
    work_again(here, pull)
    work_again(here, pull)
    assert "Attempt 1 of 3 for this review made a change" in (pull_of(here).body or "")


def test_an_edit_inside_the_text_stays_and_is_told_on_the_issue(here: WorkerEnvironment) -> None:
    ref, pull = published(here)
    edited = (pull_of(here).body or "").replace("### Checks", "Mind the tax.\n\n### Checks")
    edit(here, pull, body=edited)
    work_again(here, pull)
    assert (pull_of(here).body or "").replace("\r\n", "\n") == edited
    (told,) = here.said(ref)
    assert EDITED in told


def test_a_text_without_the_marks_is_the_persons_and_so_is_its_title(
    here: WorkerEnvironment,
) -> None:
    ref, pull = published(here)
    edit(here, pull, body="Our own words.")
    work_again(here, pull)
    assert (pull_of(here).title, pull_of(here).body) == ("It is broken", "Our own words.")
    assert EDITED in here.said(ref)[0]


def test_the_title_follows_the_issue_while_nobody_changed_it(here: WorkerEnvironment) -> None:
    ref, pull = published(here)
    here.desk.hub.world.edit(ref, "wes", title="It counts wrong")
    work_again(here, pull)
    assert pull_of(here).title == "It counts wrong"


def test_a_lost_ledger_does_not_make_a_persons_title_mulligans(here: WorkerEnvironment) -> None:
    ref, pull = published(here)
    here.desk.hub.world.edit(ref, "wes", title="It counts wrong")
    edit(here, pull, title="Tools count again")
    here.desk.hub.world.review(pull, "wes", "REQUEST_CHANGES", "Please write more.")
    leases = MemoryLeases(here.desk.clock)
    after = replace(here, ledger=MemoryLedger(here.desk.clock, leases), leases=leases)
    make_pass(after)
    assert len(after.ledger.history(ref)) > 1
    assert pull_of(here).title == "Tools count again"


def test_labels_and_reviewers_that_a_person_removed_are_not_added_again(
    here: WorkerEnvironment,
) -> None:
    _, pull = published(here)
    world = here.desk.hub.world
    world.unlabel(pull, "size/S", "mia")
    path = f"pulls/{pull.number}/requested_reviewers"
    assert here.desk.hub.ask("DELETE", path, body={"reviewers": ["mia"]}).ok
    work_again(here, pull)
    found = pull_of(here)
    assert found.pull
    assert found.label_names == ["bot"]
    assert [user.login for user in found.pull.reviewers] == ["ada"]


def test_a_reviewer_who_requested_changes_is_asked_again(here: WorkerEnvironment) -> None:
    _, pull = published(here)
    work_again(here, pull, by="ada")
    found = pull_of(here).pull
    assert found
    assert {user.login for user in found.reviewers} == {"ada", "mia"}


def test_a_person_who_is_no_longer_assigned_is_not_assigned_again(here: WorkerEnvironment) -> None:
    here.policy |= {"max_issue_attempts": 1, "escalation": {"assignees": ["ada", "mia"]}}
    here.check(lambda _: "It is red.")
    ref = here.desk.ready()
    make_pass(here)
    assert here.desk.hub.ask(
        "DELETE", f"issues/{ref.number}/assignees", body={"assignees": ["mia"]}
    ).ok
    here.desk.hub.world.comment(ref, "/mulligan retry", "wes")
    make_pass(here)
    found = here.desk.hub.world.issue_of(ref)
    assert [user.login for user in found.assignees] == ["ada"]
    assert len(here.ledger.history(ref)) == 2
