"""The outcome of an attempt is the first that matches what is known (OUTCOME-1)."""

import signal
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.domain.attempt import (
    NO_TEXT,
    SHUTDOWN,
    AgentReport,
    AgentRun,
    AttemptState,
    Change,
    Fault,
    ReportedStatus,
    ReviewerResult,
    Task,
    TimeLimit,
    classify,
    fault_of,
    signal_of,
    worth_fixing,
    worth_verifying,
    zero_kind,
)
from mulligan.domain.errors import (
    DeniedError,
    MisconfiguredError,
    ReviewsWithdrawnError,
    ShutdownError,
    UnavailableError,
    WithdrawnError,
)
from mulligan.domain.outcome import FREE, NO_OUTPUT, Outcome, ZeroKind
from mulligan.domain.result import (
    AgentFacts,
    CheckKind,
    CheckResult,
    GuardViolation,
    OnBase,
    Rest,
    RestKind,
)
from mulligan.domain.set_up import SetUpError
from world.attempts import broken_rules

pytestmark = pytest.mark.pure

SET_UP = CheckResult(name="setup", kind=CheckKind.OTHER, command="x", passed=False)

BLOCKED = AgentReport(ReportedStatus.BLOCKED, "no access")
NOTHING = AgentReport(ReportedStatus.NOTHING_TO_DO, "done already")
CHANGED = Change("base", "head", 1)
UNCHANGED = Change("base", None, 0)
COMMITTED_NOTHING = Change("base", None, 2)


def run(
    exit_code: int | None = 0,
    stopped_by: TimeLimit | None = None,
    report: AgentReport | None = None,
) -> AgentRun:
    facts = AgentFacts(kind="command")
    return AgentRun(exit_code, timedelta(seconds=1), facts, stopped_by, report=report)


TIMED_OUT = run(-15, TimeLimit.TIMEOUT)
BUSY = Fault(Outcome.INFRASTRUCTURE, "The model's service failed.")
DENIED = Fault(Outcome.DENIED, "The model's service refused.")


def check(*, passed: bool, required: bool = True) -> CheckResult:
    return CheckResult(
        name="tests", kind=CheckKind.TEST, command="make test", passed=passed, required=required
    )


BROKEN = check(passed=False).model_copy(update={"on_base": OnBase.CANNOT_RUN})


@pytest.mark.parametrize(
    ("known", "outcome"),
    [
        (AttemptState(), Outcome.INTERRUPTED),
        (AttemptState(run=run()), Outcome.INTERRUPTED),
        (AttemptState(fault=NO_TEXT), Outcome.BLOCKED),
        (AttemptState(run=run(None, TimeLimit.TIMEOUT), change=CHANGED), Outcome.AGENT_TIMED_OUT),
        (
            AttemptState(run=run(-9, TimeLimit.STALL_TIMEOUT), change=UNCHANGED),
            Outcome.AGENT_TIMED_OUT,
        ),
        (
            AttemptState(run=run(stopped_by=TimeLimit.TIMEOUT, report=BLOCKED), change=UNCHANGED),
            Outcome.AGENT_TIMED_OUT,
        ),
        (AttemptState(run=run(report=BLOCKED), change=UNCHANGED), Outcome.BLOCKED),
        (AttemptState(run=run(report=BLOCKED), change=CHANGED), Outcome.BLOCKED),
        (AttemptState(run=run(1, report=BLOCKED), change=UNCHANGED), Outcome.BLOCKED),
        (AttemptState(run=run(report=NOTHING), change=UNCHANGED), Outcome.NOTHING_TO_DO),
        (AttemptState(run=run(1, report=NOTHING), change=UNCHANGED), Outcome.NOTHING_TO_DO),
        (AttemptState(run=run(report=NOTHING), change=CHANGED), Outcome.SUCCEEDED),
        (AttemptState(run=run(1), change=UNCHANGED), Outcome.AGENT_CRASHED),
        (AttemptState(run=run(-11), change=COMMITTED_NOTHING), Outcome.AGENT_CRASHED),
        (AttemptState(run=run(None), change=UNCHANGED), Outcome.AGENT_CRASHED),
        (AttemptState(run=run(1), change=CHANGED), Outcome.SUCCEEDED),
        (
            AttemptState(run=replace(run(), is_cut_off=True), change=UNCHANGED),
            Outcome.AGENT_CRASHED,
        ),
        (AttemptState(run=replace(run(), is_cut_off=True), change=CHANGED), Outcome.AGENT_CRASHED),
        (AttemptState(run=replace(run(1), is_cut_off=True), change=CHANGED), Outcome.AGENT_CRASHED),
        (
            AttemptState(run=replace(run(report=NOTHING), is_cut_off=True), change=CHANGED),
            Outcome.AGENT_CRASHED,
        ),
        (
            AttemptState(run=replace(run(report=NOTHING), is_cut_off=True), change=UNCHANGED),
            Outcome.NOTHING_TO_DO,
        ),
        (
            AttemptState(run=replace(run(1), is_cut_off=True, fault=DENIED), change=CHANGED),
            Outcome.DENIED,
        ),
        (AttemptState(run=replace(run(1), fault=DENIED), change=UNCHANGED), Outcome.DENIED),
        (AttemptState(run=replace(run(1), fault=BUSY), change=CHANGED), Outcome.INFRASTRUCTURE),
        (
            AttemptState(run=replace(TIMED_OUT, fault=BUSY, refusal="no"), change=UNCHANGED),
            Outcome.INFRASTRUCTURE,
        ),
        (AttemptState(run=replace(run(), refusal="no"), change=UNCHANGED), Outcome.MISCONFIGURED),
        (
            AttemptState(run=replace(TIMED_OUT, refusal="no"), change=UNCHANGED),
            Outcome.MISCONFIGURED,
        ),
        (AttemptState(run=replace(run(), refusal="no"), change=CHANGED), Outcome.SUCCEEDED),
        (AttemptState(run=run(), change=UNCHANGED), Outcome.ZERO_COMMIT),
        (AttemptState(run=run(), change=COMMITTED_NOTHING), Outcome.ZERO_DIFF),
        (
            AttemptState(
                run=run(),
                change=CHANGED,
                violations=broken_rules("too big"),
                checks=(check(passed=False),),
            ),
            Outcome.SCOPE_VIOLATION,
        ),
        (
            AttemptState(
                run=run(), change=CHANGED, checks=(check(passed=True), check(passed=False))
            ),
            Outcome.CHECKS_FAILED,
        ),
        (
            AttemptState(run=run(), change=CHANGED, checks=(check(passed=False, required=False),)),
            Outcome.SUCCEEDED,
        ),
        (
            AttemptState(run=run(), change=CHANGED, checks=(check(passed=True), BROKEN)),
            Outcome.MISCONFIGURED,
        ),
        (
            AttemptState(run=run(), change=CHANGED, checks=(BROKEN, check(passed=False))),
            Outcome.CHECKS_FAILED,
        ),
        (
            AttemptState(run=run(), change=CHANGED, review=ReviewerResult(None, unreadable="x")),
            Outcome.MISCONFIGURED,
        ),
        (AttemptState(run=run(), change=CHANGED, checks=(check(passed=True),)), Outcome.SUCCEEDED),
        (AttemptState(run=run(), change=CHANGED), Outcome.SUCCEEDED),
    ],
)
def test_the_first_that_matches_is_the_outcome(known: AttemptState, outcome: Outcome) -> None:
    assert classify(known) is outcome
    assert worth_verifying(known) is (outcome is Outcome.SUCCEEDED)


@pytest.mark.parametrize("outcome", Outcome)
def test_a_fault_from_outside_comes_before_all_that_the_agent_did(outcome: Outcome) -> None:
    known = AttemptState(
        fault=Fault(outcome, "why"),
        run=run(1, TimeLimit.TIMEOUT, BLOCKED),
        change=CHANGED,
        violations=broken_rules("too big"),
        checks=(check(passed=False),),
    )
    assert classify(known) is outcome


def asking(agent: AgentRun) -> AgentRun:
    return replace(agent, question="Shall I?")


IGNORED = Change("base", None, 0, ignored_files=("build/a.o",))
NESTED = replace(IGNORED, commits=1, nested=("copy",))
IGNORED_COMMIT = replace(IGNORED, commits=1)


@pytest.mark.parametrize(
    ("agent", "change", "kind"),
    [
        (run(), UNCHANGED, ZeroKind.NOTHING),
        (run(3), UNCHANGED, ZeroKind.NOTHING),
        (run(None), UNCHANGED, ZeroKind.NOTHING),
        (run(), COMMITTED_NOTHING, ZeroKind.UNDONE),
        (run(1), COMMITTED_NOTHING, ZeroKind.UNDONE),
        (run(), replace(COMMITTED_NOTHING, is_proposed=True), ZeroKind.PROPOSED),
        (run(), IGNORED, ZeroKind.ONLY_IGNORED),
        (run(), NESTED, ZeroKind.NESTED),
        (run(), replace(NESTED, not_checked_out=("fix",)), ZeroKind.NESTED),
        (run(), replace(IGNORED, not_checked_out=("fix",)), ZeroKind.NOT_CHECKED_OUT),
        (run(1), replace(NESTED, is_proposed=True), ZeroKind.NESTED),
        (asking(run()), NESTED, ZeroKind.ASKED),
        (run(), replace(CHANGED, nested=("copy",)), None),
        (run(), replace(UNCHANGED, submodule_files=("lib/a.c",)), None),
        (run(), replace(UNCHANGED, too_large=(("big", 10),)), None),
        (run(), replace(UNCHANGED, unread="It is too much."), None),
        (run(), replace(COMMITTED_NOTHING, submodule_links=("lib",)), None),
        (run(), IGNORED_COMMIT, ZeroKind.ONLY_IGNORED),
        (run(1), IGNORED, ZeroKind.ONLY_IGNORED),
        (asking(run()), UNCHANGED, ZeroKind.ASKED),
        (asking(run()), IGNORED, ZeroKind.ASKED),
        (asking(run()), COMMITTED_NOTHING, ZeroKind.ASKED),
        (asking(run(1)), UNCHANGED, ZeroKind.NOTHING),
        (run(-9), UNCHANGED, ZeroKind.KILLED),
        (run(145), UNCHANGED, ZeroKind.NOTHING),
        (replace(run(-9), is_cut_off=True), UNCHANGED, ZeroKind.KILLED),
        (run(137), COMMITTED_NOTHING, ZeroKind.KILLED),
        (asking(run(-9)), IGNORED, ZeroKind.KILLED),
        (TIMED_OUT, UNCHANGED, ZeroKind.CUT_OFF),
        (replace(TIMED_OUT, report=BLOCKED), UNCHANGED, ZeroKind.CUT_OFF),
        (replace(run(), is_cut_off=True), UNCHANGED, ZeroKind.CUT_OFF),
        (replace(run(), refusal="no"), UNCHANGED, ZeroKind.REFUSED),
        (replace(asking(run(-9)), refusal="no"), IGNORED, ZeroKind.REFUSED),
        (replace(run(), refusal="no"), CHANGED, None),
        (replace(run(), fault=BUSY), UNCHANGED, None),
        (run(report=BLOCKED), UNCHANGED, None),
        (run(-9, report=NOTHING), UNCHANGED, None),
        (asking(run()), CHANGED, None),
        (TIMED_OUT, CHANGED, None),
    ],
)
def test_an_attempt_that_left_nothing_says_of_what_kind_it_was(
    agent: AgentRun, change: Change, kind: ZeroKind | None
) -> None:
    assert zero_kind(AttemptState(run=agent, change=change)) is kind


@pytest.mark.parametrize(
    "known",
    [
        AttemptState(),
        AttemptState(run=run()),
        AttemptState(fault=Fault(Outcome.INFRASTRUCTURE, "why"), run=run(), change=UNCHANGED),
    ],
)
def test_what_was_ended_from_outside_has_no_kind(known: AttemptState) -> None:
    assert zero_kind(known) is None


@pytest.mark.parametrize(
    ("exit_code", "named"),
    [
        (-9, signal.SIGKILL),
        (137, signal.SIGKILL),
        (143, signal.SIGTERM),
        (134, signal.SIGABRT),
        (-99, None),
        (0, None),
        (1, None),
        (128, None),
        (255, None),
        (None, None),
    ],
)
def test_a_program_that_a_signal_ended_says_so_itself_or_through_its_shell(
    exit_code: int | None, named: signal.Signals | None
) -> None:
    assert signal_of(exit_code) is named


def runs() -> st.SearchStrategy[AgentRun]:
    return st.builds(
        run,
        st.sampled_from([0, 1, -9, None]),
        st.sampled_from([None, *TimeLimit]),
        st.sampled_from([None, BLOCKED, NOTHING]),
    )


def reports(agent: AgentRun, status: ReportedStatus) -> bool:
    return agent.report is not None and agent.report.status is status


MATCHES: dict[Outcome, Callable[[AgentRun, Change, AttemptState], bool]] = {
    Outcome.AGENT_TIMED_OUT: lambda agent, _, __: agent.stopped_by is not None,
    Outcome.BLOCKED: lambda agent, _, __: reports(agent, ReportedStatus.BLOCKED),
    Outcome.NOTHING_TO_DO: lambda agent, change, _: (
        reports(agent, ReportedStatus.NOTHING_TO_DO) and not change.tree_changed
    ),
    Outcome.AGENT_CRASHED: lambda agent, change, _: (
        agent.exit_code != 0 and not change.tree_changed
    ),
    Outcome.ZERO_COMMIT: lambda _, change, __: not change.tree_changed and change.commits == 0,
    Outcome.ZERO_DIFF: lambda _, change, __: not change.tree_changed and change.commits > 0,
    Outcome.SCOPE_VIOLATION: lambda _, __, known: bool(known.violations),
    Outcome.CHECKS_FAILED: lambda _, __, known: any(
        result.required and not result.passed for result in known.checks
    ),
    Outcome.SUCCEEDED: lambda _, __, ___: True,
}
"""Each outcome that is read from what the agent did, on its own (OUTCOME-1)."""


@given(
    agent=runs(),
    change=st.sampled_from([CHANGED, UNCHANGED, COMMITTED_NOTHING]),
    violations=st.sampled_from([(), broken_rules("too big")]),
    checks=st.lists(st.builds(check, passed=st.booleans(), required=st.booleans()), max_size=3).map(
        tuple
    ),
)
def test_the_order_is_that_of_the_specification(
    agent: AgentRun,
    change: Change,
    violations: tuple[GuardViolation, ...],
    checks: tuple[CheckResult, ...],
) -> None:
    known = AttemptState(run=agent, change=change, violations=violations, checks=checks)
    assert classify(known) is next(
        outcome
        for outcome in Outcome
        if outcome in MATCHES and MATCHES[outcome](agent, change, known)
    )


@pytest.mark.parametrize(
    ("error", "outcome", "reason"),
    [
        (ShutdownError("told to stop"), Outcome.INTERRUPTED, SHUTDOWN),
        (WithdrawnError("label off"), Outcome.CANCELLED, "label off"),
        (DeniedError("no right"), Outcome.DENIED, "no right"),
        (MisconfiguredError("no git"), Outcome.MISCONFIGURED, "no git"),
        (UnavailableError("no disk"), Outcome.INFRASTRUCTURE, "no disk"),
        (SetUpError("no x", SET_UP), Outcome.INFRASTRUCTURE, "no x"),
    ],
)
def test_the_kind_of_an_error_names_the_fault_and_never_its_text(
    error: DeniedError | MisconfiguredError | UnavailableError | ShutdownError | WithdrawnError,
    outcome: Outcome,
    reason: str,
) -> None:
    fault = fault_of(error)
    assert (fault.outcome, fault.reason) == (outcome, reason)
    assert fault.outcome in FREE
    assert fault.set_up == (SET_UP if isinstance(error, SetUpError) else None)


def test_what_costs_no_attempt_and_what_left_no_output_do_not_overlap() -> None:
    assert not FREE & NO_OUTPUT
    assert len(FREE) == 6


def test_only_failed_checks_are_worth_another_round_of_the_agent() -> None:
    failed = AttemptState(run=run(), change=CHANGED, checks=(check(passed=False),))
    assert worth_fixing(failed)
    assert not worth_fixing(replace(failed, violations=broken_rules("too big")))
    assert not worth_fixing(replace(failed, checks=(check(passed=True),)))


def test_a_run_says_why_and_until_when_its_agent_rests() -> None:
    now = datetime(2025, 3, 4, 12, tzinfo=UTC)
    told = replace(run(1), retry_after=timedelta(minutes=5)).ended_at(now, None, "a")
    asked = Rest(
        kind=RestKind.ASKED, since=now, at=now, until=now + timedelta(minutes=5), account="a"
    )
    assert told.facts.rest == asked
    limit = Fault(Outcome.INFRASTRUCTURE, "A limit.", rest=RestKind.LIMITED)
    long = replace(run(1), fault=limit, retry_after=timedelta(minutes=9)).ended_at(now, asked, "a")
    assert long.facts.rest == asked.model_copy(
        update={
            "kind": RestKind.LIMITED,
            "until": now + timedelta(minutes=9),
            "words": "A limit.",
        }
    )
    assert run(1).ended_at(now, asked, "a") == run(1)
    assert replace(run(1), fault=BUSY).ended_at(now, asked, "a").facts.rest is None


def test_without_a_budget_a_run_may_use_anything() -> None:
    here = Path("/work")
    task = Task("octo/hello#1", 1, 0, "Do it.", here, here, here / "agent.log", "hash")
    assert task.meter(AgentFacts(kind="command", cost_usd=1e9, input_tokens=10**12))


def test_the_newest_title_of_any_round_is_proposed() -> None:
    early = AttemptState(run=replace(run(), title="Fix add()"))
    late = AttemptState(run=replace(run(), title="Fix add() for negative numbers"))
    silent = AttemptState(run=run())
    assert replace(silent, earlier=(early, late)).proposed_title == late.proposed_title
    assert late.proposed_title == "Fix add() for negative numbers"
    assert replace(AttemptState(), earlier=(early, silent)).proposed_title == "Fix add()"
    assert AttemptState().proposed_title == ""


def test_withdrawn_reviews_cancel_an_attempt_and_keep_its_pull_request() -> None:
    fault = fault_of(ReviewsWithdrawnError("none asks for it"))
    assert (fault.outcome, fault.keeps_pull) == (Outcome.CANCELLED, True)
    assert not fault_of(WithdrawnError("label off")).keeps_pull
