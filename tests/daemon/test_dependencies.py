"""An issue that depends on another waits until that is closed, and says so."""

from collections.abc import Generator
from datetime import timedelta
from pathlib import Path

import pytest

from mulligan.daemon.explain import explain
from mulligan.daemon.once import run_once
from mulligan.domain.absence import absences
from mulligan.domain.events import StoodDown
from mulligan.domain.issue import IssueRef
from world.issue_names import ref_of
from world.simulated import NAME
from world.workers import WorkerEnvironment, fix_the_bug, worker_environment


@pytest.fixture
def here(tmp_path: Path) -> Generator[WorkerEnvironment]:
    with worker_environment(tmp_path) as made:
        yield made


def asked_for(here: WorkerEnvironment, body: str) -> IssueRef:
    ref = ref_of(here.desk.hub.world.open_issue(NAME, "It is broken", body, "zoe"))
    here.desk.hub.world.label(ref, "mulligan", "wes")
    return ref


def make_pass(here: WorkerEnvironment, ref: IssueRef) -> int:
    run_once([NAME], here.context(fix_the_bug))
    return len(here.ledger.history(ref))


def test_an_issue_waits_for_another_and_begins_once_that_is_closed(here: WorkerEnvironment) -> None:
    first = here.desk.hub.issue()
    ref = asked_for(here, f"Depends on #{first.number}")
    assert make_pass(here, ref) == 0
    assert make_pass(here, ref) == 0
    (said,) = here.said(ref)
    assert f"It waits until `#{first.number}` is closed." in said
    assert (
        explain(ref, here.context(fix_the_bug), None).summary
        == f"It waits until #{first.number} is closed. "
        f'Its text says: "Depends on #{first.number}".'
    )
    here.desk.hub.world.close(first, "wes")
    assert make_pass(here, ref) == 1


def test_two_issues_that_wait_for_each_other_are_told_so(here: WorkerEnvironment) -> None:
    ref = asked_for(here, "Blocked by #2")
    assert asked_for(here, "Depends on #1") == IssueRef(NAME, 2)
    assert make_pass(here, ref) == 0
    assert "waits for this one" in here.said(ref)[0]


def test_dependants_are_told_when_mulligan_leaves_what_they_wait_for(
    here: WorkerEnvironment,
) -> None:
    first = here.desk.hub.issue()
    ref = asked_for(here, f"Depends on #{first.number}")
    make_pass(here, ref)
    here.ledger.append(first, StoodDown(reason="Not this year."))
    make_pass(here, ref)
    (said,) = here.said(ref)
    assert "Mulligan stopped work (Not this year)" in said


@pytest.mark.parametrize(
    "body", ["It has nothing to do with #1", "It was blocked by #1 last week, no longer."]
)
def test_what_is_only_named_is_not_waited_for(here: WorkerEnvironment, body: str) -> None:
    here.desk.hub.issue()
    assert make_pass(here, asked_for(here, body)) == 1


@pytest.mark.parametrize("where", ["#99", "other/secret#5"])
def test_what_github_does_not_find_is_waited_for_and_said_when_it_lasts(
    here: WorkerEnvironment, where: str
) -> None:
    ref = asked_for(here, f"Depends on {where}")
    for minutes in (0, 9):
        here.desk.clock.time += timedelta(minutes=minutes)
        assert make_pass(here, ref) == 0
    assert here.said(ref) == []
    here.desk.clock.time += timedelta(minutes=1)
    assert make_pass(here, ref) == 0
    (said,) = here.said(ref)
    assert "GitHub has not found" in said
    assert "check that it exists" in said
    assert here.ledger.status(ref).due is None
    here.desk.clock.time += timedelta(hours=24)
    assert make_pass(here, ref) == 0
    assert here.ledger.status(ref).due == here.desk.clock.now() + timedelta(hours=1)
    here.desk.hub.patch(f"issues/{ref.number}", {"body": "It depends on nothing."})
    here.desk.clock.time += timedelta(hours=1)
    assert make_pass(here, ref) == 1
    assert absences(here.ledger.status(ref)) == ()


def test_an_issue_waits_for_those_that_block_it_on_github(here: WorkerEnvironment) -> None:
    done, first = here.desk.hub.issue(), here.desk.hub.issue()
    ref = asked_for(here, f"It has nothing to do with #{done.number}.")
    here.desk.hub.world.block(ref, done)
    here.desk.hub.world.block(ref, first)
    here.desk.hub.world.close(done, "wes")
    assert make_pass(here, ref) == 0
    said = f"until `#{first.number}` is closed. GitHub lists it as a blocker."
    assert said in here.said(ref)[0]
    here.desk.hub.world.close(first, "wes")
    assert make_pass(here, ref) == 1


def test_a_circle_in_text_and_on_github_is_told(here: WorkerEnvironment) -> None:
    ref, other = asked_for(here, "Depends on #2"), asked_for(here, "Second")
    here.desk.hub.world.block(other, ref)
    assert make_pass(here, ref) == 0
    assert "waits for this one" in here.said(ref)[0]


def test_an_address_of_an_issue_on_this_server_is_waited_for(here: WorkerEnvironment) -> None:
    first = here.desk.hub.issue()
    address = here.desk.tracker.read(first).url
    ref = asked_for(here, f"**Depends on:**\n- [ ] {address}")
    assert make_pass(here, ref) == 0
    assert f"It waits until `#{first.number}` is closed." in here.said(ref)[0]


def test_a_circle_of_three_is_told_on_each_of_them(here: WorkerEnvironment) -> None:
    refs = [asked_for(here, f"Depends on #{number}") for number in (2, 3, 1)]
    assert make_pass(here, refs[0]) == 0
    waits = [explain(ref, here.context(fix_the_bug), None).summary for ref in refs]
    assert waits[0].startswith("It waits for #2, which waits for #3, which waits for this one")
    assert all("remove `Depends on` from one of them." in said for said in waits)
    assert "which waits for this one" in here.said(refs[0])[0]


def test_a_pull_request_is_waited_for_as_one(here: WorkerEnvironment) -> None:
    first = here.desk.ready()
    make_pass(here, first)
    (pull,) = here.desk.hub.world.pulls_of(NAME)
    ref = asked_for(here, f"Depends on #{pull.number}")
    assert make_pass(here, ref) == 0
    assert f"until the pull request `#{pull.number}` is merged or closed" in here.said(ref)[0]


def test_what_holds_nothing_up_is_told_to_those_who_ask(here: WorkerEnvironment) -> None:
    deleted = here.desk.hub.issue()
    ref = asked_for(here, "Depends on #1, #2")
    here.desk.hub.world.delete(deleted)
    notes = explain(ref, here.context(fix_the_bug), None).notes
    assert (
        "Mulligan ignores a dependency: it cannot wait for itself; #1 was deleted or transferred."
    ) in notes
    assert make_pass(here, ref) == 1
