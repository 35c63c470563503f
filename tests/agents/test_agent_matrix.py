"""Each agent in each situation, from what the real ones printed: outcome, attempts, usage."""

from pathlib import Path

import pytest

from mulligan.domain.attempt import classify, zero_kind
from mulligan.domain.outcome import FREE, Outcome, ZeroKind
from mulligan.implement.decide import EndedAttempt, RetryPolicy, count_spent
from mulligan.implement.prompt.outcome_text import error_line
from world.replayed_agents import Replay, task_in

SUCCEEDED, EMPTY = Outcome.SUCCEEDED, Outcome.ZERO_COMMIT
DENIED, MISCONFIGURED, BUSY = Outcome.DENIED, Outcome.MISCONFIGURED, Outcome.INFRASTRUCTURE
TIMED_OUT = Outcome.AGENT_TIMED_OUT

COMMON = {
    "success": SUCCEEDED,
    "nothing": EMPTY,
    "401": DENIED,
    "credit": DENIED,
    "429": BUSY,
    "500": BUSY,
    "hang": TIMED_OUT,
    "cut": BUSY,
}
REFUSED, LIMIT = {"refused": MISCONFIGURED}, {"limit": TIMED_OUT}
EXPECTED = {
    "claude": COMMON | REFUSED | LIMIT,
    "codex": COMMON | REFUSED,
    "gemini": COMMON | REFUSED | LIMIT,
    "opencode": COMMON | REFUSED,
    "aider": COMMON | LIMIT,
    "mini": COMMON | LIMIT,
}
"""Codex and opencode have no limit of turns; nobody can refuse Aider and mini-swe-agent a tool."""

ROWS = [(kind, name, outcome) for kind, row in EXPECTED.items() for name, outcome in row.items()]


@pytest.mark.parametrize(("kind", "name", "outcome"), ROWS)
def test_what_it_came_to_is_told(kind: str, name: str, outcome: Outcome, tmp_path: Path) -> None:
    known = Replay(kind, name).evidence(task_in(tmp_path))
    assert classify(known) is outcome
    spent = count_spent([EndedAttempt(outcome)], RetryPolicy())
    assert spent == int(outcome not in FREE)
    assert bool(error_line(outcome, known)) == (outcome is not SUCCEEDED)


USAGE = [
    ("claude", "success", 2000, 200, 0.009),
    ("claude", "nothing", 1000, 100, 0.0045),
    ("claude", "hang", 1000, 100, 0.0045),
    ("claude", "limit", 2000, 200, 0.009),
    ("codex", "success", 2000, 200, 0.0045),
    ("codex", "hang", None, None, None),
    ("gemini", "success", 2000, 200, 0.0045),
    ("opencode", "success", 2000, 200, 0.007),
    ("opencode", "hang", 1000, 100, 0.0035),
    ("aider", "success", 1000, 100, 0.0035),
    ("aider", "limit", 4000, 400, 0.014),
    ("mini", "success", 2000, 200, 0.007),
    ("mini", "hang", 1000, 100, 0.0035),
]
"""Each answer of the model counts 1,000 tokens in and 100 out."""


@pytest.mark.parametrize(("kind", "name", "sent", "received", "cost"), USAGE)
def test_what_it_used_is_told(
    kind: str,
    name: str,
    sent: int | None,
    received: int | None,
    cost: float | None,
    tmp_path: Path,
) -> None:
    facts = Replay(kind, name).run(task_in(tmp_path)).facts
    assert (facts.input_tokens, facts.output_tokens) == (sent, received)
    assert facts.cost_usd == (None if cost is None else pytest.approx(cost, abs=1e-9))


@pytest.mark.parametrize("kind", EXPECTED)
def test_its_words_are_the_summary(kind: str, tmp_path: Path) -> None:
    run = Replay(kind, "nothing").run(task_in(tmp_path))
    assert "There is nothing to be done." in run.summary
    assert run.facts.last_activity


@pytest.mark.parametrize("kind", [kind for kind, row in EXPECTED.items() if "refused" in row])
def test_refused_tools_are_told_with_the_fix(kind: str, tmp_path: Path) -> None:
    known = Replay(kind, "refused").evidence(task_in(tmp_path))
    assert zero_kind(known) is ZeroKind.REFUSED
    assert known.ending_fault
    assert known.ending_fault.reason.startswith("The agent was refused ")
    assert known.run
    assert known.run.facts.refused


@pytest.mark.parametrize("kind", ["claude", "codex", "gemini", "opencode", "mini"])
def test_a_run_that_somebody_else_ended_was_cut_off(kind: str, tmp_path: Path) -> None:
    replay = Replay(kind, "hang")
    known = replay.evidence(task_in(tmp_path), somebody_else=True)
    assert classify(known) is Outcome.AGENT_CRASHED
    assert zero_kind(known) is (ZeroKind.CUT_OFF if kind == "gemini" else ZeroKind.KILLED)
