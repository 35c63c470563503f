"""What a worker that died left half done is put right, from whatever the ledger holds of it."""

from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import pytest

from github_simulator.world import Fault
from mulligan.daemon.recovery import recover, stand_down_unlabelled
from mulligan.daemon.worker import BUG_MESSAGE, Worker
from mulligan.domain.events import (
    AttemptCompleted,
    AttemptStarted,
    Authorised,
    Decided,
    Escalated,
    Event,
    FixRoundStarted,
    IssueSeen,
    StoodDown,
)
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.issue_context import IssueContext
from mulligan.domain.outcome import Escalate, OpenPullRequest, Outcome, Retry
from mulligan.domain.status import IssueStatus, Phase
from mulligan.implement.attempt import begin_attempt, make_attempt
from mulligan.implement.decide import decide_admission
from mulligan.implement.effects import record_admission
from mulligan.implement.issue_snapshot import collect_facts
from mulligan.implement.ports import BotContext
from world.behaviours import AgentInput, crash
from world.ledgers import completed, with_listener
from world.simulated import NAME
from world.workers import WorkerEnvironment, fail_once_changed, fix_the_bug, worker_environment


@pytest.fixture
def here(tmp_path: Path) -> Generator[WorkerEnvironment]:
    with worker_environment(tmp_path, database=True) as made:
        yield made


def never(given: AgentInput) -> None:
    raise AssertionError(given.directory)


def begun(here: WorkerEnvironment, context: BotContext) -> IssueContext:
    facts = collect_facts(here.desk.ready(), context)
    record_admission(facts, decide_admission(facts), context)
    return begin_attempt(facts.issue, context)


def died_in_an_attempt(here: WorkerEnvironment, context: BotContext) -> IssueRef:
    return begun(here, context).issue.ref


def test_a_repository_that_is_not_served_any_more_is_left_alone(here: WorkerEnvironment) -> None:
    context = here.context(fix_the_bug)
    ref = died_in_an_attempt(here, context)
    assert recover(context, Worker(context), ["other/repository"]).failed == {}
    assert here.ledger.status(ref).phase is Phase.ATTEMPTING
    recover(context, Worker(context), [ref.repository])
    assert here.ledger.status(ref).phase is Phase.IDLE


def died_after_an_attempt(here: WorkerEnvironment, context: BotContext) -> IssueRef:
    case = begun(here, context)
    here.ledger.append(case.issue.ref, AttemptCompleted(meta=make_attempt(case, context)))
    return case.issue.ref


def test_an_attempt_that_was_cut_off_is_interrupted_and_may_be_made_again(
    here: WorkerEnvironment,
) -> None:
    context = here.context(fix_the_bug)
    ref = died_in_an_attempt(here, context)
    assert recover(context, Worker(context)).failed == {}
    (meta,) = here.ledger.history(ref)
    assert (meta.outcome, meta.attempt) == (Outcome.INTERRUPTED, 1)
    status = here.ledger.status(ref)
    assert (status.phase, status.stage) == (Phase.IDLE, Stage.READY)
    assert here.labels(ref) == ["mulligan"]
    assert Worker(context).visit(ref).attempts == 1


class KilledError(BaseException):
    """Stands for the end of the worker's process."""


def test_an_attempt_that_was_cut_off_in_a_fix_round_is_interrupted_as_any(
    here: WorkerEnvironment,
) -> None:
    here.check(fail_once_changed)
    here.policy["max_fix_rounds"] = 1

    def work(given: AgentInput) -> None:
        if given.environment["MULLIGAN_FIX_ROUND"] == "1":
            raise KilledError
        fix_the_bug(given)

    context = here.context(work)
    case = begun(here, context)
    ref = case.issue.ref
    with pytest.raises(KilledError):
        make_attempt(case, context)
    assert FixRoundStarted(number=1, most=1, failed=("check",)) in here.events(ref)
    recover(context, Worker(context))
    (meta,) = here.ledger.history(ref)
    assert (meta.outcome, here.ledger.status(ref).stage) == (Outcome.INTERRUPTED, Stage.READY)


def test_an_attempt_that_was_not_decided_is_decided_and_published(here: WorkerEnvironment) -> None:
    ref = died_after_an_attempt(here, here.context(fix_the_bug))
    assert here.ledger.status(ref).phase is Phase.COMPLETED
    context = here.context(never)
    assert recover(context, Worker(context)).failed == {}
    assert here.ledger.status(ref).stage is Stage.REVIEW
    assert len(here.desk.hub.world.pulls_of(NAME)) == 1


@pytest.mark.parametrize(
    ("decision", "stage"),
    [
        (OpenPullRequest(), Stage.REVIEW),
        (Retry(reason="Again."), Stage.READY),
        (Escalate(reason="It did not work out."), Stage.HITL),
    ],
)
def test_a_decision_that_was_not_carried_out_is(
    here: WorkerEnvironment, decision: OpenPullRequest | Retry | Escalate, stage: Stage
) -> None:
    ref = died_after_an_attempt(here, here.context(fix_the_bug))
    here.ledger.append(ref, Decided(decision=decision))
    context = here.context(never)
    recovered = recover(context, Worker(context))
    assert (recovered.failed, recovered.escalated) == ({}, stage is Stage.HITL)
    status = here.ledger.status(ref)
    assert (status.phase, status.stage, status.is_shown) == (Phase.IDLE, stage, True)


def test_a_stage_that_github_was_not_told_of_is_shown(here: WorkerEnvironment) -> None:
    ref, context = here.desk.ready(), here.context(never)
    now = here.desk.clock.time
    here.ledger.append(ref, Authorised(act="labeled:1", actor="wes", act_at=now))
    assert recover(context, Worker(context)).failed == {}
    assert len(here.said(ref)) == 1
    writes = here.writes()
    assert recover(context, Worker(context)).failed == {}
    assert here.writes() == writes


def test_an_issue_that_was_only_seen_is_not_spoken_of(here: WorkerEnvironment) -> None:
    ref, context = here.desk.ready(), here.context(never)
    here.ledger.append(ref, IssueSeen(title="Mend it"))
    assert recover(context, Worker(context)).failed == {}
    assert here.writes() == []


def test_an_issue_that_somebody_is_on_is_not_recovered(here: WorkerEnvironment) -> None:
    ref = died_in_an_attempt(here, here.context(fix_the_bug))
    assert here.leases.claim(ref, "two")
    context = here.context(never)
    assert recover(context, Worker(context)).failed == {}
    assert here.ledger.status(ref).phase is Phase.ATTEMPTING
    here.let_leases_run_out()
    recover(context, Worker(context))
    assert here.ledger.status(ref).phase is Phase.IDLE


def test_an_issue_that_fails_again_does_not_stop_the_others(here: WorkerEnvironment) -> None:
    first, second = (died_after_an_attempt(here, here.context(fix_the_bug)) for _ in range(2))
    path = f"/repos/{NAME}/issues/{first.number}"

    def fault(method: str, asked: str) -> Fault | None:
        return Fault(502) if asked == path else None

    here.desk.hub.world.faults = fault
    context = here.context(never)
    assert list(recover(context, Worker(context)).failed) == [first]
    assert here.ledger.status(second).stage is Stage.REVIEW
    here.github_answers(None)
    assert recover(context, Worker(context)).failed == {}
    assert here.ledger.status(first).stage is Stage.REVIEW


def test_an_issue_that_meets_a_bug_does_not_stop_the_others(here: WorkerEnvironment) -> None:
    second = died_after_an_attempt(here, here.context(fix_the_bug))
    odd = IssueRef("acme/odd", 1)
    here.ledger.append(odd, completed(odd, 1))

    def break_down(status: IssueStatus, _event: Event) -> None:
        if status.issue == odd:
            raise ZeroDivisionError

    context = here.context(never)
    context = replace(context, ledger=with_listener(here.ledger, break_down))
    assert recover(context, Worker(context)).failed == {odd: BUG_MESSAGE}
    assert here.ledger.status(second).stage is Stage.REVIEW
    assert here.leases.holder(odd) is None


def queued(here: WorkerEnvironment) -> IssueRef:
    """Give an issue that waits for its second attempt."""
    ref = here.desk.ready()
    assert Worker(here.context(crash), max_attempts=1).visit(ref).attempts == 1
    return ref


def test_a_queued_issue_that_lost_its_label_is_let_go_all(here: WorkerEnvironment) -> None:
    ref, context = queued(here), here.context(never)
    here.desk.hub.world.unlabel(ref, "mulligan", "wes")
    stand_down_unlabelled(here.ledger.statuses(), Worker(context))
    assert StoodDown(reason="Its label was removed.") in here.events(ref)
    assert here.ledger.status(ref).stage is Stage.RESOLVED
    assert here.labels(ref) == []


def test_an_absence_is_believed_only_after_reading_the_issue(here: WorkerEnvironment) -> None:
    ref, context = queued(here), here.context(never)
    stand_down_unlabelled(here.ledger.statuses(), Worker(context))
    assert here.ledger.status(ref).stage is Stage.READY


def test_only_what_is_queued_by_a_label_is_looked_at(here: WorkerEnvironment) -> None:
    context, commanded = here.context(never), here.desk.hub.issue()
    now = here.desk.clock.time
    here.ledger.append(commanded, Authorised(act="operator:now", actor="", act_at=now))
    here.desk.requests()
    stand_down_unlabelled(here.ledger.statuses(), Worker(context))
    assert here.desk.requests() == []


def test_what_is_not_queued_any_more_is_kept(here: WorkerEnvironment) -> None:
    ref, context = queued(here), here.context(never)
    before = here.ledger.statuses()
    here.desk.hub.world.unlabel(ref, "mulligan", "wes")
    here.ledger.append(ref, Escalated(reason="It did not work out.", comment=""))
    stand_down_unlabelled(before, Worker(context))
    assert here.ledger.status(ref).stage is Stage.HITL


def test_a_queued_issue_that_somebody_is_on_is_kept(here: WorkerEnvironment) -> None:
    ref, context = queued(here), here.context(never)
    here.desk.hub.world.unlabel(ref, "mulligan", "wes")
    assert here.leases.claim(ref, "two")
    stand_down_unlabelled(here.ledger.statuses(), Worker(context))
    assert here.ledger.status(ref).stage is Stage.READY
    here.ledger.append(ref, AttemptStarted(attempt=2, number=2, worker="two"))
    here.let_leases_run_out()
    stand_down_unlabelled(here.ledger.statuses(), Worker(context))
    assert here.ledger.status(ref).stage is Stage.RUNNING
