"""A reviewer who no longer requests changes starts no work, and ends what waits for it (PR-2)."""

from collections.abc import Callable, Generator
from datetime import timedelta
from pathlib import Path

import pytest

from github_simulator.world import Fault
from mulligan.daemon.once import run_once
from mulligan.domain.attempt import CHANGES_WITHDRAWN
from mulligan.domain.events import AgentStarted
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.outcome import Outcome
from mulligan.domain.status import Phase
from world.behaviours import AgentInput, Behaviour
from world.repositories import commit_to
from world.simulated import NAME
from world.workers import WorkerEnvironment, worker_environment

FILE = "src/tool.py"
DONE, CANCELLED = Outcome.SUCCEEDED, Outcome.CANCELLED
SETTLE = timedelta(minutes=5)


def write_more(given: AgentInput) -> None:
    """Write what no attempt before has written."""
    given.write(FILE, (given.directory / FILE).read_text() + f"Y = {len(given.prompt)}\n")


@pytest.fixture
def here(tmp_path: Path) -> Generator[WorkerEnvironment]:
    with worker_environment(tmp_path) as made:
        made.policy["review"] = {"settle": "5m"}
        yield made


def make_pass(
    here: WorkerEnvironment,
    agent: Behaviour = write_more,
    later: timedelta = timedelta(hours=1),
) -> None:
    here.desk.clock.time += later
    run_once([NAME], here.context(agent))


def published(here: WorkerEnvironment) -> tuple[IssueRef, IssueRef]:
    ref = here.desk.ready()
    make_pass(here)
    (pull,) = here.desk.hub.world.pulls_of(NAME)
    return ref, IssueRef(NAME, pull.number)


def object_to(here: WorkerEnvironment, pull: IssueRef, by: str = "wes", words: str = "No.") -> int:
    return here.desk.hub.world.review(pull, by, "REQUEST_CHANGES", words)


def approve(here: WorkerEnvironment, pull: IssueRef, by: str = "wes") -> None:
    here.desk.hub.advance_one_second()
    here.desk.hub.world.review(pull, by, "APPROVE", "")


def outcomes(here: WorkerEnvironment, ref: IssueRef) -> list[Outcome]:
    return [meta.outcome for meta in here.ledger.history(ref)]


def assert_rests(here: WorkerEnvironment, ref: IssueRef, head: str | None) -> None:
    """Expect the pull request as it was, in review, and the reason in the status comment."""
    assert here.pushed(ref) == head
    status = here.ledger.status(ref)
    assert (status.stage, status.phase, status.feedback) == (Stage.REVIEW, Phase.IDLE, None)
    assert here.labels(ref) == ["mulligan:review"]
    (told,) = here.said(ref)
    assert CHANGES_WITHDRAWN in told
    for _ in range(2):
        make_pass(here)
    assert here.pushed(ref) == head
    assert here.said(ref) == [told]


def test_an_approval_after_the_request_for_changes_counts(here: WorkerEnvironment) -> None:
    ref, pull = published(here)
    head = here.pushed(ref)
    object_to(here, pull)
    approve(here, pull)
    make_pass(here)
    assert outcomes(here, ref) == [DONE]
    assert_rests(here, ref, head)


def test_an_approval_counts_while_further_reviews_are_waited_for(here: WorkerEnvironment) -> None:
    ref, pull = published(here)
    head = here.pushed(ref)
    object_to(here, pull)
    here.desk.clock.time -= timedelta(hours=1)
    make_pass(here, later=timedelta(seconds=1))
    assert here.ledger.status(ref).reviews_settle_at
    approve(here, pull)
    make_pass(here)
    assert here.ledger.status(ref).reviews_settle_at is None
    assert outcomes(here, ref) == [DONE]
    assert_rests(here, ref, head)


@pytest.mark.parametrize("how", ["approve", "dismiss"])
@pytest.mark.parametrize("most", [1, 3])
def test_a_request_that_is_withdrawn_while_the_attempt_waits_ends_it(
    here: WorkerEnvironment, how: str, most: int
) -> None:
    here.policy["max_issue_attempts"] = most
    ref, pull = published(here)
    head = here.pushed(ref)
    review = object_to(here, pull)

    def be_cut_off(given: AgentInput) -> None:
        write_more(given)
        here.desk.hub.bare.rename(here.desk.hub.bare.with_suffix(".gone"))

    make_pass(here, be_cut_off)
    here.desk.hub.bare.with_suffix(".gone").rename(here.desk.hub.bare)
    assert here.ledger.status(ref).phase is not Phase.ATTEMPTING
    if how == "approve":
        approve(here, pull)
    else:
        here.desk.hub.world.dismiss(pull, "mia", review)
    make_pass(here)
    assert_rests(here, ref, head)


def during_attempt(here: WorkerEnvironment, ref: IssueRef, do: Callable[[], None]) -> None:
    """Do something at the first request to GitHub of the next attempt."""

    def look(_method: str, _path: str) -> Fault | None:
        if here.ledger.status(ref).phase is Phase.ATTEMPTING:
            here.desk.hub.world.faults = None
            do()
        return None

    here.desk.hub.world.faults = look


def test_it_is_read_again_right_before_the_agent_starts(here: WorkerEnvironment) -> None:
    ref, pull = published(here)
    head = here.pushed(ref)
    object_to(here, pull)
    during_attempt(here, ref, lambda: approve(here, pull))
    make_pass(here)
    assert outcomes(here, ref) == [DONE, CANCELLED]
    assert len([each for each in here.events(ref) if isinstance(each, AgentStarted)]) == 1
    assert_rests(here, ref, head)


def test_it_is_read_again_right_before_the_push(here: WorkerEnvironment) -> None:
    ref, pull = published(here)
    head = here.pushed(ref)
    object_to(here, pull)

    def be_approved(given: AgentInput) -> None:
        write_more(given)
        approve(here, pull)

    make_pass(here, be_approved)
    assert outcomes(here, ref) == [DONE, DONE]
    assert_rests(here, ref, head)
    (text,) = (body for body in here.said(ref) if "status" in body.partition("\n")[0])
    assert (
        "Attempt 1 of 3 for this review made a change, but its change is not in the pull request."
        in text
    )


def test_nobody_is_asked_about_an_attempt_that_is_no_longer_needed(here: WorkerEnvironment) -> None:
    here.policy["max_issue_attempts"] = 2
    ref, pull = published(here)
    head = here.pushed(ref)
    object_to(here, pull)

    def fail(_given: AgentInput) -> None:
        approve(here, pull)

    make_pass(here, fail)
    assert outcomes(here, ref) == [DONE, Outcome.ZERO_COMMIT]
    assert_rests(here, ref, head)


def test_only_the_other_reviewers_changes_are_worked_on(here: WorkerEnvironment) -> None:
    ref, pull = published(here)
    object_to(here, pull, "wes", "Please write less.")
    object_to(here, pull, "mia", "Mind the names.")
    approve(here, pull)
    prompts = list[str]()

    def listen(given: AgentInput) -> None:
        prompts.append(given.prompt)
        write_more(given)

    make_pass(here, listen)
    (prompt,) = prompts
    assert "Mind the names." in prompt
    assert "Please write less." not in prompt
    assert outcomes(here, ref) == [DONE, DONE]


def test_a_reviewer_who_withdraws_later_is_not_answered(here: WorkerEnvironment) -> None:
    ref, pull = published(here)
    object_to(here, pull, "wes", "Please write less.")
    object_to(here, pull, "mia", "Mind the names.")
    during_attempt(here, ref, lambda: approve(here, pull))
    make_pass(here)
    assert outcomes(here, ref) == [DONE, DONE]
    (answer,) = here.said(pull)
    assert "by mia" in answer


@pytest.mark.parametrize(("by", "event"), [("wes", "COMMENT"), ("mia", "APPROVE")])
def test_a_comment_or_another_persons_approval_withdraws_nothing(
    here: WorkerEnvironment, by: str, event: str
) -> None:
    ref, pull = published(here)
    object_to(here, pull)
    here.desk.hub.advance_one_second()
    here.desk.hub.world.review(pull, by, event, "I see.")
    make_pass(here)
    assert outcomes(here, ref) == [DONE, DONE]


def test_a_new_request_for_changes_counts_again(here: WorkerEnvironment) -> None:
    ref, pull = published(here)
    object_to(here, pull)
    approve(here, pull)
    make_pass(here)
    here.desk.hub.advance_one_second()
    object_to(here, pull)
    make_pass(here)
    assert outcomes(here, ref) == [DONE, DONE]
    (told,) = here.said(ref)
    assert CHANGES_WITHDRAWN not in told


def test_a_command_is_carried_out_although_the_review_is_withdrawn(here: WorkerEnvironment) -> None:
    here.policy["max_issue_attempts"] = 1
    ref, pull = published(here)
    object_to(here, pull)
    here.desk.hub.world.comment(ref, "/mulligan fix: Write more.", "mia")
    during_attempt(here, ref, lambda: approve(here, pull))
    make_pass(here)
    assert outcomes(here, ref) == [DONE, DONE]
    assert here.ledger.status(ref).stage is Stage.REVIEW


def test_a_draft_waits_for_a_maintainer_as_before(here: WorkerEnvironment) -> None:
    here.policy |= {"max_issue_attempts": 1, "escalation": {"draft_pr": True}}
    here.check(lambda _: "It is red.")
    ref = here.desk.ready()
    make_pass(here)
    commit_to(here.desk.hub.bare, {"c": "1\n"})
    (pull,) = here.desk.hub.world.pulls_of(NAME)
    place = IssueRef(NAME, pull.number)
    object_to(here, place)
    approve(here, place)
    make_pass(here)
    during_attempt(here, ref, lambda: approve(here, place))
    object_to(here, place)
    make_pass(here)
    assert here.ledger.status(ref).stage is Stage.HITL
    assert here.labels(ref) == ["mulligan:hitl"]
