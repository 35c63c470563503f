"""Every kind of escalation, with the product's own decisions and texts."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from mulligan.domain.attempt import TimeLimit
from mulligan.domain.events import FailedCheck, Remark
from mulligan.domain.feedback import Feedback
from mulligan.domain.issue_context import IssueContext
from mulligan.domain.outcome import Escalate, Outcome, ZeroKind
from mulligan.domain.recorded_effects import NO_EFFECTS, WorkPushed
from mulligan.domain.result import (
    AgentFacts,
    FileChange,
    Finding,
    GuardKind,
    GuardViolation,
    WorkerResultMeta,
)
from mulligan.domain.status import PullStatus
from mulligan.implement.decide import EndedAttempt, RetryPolicy, count_spent, decide
from mulligan.implement.prompt.patterns import find_patterns
from world.stories import NOON, attempt, escalated, red_check

TEST = Finding(summary="assert 3 == -3", test_id="tests/test_add.py::test_negative")


def escalated_case(*history: WorkerResultMeta) -> IssueContext:
    """Let the policy decide about the last attempt; the decision must be an escalation."""
    epoch, policy = [EndedAttempt.of(meta) for meta in history], RetryPolicy()
    decision = decide(epoch[-1], epoch[:-1], policy)
    assert isinstance(decision, Escalate), decision
    found = escalated(*history, reason=decision.reason, fix=decision.fix)
    return replace(found, observed=find_patterns(history), counted=count_spent(epoch, policy))


def three_times(outcome: Outcome, error: str, **more: object) -> list[WorkerResultMeta]:
    tries = [attempt(number, outcome, error) for number in (1, 2, 3)]
    return [meta.model_copy(update=more) for meta in tries]


def facts(meta: WorkerResultMeta, **more: object) -> AgentFacts:
    assert meta.agent
    return meta.agent.model_copy(update=more)


def red_three_times() -> IssueContext:
    check = red_check().model_copy(update={"findings": (TEST,), "fingerprint": "f1"})
    return escalated_case(*three_times(Outcome.CHECKS_FAILED, "", checks=(check,)))


def red_differently() -> IssueContext:
    elsewhere = (FileChange(path="src/other.py", status="M", insertions=1, deletions=1),)
    *before, last = three_times(Outcome.CHECKS_FAILED, "")
    slow = red_check("e2e", digest="").model_copy(update={"timed_out": True, "exit_code": None})
    more = {"files_modified": elsewhere, "checks": (slow,)}
    return escalated_case(*before, last.model_copy(update=more))


def work_pushed() -> IssueContext:
    found = red_three_times()
    effects = NO_EFFECTS.plus(WorkPushed(attempt=3, git_ref="refs/mulligan/attempts/12-3"))
    return replace(found, status=replace(found.status, effects=effects))


def nearly_the_same_change() -> IssueContext:
    said = "The reviewer rejected the change."
    return escalated_case(*three_times(Outcome.REJECTED, said, sketch=("one", "two", "three")))


def silent() -> IssueContext:
    said = "The agent changed nothing (zero commits)."
    found = escalated_case(*three_times(Outcome.ZERO_COMMIT, said, zero_kind=ZeroKind.NOTHING))
    return replace(found, verifies=False)


def asked() -> IssueContext:
    said = "The agent changed nothing (zero commits). It asked: Shall I go on?"
    return escalated_case(*three_times(Outcome.ZERO_COMMIT, said, zero_kind=ZeroKind.ASKED))


def undone() -> IssueContext:
    said = "The agent made 2 commits, but the files equal the base branch (zero diff)."
    return escalated_case(
        *three_times(Outcome.ZERO_DIFF, said, zero_kind=ZeroKind.UNDONE, commits=2)
    )


def out_of_scope() -> IssueContext:
    rules = (
        (GuardKind.PROTECTED, ".github/workflows/ci.yml", "must not change (scope.protect: ci)."),
        (GuardKind.SCOPE, "docs/index.md", "is outside the allowed scope (src/**)."),
    )
    broken = tuple(
        GuardViolation(kind=kind, path=path, message=f"{path} {rule}") for kind, path, rule in rules
    )
    said = " ".join(each.message for each in broken)
    changed = (FileChange(path="docs/index.md", status="M", insertions=1, deletions=0),)
    more = {"guard_violations": broken, "files_modified": changed}
    error = f"Scope violation detected: {said}"
    return escalated_case(*three_times(Outcome.SCOPE_VIOLATION, error, **more))


def rejected() -> IssueContext:
    words = "The rounding is wrong for negative prices.\nSee `price.py`."
    return escalated_case(
        *three_times(Outcome.REJECTED, "The reviewer rejected the change.", verifier_feedback=words)
    )


def without_a_verdict() -> IssueContext:
    said = "The reviewer command ended with exit code 1. Its last line: KeyError: 'MODEL_KEY'"
    tried = attempt(1, Outcome.MISCONFIGURED, said)
    return escalated_case(tried.model_copy(update={"unreviewed": said}))


def timed_out(limit: TimeLimit, said: str) -> IssueContext:
    tries = [attempt(number, Outcome.AGENT_TIMED_OUT, said) for number in (1, 2)]
    agent = facts(tries[0], stop_reason=limit.value, last_activity="npm install")
    return escalated_case(*(meta.model_copy(update={"agent": agent}) for meta in tries))


def crashed() -> IssueContext:
    said = "The agent ended with exit code 1 and changed nothing."
    return escalated_case(*three_times(Outcome.AGENT_CRASHED, said))


def killed() -> IssueContext:
    said = "The agent ended with exit code 137 (killed by SIGKILL) and changed nothing."
    return escalated_case(*three_times(Outcome.AGENT_CRASHED, said, zero_kind=ZeroKind.KILLED))


def blocked() -> IssueContext:
    said = "The issue names a file `prices.csv`, which is not in the repository."
    return escalated_case(attempt(1, Outcome.BLOCKED, f"The agent is blocked: {said}"))


def nothing_to_do() -> IssueContext:
    said = (
        "The agent reports that there is nothing to do: add() handles signs. Evidence: tests pass."
    )
    return escalated_case(attempt(1, Outcome.NOTHING_TO_DO, said))


def interrupted() -> IssueContext:
    said = "Mulligan crashed during the attempt."
    return escalated_case(*(attempt(number, Outcome.INTERRUPTED, said) for number in range(1, 7)))


def infrastructure() -> IssueContext:
    said = "The setup command `npm ci` failed with exit code 1."
    return escalated_case(
        *(attempt(number, Outcome.INFRASTRUCTURE, said) for number in range(1, 7))
    )


def misconfigured() -> IssueContext:
    said = (
        "'ruff' not found. It is the program of the check 'lint'; install it in a setup command, "
        "or change the check's command."
    )
    return escalated_case(attempt(1, Outcome.MISCONFIGURED, said))


def not_let_through() -> IssueContext:
    said = "The agent was refused Bash; allow the tool in agent.arguments, with --allowedTools."
    meta = attempt(1, Outcome.MISCONFIGURED, said)
    agent = facts(meta, refused=("Bash",), refused_hosts=("pypi.example",))
    return escalated_case(meta.model_copy(update={"agent": agent}))


def denied() -> IssueContext:
    said = "The server refused to be read; give Mulligan's token the right to read this repository."
    return escalated_case(attempt(1, Outcome.DENIED, said))


def over_budget() -> IssueContext:
    said = (
        "The budget of this issue is used up: $5.02 and 812,345 tokens of $5.00. Raise "
        "budget.issue in mulligan.yml, then add the label again."
    )
    meta = attempt(2, Outcome.OVER_BUDGET, said, cost=4.81)
    return escalated_case(attempt(1), meta.model_copy(update={"budget": "issue"}))


def too_much_for_a_day() -> IssueContext:
    said = (
        "The budget of the day is used up: $10.02 and 1,812,345 tokens of $10.00. The next day "
        "begins at midnight UTC; budget.day in mulligan.yml sets it."
    )
    tries = [attempt(number, Outcome.OVER_BUDGET, said, cost=9.61) for number in (1, 2)]
    eaten = {"budget": "day", "eats_budget": True}
    return escalated_case(*(meta.model_copy(update=eaten) for meta in tries))


def not_published() -> IssueContext:
    why = "Mulligan could not publish the work: the server declined the push (pre-receive)."
    fix = "Fix this, then write /mulligan retry. Mulligan keeps the commit."
    return escalated(attempt(1, Outcome.SUCCEEDED), reason=why, fix=fix)


def returned_from_review(reason: str, back: Feedback) -> IssueContext:
    found = escalated(attempt(1, Outcome.SUCCEEDED), reason=reason)
    status = replace(found.status, outcome=None, pull=PullStatus(number=13), feedback=back)
    return replace(found, status=status)


def reviewed_again() -> IssueContext:
    said = "Reviews have already started 3 rounds, and a review requests changes again."
    back = Feedback(at=NOON, remarks=(Remark(author="ann", body="Please use Decimal."),))
    return returned_from_review(said, back)


def red_on_github() -> IssueContext:
    said = "Checks of the pull request still fail on GitHub after 2 attempts: windows, macos."
    digest = "FAILED tests/test_add.py::test_negative - OSError"
    checks = (FailedCheck(name="windows", digest=digest), FailedCheck(name="macos"))
    return returned_from_review(said, Feedback(at=NOON, checks=checks))


ESCALATIONS: Mapping[str, Callable[[], IssueContext]] = {
    "checks-failed": red_three_times,
    "drift": red_differently,
    "work-pushed": work_pushed,
    "same-change": nearly_the_same_change,
    "zero-commit": silent,
    "question": asked,
    "zero-diff": undone,
    "scope-violation": out_of_scope,
    "rejected": rejected,
    "no-verdict": without_a_verdict,
    "timed-out": lambda: timed_out(TimeLimit.TIMEOUT, "Attempt timed out after 1800 seconds."),
    "stalled": lambda: timed_out(
        TimeLimit.STALL_TIMEOUT, "Attempt was stopped after 300 seconds without output."
    ),
    "own-limit": lambda: timed_out(TimeLimit.OWN_LIMIT, "The agent reached its own limit."),
    "crashed": crashed,
    "killed": killed,
    "blocked": blocked,
    "nothing-to-do": nothing_to_do,
    "interrupted": interrupted,
    "infrastructure": infrastructure,
    "misconfigured": misconfigured,
    "tools-refused": not_let_through,
    "denied": denied,
    "over-budget": over_budget,
    "over-budget-by-day": too_much_for_a_day,
    "not-published": not_published,
    "review-rounds": reviewed_again,
    "red-on-github": red_on_github,
    "no-attempt": lambda: escalated(reason="The policy file is invalid."),
}
"""Told as stories, by name; the golden comments are tests/github/golden/help-NAME.md."""
