"""What confining a command costs (DESIGN 7); reported, with a bound that only a fault breaks."""

import os
import statistics
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from mulligan.process import Command, Finished, run
from mulligan.sandbox.sandbox import Reach
from world.confined import sandbox

ROUNDS = 30
MOST = 0.05


def median(act: Callable[[], Finished]) -> float:
    """Time an action in seconds."""
    times = list[float]()
    for _ in range(ROUNDS):
        started = time.perf_counter()
        assert act().exit_code == 0
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def test_what_a_confined_command_costs(tmp_path: Path) -> None:
    walls, reach = sandbox(), Reach(write=(tmp_path,))
    environment = {"PATH": os.environ["PATH"]}
    command = Command(("/bin/true",), tmp_path, environment, timedelta(seconds=20))
    plain, confined = median(lambda: run(command)), median(lambda: walls.run(command, reach))
    added = confined - plain
    print(f"plain {plain * 1000:.1f} ms, confined {confined * 1000:.1f} ms")  # noqa: T201
    assert added <= MOST
