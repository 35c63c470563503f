"""The outcome of an attempt is the first of SPEC 6 that matches what is known."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.domain.attempt import (
    NO_TEXT,
    SHUTDOWN,
    AgentReport,
    AgentRun,
    Change,
    Evidence,
    Fault,
    ReportedStatus,
    TimeLimit,
    classify,
    fault_of,
    worth_verifying,
)
from mulligan.domain.outcome import FREE, NO_OUTPUT, Outcome
from mulligan.domain.result import AgentFacts, CheckKind, CheckResult
from mulligan.errors import DeniedError, MisconfiguredError, ShutdownError, UnavailableError

pytestmark = pytest.mark.pure

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


def check(*, passed: bool, required: bool = True) -> CheckResult:
    return CheckResult(
        name="tests", kind=CheckKind.TEST, command="make test", passed=passed, required=required
    )


@pytest.mark.parametrize(
    ("known", "outcome"),
    [
        (Evidence(), Outcome.INTERRUPTED),
        (Evidence(run=run()), Outcome.INTERRUPTED),
        (Evidence(fault=NO_TEXT), Outcome.BLOCKED),
        (Evidence(run=run(None, TimeLimit.TIMEOUT), change=CHANGED), Outcome.AGENT_TIMED_OUT),
        (Evidence(run=run(-9, TimeLimit.STALL_TIMEOUT), change=UNCHANGED), Outcome.AGENT_TIMED_OUT),
        (
            Evidence(run=run(stopped_by=TimeLimit.TIMEOUT, report=BLOCKED), change=UNCHANGED),
            Outcome.AGENT_TIMED_OUT,
        ),
        (Evidence(run=run(report=BLOCKED), change=UNCHANGED), Outcome.BLOCKED),
        (Evidence(run=run(report=BLOCKED), change=CHANGED), Outcome.BLOCKED),
        (Evidence(run=run(1, report=BLOCKED), change=UNCHANGED), Outcome.BLOCKED),
        (Evidence(run=run(report=NOTHING), change=UNCHANGED), Outcome.NOTHING_TO_DO),
        (Evidence(run=run(1, report=NOTHING), change=UNCHANGED), Outcome.NOTHING_TO_DO),
        (Evidence(run=run(report=NOTHING), change=CHANGED), Outcome.SUCCEEDED),
        (Evidence(run=run(1), change=UNCHANGED), Outcome.AGENT_CRASHED),
        (Evidence(run=run(-11), change=COMMITTED_NOTHING), Outcome.AGENT_CRASHED),
        (Evidence(run=run(None), change=UNCHANGED), Outcome.AGENT_CRASHED),
        (Evidence(run=run(1), change=CHANGED), Outcome.SUCCEEDED),
        (Evidence(run=run(), change=UNCHANGED), Outcome.ZERO_COMMIT),
        (Evidence(run=run(), change=COMMITTED_NOTHING), Outcome.ZERO_DIFF),
        (
            Evidence(
                run=run(), change=CHANGED, violations=("too big",), checks=(check(passed=False),)
            ),
            Outcome.SCOPE_VIOLATION,
        ),
        (
            Evidence(run=run(), change=CHANGED, checks=(check(passed=True), check(passed=False))),
            Outcome.CHECKS_FAILED,
        ),
        (
            Evidence(run=run(), change=CHANGED, checks=(check(passed=False, required=False),)),
            Outcome.SUCCEEDED,
        ),
        (Evidence(run=run(), change=CHANGED, checks=(check(passed=True),)), Outcome.SUCCEEDED),
        (Evidence(run=run(), change=CHANGED), Outcome.SUCCEEDED),
    ],
)
def test_the_first_that_matches_is_the_outcome(known: Evidence, outcome: Outcome) -> None:
    assert classify(known) is outcome
    assert worth_verifying(known) is (outcome is Outcome.SUCCEEDED)


@pytest.mark.parametrize("outcome", Outcome)
def test_a_fault_from_outside_comes_before_all_that_the_agent_did(outcome: Outcome) -> None:
    known = Evidence(
        fault=Fault(outcome, "why"),
        run=run(1, TimeLimit.TIMEOUT, BLOCKED),
        change=CHANGED,
        violations=("too big",),
        checks=(check(passed=False),),
    )
    assert classify(known) is outcome


def runs() -> st.SearchStrategy[AgentRun]:
    return st.builds(
        run,
        st.sampled_from([0, 1, -9, None]),
        st.sampled_from([None, *TimeLimit]),
        st.sampled_from([None, BLOCKED, NOTHING]),
    )


def reports(agent: AgentRun, status: ReportedStatus) -> bool:
    return agent.report is not None and agent.report.status is status


MATCHES: dict[Outcome, Callable[[AgentRun, Change, Evidence], bool]] = {
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
"""What SPEC 6 says of each outcome that is read from what the agent did, on its own."""


@given(
    agent=runs(),
    change=st.sampled_from([CHANGED, UNCHANGED, COMMITTED_NOTHING]),
    violations=st.sampled_from([(), ("too big",)]),
    checks=st.lists(st.builds(check, passed=st.booleans(), required=st.booleans()), max_size=3).map(
        tuple
    ),
)
def test_the_order_is_that_of_the_specification(
    agent: AgentRun,
    change: Change,
    violations: tuple[str, ...],
    checks: tuple[CheckResult, ...],
) -> None:
    known = Evidence(run=agent, change=change, violations=violations, checks=checks)
    assert classify(known) is next(
        outcome
        for outcome in Outcome
        if outcome in MATCHES and MATCHES[outcome](agent, change, known)
    )


@pytest.mark.parametrize(
    ("error", "outcome", "reason"),
    [
        (ShutdownError("told to stop"), Outcome.INTERRUPTED, SHUTDOWN),
        (DeniedError("no right"), Outcome.DENIED, "no right"),
        (MisconfiguredError("no git"), Outcome.MISCONFIGURED, "no git"),
        (UnavailableError("no disk"), Outcome.INFRASTRUCTURE, "no disk"),
    ],
)
def test_the_kind_of_an_error_names_the_fault_and_never_its_text(
    error: DeniedError | MisconfiguredError | UnavailableError | ShutdownError,
    outcome: Outcome,
    reason: str,
) -> None:
    fault = fault_of(error)
    assert (fault.outcome, fault.reason) == (outcome, reason)
    assert fault.outcome in FREE


def test_what_costs_no_attempt_and_what_left_no_output_do_not_overlap() -> None:
    assert not FREE & NO_OUTPUT
    assert len(FREE) == 6
