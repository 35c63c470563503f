"""`/healthz`, `/readyz` and `/metrics` say how Mulligan is, to anybody, and name nobody."""

import re
import shutil
import socket
import subprocess
from collections.abc import Generator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import prometheus_client as prometheus
import pytest

from mulligan.daemon.health import DaemonHealth
from mulligan.domain.command import Verb
from mulligan.domain.errors import UnavailableError
from mulligan.domain.events import (
    AgentFinished,
    AgentStarted,
    AttemptCompleted,
    AttemptStarted,
    Authorised,
    CheckFinished,
    Decided,
    Escalated,
    HumanResponded,
    Resolution,
    Resolved,
    Restored,
    RetryContextAssembled,
    RetryScheduled,
)
from mulligan.domain.issue import IssueRef
from mulligan.domain.outcome import Outcome, Retry
from mulligan.domain.result import AgentFacts, FixRound
from mulligan.github.shapes import Answer
from mulligan.interfaces.dashboard.metrics import STEPS, StepClock, liveness_problem
from mulligan.sandbox import cancellation
from world.dashboards import Dashboard, serve_dashboard, tried
from world.ledgers import START
from world.stories import red_check

REF = IssueRef("octo/private", 1)
ROOT = Path(__file__).parents[2]


@pytest.fixture
def dashboard(tmp_path: Path) -> Generator[Dashboard]:
    with serve_dashboard(tmp_path) as made:
        yield made


def measured(dashboard: Dashboard) -> dict[str, float]:
    lines = dashboard.ask_without_key("/metrics").text.splitlines()
    split = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(value) for name, _, value in split}


def test_it_is_alive_from_the_start_and_ready_once_a_poll_got_through(
    dashboard: Dashboard,
) -> None:
    assert dashboard.ask_without_key("/healthz").text == "ok\n"
    early = dashboard.ask_without_key("/readyz")
    assert (early.status, "No poll has reached GitHub" in early.text) == (503, True)
    dashboard.desk.pulse.asked(2, 2)
    assert dashboard.ask_without_key("/readyz").status == 503
    dashboard.desk.pulse.asked(2, 1)
    assert dashboard.ask_without_key("/readyz").text == "ok\n"


def test_it_is_not_ready_while_the_ledger_or_the_token_is_no_good(dashboard: Dashboard) -> None:
    dashboard.desk.pulse.asked(1, 0)
    dashboard.desk.gauges.read(Answer(401, {}, ""))
    assert "GitHub refused the token" in dashboard.ask_without_key("/readyz").text
    dashboard.desk.gauges.read(Answer(200, {}, ""))
    dashboard.writable.append(UnavailableError("The disk is full."))
    assert dashboard.ask_without_key("/readyz").text == "The disk is full.\n"
    assert dashboard.ask_without_key("/healthz").status == 200


def test_it_takes_up_nothing_while_it_stops(dashboard: Dashboard) -> None:
    dashboard.desk.pulse.asked(1, 0)
    cancellation.CLOSING.set()
    try:
        assert dashboard.ask_without_key("/readyz").text == "Mulligan is stopping.\n"
        assert not liveness_problem(replace(dashboard.desk, timeout=lambda: -1.0))
    finally:
        cancellation.CLOSING.clear()


def test_a_poll_that_hangs_is_an_illness(dashboard: Dashboard) -> None:
    now = [0.0]
    desk = replace(dashboard.desk, pulse=DaemonHealth(lambda: now[0]))
    now[0] = 60.0
    assert not liveness_problem(desk)
    now[0] = 61.0
    assert liveness_problem(desk) == "No poll for 61 s. Restart Mulligan."


def test_attempts_are_counted_by_outcome_with_all_that_they_used(dashboard: Dashboard) -> None:
    dashboard.begin(REF, "Mend it")
    status = dashboard.stores.ledger.status(REF)
    run = AgentFacts(kind="claude", cost_usd=0.25, input_tokens=100, output_tokens=10)
    meta = tried(1).model_copy(
        update={"agent": run, "fix_rounds": (FixRound(number=1, usage=run),)}
    )
    for event in (
        AttemptCompleted(meta=meta),
        AgentFinished(exit_code=0, duration_ms=1500),
        Decided(decision=Retry(reason="Again.")),
    ):
        dashboard.measures.on_event(status, event)
    found = measured(dashboard)
    assert found['mulligan_attempts_total{outcome="CHECKS_FAILED"}'] == 1
    assert found['mulligan_attempts_total{outcome="SUCCEEDED"}'] == 0
    assert found['mulligan_decisions_total{decision="retry"}'] == 1
    assert found["mulligan_agent_cost_usd_total"] == 0.5
    assert found['mulligan_agent_tokens_total{direction="input"}'] == 200
    assert found["mulligan_agent_seconds_total"] == 1.5
    assert found["mulligan_attempt_seconds_total"] == 95


def test_retry_contexts_are_counted_by_section_and_their_attempts_by_feedback(
    dashboard: Dashboard,
) -> None:
    dashboard.begin(REF, "Mend it")
    status = dashboard.stores.ledger.status(REF)
    context = RetryContextAssembled(
        prior_attempts_count=1,
        context_size_bytes=1002,
        feedback_sources=("check:tests", "check:lint", "diff"),
        section_bytes={"actionable_feedback": 750, "previous_changes": 250},
    )
    for event in (
        context,
        AttemptCompleted(meta=tried(2, Outcome.SUCCEEDED)),
        context,
        AttemptCompleted(meta=tried(3, Outcome.INFRASTRUCTURE)),
        AttemptCompleted(meta=tried(4)),
        Escalated(reason="All failed.", comment=""),
        Resolved(
            resolution=Resolution.SKIPPED,
            reason="Skipped by ada.",
            total_attempts=4,
            total_duration_ms=1,
        ),
        Resolved(
            resolution=Resolution.MERGED, reason="It ended.", total_attempts=4, total_duration_ms=1
        ),
    ):
        dashboard.measures.on_event(status, event)
    found = measured(dashboard)
    assert found["mulligan_retry_contexts_total"] == 2
    assert found['mulligan_retry_context_size_bytes_bucket{le="1000.0"}'] == 0
    assert found['mulligan_retry_context_size_bytes_bucket{le="2000.0"}'] == 2
    assert found['mulligan_retry_context_bytes_total{section="previous_changes"}'] == 500
    assert found['mulligan_retry_feedback_total{feedback="check",result="succeeded"}'] == 1
    assert sum(n for name, n in found.items() if "retry_feedback" in name) == 2
    assert found["mulligan_escalations_total"] == found["mulligan_issues_skipped_total"] == 1


def test_what_is_so_now_is_looked_up(dashboard: Dashboard) -> None:
    dashboard.begin(REF, "Mend it")
    with dashboard.desk.pulse.note_poll():
        dashboard.desk.pulse.asked(3, 1)
    dashboard.desk.pulse.visited(undone=True)
    limits = {"x-ratelimit-resource": "core", "x-ratelimit-remaining": "4990"}
    dashboard.desk.gauges.read(Answer(200, limits, ""))
    found = measured(dashboard)
    assert found['mulligan_issues{stage="running"}'] == 1
    assert found['mulligan_issues{stage="hitl"}'] == 0
    assert found['mulligan_issues_waiting{hold="due"}'] == 0
    assert found['mulligan_github_rate_limit_remaining{resource="core"}'] == 4990
    assert found["mulligan_poll_duration_seconds_count"] == 1
    assert found["mulligan_poll_failures_total"] == 1
    assert found["mulligan_effect_failures_total"] == 1


def test_steps_last_from_one_event_to_the_next(dashboard: Dashboard) -> None:
    now = [0.0]
    registry = prometheus.CollectorRegistry()
    steps = prometheus.Histogram("steps", "Steps.", ["step"], registry=registry)
    clock = StepClock(steps, lambda: now[0])
    other = IssueRef("octo/private", 2)
    for at, ref, event in (
        (0, REF, AttemptStarted(attempt=1, number=1, worker="here")),
        (1, other, AgentStarted(agent="claude")),
        (2, REF, AgentStarted(agent="claude")),
        (5, REF, CheckFinished(check=red_check())),
        (9, REF, AttemptCompleted(meta=tried(1))),
        (9, REF, RetryScheduled(due=START, reason="")),
        (99, REF, RetryScheduled(due=START, reason="")),
    ):
        now[0] = at
        clock.on_event(ref, event)
    sums = {step: registry.get_sample_value("steps_sum", {"step": step}) for step in STEPS.values()}
    known = {step: took for step, took in sums.items() if took is not None}
    assert known == {"worktree": 2.0, "agent": 7.0, "decision": 0.0}


def test_a_request_that_waits_a_recovery_and_a_command_are_counted(dashboard: Dashboard) -> None:
    ledger = dashboard.stores.ledger
    assert measured(dashboard)["mulligan_queue_age_seconds"] == 0
    ledger.append(REF, Authorised(act="labeled:7", actor="ada", act_at=START))
    age = measured(dashboard)["mulligan_queue_age_seconds"]
    assert 0 < age < 60
    status = ledger.status(REF)
    for event in (
        Restored(source="its comments"),
        AttemptCompleted(meta=tried(1, Outcome.INTERRUPTED)),
        HumanResponded(key="command:x", command=Verb.RETRY, answer="New attempts start."),
    ):
        dashboard.measures.on_event(status, event)
    found = measured(dashboard)
    assert found['mulligan_recoveries_total{what="issue"}'] == 1
    assert found['mulligan_recoveries_total{what="attempt"}'] == 1
    assert found['mulligan_commands_total{command="retry"}'] == 1


NAME = re.compile(r"\bmulligan_\w+|\bprocess_\w+")


@pytest.mark.parametrize("file", ["grafana/mulligan.json", "prometheus/alerts.yml"])
def test_what_is_deployed_asks_only_for_series_that_there_are(
    dashboard: Dashboard, file: str
) -> None:
    dashboard.begin(REF, "Mend it")
    limits = {"x-ratelimit-resource": "core", "x-ratelimit-remaining": "4990"}
    dashboard.desk.gauges.read(Answer(200, limits, ""))
    typed = re.findall(r"^# TYPE (\S+)", dashboard.ask_without_key("/metrics").text, re.MULTILINE)
    known = {*typed, *(name.partition("{")[0] for name in measured(dashboard))}
    asked = set(NAME.findall((ROOT / "deploy" / file).read_text()))
    assert asked
    assert asked <= known


@pytest.mark.deep
def test_prometheus_accepts_the_rules() -> None:
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("needs promtool: apt-get install prometheus")
    argv = [program, "check", "rules", str(ROOT / "deploy/prometheus/alerts.yml")]
    checked = subprocess.run(argv, check=False, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr
    tests = [program, "test", "rules", str(ROOT / "deploy/prometheus/alerts.test.yml")]
    tested = subprocess.run(tests, check=False, capture_output=True, text=True)
    assert tested.returncode == 0, tested.stdout + tested.stderr


@pytest.mark.deep
def test_prometheus_accepts_the_metrics(dashboard: Dashboard) -> None:
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("needs promtool: apt-get install prometheus")
    said = dashboard.ask_without_key("/metrics").body
    checked = subprocess.run(
        [program, "check", "metrics"], check=False, input=said, capture_output=True
    )
    assert (checked.returncode, checked.stderr) == (0, b"")


def test_no_series_names_an_issue_or_a_repository(dashboard: Dashboard) -> None:
    dashboard.begin(REF, "Mend it")
    dashboard.end(REF, tried(1, Outcome.SUCCEEDED))
    assert "octo" not in dashboard.ask_without_key("/metrics").text
    assert len(measured(dashboard)) < 180


def test_before_the_configuration_is_read_there_is_little_to_say(tmp_path: Path) -> None:
    with serve_dashboard(tmp_path, is_starting=True) as dashboard:
        assert "mulligan_polls" not in dashboard.ask_without_key("/metrics").text
        assert dashboard.ask_without_key("/healthz").status == 200
        assert dashboard.ask("/").status == 503
        assert "Mulligan is starting" in dashboard.ask("/api/issues").text


@pytest.mark.parametrize(
    "said",
    [b"", b"GET / HTTP/1.1\r\nHost: a", b"POST /login HTTP/1.1\r\nContent-Length: 9\r\n\r\n"],
)
def test_who_asks_half_a_question_keeps_nobody_from_an_answer(
    dashboard: Dashboard, said: bytes
) -> None:
    with ExitStack() as held:
        for _ in range(100):
            line = socket.create_connection(("127.0.0.1", dashboard.port), timeout=240)
            held.enter_context(line).sendall(said)
        assert dashboard.ask_without_key("/healthz").text == "ok\n"
