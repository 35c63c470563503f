"""What an issue waits for: what GitHub does not find, an agent, a branch, or its publication."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from mulligan.domain.absence import absence_reason, absences, absent_since
from mulligan.domain.eligibility import Facts, opens_epoch
from mulligan.domain.errors import MisconfiguredError
from mulligan.domain.explanation import QUEUED, describe_publication, describe_queue
from mulligan.domain.hold import Hold
from mulligan.domain.issue import (
    AuthorisingAct,
    Issue,
    IssueRef,
    LabelAct,
    Stage,
    check_branches,
)
from mulligan.domain.issue_context import commits_on_branch
from mulligan.domain.outcome import OpenPullRequest
from mulligan.domain.recorded_effects import (
    Effects,
    InHand,
    NotFoundSince,
    Obstacle,
    PublicationDelayed,
    Pushed,
)
from mulligan.domain.status import CommandTimes, IssueStatus, Phase
from mulligan.interfaces.event_text import sentence_of

pytestmark = pytest.mark.pure

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
LATER = NOON + timedelta(hours=1)
REF = IssueRef("o/r", 7)
READY = IssueStatus(REF, Stage.READY, epoch=1)
MISSING = NotFoundSince(what="the issue o/r#3", since=NOON)
DELAYED = PublicationDelayed(since=NOON, reason="GitHub is away.")


def with_effects(*done: NotFoundSince | PublicationDelayed | Pushed) -> IssueStatus:
    return replace(READY, effects=Effects(done))


def test_what_is_not_found_is_named_with_its_time() -> None:
    status = with_effects(MISSING, NotFoundSince(what="the repository o/x"))
    assert absent_since(status, MISSING.what) == NOON
    assert absent_since(status, "the issue o/r#4") is None
    assert absences(status) == (MISSING,)
    said = "GitHub has not found the issue o/r#3 since 2026-03-01 12:00 UTC; check that it exists"
    assert absence_reason(MISSING).startswith(said)


def test_a_hold_names_its_next_try() -> None:
    assert Hold("It rests.").sentence == "It rests."
    said = "It rests. The next try starts after 2026-03-01 12:00:00 UTC."
    assert Hold("It rests.", until=NOON).sentence == said


HELD = replace(
    READY,
    reason="No agent.",
    obstacle=Obstacle.ALL_AGENTS,
)


@pytest.mark.parametrize(
    ("status", "is_held", "may_show"),
    [
        (READY, False, True),
        (HELD, True, True),
        (replace(HELD, obstacle=Obstacle.ISSUE), False, False),
        (replace(HELD, stage=Stage.RUNNING), False, False),
        (replace(HELD, phase=Phase.ATTEMPTING), True, False),
        (replace(HELD, paused_by="ada"), True, False),
        (replace(HELD, epoch=0), True, False),
        (replace(HELD, due=LATER), True, False),
        (replace(READY, due=NOON, reason="Later."), False, True),
    ],
)
def test_a_hold_is_shown_on_issues_that_show_no_other_reason(
    status: IssueStatus,
    is_held: bool,  # noqa: FBT001 - a column of the table
    may_show: bool,  # noqa: FBT001 - a column of the table
) -> None:
    assert (status.is_held, status.may_show_hold(NOON)) == (is_held, may_show)


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (READY, QUEUED),
        (replace(READY, epoch=0), ""),
        (replace(READY, reason="No disk."), ""),
        (replace(READY, paused_by="ada"), ""),
        (replace(READY, due=LATER), ""),
        (replace(READY, due=NOON), QUEUED),
        (replace(READY, phase=Phase.ATTEMPTING), ""),
        (replace(READY, stage=Stage.REVIEW), ""),
    ],
)
def test_an_issue_that_waits_for_nothing_else_is_queued(status: IssueStatus, said: str) -> None:
    assert describe_queue(status, NOON) == said


def test_a_delayed_publication_says_since_when_and_why() -> None:
    assert describe_publication(READY) == ""
    said = "Publishing has failed since 2026-03-01 12:00:00 UTC, and is repeated: GitHub is away."
    status = with_effects(DELAYED)
    assert describe_publication(status) == ""
    publishes = replace(status, phase=Phase.DECIDED, decision=OpenPullRequest(reason="Passed."))
    assert describe_publication(publishes) == said


@pytest.mark.parametrize(
    ("branches", "issue", "said"),
    [
        ((), REF, ""),
        (("mulligan/issue-71", "mulligan/issue-7"), REF, ""),
        (("mulligan",), None, "has a branch named 'mulligan'"),
        (("mulligan/issue-7/x",), None, ""),
        (("mulligan/issue-7/x",), REF, "has a branch named 'mulligan/issue-7/x'"),
    ],
)
def test_a_branch_in_the_way_is_named(
    branches: tuple[str, ...], issue: IssueRef | None, said: str
) -> None:
    heads = {f"refs/heads/{name}": "c0ffee" for name in branches}
    if not said:
        check_branches(heads, "o/r", issue, {"c0ffee"})
        return
    with pytest.raises(MisconfiguredError, match=said):
        check_branches(heads, "o/r", issue, {"c0ffee"})


def test_the_branch_of_the_issue_may_only_have_commits_of_mulligan() -> None:
    own = commits_on_branch(with_effects(Pushed(branch=REF.branch, head_sha="c0ffee")), ())
    assert commits_on_branch(READY, ()) == frozenset()
    check_branches({f"refs/heads/{REF.branch}": "c0ffee"}, "o/r", REF, own)
    with pytest.raises(MisconfiguredError, match="commits that Mulligan did not make"):
        check_branches({f"refs/heads/{REF.branch}": "bad"}, "o/r", REF, own)


@pytest.mark.parametrize(("stopped", "opens"), [(None, True), (NOON, False), (LATER, False)])
def test_a_request_that_was_stopped_later_opens_nothing(
    stopped: datetime | None,
    opens: bool,  # noqa: FBT001 - a column of the table
) -> None:
    status = IssueStatus(REF, commanded=CommandTimes(stopped=stopped))
    act = AuthorisingAct(LabelAct(1), "ada", NOON, trusted=True)
    issue = Issue(REF, "T", "", labels=frozenset({"mulligan"}))
    assert opens_epoch(Facts(issue, status, act, "mulligan", LATER)) is opens


@pytest.mark.parametrize(
    ("effect", "said"),
    [
        (MISSING, "GitHub does not find the issue o/r#3."),
        (NotFoundSince(what="the issue o/r#3"), "GitHub finds the issue o/r#3."),
        (InHand(act=LabelAct(3)), "An open pull request of somebody else closes the issue."),
        (DELAYED, "The publication failed: GitHub is away."),
    ],
)
def test_the_events_say_it(effect: NotFoundSince | InHand | PublicationDelayed, said: str) -> None:
    assert sentence_of(effect) == said
