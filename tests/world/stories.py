"""Issues at telling moments of their life, for everything that words them."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from mulligan.domain.issue import Issue, IssueRef, LabelAct, Stage
from mulligan.domain.issue_context import IssueContext
from mulligan.domain.outcome import Escalate, Outcome
from mulligan.domain.result import AgentFacts, CheckKind, CheckResult, FileChange, WorkerResultMeta
from mulligan.domain.status import IssueStatus, PullStatus, Request, SeenText

REF = IssueRef("octo/calc", 12)
NOON = datetime(2025, 3, 4, 12, 0, tzinfo=UTC)
ISSUE = Issue(
    ref=REF,
    title="Adding two negative numbers gives a positive one",
    body="`add(-1, -2)` gives 3.",
    author="ann",
    url="https://github.com/octo/calc/issues/12",
)
DIGEST = """\
FAILED tests/test_add.py::test_negative - assert 3 == -3
tests/test_add.py:8: AssertionError
1 failed, 41 passed in 0.31s"""


def red_check(name: str = "tests", digest: str = DIGEST) -> CheckResult:
    return CheckResult(
        name=name,
        kind=CheckKind.TEST,
        command="python -m pytest -q",
        passed=False,
        exit_code=1,
        duration_ms=3100,
        digest=digest,
    )


def green_check(name: str = "tests") -> CheckResult:
    passed = {"passed": True, "exit_code": 0, "digest": "42 passed in 0.30s"}
    return red_check(name).model_copy(update=passed)


def attempt(
    number: int, outcome: Outcome = Outcome.CHECKS_FAILED, error: str = "", *, cost: float = 0.21
) -> WorkerResultMeta:
    """Record the `number`-th attempt of the first epoch; each starts ten minutes after the last."""
    started = NOON + timedelta(minutes=10 * (number - 1))
    red = outcome is Outcome.CHECKS_FAILED
    changed = red or outcome is Outcome.SUCCEEDED
    said = error or ("Check 'tests' failed with exit code 1." if red else "")
    return WorkerResultMeta(
        issue=str(REF),
        epoch=1,
        attempt=number,
        number=number,
        outcome=outcome,
        error=said,
        failure_reason=said,
        head_sha="c0ffee" if changed else None,
        commits=1 if changed else 0,
        files_modified=(FileChange(path="src/add.py", status="M", insertions=3, deletions=1),)
        if changed
        else (),
        diff_summary="1 file changed, 3 insertions(+), 1 deletion(-)" if changed else "",
        checks=(red_check(),) if red else (green_check(),) if changed else (),
        agent=AgentFacts(kind="command", cost_usd=cost),
        agent_summary="`add` no longer takes the absolute value of its arguments.",
        started_at=started,
        finished_at=started + timedelta(seconds=95),
        duration_ms=95_000,
    )


def case(
    *history: WorkerResultMeta, stage: Stage = Stage.RUNNING, reason: str = ""
) -> IssueContext:
    """Build an issue in `stage`, after these attempts of its first epoch."""
    status = IssueStatus(
        issue=REF,
        text=SeenText(ISSUE.title),
        stage=stage,
        epoch=1,
        attempt=len(history),
        number=len(history),
        request=Request(str(LabelAct(77)), "ann", at=NOON),
        reason=reason,
        outcome=history[-1].outcome if history else None,
    )
    return IssueContext(ISSUE, status, tuple(history), max_attempts=3, counted=len(history))


def escalated(*history: WorkerResultMeta, reason: str, fix: str = "") -> IssueContext:
    """Put an issue together whose escalation is decided, and not carried out yet."""
    found = case(*history, stage=Stage.RUNNING, reason=reason)
    decision = Escalate(reason=reason, fix=fix)
    return replace(found, status=replace(found.status, decision=decision))


def published(*history: WorkerResultMeta) -> IssueContext:
    """Put an issue together whose pull request is open."""
    found = case(*history, stage=Stage.REVIEW, reason="The check 'tests' passed.")
    url = "https://github.com/octo/calc/pull/13"
    return replace(found, status=replace(found.status, pull=PullStatus(url)))
