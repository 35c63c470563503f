"""A model's service that is silent or refuses is told from an agent that is slow or fails."""

import os
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from mulligan.agents.invocation import OperatorAgents
from mulligan.agents.runner import CommandAgent
from mulligan.config.adapters import Adapter, Service
from mulligan.config.operator import AgentSettings
from mulligan.domain.attempt import AgentRun, AttemptState, Change, TimeLimit, classify
from mulligan.domain.host import Network
from mulligan.domain.outcome import Outcome
from world.confined import sandbox
from world.model import serve_model
from world.model_script import HANG, Fault, Step, Turn, conversation
from world.replayed_agents import task_in

ASK = """
import json, os, socket, sys, time, urllib.request
body = json.dumps({"model": "m", "stream": True, "messages": []}).encode()
def ask():
    where, given = os.environ["MODEL_URL"] + "/v1/messages", {"content-type": "application/json"}
    return urllib.request.urlopen(urllib.request.Request(where, body, given))
def hold():
    line = socket.create_connection(("127.0.0.1", 3128))
    line.sendall(b"POST /model/v1/messages HTTP/1.1\\r\\nHost: x\\r\\n")
    line.sendall(b"Content-Length: 9999\\r\\n\\r\\n{")
    return line
"""
SERVICE = Service(
    url="https://api.model.example",
    url_variable="MODEL_URL",
    keys={"MODEL_KEY": "x-api-key: {key}"},
)


def run(place: Path, program: str, *steps: Step, stall: float = 3) -> AgentRun:
    adapter = Adapter(
        program=sys.executable,
        arguments=("-c", ASK + program),
        environment=("MODEL_KEY", "MODEL_URL"),
        services={"model": SERVICE},
    )
    settings = AgentSettings(
        kind="asker",
        timeout=timedelta(seconds=60),
        stall_timeout=timedelta(seconds=stall),
        provider_stall=timedelta(seconds=1),
    )
    with serve_model(conversation(*steps)) as model:
        outer = {"PATH": os.environ["PATH"], "MODEL_KEY": "k" * 20, "MODEL_URL": model.address}
        own = OperatorAgents({"asker": adapter}, {}, ())
        walls = sandbox((place,))
        agent = CommandAgent(settings, outer, sandbox=walls, network=Network.MODEL, own=own)
        return agent.run(task_in(place))


def outcome(ended: AgentRun) -> Outcome:
    return classify(AttemptState(run=ended, change=Change("5ta27", None, 0)))


@pytest.mark.parametrize(
    ("program", "step", "expected"),
    [
        ("ask()", HANG, Outcome.INFRASTRUCTURE),
        ("hold(); time.sleep(60)", HANG, Outcome.AGENT_TIMED_OUT),
        ("ask().read(); time.sleep(60)", Turn("Hi."), Outcome.AGENT_TIMED_OUT),
        ("answer = ask(); time.sleep(60)", Turn("Hi."), Outcome.AGENT_TIMED_OUT),
        ("time.sleep(60)", HANG, Outcome.AGENT_TIMED_OUT),
    ],
    ids=["silent", "asked by halves", "answered", "not read", "not asked"],
)
def test_a_time_out_is_the_services_only_if_that_was_silent(
    program: str, step: Step, expected: Outcome, tmp_path: Path
) -> None:
    ended = run(tmp_path, program, step)
    assert (ended.stopped_by, outcome(ended)) == (TimeLimit.STALL_TIMEOUT, expected)


@pytest.mark.parametrize(
    ("step", "expected", "wait"),
    [
        (Fault(429, retry_after=600), Outcome.INFRASTRUCTURE, 600),
        (Fault(529), Outcome.INFRASTRUCTURE, None),
        (Fault(400), Outcome.AGENT_CRASHED, None),
    ],
)
def test_an_agent_that_fails_at_its_service_did_not_crash(
    step: Step, expected: Outcome, wait: float | None, tmp_path: Path
) -> None:
    ended = run(tmp_path, "ask()", step, stall=60)
    assert outcome(ended) is expected
    left = ended.retry_after
    assert (left is None) == (wait is None)
    assert left is None or 0 < left.total_seconds() <= (wait or 0)


@pytest.mark.parametrize(
    ("wait", "expected"), [(600, Outcome.INFRASTRUCTURE), (0, Outcome.AGENT_TIMED_OUT)]
)
def test_an_agent_that_waits_as_its_service_asked_did_not_time_out(
    wait: int, expected: Outcome, tmp_path: Path
) -> None:
    program = "try: ask()\nexcept OSError: time.sleep(60)"
    ended = run(tmp_path, program, Fault(429, retry_after=wait))
    assert (ended.stopped_by, outcome(ended)) == (TimeLimit.STALL_TIMEOUT, expected)
    assert (ended.retry_after is None) == (wait == 0)


def test_what_the_service_counted_is_known_of_a_run_that_told_nothing(tmp_path: Path) -> None:
    program = "ask().read(); ask().read(); time.sleep(60)"
    ended = run(tmp_path, program, Turn("Hi.", input_tokens=1000, output_tokens=70))
    assert (ended.facts.input_tokens, ended.facts.output_tokens) == (2000, 140)
