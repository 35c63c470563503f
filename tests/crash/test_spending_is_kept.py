"""What an agent had used when Mulligan was killed is in the books afterwards, to the cent."""

import signal
from collections.abc import Generator
from pathlib import Path

import pytest
from pydantic import JsonValue

from mulligan.domain.outcome import Outcome
from mulligan.domain.spending import Spent, spent_by
from mulligan.interfaces.bootstrap.clock_and_backoff import SystemClock
from mulligan.storage.database import open_database
from mulligan.storage.usage import SqlUsageStore
from world.metered_agent import PROGRAM
from world.place import MulliganInstallation, mulligan_installation
from world.processes import wait_until

ADAPTER: dict[str, JsonValue] = {
    "program": "python3",
    "usage": "message",
    "reads": [
        {
            "where": {"kind": "step"},
            "add": {"cost_usd": "usd", "input_tokens": "tokens"},
            "means": "progress",
        }
    ],
}


@pytest.fixture
def here(tmp_path: Path) -> Generator[MulliganInstallation]:
    with mulligan_installation(tmp_path, {"src/tool.py": "X = 1\n"}) as made:
        (tmp_path / "metered.py").write_text(PROGRAM)
        made.configure(sandbox="off", agent={"kind": "metered"})
        yield made


def agent_takes(here: MulliganInstallation, steps: int, then: int = 0) -> None:
    """Have the agent take steps, each of which it reports, and rest for so many seconds."""
    arguments: list[JsonValue] = [str(here.directory / "metered.py"), str(steps), "0.05", str(then)]
    here.configure(adapters={"metered": {**ADAPTER, "arguments": arguments}})


def spent(here: MulliganInstallation) -> float:
    """Ask the books beside the worker that writes them."""
    with open_database(f"sqlite:///{here.directory}/mulligan.db") as database:
        on = SqlUsageStore(database).used_on(SystemClock().now().date())
    return sum(each.usd or 0 for each in on.values())


@pytest.mark.parametrize(
    "how", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.deep)]
)
def test_what_was_used_when_mulligan_ended_counts_afterwards(
    how: signal.Signals, here: MulliganInstallation
) -> None:
    agent_takes(here, steps=3, then=60)
    here.configure(limits={"shutdown_grace": "0s"}, budget={"issue": {"usd": 0.35}})
    ref = here.issue()
    with here.start("run") as worker:
        wait_until(lambda: spent(here) == pytest.approx(0.3))
        worker.send_signal(how)
        worker.communicate(timeout=120)
    agent_takes(here, steps=200)
    assert here.run("once").returncode == 3
    attempts = here.attempts(ref)
    assert [meta.outcome for meta in attempts] == [Outcome.INTERRUPTED, Outcome.OVER_BUDGET]
    assert [spent_by([meta]) for meta in attempts] == [Spent(0.3, 300), Spent(0.1, 100)]
    assert spent(here) == pytest.approx(0.4)
    assert r"\$0.40 and 400 tokens of \$0.35" in here.comments(ref)[-1]
