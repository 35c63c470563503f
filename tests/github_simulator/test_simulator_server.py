"""The simulator starts on loopback, serves many at once, and leaves nothing behind."""

import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import requests

from github_simulator.app import running
from github_simulator.bare_repository import SimulatorError
from github_simulator.world import Fault
from world.processes import free_port
from world.simulated import NAME, SimulatedGitHub, push, simulated_github
from world.simulated_github import World

over_http = pytest.mark.parametrize("reach", [running], indirect=True)


def test_nothing_is_left_when_the_block_ends(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    with simulated_github(tmp_path, running) as github:
        github.get("issues")
        assert {*threading.enumerate()} - before
        port = int(github.url.rpartition(":")[2])
    assert not {*threading.enumerate()} - before
    with socket.socket() as again:
        again.bind(("127.0.0.1", port))
    with pytest.raises(requests.exceptions.ConnectionError):
        requests.get(github.url, timeout=1)


def test_it_ends_when_the_block_fails() -> None:
    before = set(threading.enumerate())
    with pytest.raises(ValueError, match="invalid literal"), running(World()):
        int("mine")
    assert not {*threading.enumerate()} - before


def test_a_taken_port_is_named() -> None:
    with running(World()) as address:
        port = int(address.rpartition(":")[2])
        with pytest.raises(SimulatorError, match=f"port {port}"), running(World(), port):
            pass


def test_a_port_can_be_asked_for() -> None:
    port = free_port()
    with running(World(), port) as address:
        assert address == f"http://127.0.0.1:{port}"
        assert requests.get(f"{address}/rate_limit", timeout=120).status_code == 200


def slow(ids: Iterator[int]) -> Iterator[int]:
    """Let another thread in whenever an id is drawn, so that a missing lock shows."""
    for number in ids:
        time.sleep(0.0005)
        yield number


@over_http
def test_eight_clients_at_once_lose_nothing(github: SimulatedGitHub) -> None:
    ref = github.issue()
    push(github.bare, "topic", {"a": "a"})
    object.__setattr__(github.world.stamps, "ids", slow(github.world.stamps.ids))

    def work(client: int) -> list[int]:
        headers = {"authorization": "Bearer token-wes"}
        base, done = f"{github.url}/repos/{NAME}", list[int]()
        with requests.Session() as session:
            session.headers.update(headers)
            for turn in range(4):
                label = {"labels": [f"label-{client}", f"shared-{turn}"]}
                for path, body in (
                    ("issues/1/comments", {"body": f"{client}.{turn}"}),
                    ("issues/1/labels", label),
                    ("issues", {"title": f"{client}.{turn}"}),
                    ("pulls", {"title": "x", "head": "topic", "base": "main"}),
                ):
                    answer = session.post(f"{base}/{path}", json=body, timeout=120)
                    done.append(answer.status_code)
                session.get(f"{base}/issues?per_page=100", timeout=120).raise_for_status()
        return done

    with ThreadPoolExecutor(8) as pool:
        statuses = [status for done in pool.map(work, range(8)) for status in done]
    assert statuses.count(201) == 32 + 32 + 1
    assert statuses.count(200) == 32
    assert statuses.count(422) == 31
    assert len({comment.body for comment in github.world.comments_of(ref)}) == 32
    assert len(github.world.labels_of(ref)) == 8 + 4
    events = github.world.events_of(ref)
    assert len({event.id for event in events}) == len(events) == 12
    assert len(github.world.pulls_of(NAME)) == 1
    assert len(github.world.requests) == 8 * 4 * 5
    numbers = [issue["number"] for issue in github.get("issues?per_page=100").json()]
    assert sorted(numbers) == list(range(1, 35))


@over_http
def test_a_late_answer_holds_up_nobody_else(github: SimulatedGitHub) -> None:
    github.world.faults = lambda _, path: Fault(delay=60) if path == "/user" else None
    with pytest.raises(requests.exceptions.ReadTimeout):
        requests.get(f"{github.url}/user", timeout=(120, 0.05))
    assert github.get("issues").status_code == 200
