"""`mulligan doctor --agent` runs each agent, and says what it can, cannot and cost."""

import json
import sys
from collections.abc import Generator
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import JsonValue

from mulligan.daemon.doctor import FILE, STOP_AFTER, STOP_GRACE, AgentTrial, try_agent
from mulligan.domain.attempt import AgentRun, Fault, TimeLimit
from mulligan.domain.errors import MisconfiguredError
from mulligan.domain.host import TRY_AGAIN, Diagnosis, Level
from mulligan.domain.outcome import Outcome
from mulligan.domain.result import AgentFacts
from mulligan.interfaces.bootstrap.clock_and_backoff import SystemClock
from mulligan.storage.database import open_database
from mulligan.storage.usage import SqlUsageStore
from world.place import MulliganInstallation, mulligan_installation

USED = AgentFacts(kind="x", cost_usd=0.01, input_tokens=90, output_tokens=10)
AT_ONCE = timedelta(seconds=2)
GOOD = AgentRun(0, AT_ONCE, USED, summary="Done.")
STOPPED = AgentRun(-15, STOP_AFTER, USED, TimeLimit.TIMEOUT)


def hear(
    first: AgentRun, second: AgentRun = STOPPED, wrote: str | None = "repaired\n"
) -> list[Diagnosis]:
    runs = iter([first, second])
    return [*try_agent(AgentTrial("agent x", lambda _prompt, _timeout: next(runs), lambda: wrote))]


def only_bad(found: list[Diagnosis]) -> Diagnosis:
    (bad,) = [each for each in found if each.level is not Level.OK]
    assert each_is_a_sentence(bad)
    return bad


def each_is_a_sentence(found: Diagnosis) -> bool:
    return found.message.endswith((".", '"')) and found.fix.endswith(".")


def test_a_good_agent_shows_all_of_it() -> None:
    found = hear(GOOD)
    assert {each.level for each in found} == {Level.OK}
    assert [each.message for each in found] == [
        "It can write in its worktree.",
        "None of its tools was refused.",
        "It reports its usage: $0.01 and 100 tokens.",
        "It stops on TERM and leaves no process behind.",
        "These two runs cost $0.02 and 200 tokens.",
    ]


@pytest.mark.parametrize(
    ("first", "wrote", "level", "said", "fix"),
    [
        (
            AgentRun(0, AT_ONCE, USED, refusal="The agent was refused Bash; allow it there."),
            None,
            Level.FAULT,
            "The agent was refused Bash; allow it there.",
            TRY_AGAIN,
        ),
        (
            AgentRun(0, AT_ONCE, USED, refusal="The agent was refused Bash; allow it there."),
            "repaired",
            Level.WARNING,
            "The agent was refused Bash; allow it there.",
            TRY_AGAIN,
        ),
        (
            AgentRun(1, AT_ONCE, USED, fault=Fault(Outcome.DENIED, "Refused: bad key (HTTP 401).")),
            None,
            Level.FAULT,
            "Refused: bad key (HTTP 401).",
            "Fix the named problem, then run `mulligan doctor` again.",
        ),
        (
            AgentRun(1, AT_ONCE, USED, fault=Fault(Outcome.INFRASTRUCTURE, "Overloaded.")),
            None,
            Level.FAULT,
            "Overloaded.",
            "Try again later.",
        ),
        (
            AgentRun(3, AT_ONCE, USED, summary="Please log in."),
            None,
            Level.FAULT,
            'It wrote nothing and ended with exit code 3. Its last message: "Please log in."',
            "Fix the reported problem, for example in agent.arguments.",
        ),
        (
            AgentRun(-15, AT_ONCE, USED, TimeLimit.TIMEOUT),
            None,
            Level.FAULT,
            "It wrote nothing in 5 minutes, and was stopped.",
            "Check whether it waits for an answer, or for its model.",
        ),
        (
            GOOD,
            "broken",
            Level.WARNING,
            f"It wrote {FILE}, but not the requested word.",
            "Check that agent.model names the right model.",
        ),
        (
            AgentRun(0, AT_ONCE, AgentFacts(kind="x")),
            "repaired",
            Level.WARNING,
            "It reports no usage, so no budget can limit it.",
            "Make it report its usage, see docs/agents.md.",
        ),
        (
            AgentRun(0, AT_ONCE, AgentFacts(kind="x", input_tokens=7)),
            "repaired",
            Level.WARNING,
            "It reports 7 tokens but no cost, and its model has no known price.",
            "Add the price of the model under prices, or limit tokens in the budget.",
        ),
    ],
)
def test_what_is_wrong_has_its_fix(
    first: AgentRun, wrote: str | None, level: Level, said: str, fix: str
) -> None:
    bad = [each for each in hear(first, wrote=wrote) if each.level is not Level.OK]
    assert bad[0] == Diagnosis("agent x", level, said, fix)


def test_one_that_does_not_stop_is_told_of(here: MulliganInstallation) -> None:
    stubborn = AgentRun(-9, STOP_AFTER + STOP_GRACE, USED, TimeLimit.TIMEOUT)
    assert only_bad(hear(GOOD, stubborn)).message == (
        "It does not stop on TERM. Mulligan killed it 5 s later."
    )
    assert only_bad(hear(GOOD, GOOD)).level is Level.NOTE


def test_one_that_cannot_be_started_is_a_fault() -> None:
    def play(_prompt: str, _timeout: timedelta) -> AgentRun:
        message = "The program 'x' cannot be started; install it."
        raise MisconfiguredError(message)

    (found,) = try_agent(AgentTrial("agent x", play, lambda: None))
    assert (found.level, found.message) == (
        Level.FAULT,
        "The program 'x' cannot be started; install it.",
    )


# The command itself

PROGRAM = """
import json, sys
prompt = sys.stdin.read()
print(json.dumps({"kind": "step", "usd": 0.1, "tokens": 100}), flush=True)
open("mulligan-doctor.txt", "w").write("repaired")
"""
ADAPTER: dict[str, JsonValue] = {
    "program": sys.executable,
    "usage": "message",
    "reads": [
        {
            "where": {"kind": "step"},
            "add": {"cost_usd": "usd", "input_tokens": "tokens"},
        }
    ],
}


@pytest.fixture
def here(tmp_path: Path) -> Generator[MulliganInstallation]:
    with mulligan_installation(tmp_path, {"a.txt": "a\n"}) as made:
        (tmp_path / "metered.py").write_text(PROGRAM)
        arguments: list[JsonValue] = [str(tmp_path / "metered.py")]
        adapter: dict[str, JsonValue] = {**ADAPTER, "arguments": arguments}
        made.configure(agent={"kind": "metered"}, adapters={"metered": adapter})
        made.configure(agents={"none": {"command": ["no-such-agent"]}}, sandbox="off")
        yield made


def test_every_agent_is_tried_and_what_it_cost_is_in_the_books(here: MulliganInstallation) -> None:
    done = here.run("doctor", "--agent", "--json")
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert [(each["area"], each["level"]) for each in found] == [
        ("configuration", "ok"),
        *[("agent metered", level) for level in ("ok", "ok", "ok", "note", "ok")],
        ("agent none", "fault"),
    ]
    with open_database(f"sqlite:///{here.directory}/mulligan.db") as database:
        (spent,) = SqlUsageStore(database).used_on(SystemClock().now().date()).values()
    assert (spent.usd, spent.tokens) == (pytest.approx(0.2), 200)
    assert [*(here.directory / "work").glob("doctor-*")] == []
