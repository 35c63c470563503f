"""A dashboard with half a thousand attempts, for tests in a browser and for people to look at.

`python tests/world/dashboard_samples.py DIRECTORY` writes the pictures of docs/images.
"""

import json
import random
import sys
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from playwright.sync_api import Browser, Page, ViewportSize
from pydantic import JsonValue

from mulligan.domain.events import (
    AgentFinished,
    AgentStarted,
    AttemptCompleted,
    AttemptStarted,
    Authorised,
    CheckFinished,
    Decided,
    Escalated,
    IssueSeen,
    Published,
    Resolution,
    Resolved,
    RetryContextAssembled,
    RetryScheduled,
    WorktreeReset,
)
from mulligan.domain.issue import IssueRef
from mulligan.domain.outcome import Escalate, OpenPullRequest, Outcome, Retry
from mulligan.domain.result import (
    AgentFacts,
    AttemptTimes,
    CheckKind,
    CheckResult,
    FileChange,
    WorkerResultMeta,
)
from mulligan.domain.spending import Run
from mulligan.interfaces.dashboard.state import DashboardStores
from mulligan.interfaces.dashboard.views import page_of
from mulligan.storage.artifacts import FileArtifacts
from mulligan.storage.database import open_database
from mulligan.storage.ledger import SqlLedger
from mulligan.storage.stats_query import read_ledger_history
from mulligan.storage.usage import SqlUsageStore
from world.browser import chromium
from world.dashboards import BUDGET, Dashboard, serve_dashboard
from world.ledgers import TickingClock, migrated

TITLES = (
    "Round amounts half to even in the monthly report",
    "Export fails for a month without bookings",
    "Show the time zone beside every appointment",
    "Search ignores accents in customer names",
    "Sort invoices by due date on the overview",
    "Retry the payment provider after a time-out",
    "Accept a comma as the decimal separator",
    "The logout link leads to a blank page",
    "Keep the filter when a reader turns the page",
    "Warn before a draft older than a week is sent",
    "Cache the exchange rates for an hour",
    "Read the tax rate from the country's settings",
)
REPOSITORIES = ("acme/billing", "acme/website", "acme/importer")
PYTEST = """\
FAILED tests/test_rates.py::test_round_half_even - assert Decimal('2.5') == Decimal('2')
tests/test_rates.py:41: AssertionError
    assert rounded('2.5') == Decimal('2')
1 failed, 212 passed in 4.31s"""
PYRIGHT = 'src/billing/export.py:17:9 - error: "rows" is not a known attribute of "None"'
RED = (
    ("tests", "python -m pytest -q", PYTEST),
    ("types", "pyright", PYRIGHT),
    ("lint", "ruff check .", "src/billing/rates.py:41:101: E501 Line too long (112 > 100)"),
)
DIFF = '''\
diff --git a/src/billing/rates.py b/src/billing/rates.py
index 8882640..02bb370 100644
--- a/src/billing/rates.py
+++ b/src/billing/rates.py
@@ -31,9 +31,12 @@ CENT = Decimal("0.01")
 def rounded(amount: str) -> Decimal:
-    """Round an amount to cents."""
-    return Decimal(amount).quantize(CENT)
+    """Round an amount to cents, half to even as accountants do."""
+    if not amount.strip():
+        raise ValueError("no amount")  # the form sends an empty field
+    return Decimal(amount).quantize(CENT, rounding=ROUND_HALF_EVEN)


 def total(amounts: Iterable[str]) -> Decimal:
diff --git a/tests/test_rates.py b/tests/test_rates.py
index 20387aa..9b455b4 100644
--- a/tests/test_rates.py
+++ b/tests/test_rates.py
@@ -38,4 +38,7 @@ def test_total_of_nothing() -> None:

 def test_round_half_even() -> None:
-    assert rounded("2.505") == Decimal("2.51")
+    assert rounded("2.505") == Decimal("2.50")
+    assert rounded("2.515") == Decimal("2.52")
'''
PROMPT = """\
Attempt 2 of 3: read *Retry context* before you start.

# Task

Resolve issue acme/billing#100. What stands between `<untrusted-…>` and `</untrusted-…>` was written
by people or printed by tools.

<untrusted-ba4f7bb37233 from="the issue">
Round amounts half to even in the monthly report

# Steps
2.505 becomes 2.51 in the report, and 2.50 in the ledger.
</untrusted-ba4f7bb37233>

# Success criteria

These checks pass:
- tests, within 10m: `python -m pytest -q`
- types, within 5m: `pyright`

# Retry context

## What went wrong

Attempt 1 ended CHECKS_FAILED after 3m12s, with 1 commit and 2 changed files.
Check 'tests' failed with exit code 1.

## Actionable feedback

<untrusted-0fd052955118 from="check 'tests'">
- FAILED tests/test_rates.py::test_round_half_even - assert Decimal('2.5') == Decimal('2')
</untrusted-0fd052955118>

# Instructions

- Change the files. You may commit, but need not.
- Never push, and open no pull request; Mulligan does both.
"""


def _line(kind: str, **said: JsonValue) -> str:
    return json.dumps({"type": kind, "message": {"content": [said]}})


ACTIVITIES = (
    _line("assistant", type="text", text="The rounding is in rates.py."),
    _line("assistant", type="tool_use", name="Read", input={"file_path": "src/billing/rates.py"}),
    _line("assistant", type="tool_use", name="Bash", input={"command": "python -m pytest -q"}),
    _line("user", type="tool_result", content="1 failed, 11 passed"),
    _line("assistant", type="text", text="I name ROUND_HALF_EVEN, and check its neighbours."),
)
ENDS: Sequence[Sequence[Outcome]] = (
    *([Outcome.SUCCEEDED],) * 5,
    *([Outcome.CHECKS_FAILED, Outcome.SUCCEEDED],) * 5,
    *([Outcome.CHECKS_FAILED, Outcome.ZERO_DIFF, Outcome.SUCCEEDED],) * 3,
    [Outcome.CHECKS_FAILED] * 3,
    [Outcome.AGENT_TIMED_OUT, Outcome.CHECKS_FAILED, Outcome.SCOPE_VIOLATION],
    [Outcome.INFRASTRUCTURE, Outcome.CHECKS_FAILED, Outcome.SUCCEEDED],
    [Outcome.BLOCKED],
)
REASONS = {
    Outcome.ZERO_DIFF: "The agent made 2 commits, but the files equal the base branch (zero diff).",
    Outcome.AGENT_TIMED_OUT: "Attempt timed out after 3600 seconds.",
    Outcome.SCOPE_VIOLATION: "Scope violation detected: .github/workflows/ci.yml is protected.",
    Outcome.INFRASTRUCTURE: "GitHub did not answer for 10 minutes.",
    Outcome.BLOCKED: "The agent is blocked: the issue names two tax rates. Which one holds?",
}
DAYS = 30
DESK: ViewportSize = {"width": 1280, "height": 860}
PHONE: ViewportSize = {"width": 390, "height": 844}


def fill(dashboard: Dashboard, attempts: int = 500) -> None:
    """Fill the ledger of a dashboard with a month of work, of at least so many attempts."""
    clock, chance, made, number = dashboard.stores.clock, random.Random(7), 0, 99  # noqa: S311 - the same each time
    assert isinstance(clock, TickingClock)
    end = datetime.now(UTC).replace(microsecond=0)
    step = timedelta(days=DAYS) / (attempts / 2)
    clock.at = end - timedelta(days=DAYS)
    while made < attempts:
        number += 1
        ref = IssueRef(REPOSITORIES[number % 3], number)
        outcomes = ENDS[chance.randrange(len(ENDS))]
        is_recent = made > attempts - 40
        ask(dashboard, ref)
        for place, outcome in enumerate(outcomes, start=1):
            try_once(dashboard, ref, place, outcome, chance)
        settle(dashboard, ref, outcomes[-1], is_recent=is_recent)
        made += len(outcomes)
        clock.at = min(clock.at + step * chance.uniform(0.4, 1.6), end - timedelta(hours=3))
    clock.at = end - timedelta(minutes=50)
    for later in range(3):
        ref = IssueRef(REPOSITORIES[later], number + 1 + later)
        ask(dashboard, ref)
        try_once(dashboard, ref, 1, Outcome.CHECKS_FAILED, chance)
        clock.at = end - timedelta(minutes=9 - 2 * later)
        begin(dashboard, ref, 2, chance)
        clock.at -= timedelta(minutes=30)
    keep_files(dashboard, number + 1)
    for later in range(4, 9):
        ask(dashboard, IssueRef(REPOSITORIES[later % 3], number + later))
    clock.at = max(clock.at, end)


def ask(dashboard: Dashboard, ref: IssueRef) -> None:
    ledger, title = dashboard.stores.ledger, TITLES[ref.number % len(TITLES)]
    url = f"https://github.com/{ref.repository}/issues/{ref.number}"
    ledger.append(ref, IssueSeen(title=title, author="ann", url=url))
    at = dashboard.stores.clock.now()
    ledger.append(ref, Authorised(act=f"labeled:{ref.number}", actor="ann", act_at=at))


def reason_of(outcome: Outcome, checks: Sequence[CheckResult]) -> str:
    red = [check.name for check in checks if not check.passed]
    return f"Check '{red[0]}' failed with exit code 1." if red else REASONS.get(outcome, "")


def begin(dashboard: Dashboard, ref: IssueRef, number: int, chance: random.Random) -> None:
    ledger = dashboard.stores.ledger
    ledger.append(
        ref, AttemptStarted(attempt=number, number=number, worker="here", position=number, most=3)
    )
    ledger.append(ref, WorktreeReset(base_sha="c0ffee", start_sha="c0ffee"))
    if number > 1:
        size = 1800 + chance.randrange(2400)
        sections = {"what_went_wrong": 300, "actionable_feedback": size, "previous_changes": 900}
        sources = chance.choice([("check:tests", "diff"), ("check:types",), ("outcome",)])
        ledger.append(
            ref,
            RetryContextAssembled(
                prior_attempts_count=number - 1,
                context_size_bytes=size + 1200,
                feedback_sources=sources,
                section_bytes=sections,
            ),
        )
    agent = "claude" if ref.number % 4 else "codex"
    ledger.append(ref, AgentStarted(agent=agent))
    cents, tokens = chance.randrange(10, 140), chance.randrange(40_000, 150_000)
    spent = AgentFacts(kind=agent, cost_usd=cents / 100, input_tokens=tokens)
    dashboard.stores.accounts.record(Run(ref, number, 0, dashboard.stores.clock.now()), spent)


def try_once(
    dashboard: Dashboard, ref: IssueRef, number: int, outcome: Outcome, chance: random.Random
) -> None:
    ledger, clock = dashboard.stores.ledger, dashboard.stores.clock
    assert isinstance(clock, TickingClock)
    started = clock.now()
    begin(dashboard, ref, number, chance)
    is_cut = outcome is Outcome.AGENT_TIMED_OUT
    took = timedelta(seconds=3600 if is_cut else chance.randrange(70, 900))
    clock.at += took
    ledger.append(ref, AgentFinished(exit_code=0, duration_ms=int(took.total_seconds() * 900)))
    checks = checks_of(outcome, (ref.number + number) % len(RED), chance)
    for check in checks:
        ledger.append(ref, CheckFinished(check=check))
    changed = bool(checks) or outcome is Outcome.SCOPE_VIOLATION
    reason = reason_of(outcome, checks)
    meta = WorkerResultMeta(
        issue=str(ref),
        epoch=1,
        attempt=number,
        number=number,
        outcome=outcome,
        error=reason,
        failure_reason=reason,
        commits=1 if changed else 0,
        files_modified=(FileChange(path="src/billing/rates.py", status="M", insertions=6),)
        if changed
        else (),
        diff_summary="2 files changed, 7 insertions(+), 3 deletions(-)" if changed else "",
        checks=checks,
        agent=AgentFacts(
            kind="claude" if ref.number % 4 else "codex",
            model="opus" if ref.number % 4 else "gpt",
            cost_usd=round(chance.uniform(0.1, 1.4), 2),
            input_tokens=chance.randrange(40_000, 400_000),
            output_tokens=chance.randrange(2_000, 9_000),
        ),
        agent_summary="`rounded` now names ROUND_HALF_EVEN, and an empty field is an error.",
        started_at=started,
        finished_at=clock.at,
        duration_ms=int(took.total_seconds() * 1000),
        times=times_of(took, sum(each.duration_ms for each in checks)),
    )
    ledger.append(ref, AttemptCompleted(meta=meta))
    if outcome is Outcome.SUCCEEDED:
        ledger.append(ref, Decided(decision=OpenPullRequest(reason="The check 'tests' passed.")))
    elif number < 3 and outcome is not Outcome.BLOCKED:
        ledger.append(ref, Decided(decision=Retry(reason=meta.error)))
        ledger.append(ref, RetryScheduled(due=clock.at, reason=meta.error))
    else:
        ledger.append(ref, Decided(decision=Escalate(reason=meta.error)))


def times_of(took: timedelta, checks_ms: int) -> AttemptTimes:
    """Divide the time of an attempt; it waited a fifth of it before."""
    whole = int(took.total_seconds() * 1000)
    return AttemptTimes(
        waited_ms=whole // 5,
        worktree_ms=2_000,
        set_up_ms=whole // 12,
        agent_ms=whole - whole // 12 - checks_ms - 2_000,
        checks_ms=checks_ms,
    )


def checks_of(outcome: Outcome, red: int, chance: random.Random) -> tuple[CheckResult, ...]:
    if outcome not in {Outcome.SUCCEEDED, Outcome.CHECKS_FAILED}:
        return ()
    return tuple(
        CheckResult(
            name=name,
            kind=CheckKind.TEST if name == "tests" else CheckKind.LINT,
            command=command,
            passed=outcome is Outcome.SUCCEEDED or place != red,
            exit_code=0 if outcome is Outcome.SUCCEEDED or place != red else 1,
            duration_ms=chance.randrange(400, 42_000),
            digest="" if outcome is Outcome.SUCCEEDED or place != red else digest,
        )
        for place, (name, command, digest) in enumerate(RED)
    )


def settle(dashboard: Dashboard, ref: IssueRef, outcome: Outcome, *, is_recent: bool) -> None:
    ledger = dashboard.stores.ledger
    home = f"https://github.com/{ref.repository}"
    if outcome is Outcome.SUCCEEDED:
        pull = f"{home}/pull/{ref.number + 500}"
        ledger.append(ref, Published(pull_request=pull, number=ref.number + 500, head_sha="c0ffee"))
        if not is_recent:
            end = Resolution.CLOSED if ref.number % 9 == 0 else Resolution.MERGED
            ended = Resolved(
                resolution=end,
                reason=f"Its pull request was {end}.",
                total_attempts=1,
                total_duration_ms=1,
            )
            ledger.append(ref, ended)
        return
    last = ledger.history(ref)[-1].error
    said = last if outcome is Outcome.BLOCKED else f"All 3 attempts failed. The last one: {last}"
    comment = f"{home}/issues/{ref.number}#issuecomment-9"
    ledger.append(ref, Escalated(reason=said, comment=comment))
    if not is_recent:
        ledger.append(
            ref,
            Resolved(
                resolution=Resolution.SKIPPED,
                reason="ann skipped it.",
                total_attempts=3,
                total_duration_ms=1,
            ),
        )


def keep_files(dashboard: Dashboard, number: int) -> None:
    """Keep the files of the running issues, the logs of their attempts among them."""
    kept, ref = dashboard.stores.artifacts, IssueRef(REPOSITORIES[0], number)
    for later, repository in enumerate(REPOSITORIES):
        log = ("\n".join(ACTIVITIES[: 5 - later]) + "\n").encode()
        kept.write(IssueRef(repository, number + later), 2, "agent.log", log)
    for place in (1, 2):
        kept.write(ref, place, "prompt.md", PROMPT.encode())
    kept.write(ref, 1, "agent.log", ("\n".join(ACTIVITIES) + "\n").encode())
    kept.write(ref, 1, "changes.diff", DIFF.encode())
    kept.write(ref, 2, "context.md", PROMPT.partition("# Retry context\n\n")[2].encode())


def running_issue(dashboard: Dashboard) -> str:
    """Return the page of the first issue that an attempt runs for."""
    found = (each.issue for each in dashboard.stores.ledger.statuses() if each.stage == "running")
    return next(page_of(ref) for ref in found if ref.repository == REPOSITORIES[0])


def asked_issue(dashboard: Dashboard) -> str:
    """Return the page of an issue that needs a maintainer, with three attempts."""
    found = [each for each in dashboard.stores.ledger.statuses() if each.stage == "hitl"]
    return next(page_of(each.issue) for each in found if each.attempt == len(REPOSITORIES))


@contextmanager
def filled_dashboard(directory: Path, attempts: int = 500) -> Generator[Dashboard]:
    """Serve a dashboard with a month of work, in a ledger on disk."""
    with open_database(migrated(directory / "ledger.db")) as database:
        clock, artifacts = TickingClock(), FileArtifacts(directory / "artifacts")
        ledger, accounts = SqlLedger(database, clock), SqlUsageStore(database)
        found = DashboardStores(ledger, accounts, artifacts, clock, BUDGET)
        read = partial(read_ledger_history, database)
        with serve_dashboard(directory, found=found, read_history=read) as made:
            fill(made, attempts)
            made.desk.pulse.asked(3, 0)
            yield made


def signed_in(browser: Browser, dashboard: Dashboard, *, dark: bool, phone: bool) -> Page:
    """Open a page with a cookie of the dashboard."""
    look = "dark" if dark else "light"
    page = browser.new_page(viewport=PHONE if phone else DESK, color_scheme=look)
    page.goto(f"http://127.0.0.1:{dashboard.port}/login")
    page.fill("#key", dashboard.key.secret)
    page.click("main button")
    page.wait_for_selector("#running")
    return page


def main(directory: Path) -> None:
    with (
        tempfile.TemporaryDirectory() as place,
        filled_dashboard(Path(place)) as dashboard,
        chromium() as browser,
    ):
        running = running_issue(dashboard)
        for name, path, dark, phone in (
            ("dashboard", "/", False, False),
            ("dashboard-phone", "/", False, True),
            ("dashboard-issue", asked_issue(dashboard), False, False),
            ("dashboard-attempt", f"{running}/attempts/1", True, False),
            ("dashboard-stats", "/stats", False, False),
        ):
            page = signed_in(browser, dashboard, dark=dark, phone=phone)
            # A picture may be taken minutes after the last poll, which the page would say.
            dashboard.desk.pulse.stand_by()
            page.goto(f"http://127.0.0.1:{dashboard.port}{path}")
            page.wait_for_selector("#live:text('Live')")
            page.wait_for_timeout(1500)
            is_long = name in {"dashboard-issue", "dashboard-attempt"}
            page.screenshot(path=directory / f"{name}.png", full_page=is_long)
            page.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
