"""Whether an attempt may start, and what follows when the world changed: tables of every case."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from mulligan.config.policy import Escalation
from mulligan.domain.attempt import CHANGES_WITHDRAWN
from mulligan.domain.eligibility import PAUSED, POLICY, UNCHANGED, Facts
from mulligan.domain.events import AttemptCompleted, Authorised, Decided, IssueSeen
from mulligan.domain.issue import AuthorisingAct, Edit, Edits, Issue, IssueRef, LabelAct, Stage
from mulligan.domain.outcome import FREE, Escalate, OpenPullRequest, Outcome, StandDown
from mulligan.domain.recorded_effects import BlockShown, Effects, Obstacle, Pushed
from mulligan.domain.result import OnBase, WorkerResultMeta
from mulligan.domain.status import IssueStatus, Phase, Request, SeenText
from mulligan.implement.decide import (
    AgentUnavailable,
    BaseDropped,
    ChangesWithdrawn,
    CommitLost,
    ForeignPush,
    Obstructed,
    PublicationRefused,
    Situation,
    StartAttempt,
    StartFacts,
    TakenElsewhere,
    Withdrawn,
    decide_admission,
    decide_reopening,
    decide_shown_work,
    decide_start,
    expected_remote_head,
    is_foreign,
    reconsider,
)
from world.attempts import attempt, check, red

pytestmark = pytest.mark.pure

NOW = datetime(2025, 3, 1, 12, 0, tzinfo=UTC)
REF = IssueRef("octo/hello", 12)
ISSUE = Issue(REF, "Mend it", "", labels=frozenset({"mulligan"}))
FIRST = AuthorisingAct(LabelAct(7), "ada", NOW - timedelta(minutes=5), trusted=True)
AGAIN = AuthorisingAct(LabelAct(8), "ada", NOW, trusted=True)
NEW = IssueStatus(REF)
KNOWN = IssueStatus(
    REF,
    epoch=1,
    request=Request(str(FIRST.act), "ada", at=FIRST.at),
    text=SeenText(ISSUE.title, ISSUE.text_sha256, str(FIRST.act)),
)
HITL = replace(KNOWN, stage=Stage.HITL)
EDITED = replace(FIRST, edits=Edits(by_strangers=(Edit("eve", NOW, "title"),)))


def facts(
    status: IssueStatus, act: AuthorisingAct | None, issue: Issue = ISSUE, policy_fault: str = ""
) -> Facts:
    return Facts(issue, status, act, "mulligan", NOW, policy_fault=policy_fault)


# Admission.


def test_the_text_is_recorded_with_its_author_its_address_and_other_labels() -> None:
    issue = replace(
        ISSUE, author="ann", url="https://x/1", labels=frozenset({"mulligan", "ui", "bug"})
    )
    assert decide_admission(facts(NEW, FIRST, issue)).seen == IssueSeen(
        title="Mend it",
        author="ann",
        url="https://x/1",
        text_sha256=issue.text_sha256,
        act="labeled:7",
        labels=("bug", "ui"),
    )


def test_a_verified_commit_that_was_kept_is_published_without_an_attempt() -> None:
    kept = "The commit of the last attempt was kept. The check 'a' passed."
    found = StartFacts(KNOWN, has_kept_commit=True, verification="The check 'a' passed.")
    assert decide_start(found) == OpenPullRequest(reason=kept)


@pytest.mark.parametrize(
    ("found", "is_seen", "opens", "rule"),
    [
        pytest.param(facts(NEW, FIRST), True, True, "", id="the first request"),
        pytest.param(facts(KNOWN, FIRST), False, False, "", id="the next attempt"),
        pytest.param(
            facts(KNOWN, FIRST, replace(ISSUE, title="Mend all")),
            *(True, False, ""),
            id="an attempt after the title changed",
        ),
        pytest.param(facts(HITL, AGAIN), True, True, "", id="another request"),
        pytest.param(facts(HITL, FIRST), False, False, "stage", id="the request of before"),
        pytest.param(
            facts(HITL, FIRST, replace(ISSUE, title="Mend all")),
            *(False, False, "stage"),
            id="a change of a text that is not worked on",
        ),
        pytest.param(
            facts(replace(HITL, paused_by="wes"), AGAIN), True, True, PAUSED, id="asked in a pause"
        ),
        pytest.param(
            facts(replace(KNOWN, paused_by="wes"), AGAIN),
            True,
            False,
            PAUSED,
            id="asked in a queue",
        ),
        pytest.param(
            facts(NEW, FIRST, policy_fault="It is red."), True, False, POLICY, id="a bad policy"
        ),
        pytest.param(facts(NEW, EDITED), True, False, UNCHANGED, id="a changed text"),
        pytest.param(
            facts(NEW, replace(FIRST, trusted=False, reason="No.")),
            *(False, False, "authorised"),
            id="a stranger's request",
        ),
        pytest.param(facts(NEW, None), False, False, "authorised", id="nobody's request"),
        pytest.param(
            facts(replace(KNOWN, phase=Phase.DECIDED), AGAIN),
            *(False, False, "concluded"),
            id="unfinished work",
        ),
    ],
)
def test_what_is_recorded_of_a_request(
    found: Facts, *, is_seen: bool, opens: bool, rule: str
) -> None:
    made = decide_admission(found)
    assert (made.seen is not None, made.request is not None, made.rule) == (is_seen, opens, rule)
    assert bool(made.refusal) == bool(rule)
    if made.seen and found.act:
        assert (made.seen.act, made.seen.title) == (str(found.act.act), found.issue.title)
        assert made.seen.text_sha256 == found.issue.text_sha256
    if made.request and found.act:
        assert made.request == Authorised.of(found.act)


RESOLVED = replace(KNOWN, stage=Stage.RESOLVED)


@pytest.mark.parametrize(
    ("found", "opens"),
    [
        pytest.param(facts(RESOLVED, AGAIN), True, id="a newer request"),
        pytest.param(facts(RESOLVED, FIRST), False, id="the request that was ended"),
        pytest.param(facts(replace(RESOLVED, paused_by="wes"), AGAIN), True, id="in a pause"),
        pytest.param(facts(RESOLVED, AGAIN, policy_fault="It is red."), True, id="a bad policy"),
        pytest.param(facts(RESOLVED, AGAIN, replace(ISSUE, is_open=False)), False, id="closed"),
        pytest.param(facts(RESOLVED, None), False, id="nobody's request"),
    ],
)
def test_only_a_newer_request_reopens_ended_work(found: Facts, *, opens: bool) -> None:
    assert decide_reopening(found) == (Authorised.of(AGAIN) if opens else None)


def test_who_changed_the_text_is_named_where_that_is_the_obstacle() -> None:
    assert "eve" in decide_admission(facts(NEW, EDITED)).text_change
    closed = facts(NEW, EDITED, replace(ISSUE, is_open=False))
    assert decide_admission(closed).text_change == ""
    assert decide_admission(facts(KNOWN, FIRST)).text_change == ""


# The start.

FULL, OTHER = "/work is full.", "/elsewhere is full."
KEY = AgentUnavailable(NOW, "The key is refused.")


def shows(reason: str, epoch: int = 1, obstacle: Obstacle = Obstacle.DISK) -> IssueStatus:
    """Give an issue that shows why a worker's machine keeps it waiting."""
    effects = Effects((BlockShown(obstacle=obstacle, epoch=epoch, reason=reason),))
    return replace(KNOWN, reason=reason, obstacle=obstacle, effects=effects)


def test_what_may_start_does_so() -> None:
    assert decide_start(StartFacts(KNOWN)) == StartAttempt()


def test_a_kept_commit_is_published_whatever_an_attempt_would_wait_for() -> None:
    found = StartFacts(
        *(KNOWN, False, True, FULL, True, "The budget is used up.", KEY, "No agent.")
    )
    assert isinstance(decide_start(found), OpenPullRequest)
    assert not found.frees_disk


@pytest.mark.parametrize(
    ("status", "is_shown"),
    [
        (KNOWN, False),
        (shows(FULL), True),
        (shows(OTHER), True),
        (shows(OTHER, epoch=0), False),
        (replace(shows(OTHER), obstacle=Obstacle.ISSUE), False),
    ],
)
def test_a_full_disk_is_shown_unless_that_of_another_worker_is(
    status: IssueStatus, *, is_shown: bool
) -> None:
    found = StartFacts(status, disk_shortage=FULL, budget_used_up="All.", agent_unavailable=KEY)
    assert decide_start(found) == Obstructed(Obstacle.DISK, FULL, is_shown)


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize(
    ("status", "is_shown"),
    [
        (KNOWN, False),
        (shows(OTHER, obstacle=Obstacle.AGENT), True),
        (shows(OTHER), False),
    ],
)
def test_a_missing_agent_is_waited_for_first_by_an_operator_too(
    status: IssueStatus, *, is_shown: bool, at_once: bool
) -> None:
    found = StartFacts(status, at_once, disk_shortage=FULL, agent_missing="No agent.")
    assert decide_start(found) == Obstructed(Obstacle.AGENT, "No agent.", is_shown)


@pytest.mark.parametrize(
    ("found", "frees"),
    [
        (StartFacts(KNOWN, disk_shortage=FULL, has_worktree=True), True),
        (StartFacts(KNOWN, disk_shortage=FULL), False),
        (StartFacts(KNOWN, has_worktree=True), False),
    ],
)
def test_the_issues_own_worktree_goes_before_the_disk_is_called_full(
    found: StartFacts, *, frees: bool
) -> None:
    assert found.frees_disk is frees


def test_the_budget_is_waited_for_before_the_key() -> None:
    found = StartFacts(KNOWN, budget_used_up="The budget is used up.", agent_unavailable=KEY)
    start = decide_start(found)
    assert getattr(start, "decision", "") == "wait"
    assert getattr(start, "reason", "") == "The budget is used up."


@pytest.mark.parametrize(("at_once", "start"), [(False, KEY), (True, StartAttempt())])
def test_an_operator_does_not_wait_for_a_refused_key(
    *, at_once: bool, start: AgentUnavailable | StartAttempt
) -> None:
    assert decide_start(StartFacts(KNOWN, at_once, agent_unavailable=KEY)) == start


# A world that has changed.

DONE = attempt(2, Outcome.SUCCEEDED).model_copy(
    update={"base_sha": "b" * 40, "start_sha": "b" * 40, "head_sha": "c" * 40}
)


@pytest.mark.parametrize(
    ("found", "outcome"),
    [
        (CommitLost(DONE), Outcome.INTERRUPTED),
        (ForeignPush(DONE), Outcome.INTERRUPTED),
        (BaseDropped(DONE), Outcome.INFRASTRUCTURE),
    ],
)
def test_work_that_cannot_be_published_costs_no_attempt(found: Situation, outcome: Outcome) -> None:
    event = reconsider(found)
    assert isinstance(event, AttemptCompleted)
    assert event.meta.outcome is outcome
    assert outcome in FREE
    assert event.meta.error == event.meta.failure_reason != ""
    assert event.meta.base_dropped is isinstance(found, BaseDropped)
    # Everything else of the record stays.
    kept = {"outcome", "error", "failure_reason", "base_dropped"}
    assert event.meta.model_dump(exclude=kept) == DONE.model_dump(exclude=kept)


def test_lost_overtaken_and_dropped_work_have_reasons_of_their_own() -> None:
    found = (CommitLost(DONE), ForeignPush(DONE), BaseDropped(DONE))
    events = [reconsider(each) for each in found]
    reasons = {event.meta.error for event in events if isinstance(event, AttemptCompleted)}
    assert len(reasons) == 3
    assert sum("b" * 10 in reason for reason in reasons) == 1


@pytest.mark.parametrize("found", [Withdrawn("They did."), TakenElsewhere("They did.")])
def test_nothing_is_published_for_a_request_that_is_gone_or_answered(found: Situation) -> None:
    assert reconsider(found) == Decided(decision=StandDown(reason="They did."))


def test_work_for_withdrawn_reviews_leaves_the_pull_request_as_it_is() -> None:
    expected = StandDown(reason=CHANGES_WITHDRAWN, keeps_pull=True)
    assert reconsider(ChangesWithdrawn()) == Decided(decision=expected)


def test_a_refused_publication_reaches_a_person_with_the_fix() -> None:
    event = reconsider(PublicationRefused("The branch is protected."))
    assert isinstance(event, Decided)
    assert isinstance(event.decision, Escalate)
    assert event.decision.reason.endswith(": The branch is protected.")
    assert "/mulligan retry" in event.decision.fix


@pytest.mark.parametrize(
    ("tip", "start", "foreign"),
    [
        (None, "b", False),
        ("c", "b", False),
        ("pushed", "b", False),
        ("theirs", "b", True),
        ("theirs", "theirs", False),
        ("pushed", "theirs", True),
    ],
)
def test_the_head_of_the_branch_is_mulligans_or_what_was_worked_on(
    tip: str | None, start: str, *, foreign: bool
) -> None:
    status = replace(KNOWN, effects=Effects((Pushed(branch=REF.branch, head_sha="pushed"),)))
    last = DONE.model_copy(update={"base_sha": "b", "start_sha": start, "head_sha": "c"})
    assert is_foreign(tip, status, last) is foreign


def test_before_the_first_attempt_the_branch_has_what_was_pushed() -> None:
    assert expected_remote_head(KNOWN, None) is None
    pushed = replace(KNOWN, effects=Effects((Pushed(branch=REF.branch, head_sha="pushed"),)))
    assert expected_remote_head(pushed, None) == "pushed"


# What an escalation shows.

BOTH = Escalation(draft_pr=True, push_work=True)
SHOWN = {
    Outcome.CHECKS_FAILED: (True, True),
    Outcome.REJECTED: (True, True),
    Outcome.SUCCEEDED: (False, True),
}
"""Of which attempts the work may be seen: in a draft, and at a ref of its own."""


@pytest.mark.parametrize("outcome", Outcome)
def test_only_work_that_passed_the_guards_is_shown(outcome: Outcome) -> None:
    work = decide_shown_work(left(outcome), BOTH)
    shown = (work.in_draft, work.at_ref) if work else None
    assert shown == SHOWN.get(outcome)
    assert work is None or (work.head_sha, work.attempt) == ("c0ffee", left(outcome))


def left(outcome: Outcome) -> WorkerResultMeta:
    return red(1).model_copy(update={"outcome": outcome})


@pytest.mark.parametrize(
    ("settings", "shown"),
    [
        (Escalation(), (False, False)),
        (Escalation(draft_pr=True), (True, False)),
        (Escalation(push_work=True), (False, True)),
    ],
)
def test_work_is_shown_as_the_policy_says(settings: Escalation, shown: tuple[bool, bool]) -> None:
    work = decide_shown_work(red(1), settings)
    assert work is not None
    assert (work.in_draft, work.at_ref) == shown


@pytest.mark.parametrize("outcome", [Outcome.MISCONFIGURED, Outcome.INFRASTRUCTURE])
def test_work_whose_check_cannot_run_is_shown(outcome: Outcome) -> None:
    broken = check().model_copy(update={"on_base": OnBase.CANNOT_RUN})
    work = decide_shown_work(red(1, broken).model_copy(update={"outcome": outcome}), BOTH)
    assert (work is not None and work.in_draft) is (outcome is Outcome.MISCONFIGURED)


def test_without_an_attempt_or_a_change_nothing_is_shown() -> None:
    assert decide_shown_work(None, BOTH) is None
    assert decide_shown_work(red(1).model_copy(update={"head_sha": None}), BOTH) is None
