"""What confining a command costs; reported, with a bound that only a fault breaks."""

import os
import statistics
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import httpx

from mulligan.domain.host import Network
from mulligan.sandbox.process import Command, Finished, run
from mulligan.sandbox.sandbox import CommandAccess
from world.confined import sandbox
from world.egress import open_egress_proxy
from world.model import serve_model
from world.model_script import Turn, conversation

ROUNDS = 30
MOST = 0.05 if os.getuid() else 0.1
"""For root, files are given to another user first, and the relay is always there."""
ASKED = {"model": "m", "stream": False}


def times_of(act: Callable[[], Finished]) -> list[float]:
    """Time an action in seconds, shortest first."""
    times = list[float]()
    for _ in range(ROUNDS):
        started = time.perf_counter()
        assert act().exit_code == 0
        times.append(time.perf_counter() - started)
    return sorted(times)


def test_what_a_confined_command_costs(tmp_path: Path) -> None:
    walls, reach = sandbox(), CommandAccess(write=(tmp_path,))
    environment = {"PATH": os.environ["PATH"]}
    command = Command(("/bin/true",), tmp_path, environment, timedelta(seconds=20))

    def led_out() -> Finished:
        with open_egress_proxy(tmp_path) as way:
            led = CommandAccess(write=(tmp_path,), network=Network.MODEL, proxy=way.channel)
            return walls.run(command, led)

    taken = {
        "plain": times_of(lambda: run(command)),
        "confined": times_of(lambda: walls.run(command, reach)),
        "with a way out": times_of(led_out),
    }
    said = (f"{name} {statistics.median(times) * 1000:.1f} ms" for name, times in taken.items())
    print(", ".join(said))  # noqa: T201
    # Of the shortest, since whatever else the machine does lengthens three processes more than one.
    assert taken["confined"][0] - taken["plain"][0] <= MOST
    assert taken["with a way out"][0] - taken["plain"][0] <= MOST


def test_what_the_way_out_adds_to_a_request(tmp_path: Path) -> None:
    with (
        serve_model(conversation(Turn("Hi."))) as model,
        open_egress_proxy(tmp_path, model.address) as way,
    ):
        with way.client() as inside, httpx.Client(base_url=model.address) as straight:

            def once(client: httpx.Client, path: str) -> float:
                started = time.perf_counter()
                assert client.post(path, json=ASKED).status_code == 200
                return time.perf_counter() - started

            through = [once(inside, "/model/v1/messages") for _ in range(ROUNDS * 3)]
            directly = [once(straight, "/v1/messages") for _ in range(ROUNDS * 3)]
    added = statistics.median(through) - statistics.median(directly)
    print(f"a request through the way out takes {added * 1000:.1f} ms longer")  # noqa: T201
    assert added <= MOST
