"""`mulligan stats` counts what the ledger holds, for people, programs and a browser."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from mulligan.domain.events import (
    Authorised,
    Escalated,
    Event,
    IssueSeen,
    Published,
    Resolution,
    Resolved,
    RetryContextAssembled,
)
from mulligan.domain.issue import IssueRef
from mulligan.domain.outcome import Outcome
from mulligan.domain.result import (
    AgentFacts,
    AttemptTimes,
    CheckKind,
    CheckResult,
    Finding,
    FixRound,
)
from mulligan.interfaces.cli.app import app
from mulligan.storage.ledger import SqlLedger
from world.ledgers import START, completed, open_ledger_at

ONE, TWO, THREE = (IssueRef("acme/tools", number) for number in (1, 2, 3))
RED = CheckResult(
    name="tests",
    kind=CheckKind.TEST,
    command="pytest",
    passed=False,
    fingerprint="f1",
    findings=(Finding(summary="test_add"), Finding(summary="test_sub")),
)
OLD = RED.model_copy(update={"name": "lint", "preexisting": True})
OPTIONAL = RED.model_copy(update={"name": "docs", "required": False})
TOLD = AgentFacts(kind="claude", cost_usd=0.5, input_tokens=900, output_tokens=100)
UNTOLD = AgentFacts(kind="command", name="cheap")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mulligan.yml").write_text(
        "repositories: [{name: acme/tools}]\nagent: {command: [agent]}\n"
        f'state: {{url: "sqlite:///{tmp_path}/ledger.db"}}\nworkspace: {{root: work}}\n'
    )
    return tmp_path


def stats(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["stats", *arguments])


def attempt(
    ref: IssueRef, number: int, outcome: Outcome, agent: AgentFacts, *checks: CheckResult
) -> Event:
    done = completed(ref, number, outcome)
    return done.model_copy(
        update={"meta": done.meta.model_copy(update={"agent": agent, "checks": checks})}
    )


def asked(ref: IssueRef) -> Event:
    return Authorised(act=f"labeled:{ref.number}", actor="ada", act_at=START)


def ended(resolution: Resolution) -> Event:
    return Resolved(resolution=resolution, reason="x", total_attempts=1, total_duration_ms=1)


def live(ledger: SqlLedger, ref: IssueRef, *events: Event) -> None:
    for event in (asked(ref), *events):
        ledger.append(ref, event)


def fill(path: Path) -> None:
    pull = Published(pull_request="https://x.example/pull/7", number=7, head_sha="c0ffee")
    rounds = (FixRound(number=1, usage=TOLD), FixRound(number=2))
    meta = completed(ONE, 2, Outcome.SUCCEEDED).meta
    fixed = completed(ONE, 2).model_copy(
        update={
            "meta": meta.model_copy(
                update={
                    "agent": TOLD,
                    "fix_rounds": rounds,
                    "duration_ms": 95_000,
                    "times": AttemptTimes(
                        waited_ms=5_000, agent_ms=90_000, worktree_ms=2_000, other_ms=3_000
                    ),
                }
            )
        }
    )
    with open_ledger_at(path / "ledger.db") as ledger:
        live(ledger, ONE, attempt(ONE, 1, Outcome.CHECKS_FAILED, TOLD, RED, OLD, OPTIONAL))
        context = RetryContextAssembled(
            prior_attempts_count=1,
            context_size_bytes=1000,
            feedback_sources=("check:tests", "diff"),
            section_bytes={"actionable_feedback": 750, "previous_changes": 250},
        )
        ledger.append(ONE, context)
        ledger.append(ONE, attempt(ONE, 2, Outcome.CHECKS_FAILED, UNTOLD))
        # The last record of an attempt counts.
        for event in (fixed, pull, ended(Resolution.MERGED)):
            ledger.append(ONE, event)
        ledger.append(ONE, IssueSeen(title="Mend it", labels=("bug",)))
        live(ledger, TWO, attempt(TWO, 1, Outcome.CHECKS_FAILED, UNTOLD, RED))
        ledger.append(TWO, Escalated(reason="All failed.", comment="https://x.example/c"))
        live(ledger, THREE, pull, ended(Resolution.CLOSED))


def test_an_empty_ledger_is_one_sentence(here: Path) -> None:
    assert stats().output == "No statistics yet: the ledger has no issues.\n"
    assert json.loads(stats("--json").stdout)["since"] is None
    assert stats("--html", "page.html").exit_code == 0
    assert "No statistics yet" in (here / "page.html").read_text()


def test_programs_get_every_figure(here: Path) -> None:
    fill(here)
    found = json.loads(stats("--json").stdout)
    assert found["issues"] == {
        "taken": 3,
        "tried": 2,
        "published": 2,
        "merged": 1,
        "closed": 1,
        "left": 0,
        "skipped": 0,
        "escalated": 1,
    }
    assert found["stages"] == {"resolved": 2, "hitl": 1}
    assert found["attempts"] == {"made": 3, "counted": 3, "succeeded": 1}
    assert found["spent"] == {
        "usd": 1.5,
        "tokens": 3000,
        "attempts_without_cost": 1,
        "attempts_without_tokens": 1,
        "usd_per_attempt": 0.5,
        "usd_per_issue": 0.75,
        "usd_per_merged_pull_request": 1.5,
    }
    assert found["by_attempt"] == [
        {"attempt": 1, "made": 2, "succeeded": 0},
        {"attempt": 2, "made": 1, "succeeded": 1},
    ]
    assert found["outcomes"] == {"CHECKS_FAILED": 2, "SUCCEEDED": 1}
    failing = {"repository": "acme/tools", "check": "tests", "attempts": 2, "issues": 2}
    assert found["failing_checks"] == [failing]
    assert found["failures"] == [{**failing, "summary": "test_add", "fingerprint": "f1"}]
    assert found["median_seconds"]["to_merge"] == 7.0
    assert found["agents"]["cheap"]["spent"]["usd"] is None
    assert found["agents"]["claude"]["attempts"] == {"made": 2, "counted": 2, "succeeded": 1}
    assert found["labels"]["bug"]["attempts"] == {"made": 2, "counted": 2, "succeeded": 1}
    assert found["labels"]["bug"]["merged"] == 1
    (week,) = found["weeks"]
    assert (week["from"], week["merged"]) == ("2025-02-24", 1)
    assert week["attempts"] == {"succeeded": 1, "failed": 2, "free": 0}
    assert found["durations"][1] == {"below_seconds": 120.0, "attempts": 1}
    assert found["times"]["attempts"] >= 95
    assert found["times"]["failed_attempts"] == found["times"]["attempts"] - 95
    assert found["times"]["steps"] == {"agent": 90.0, "wait": 5.0, "other": 5.0}
    assert found["repositories"]["acme/tools"]["issues"] == found["issues"]
    assert found["retries"] == {
        "made": 1,
        "succeeded": 1,
        "issues": 1,
        "issues_succeeded": 1,
        "contexts": 1,
        "mean_context_bytes": 1000,
        "context_sections": {
            "actionable_feedback": {"bytes": 750, "share": 0.75},
            "previous_changes": {"bytes": 250, "share": 0.25},
        },
        "by_feedback": {
            "check": {"attempts": 1, "succeeded": 1},
            "diff": {"attempts": 1, "succeeded": 1},
        },
    }
    assert [
        (each["issue"], each["attempts"], each["retries"], each["outcome"], each["stage"])
        for each in found["by_issue"]
    ] == [
        ("acme/tools#1", 2, 1, "SUCCEEDED", "resolved"),
        ("acme/tools#2", 1, 0, "CHECKS_FAILED", "hitl"),
    ]


def test_people_get_tables_in_which_the_unknown_is_said(here: Path) -> None:
    fill(here)
    shown = stats().stdout
    assert "≥ $1.50" in shown
    assert "1 attempt did not report the cost" in shown
    assert "1 of 1 issue; 1 of 1 retries succeeded" in shown
    assert "mean of 1 retry context; 75 % actionable feedback" in shown
    (row,) = (line for line in shown.splitlines() if line.startswith("cheap"))
    assert row.split() == ["cheap", "1", "0", "%", "0", "–", *["unknown"] * 3]


def test_only_a_label_or_the_last_days_can_be_counted(here: Path) -> None:
    fill(here)
    assert json.loads(stats("--json", "--label", "Bug").stdout)["issues"]["taken"] == 1
    shown = stats("--label", "bug", "--html", "page.html").stdout + stats("--label", "bug").stdout
    assert "UTC, issues with the label bug." in shown
    assert "issues with the label bug" in (here / "page.html").read_text()
    assert stats("--label", "bgu").exit_code == 2
    found = json.loads(stats("--json", "--since", "30d").stdout)
    assert (found["attempts"]["made"], found["issues"]["taken"]) == (0, 0)
    assert found["stages"] == {"resolved": 2, "hitl": 1}


@pytest.mark.parametrize("span", ["month", "", "99999999999999999999d"])
def test_a_span_that_is_none_is_refused_in_one_sentence(span: str, here: Path) -> None:
    done = stats("--since", span)
    assert done.exit_code == 2
    assert "Write it like 12h or 30d." in done.stderr


def test_a_page_that_cannot_be_written_is_said(here: Path) -> None:
    done = stats("--html", "nowhere/page.html")
    assert done.exit_code == 1
    assert "Name another file" in done.stderr
