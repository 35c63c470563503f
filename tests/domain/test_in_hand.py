"""What an issue says of others' pull requests that close it, and when a person insists (HAND-1)."""

from datetime import UTC, datetime

import pytest

from mulligan.domain.events import AttemptStarted, Waiting
from mulligan.domain.fold import advance
from mulligan.domain.in_hand import ClosingPull, describe_in_hand, insists, waits_in_hand
from mulligan.domain.issue import Act, CommentAct, ConsoleAct, IssueRef, LabelAct, Stage
from mulligan.domain.outcome import WaitForPullRequest
from mulligan.domain.recorded_effects import InHand
from mulligan.domain.status import Effects, IssueStatus, Phase, Request

pytestmark = pytest.mark.pure

NOON = datetime(2025, 3, 1, 12, 0, tzinfo=UTC)
REF = IssueRef("octo/hello", 12)
ONE = ClosingPull(7, "https://github.com/octo/hello/pull/7", "ann")
DRAFT = ClosingPull(8, "https://github.com/octo/hello/pull/8", "bob", is_draft=True)


def waiting(request: Act | None, stage: Stage = Stage.READY) -> IssueStatus:
    effects = Effects().plus(InHand(act=LabelAct(7)))
    asked = Request(str(request)) if request else Request()
    return IssueStatus(REF, stage, effects=effects, request=asked)


@pytest.mark.parametrize(
    ("pulls", "start"),
    [
        ([], ""),
        ([ONE], f"The open pull request {ONE.url} by ann closes this issue. Mulligan waits"),
        ([DRAFT], f"The open draft pull request {DRAFT.url} by bob closes this issue."),
        ([ONE, DRAFT], f"The open pull requests {ONE.url} by ann, {DRAFT.url} by bob close this"),
    ],
)
def test_each_pull_request_is_named_with_what_to_do(pulls: list[ClosingPull], start: str) -> None:
    text = describe_in_hand(pulls)
    assert text.startswith(start)
    assert ("write `/mulligan retry`" in text) is bool(pulls)


@pytest.mark.parametrize(
    ("act", "status", "insisted"),
    [
        (LabelAct(7), IssueStatus(REF), False),
        (LabelAct(7), waiting(None), False),
        (LabelAct(8), waiting(None), True),
        (CommentAct(9), IssueStatus(REF), True),
        (ConsoleAct("2025"), waiting(None), True),
    ],
)
def test_a_command_or_a_new_label_insists(act: Act, status: IssueStatus, *, insisted: bool) -> None:
    assert insists(act, status) is insisted


@pytest.mark.parametrize(
    ("status", "waits"),
    [
        (waiting(None), True),
        (waiting(LabelAct(7)), True),
        (waiting(LabelAct(8)), False),
        (waiting(LabelAct(7), Stage.REVIEW), False),
        (IssueStatus(REF), False),
    ],
)
def test_it_waits_until_it_starts_or_somebody_insists(status: IssueStatus, *, waits: bool) -> None:
    assert waits_in_hand(status) is waits


@pytest.mark.parametrize(("request_", "is_kept"), [(LabelAct(7), False), (LabelAct(8), True)])
def test_insisting_counts_for_the_whole_epoch(request_: LabelAct, *, is_kept: bool) -> None:
    started = advance(waiting(request_), AttemptStarted(attempt=1, number=1, worker="w"), NOON)
    assert (started.effects.last(InHand) is not None) is is_kept


def test_the_commit_is_kept_while_it_waits() -> None:
    decision = WaitForPullRequest(reason="It waits.")
    decided = IssueStatus(REF, Stage.RUNNING, Phase.DECIDED, decision=decision)
    rests = advance(decided, Waiting(until=None, reason="It waits."), NOON)
    assert (rests.stage, rests.phase, rests.is_kept) == (Stage.READY, Phase.IDLE, True)
