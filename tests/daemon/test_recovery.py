"""What a worker that died left half done is put right, from whatever the ledger holds of it."""

from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import pytest

from github_simulator.world import Fault
from mulligan.daemon.recovery import let_go_all, recover
from mulligan.daemon.worker import A_BUG, Worker
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
from mulligan.implement.admission import begin, receive
from mulligan.implement.issue_snapshot import collect_facts
from mulligan.implement.phase import make_attempt
from mulligan.implement.ports import Tools
from mulligan.storage.ledger import WatchedLedger
from world.behaviours import Given, crash
from world.ledgers import completed
from world.simulated import NAME
from world.workers import Shop, mend, red_once_changed, shop


@pytest.fixture
def here(tmp_path: Path) -> Generator[Shop]:
    with shop(tmp_path) as made:
        yield made


def never(given: Given) -> None:
    raise AssertionError(given.directory)


def begun(here: Shop, tools: Tools) -> IssueContext:
    facts = collect_facts(here.desk.ready(), tools)
    receive(facts, tools)
    return begin(facts.issue, tools)


def died_in_an_attempt(here: Shop, tools: Tools) -> IssueRef:
    return begun(here, tools).issue.ref


def test_a_repository_that_is_not_served_any_more_is_left_alone(here: Shop) -> None:
    tools = here.tools(mend)
    ref = died_in_an_attempt(here, tools)
    assert recover(tools, Worker(tools), ["other/repository"]).failed == {}
    assert here.ledger.status(ref).phase is Phase.ATTEMPTING
    recover(tools, Worker(tools), [ref.repository])
    assert here.ledger.status(ref).phase is Phase.IDLE


def died_after_an_attempt(here: Shop, tools: Tools) -> IssueRef:
    case = begun(here, tools)
    here.ledger.append(case.issue.ref, AttemptCompleted(meta=make_attempt(case, tools)))
    return case.issue.ref


def test_an_attempt_that_was_cut_off_is_interrupted_and_may_be_made_again(here: Shop) -> None:
    tools = here.tools(mend)
    ref = died_in_an_attempt(here, tools)
    assert recover(tools, Worker(tools)).failed == {}
    (meta,) = here.ledger.history(ref)
    assert (meta.outcome, meta.attempt) == (Outcome.INTERRUPTED, 1)
    status = here.ledger.status(ref)
    assert (status.phase, status.stage) == (Phase.IDLE, Stage.READY)
    assert here.labels(ref) == ["mulligan"]
    assert Worker(tools).visit(ref).attempts == 1


class KilledError(BaseException):
    """Stands for the end of the worker's process."""


def test_an_attempt_that_was_cut_off_in_a_fix_round_is_interrupted_as_any(here: Shop) -> None:
    here.check(red_once_changed)
    here.policy["max_fix_rounds"] = 1

    def work(given: Given) -> None:
        if given.environment["MULLIGAN_FIX_ROUND"] == "1":
            raise KilledError
        mend(given)

    tools = here.tools(work)
    case = begun(here, tools)
    ref = case.issue.ref
    with pytest.raises(KilledError):
        make_attempt(case, tools)
    assert FixRoundStarted(number=1, most=1, failed=("check",)) in here.events(ref)
    recover(tools, Worker(tools))
    (meta,) = here.ledger.history(ref)
    assert (meta.outcome, here.ledger.status(ref).stage) == (Outcome.INTERRUPTED, Stage.READY)


def test_an_attempt_that_was_not_decided_is_decided_and_published(here: Shop) -> None:
    ref = died_after_an_attempt(here, here.tools(mend))
    assert here.ledger.status(ref).phase is Phase.COMPLETED
    tools = here.tools(never)
    assert recover(tools, Worker(tools)).failed == {}
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
    here: Shop, decision: OpenPullRequest | Retry | Escalate, stage: Stage
) -> None:
    ref = died_after_an_attempt(here, here.tools(mend))
    here.ledger.append(ref, Decided(decision=decision))
    tools = here.tools(never)
    recovered = recover(tools, Worker(tools))
    assert (recovered.failed, recovered.escalated) == ({}, stage is Stage.HITL)
    status = here.ledger.status(ref)
    assert (status.phase, status.stage, status.is_shown) == (Phase.IDLE, stage, True)


def test_a_stage_that_github_was_not_told_of_is_shown(here: Shop) -> None:
    ref, tools = here.desk.ready(), here.tools(never)
    now = here.desk.clock.time
    here.ledger.append(ref, Authorised(act="labeled:1", actor="wes", act_at=now))
    assert recover(tools, Worker(tools)).failed == {}
    assert len(here.said(ref)) == 1
    writes = here.writes()
    assert recover(tools, Worker(tools)).failed == {}
    assert here.writes() == writes


def test_an_issue_that_was_only_seen_is_not_spoken_of(here: Shop) -> None:
    ref, tools = here.desk.ready(), here.tools(never)
    here.ledger.append(ref, IssueSeen(title="Mend it"))
    assert recover(tools, Worker(tools)).failed == {}
    assert here.writes() == []


def test_an_issue_that_somebody_is_on_is_not_recovered(here: Shop) -> None:
    ref = died_in_an_attempt(here, here.tools(mend))
    assert here.leases.claim(ref, "two")
    tools = here.tools(never)
    assert recover(tools, Worker(tools)).failed == {}
    assert here.ledger.status(ref).phase is Phase.ATTEMPTING
    here.let_leases_run_out()
    recover(tools, Worker(tools))
    assert here.ledger.status(ref).phase is Phase.IDLE


def test_an_issue_that_fails_again_does_not_stop_the_others(here: Shop) -> None:
    first, second = (died_after_an_attempt(here, here.tools(mend)) for _ in range(2))
    path = f"/repos/{NAME}/issues/{first.number}"

    def fault(method: str, asked: str) -> Fault | None:
        return Fault(502) if asked == path else None

    here.desk.hub.world.faults = fault
    tools = here.tools(never)
    assert list(recover(tools, Worker(tools)).failed) == [first]
    assert here.ledger.status(second).stage is Stage.REVIEW
    here.github_answers(None)
    assert recover(tools, Worker(tools)).failed == {}
    assert here.ledger.status(first).stage is Stage.REVIEW


def test_an_issue_that_meets_a_bug_does_not_stop_the_others(here: Shop) -> None:
    second = died_after_an_attempt(here, here.tools(mend))
    odd = IssueRef("acme/odd", 1)
    here.ledger.append(odd, completed(odd, 1))

    def break_down(status: IssueStatus, _event: Event) -> None:
        if status.issue == odd:
            raise ZeroDivisionError

    tools = here.tools(never)
    tools = replace(tools, ledger=WatchedLedger(here.ledger, break_down))
    assert recover(tools, Worker(tools)).failed == {odd: A_BUG}
    assert here.ledger.status(second).stage is Stage.REVIEW
    assert here.leases.holder(odd) is None


def queued(here: Shop) -> IssueRef:
    """Give an issue that waits for its second attempt."""
    ref = here.desk.ready()
    assert Worker(here.tools(crash), most=1).visit(ref).attempts == 1
    return ref


def test_a_queued_issue_that_lost_its_label_is_let_go_all(here: Shop) -> None:
    ref, tools = queued(here), here.tools(never)
    here.desk.hub.world.unlabel(ref, "mulligan", "wes")
    let_go_all(here.ledger.statuses(), Worker(tools))
    assert StoodDown(reason="Its label was taken off.") in here.events(ref)
    assert here.ledger.status(ref).stage is Stage.RESOLVED
    assert here.labels(ref) == []


def test_an_absence_is_believed_only_after_reading_the_issue(here: Shop) -> None:
    ref, tools = queued(here), here.tools(never)
    let_go_all(here.ledger.statuses(), Worker(tools))
    assert here.ledger.status(ref).stage is Stage.READY


def test_only_what_is_queued_by_a_label_is_looked_at(here: Shop) -> None:
    tools, commanded = here.tools(never), here.desk.hub.issue()
    now = here.desk.clock.time
    here.ledger.append(commanded, Authorised(act="operator:now", actor="", act_at=now))
    here.desk.requests()
    let_go_all(here.ledger.statuses(), Worker(tools))
    assert here.desk.requests() == []


def test_what_is_not_queued_any_more_is_kept(here: Shop) -> None:
    ref, tools = queued(here), here.tools(never)
    before = here.ledger.statuses()
    here.desk.hub.world.unlabel(ref, "mulligan", "wes")
    here.ledger.append(ref, Escalated(reason="It did not work out.", comment=""))
    let_go_all(before, Worker(tools))
    assert here.ledger.status(ref).stage is Stage.HITL


def test_a_queued_issue_that_somebody_is_on_is_kept(here: Shop) -> None:
    ref, tools = queued(here), here.tools(never)
    here.desk.hub.world.unlabel(ref, "mulligan", "wes")
    assert here.leases.claim(ref, "two")
    let_go_all(here.ledger.statuses(), Worker(tools))
    assert here.ledger.status(ref).stage is Stage.READY
    here.ledger.append(ref, AttemptStarted(attempt=2, number=2, worker="two"))
    here.let_leases_run_out()
    let_go_all(here.ledger.statuses(), Worker(tools))
    assert here.ledger.status(ref).stage is Stage.RUNNING
