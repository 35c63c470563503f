"""A model's service that is silent or refuses is told from an agent that is slow or fails."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
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
from mulligan.domain.result import RestKind
from world.confined import sandbox
from world.model import serve_model
from world.model_script import HANG, Fault, Step, Turn, conversation
from world.replayed_agents import task_in
from world.tls import Answers, Authority, serve_tls

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


def asker(program: str) -> Adapter:
    return Adapter(
        program=sys.executable,
        arguments=("-c", ASK + program),
        environment=("MODEL_KEY", "MODEL_URL"),
        services={"model": SERVICE},
    )


def settings_with(stall: float, provider_stall: float) -> AgentSettings:
    return AgentSettings(
        kind="asker",
        timeout=timedelta(seconds=60),
        stall_timeout=timedelta(seconds=stall),
        provider_stall=timedelta(seconds=provider_stall),
    )


def run(
    place: Path, program: str, *steps: Step, stall: float = 6, provider_stall: float = 1
) -> AgentRun:
    adapter, settings = asker(program), settings_with(stall, provider_stall)
    with serve_model(conversation(*steps)) as model:
        return run_at(model.address, settings, adapter, place)


def run_at(address: str, settings: AgentSettings, adapter: Adapter, place: Path) -> AgentRun:
    outer = {"PATH": os.environ["PATH"], "MODEL_KEY": "k" * 20, "MODEL_URL": address}
    own = OperatorAgents({"asker": adapter}, {}, ())
    walls = sandbox((place,))
    agent = CommandAgent(settings, outer, sandbox=walls, network=Network.MODEL, own=own)
    return agent.run(task_in(place))


def outcome(ended: AgentRun) -> Outcome:
    return classify(AttemptState(run=ended, change=Change("5ta27", None, 0)))


WAIT = "try: ask()\nexcept OSError: time.sleep(60)"
ASK_AGAIN = "while True:\n try: ask()\n except OSError: time.sleep(0.4)"
LATE = "asked to wait just before"
TIME_OUTS = {
    "silent": ("ask()", HANG, Outcome.INFRASTRUCTURE),
    "asked by halves": ("hold(); time.sleep(60)", HANG, Outcome.AGENT_TIMED_OUT),
    "answered": ("ask().read(); time.sleep(60)", Turn("Hi."), Outcome.AGENT_TIMED_OUT),
    "not read": ("answer = ask(); time.sleep(60)", Turn("Hi."), Outcome.AGENT_TIMED_OUT),
    "not asked": ("time.sleep(60)", HANG, Outcome.AGENT_TIMED_OUT),
    "asked to wait": (WAIT, Fault(429, retry_after=600), Outcome.INFRASTRUCTURE),
    LATE: (WAIT, Fault(429, retry_after=600), Outcome.AGENT_TIMED_OUT),
    "asked to wait again": (ASK_AGAIN, Fault(429, retry_after=600), Outcome.INFRASTRUCTURE),
    "used": (
        "ask().read(); ask().read(); time.sleep(60)",
        Turn("Hi.", input_tokens=1000, output_tokens=70),
        Outcome.AGENT_TIMED_OUT,
    ),
    "asked not to wait": (WAIT, Fault(429, retry_after=0), Outcome.AGENT_TIMED_OUT),
}


def test_a_time_out_is_the_services_only_if_that_was_silent_or_asked_to_wait(
    tmp_path: Path,
) -> None:
    def try_one(name: str) -> AgentRun:
        place = tmp_path / name.replace(" ", "-")
        place.mkdir()
        program, step, _ = TIME_OUTS[name]
        return run(place, program, step, provider_stall=60 if name == LATE else 1)

    # Each waits for its limit, so they wait together.
    with ThreadPoolExecutor(len(TIME_OUTS)) as threads:
        ended = dict(zip(TIME_OUTS, threads.map(try_one, TIME_OUTS), strict=True))
    assert {each.stopped_by for each in ended.values()} == {TimeLimit.STALL_TIMEOUT}
    assert {name: outcome(each) for name, each in ended.items()} == {
        name: expected for name, (_, _, expected) in TIME_OUTS.items()
    }
    # Whoever is to blame, nobody asks the service before the time that it named.
    assert [name for name, each in ended.items() if each.retry_after] == [
        name for name, (_, step, _) in TIME_OUTS.items() if step == Fault(429, retry_after=600)
    ]
    used = ended["used"].facts  # The agent itself said nothing of it.
    assert (used.input_tokens, used.output_tokens) == (2000, 140)


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


@pytest.mark.parametrize("program", ["ask()", ASK_AGAIN], ids=["gives up", "asks again"])
def test_a_service_whose_certificate_is_not_trusted_is_named_with_the_fix(
    program: str, tmp_path: Path
) -> None:
    with serve_tls(Authority(tmp_path).certificate(), Answers) as address:
        ended = run_at(address, settings_with(4, 1), asker(program), tmp_path)
    fault = ended.fault
    assert fault
    assert (fault.outcome, fault.rest) == (Outcome.MISCONFIGURED, RestKind.UNREACHABLE)
    assert fault.reason == (
        "The model's service could not be reached: its certificate is signed by an authority that"
        " this machine does not trust; add the certificates of that authority to the system's"
        " certificates, or set SSL_CERT_FILE to a file that contains them."
    )
