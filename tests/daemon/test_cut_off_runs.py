"""A run that was cut off is not finished: nothing is published, and the next attempt goes on."""

from collections.abc import Generator
from pathlib import Path

import pytest

from mulligan.agents.adapters import BUILT_IN
from mulligan.agents.invocation import OperatorAgents
from mulligan.agents.runner import CommandAgent
from mulligan.config.adapters import Adapter, Meaning, Rule
from mulligan.config.operator import AgentSettings
from mulligan.daemon.worker import Visit, Worker
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.outcome import Outcome
from world.simulated import NAME
from world.workers import WorkerEnvironment, worker_environment

READS = (
    Rule(where={"type": "end"}, means=Meaning.RESULT),
    Rule(where={"type": "broken"}, means=Meaning.FAILED),
)
END = """echo '{"type": "end"}'"""


@pytest.fixture
def here(tmp_path: Path) -> Generator[WorkerEnvironment]:
    with worker_environment(tmp_path) as made:
        yield made


def visit(
    here: WorkerEnvironment,
    ref: IssueRef,
    script: str,
    most: int | None = None,
    reads: tuple[Rule, ...] = READS,
) -> Visit:
    adapter = Adapter(program="/bin/sh", arguments=("-c", script), reads=reads, needs_result=True)
    own = OperatorAgents({"theirs": adapter}, {})
    agent = CommandAgent(AgentSettings(kind="theirs"), {"PATH": "/usr/bin:/bin"}, own=own)
    context = here.context(agent)
    context.worktrees.fetch_base(NAME)
    return Worker(context, max_attempts=most).visit(ref)


@pytest.mark.parametrize(
    ("ending", "words"),
    [
        ("kill -9 $$", "was killed by SIGKILL"),
        ("exit 137", "exit code 137 (killed by SIGKILL)"),
        ("echo 'Trace: it broke' >&2; exit 1", "ended with exit code 1"),
        ("exit 0", "its final record is missing"),
    ],
)
def test_its_half_change_is_not_published_and_reaches_the_next_attempt(
    here: WorkerEnvironment, ending: str, words: str
) -> None:
    ref = here.desk.ready()
    visit(here, ref, f"echo '# half' >> src/tool.py; {ending}", most=1)
    (meta,) = here.ledger.history(ref)
    assert (meta.outcome, here.pushed(ref)) == (Outcome.AGENT_CRASHED, None)
    assert words in meta.failure_reason
    assert "did not finish its change" in meta.failure_reason
    seen = here.directory / "seen"
    visit(here, ref, f"cat $MULLIGAN_PREVIOUS_DIFF > {seen}; echo 'Y = 1' >> src/tool.py; {END}")
    assert "+# half" in seen.read_text()
    assert here.ledger.status(ref).stage is Stage.REVIEW


def test_a_service_that_ended_a_run_for_its_request_ended_it_unfinished(
    here: WorkerEnvironment,
) -> None:
    ref = here.desk.ready()
    broken = '{"type": "broken"}'
    visit(here, ref, f"echo '# half' >> src/tool.py; echo '{broken}'; exit 1", most=1)
    assert here.ledger.history(ref)[0].outcome is Outcome.INFRASTRUCTURE
    assert here.pushed(ref) is None


CLAUDE = BUILT_IN["claude"].reads


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ('"subtype": "error_during_execution", "is_error": true, "result": ""', "during_execution"),
        ('"subtype": "error_during_execution", "is_error": false', "error_during_execution"),
        ('"subtype": "error_x", "is_error": true, "errors": ["Error: EPIPE"]', "(Error: EPIPE)"),
        ('"subtype": "odd", "is_error": true', "(odd)"),
    ],
)
@pytest.mark.parametrize("code", [0, 1])
def test_a_run_that_the_agent_calls_an_error_is_not_published(
    here: WorkerEnvironment, record: str, words: str, code: int
) -> None:
    ref = here.desk.ready()
    ends = f"""echo '{{"type": "result", {record}}}'; exit {code}"""
    visit(here, ref, f"echo '# half' >> src/tool.py; {ends}", most=1, reads=CLAUDE)
    (meta,) = here.ledger.history(ref)
    assert (meta.outcome, here.pushed(ref)) == (Outcome.AGENT_CRASHED, None)
    assert words in meta.failure_reason
    assert "and it did not finish its change" in meta.failure_reason


def test_an_error_after_refused_calls_is_the_services(here: WorkerEnvironment) -> None:
    ref = here.desk.ready()
    refused = '{"type": "system", "subtype": "api_retry", "error_status": 529}'
    ended = '{"type": "result", "subtype": "error_during_execution", "is_error": true}'
    visit(here, ref, f"echo '{refused}'; echo '{ended}'; exit 1", most=1, reads=CLAUDE)
    assert here.ledger.history(ref)[0].outcome is Outcome.INFRASTRUCTURE


def test_its_last_line_is_in_the_comment_and_memory_only_after_a_signal(
    here: WorkerEnvironment,
) -> None:
    ref, killed = here.desk.ready(), here.desk.ready()
    visit(here, ref, "echo 'TypeError: x is not a function' >&2; exit 1")
    visit(here, killed, "kill -9 $$")
    said, told = here.said(ref)[-1], here.said(killed)[-1]
    assert "TypeError: x is not a function" in said
    assert "killed" not in said
    assert "memory" not in said
    assert "out of memory" in told


def test_a_complete_run_counts_whatever_its_exit_code(here: WorkerEnvironment) -> None:
    ref = here.desk.ready()
    visit(here, ref, f"echo 'Y = 1' >> src/tool.py; {END}; echo bye; exit 1")
    assert here.ledger.status(ref).stage is Stage.REVIEW
