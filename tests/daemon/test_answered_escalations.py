"""An escalation comment does not ask for a person once somebody has answered it (ESCALATION-4)."""

from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from github_simulator.world import Fault
from mulligan.daemon.once import run_once
from mulligan.domain.issue import IssueRef
from mulligan.domain.recorded_effects import EscalationAnswered
from world.simulated import NAME
from world.trackers import BOT
from world.workers import WorkerEnvironment, fail_once_changed, fix_the_bug, worker_environment

NEEDED = "**This issue needs human review.**"
Answer = Callable[[WorkerEnvironment, IssueRef], object]


@pytest.fixture
def here(tmp_path: Path) -> Generator[WorkerEnvironment]:
    with worker_environment(tmp_path) as made:
        yield made


def accept(_tree: Path) -> None:
    """Find no fault."""


def do(here: WorkerEnvironment) -> None:
    here.desk.hub.advance_one_second()
    assert run_once((NAME,), here.context(fix_the_bug)).problems == ()


def escalated(here: WorkerEnvironment) -> IssueRef:
    ref = here.desk.ready()
    here.policy["max_issue_attempts"] = 1
    here.check(fail_once_changed)
    do(here)
    assert NEEDED in plea(here, ref)
    return ref


def plea(here: WorkerEnvironment, ref: IssueRef) -> str:
    return next(text for text in here.said(ref) if text.startswith("<!-- mulligan:hitl"))


def edits(here: WorkerEnvironment, ref: IssueRef) -> int:
    """Count the edits of the escalation comment."""
    comment = here.ledger.status(ref).asked_at.rpartition("-")[2]
    return sum(
        each.method == "PATCH" and each.path.endswith(f"/comments/{comment}")
        for each in here.desk.hub.world.requests
    )


def say(words: str) -> Answer:
    return lambda here, ref: here.desk.hub.world.comment(ref, words, "wes")


def label_again(here: WorkerEnvironment, ref: IssueRef) -> None:
    here.desk.hub.world.label(ref, "mulligan", "wes")


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        (
            say("/mulligan fix: Use `abs`"),
            "wes wrote `/mulligan fix:`. New attempts follow that instruction.",
        ),
        (say("/mulligan retry"), "wes wrote `/mulligan retry`. New attempts start."),
        (label_again, "wes added the label `mulligan`. New attempts start."),
        (say("/mulligan skip Not now"), "wes skipped it: Not now"),
    ],
)
def test_the_comment_says_who_answered_and_what_follows(
    here: WorkerEnvironment, answer: Answer, shown: str
) -> None:
    ref = escalated(here)
    before, asked_at = plea(here, ref), here.ledger.status(ref).asked_at
    here.check(accept)
    answer(here, ref)
    do(here)
    do(here)
    text = plea(here, ref)
    assert f"**Answered:** {shown}" in text
    assert NEEDED not in text
    assert "does nothing more" not in text
    assert (
        text.partition("### Failure summary")[2].partition("### Your")[0]
        == before.partition("### Failure summary")[2].partition("### Your")[0]
    )
    assert edits(here, ref) == 1
    done = [each for each in here.events(ref) if isinstance(each, EscalationAnswered)]
    assert done == [EscalationAnswered(comment=asked_at)]


def test_an_answer_that_cannot_be_shown_is_shown_later_and_stops_nothing(
    here: WorkerEnvironment,
) -> None:
    ref = escalated(here)
    here.check(accept)
    comment = here.ledger.status(ref).asked_at.rpartition("-")[2]
    say("/mulligan skip")(here, ref)
    here.desk.hub.world.faults = lambda method, path: (
        Fault(502, "") if method == "PATCH" and path.endswith(comment) else None
    )
    do(here)
    assert NEEDED in plea(here, ref)
    here.desk.hub.world.faults = None
    say("/mulligan retry")(here, ref)
    do(here)
    assert "**Answered:** wes wrote `/mulligan retry`." in plea(here, ref)


def test_a_comment_that_was_deleted_is_left_alone(here: WorkerEnvironment) -> None:
    ref = escalated(here)
    here.check(accept)
    comment = here.ledger.status(ref).asked_at.rpartition("-")[2]
    here.desk.hub.ask("DELETE", f"issues/comments/{comment}", by=BOT)
    say("/mulligan retry")(here, ref)
    do(here)
    assert edits(here, ref) == 0
    assert not any(NEEDED in text for text in here.said(ref))
