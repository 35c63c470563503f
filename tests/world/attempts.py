"""Records of attempts, put together in a line, for all that learns from them."""

from datetime import UTC, datetime, timedelta

from mulligan.checks.progress import with_progress
from mulligan.domain.issue import Comment, Issue, IssueRef
from mulligan.domain.issue_context import IssueContext
from mulligan.domain.outcome import Outcome
from mulligan.domain.result import (
    AgentFacts,
    CheckKind,
    CheckResult,
    FileChange,
    Finding,
    GuardViolation,
    WorkerResultMeta,
)
from mulligan.domain.status import IssueStatus, Request, SeenText

REF = IssueRef("octo/almanac", 12)
NINE = datetime(2025, 3, 4, 9, 0, tzinfo=UTC)
BODY = """\
`import_csv` raises `ValueError` on dates before 1900.

## Acceptance criteria

- 1850-01-01 is read
- a test shows it

## Notes

See `src/almanac/importer.py`.
"""
ISSUE = Issue(
    ref=REF,
    title="Dates before 1900 crash the importer",
    body=BODY,
    author="ann",
    comments=(
        Comment("ann", "Please keep the old file format.", NINE),
        Comment("bob", "ISO dates only, I think.", NINE + timedelta(hours=1)),
    ),
)
TEST_ID = "tests/test_importer.py::test_old_dates"
MESSAGE = "ValueError: year 1850 is out of range"
DIGEST = f"""\
1 failed, 41 passed
FAILED {TEST_ID} - {MESSAGE}
    def parse(text):
>       return EPOCH + timedelta(days=days(text))
E       {MESSAGE}
src/almanac/importer.py:31: ValueError"""
DIFF = b"""\
diff --git a/src/almanac/importer.py b/src/almanac/importer.py
index 4f5a2c1..9b1c0de 100644
--- a/src/almanac/importer.py
+++ b/src/almanac/importer.py
@@ -29,3 +29,4 @@ def parse(text):
     days = days_of(text)
-    return EPOCH + timedelta(days=days)
+    # Dates before the epoch have negative days.
+    return EPOCH + timedelta(days=abs(days))
diff --git a/uv.lock b/uv.lock
index 1111111..2222222 100644
--- a/uv.lock
+++ b/uv.lock
@@ -1 +1 @@
-revision = 1
+revision = 2
"""


def check(
    name: str = "tests", *, passed: bool = False, required: bool = True, exit_code: int | None = 1
) -> CheckResult:
    """Make a check without findings; one that passed ended with exit code 0."""
    return CheckResult(
        name=name,
        kind=CheckKind.OTHER,
        command="make check",
        required=required,
        passed=passed,
        exit_code=0 if passed else exit_code,
    )


def failing_test(name: str = "pytest", test_id: str = TEST_ID, digest: str = DIGEST) -> CheckResult:
    """Make a test run in which one test failed."""
    found = Finding(summary=f"{test_id} - {MESSAGE}"[:100], message=MESSAGE, test_id=test_id)
    return CheckResult(
        name=name,
        kind=CheckKind.TEST,
        command="python -m pytest -q",
        passed=False,
        exit_code=1,
        digest=digest,
        findings=(found,),
        fingerprint=f"{name}:{test_id}",
    )


def attempt(
    number: int, outcome: Outcome, error: str = "", *checks: CheckResult
) -> WorkerResultMeta:
    """Make the record of the `number`-th attempt of epoch 1; it changed nothing."""
    started = NINE + timedelta(minutes=10 * number)
    return WorkerResultMeta(
        issue=str(REF),
        epoch=1,
        attempt=number,
        number=number,
        outcome=outcome,
        error=error,
        failure_reason=error,
        checks=checks,
        agent=AgentFacts(kind="command"),
        started_at=started,
        finished_at=started + timedelta(seconds=250),
        duration_ms=250_000,
    )


def red(number: int, *checks: CheckResult, files: tuple[str, ...] = ("a.py",)) -> WorkerResultMeta:
    """Make an attempt whose checks failed, with one commit that changed `files`."""
    failed = checks or (failing_test(),)
    error = f"Check '{failed[0].name}' failed with exit code 1."
    changed = tuple(FileChange(path=path, status="M", insertions=2, deletions=1) for path in files)
    meta = attempt(number, Outcome.CHECKS_FAILED, error, *failed)
    return meta.model_copy(update={"commits": 1, "files_modified": changed, "head_sha": "c0ffee"})


def compared(*history: WorkerResultMeta) -> tuple[WorkerResultMeta, ...]:
    """Compare each attempt with the last one before it whose checks named failures."""
    done = list[WorkerResultMeta]()
    for meta in history:
        red_before = [
            each for each in done if any(check.fails and check.findings for check in each.checks)
        ]
        last = red_before[-1] if red_before else attempt(0, Outcome.INTERRUPTED)
        before = {check.name: check for check in last.checks}
        checks = [
            with_progress(check, before.get(check.name), last.number) for check in meta.checks
        ]
        done.append(meta.model_copy(update={"checks": (*checks,)}))
    return (*done,)


def case(
    *history: WorkerResultMeta, counted: int | None = None, guidance: str = ""
) -> IssueContext:
    """Put an issue together that was tried so, and whose next attempt begins."""
    status = IssueStatus(
        issue=REF,
        text=SeenText(ISSUE.title),
        epoch=history[-1].epoch if history else 1,
        attempt=len(history) + 1,
        number=len(history) + 1,
        request=Request(actor="ann", guidance=guidance),
        started_at=NINE,
    )
    spent = len(history) if counted is None else counted
    return IssueContext(ISSUE, status, tuple(history), max_attempts=3, counted=spent)


def broken_rules(*sentences: str) -> tuple[GuardViolation, ...]:
    """Make violations that say just this."""
    return tuple(GuardViolation(message=sentence) for sentence in sentences)
