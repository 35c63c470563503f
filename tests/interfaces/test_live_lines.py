"""On a terminal, a step that takes longer than a second has a line; in a pipe there is none."""

import io
import os
import subprocess
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console

from mulligan.domain.events import (
    AgentFinished,
    AgentStarted,
    AttemptStarted,
    Authorised,
    CheckFinished,
    Escalated,
    Event,
    FixRoundStarted,
    WorktreeReset,
)
from mulligan.domain.result import AgentFacts
from mulligan.domain.spending import Run, Spent
from mulligan.domain.status import IssueStatus, SeenText
from mulligan.interfaces.cli.live import Glimpse, LiveLines, last_line, looking
from mulligan.interfaces.cli.setup import sentence
from mulligan.storage.artifacts import scratch_artifacts
from mulligan.storage.usage import MemoryUsageStore
from mulligan.text.redact import Redactor
from world.attempts import REF, check
from world.place import BIN
from world.pseudo_terminal import on_a_terminal

NOON = datetime(2025, 3, 4, 12, tzinfo=UTC)
STATUS = IssueStatus(REF, text=SeenText("Mend it"), epoch=1, attempt=2, number=2)
OTHER = replace(STATUS, issue=replace(REF, number=13))
STARTED = AttemptStarted(attempt=2, number=2, worker="w", position=2, most=3)
RESET = WorktreeReset(base_sha="c0ffee", start_sha="c0ffee")
AGENT = AgentStarted(agent="claude")
FINISHED = AgentFinished(exit_code=0, stopped_by=None, duration_ms=1)
CHECKED = CheckFinished(check=check("a", passed=True))
FIX = FixRoundStarted(number=1, most=2, failed=())
ASKED = Escalated(reason="Why.", comment="https://x.example")


def lines(*events: tuple[IssueStatus, Event], waited: float = 12, width: int = 90) -> list[str]:
    """Give what is shown some seconds after the last of some events."""
    now = 1000.0
    console = Console(file=io.StringIO(), width=width)
    live = LiveLines(console, "Reading GitHub", clock=lambda: now)
    live.look = lambda _: Glimpse("Reading a.py", Spent(0.31, 1234))
    for status, event in events:
        live.on_event(status, event)
    now += waited
    console.print(live.rendered())
    assert isinstance(console.file, io.StringIO)
    return [line.strip()[2:] for line in console.file.getvalue().splitlines()]


@pytest.mark.parametrize(
    ("events", "step"),
    [
        ([STARTED], "attempt 2 of 3 · worktree 12s"),
        ([STARTED, RESET], "attempt 2 of 3 · setup 12s"),
        ([STARTED, AGENT], "attempt 2 of 3 · agent 12s"),
        ([STARTED, AGENT, FINISHED], "attempt 2 of 3 · checks 12s"),
        ([STARTED, CHECKED], "attempt 2 of 3 · checks 12s"),
        ([STARTED, FIX, AGENT], "attempt 2 of 3, fix round 1 of 2 · agent 12s"),
        ([AGENT], "attempt 2 · agent 12s"),
    ],
)
def test_a_line_has_the_attempt_the_step_its_time_its_cost_and_its_output(
    events: list[Event], step: str
) -> None:
    (line,) = lines(*((STATUS, event) for event in events), width=200)
    assert line == f"octo/almanac#12  {step} · $0.31 · 1,234 tokens · Reading a.py"


def test_each_running_issue_has_a_line_and_what_has_ended_has_none() -> None:
    shown = lines((STATUS, STARTED), (OTHER, AGENT), (STATUS, ASKED))
    assert [line.partition("  ")[0] for line in shown] == ["octo/almanac#13"]


@pytest.mark.parametrize(("waited", "shown"), [(0.9, []), (1.0, ["Reading GitHub"])])
def test_between_issues_it_says_so_after_a_second(waited: float, shown: list[str]) -> None:
    assert lines((STATUS, STARTED), (STATUS, ASKED), waited=waited) == shown
    assert lines((STATUS, STARTED), waited=0.9) == []


def test_a_line_is_cut_to_the_terminal() -> None:
    (line,) = lines((STATUS, STARTED), width=40)
    assert line == "octo/almanac#12  attempt 2 of 3 · w…"


def test_other_events_leave_the_line_as_it_was() -> None:
    act = Authorised(act="operator:1", actor="ada", act_at=NOON)
    assert lines((STATUS, STARTED), (STATUS, act)) == lines((STATUS, STARTED))


def test_the_last_line_is_that_of_the_newest_output(tmp_path: Path) -> None:
    assert last_line(tmp_path, 0) == ""
    (tmp_path / "agent.log").write_text("one\n\x1b[31mtwo\x1b[0m\n\n")
    (tmp_path / "agent-egress.log").write_text("GET\n")
    assert last_line(tmp_path, 0) == "two"
    os.utime(tmp_path / "agent.log", (1, 1))
    (tmp_path / "tests.log.part").write_bytes(b"x" * 9000 + b"\nthree")
    assert last_line(tmp_path, 0) == "three"
    assert last_line(tmp_path, 2**40) == ""


def test_an_agent_that_streams_json_is_shown_by_its_activity() -> None:
    usage = MemoryUsageStore()
    facts = AgentFacts(kind="claude", cost_usd=0.5, last_activity="Edit a.py")
    usage.record(Run(REF, 2, 0, NOON, "claude"), facts)
    with scratch_artifacts(Redactor()) as artifacts:
        artifacts.write(REF, 2, "agent.log", b'{"type": "assistant"}\n')
        live = LiveLines(Console(), clock=lambda: 0.0)
        live.on_event(STATUS, AGENT)
        seen = looking(artifacts, usage)(live.active[REF])
    assert seen == Glimpse("Edit a.py", Spent(0.5))


def test_a_log_record_is_a_sentence_for_a_person() -> None:
    record: dict[str, object] = {"event": "poll_failed", "level": "warning", "timestamp": "t"}
    assert sentence(None, "", {**record, "issue": "a/b#1"}) == "mulligan: poll failed (issue a/b#1)"
    assert sentence(None, "", {**record, "reason": "Why."}) == "mulligan: Why."


POLICY = """\
setup: ["echo installing; sleep 2"]
checks: [{name: slow, run: "echo compiling; sleep 2"}]
"""


def test_setup_and_checks_have_a_line_on_a_terminal_only(tmp_path: Path) -> None:
    (tmp_path / ".github").mkdir()
    (tmp_path / ".github" / "mulligan.yml").write_text(POLICY)
    command = [BIN / "mulligan", "check", "--here", "--setup"]
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    # Both take seconds, so they run side by side.
    piped = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True
    )
    with on_a_terminal(command, tmp_path, environment) as shown:
        assert shown.end() == 0, shown.text
    plain, _ = piped.communicate()
    assert "setup commands 1s · installing" in shown.text
    assert "slow 1s · compiling" in shown.text
    assert "…" not in plain
    assert [line.split()[0] for line in plain.splitlines()][:2] == ["✓", "✓"]
    assert "compiling" not in plain
