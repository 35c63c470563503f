"""While an agent does its worst for a minute, the daemon answers and obeys (`make test-deep`)."""

import http.client
import re
import signal
import socket
import sys
import time
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path

import pytest
from pydantic import JsonValue

from world.confined import usable_mode
from world.place import MulliganInstallation, mulligan_installation
from world.processes import said_until, wait_until

OPEN = re.compile(r"event=dashboard_open address=http://127.0.0.1:(\d+)/")
SECONDS = 60
LONGEST = 1.0
"""Seconds within which an answer has to come."""
STARTED = "(pathlib.Path.home() / 'started').touch()\n"
ENDLESS = {
    "descriptors": """
        import socket
        for _ in range(7):
            if os.fork() == 0:
                break
        held = []
        while True:
            try:
                held.append(socket.create_connection(("127.0.0.1", 3128), timeout=1))
                held[-1].send(b"GET /")
            except OSError:
                del held[:50]
        """,
    "requests": """
        import socket
        for _ in range(7):
            if os.fork() == 0:
                break
        asked = b"CONNECT a.example:443 HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n" * 100
        while True:
            try:
                with socket.create_connection(("127.0.0.1", 3128), timeout=1) as line:
                    line.sendall(asked)
                    while line.recv(65536):
                        pass
            except OSError:
                pass
        """,
    "long lines": """
        while True:
            os.write(1, b"-eyJ" * 250_000)
        """,
    "JSON": """
        deep = b"[" * 90 + b"]" * 90
        line = b'{"type": "result", "a": ' + deep + b', "b": "' + b"x" * 9_000 + b'"}\\n'
        while True:
            os.write(1, line * 50)
        """,
    "forks": """
        import time
        while True:
            try:
                os.fork()
            except OSError:
                time.sleep(0.01)
        """,
    "memory": """
        import time
        for _ in range(10):
            os.fork()
        held = []
        while True:
            held.append(bytearray(os.urandom(1) * 16 * 1024**2))
        """,
}
"""Agents that never end by themselves."""
BOMB = """
import hashlib, zlib
def write(kind, content):
    whole = f"{kind} {len(content)}\\0".encode() + content
    sha = hashlib.sha1(whole).hexdigest()
    git = pathlib.Path(pathlib.Path(".git").read_text().split()[1])
    place = git / "objects" / sha[:2] / sha[2:]
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(zlib.compress(whole))
    return git, sha
tree = subprocess.run(["git", "rev-parse", "HEAD^{tree}"], capture_output=True, text=True).stdout
parent = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True).stdout
who = "A <a@example.org> 1700000000 +0000"
head = f"tree {tree}parent {parent}author {who}\\ncommitter {who}\\n\\n".encode()
git, sha = write("commit", head + b"\\n" * 1500 * 1024**2)
(git / "HEAD").write_text(sha + "\\n")
"""
ENDING = {
    "an object of gigabytes": BOMB,
    "files": """
        for directory in range(200):
            os.mkdir(f"d{directory}")
            for file in range(500):
                pathlib.Path(f"d{directory}/{file}").touch()
        """,
    "a huge change": """
        pathlib.Path("test_a.py").write_text("@pytest.mark.skip\\ndef test_x(): x(1)\\n" * 130_000)
        pathlib.Path("a_test.rs").write_text(("#[test]" + " " * 300 + "\\n\\n") * 15_000)
        """,
    "a huge file": """
        with open("huge", "wb") as file:
            file.truncate(3 * 1024**3)
        """,
}
"""Agents that leave to Mulligan what takes long."""


@pytest.fixture
def here(tmp_path: Path) -> Generator[MulliganInstallation]:
    with mulligan_installation(tmp_path, {"notes.txt": "one\n"}, max_issue_attempts=10) as made:
        sandbox: dict[str, JsonValue] = {
            "mode": usable_mode(),
            "hosts": ["mirror.example"],
            "limits": {"processes": 200, "memory_mib": 512},
            "read": [sys.base_prefix],
        }
        made.configure(poll={"interval": "300ms"}, dashboard="127.0.0.1:0", sandbox=sandbox)
        yield made


def seconds_of_an_answer(port: int) -> float:
    began = time.monotonic()
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    line.request("GET", "/healthz")
    assert line.getresponse().read() == b"ok\n"
    line.close()
    return time.monotonic() - began


def slowest_answer(here: MulliganInstallation, seconds: float = SECONDS) -> float:
    """Ask while the agent of an issue runs; then end the daemon, which obeys."""
    with here.start("run") as daemon:
        opened = OPEN.search(said_until(daemon, "dashboard_open"))
        assert opened
        port, took = int(opened[1]), list[float]()
        here.issue()
        wait_until(here.worktree.exists)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            took.append(seconds_of_an_answer(port))
            time.sleep(0.1)
        daemon.send_signal(signal.SIGTERM)
        daemon.communicate(timeout=90)
    assert daemon.returncode == 0
    print(f"{len(took)} answers, the slowest in {max(took):.2f} s")  # noqa: T201 - a measurement
    return max(took)


@pytest.mark.deep
@pytest.mark.timeout(300)
@pytest.mark.parametrize("worst", ENDLESS.values(), ids=ENDLESS)
def test_it_answers_while_an_agent_does_its_worst(here: MulliganInstallation, worst: str) -> None:
    here.configure(limits={"shutdown_grace": "1s"})
    here.agent(worst)
    assert slowest_answer(here) < LONGEST


@pytest.mark.deep
@pytest.mark.timeout(300)
@pytest.mark.parametrize("worst", ENDING.values(), ids=ENDING)
def test_it_answers_while_it_reads_what_an_agent_left(
    here: MulliganInstallation, worst: str
) -> None:
    here.configure(limits={"shutdown_grace": "1s"})
    here.agent(worst)
    assert slowest_answer(here) < LONGEST


@pytest.mark.deep
@pytest.mark.timeout(300)
def test_it_answers_while_connections_to_it_stay_half_open(here: MulliganInstallation) -> None:
    here.agent("import time\ntime.sleep(90)\n")
    with ExitStack() as held, here.start("run") as daemon:
        opened = OPEN.search(said_until(daemon, "dashboard_open"))
        assert opened
        port, took, until = int(opened[1]), list[float](), time.monotonic() + SECONDS
        # While it starts, its first poll comes first.
        seconds_of_an_answer(port)
        while time.monotonic() < until:
            for _ in range(20):
                line = held.enter_context(socket.create_connection(("127.0.0.1", port)))
                line.send(b"GET /healthz HTTP/1.1\r\nHost: ")
            took.append(seconds_of_an_answer(port))
            time.sleep(1)
            if len(took) % 10 == 0:
                held.close()
        daemon.send_signal(signal.SIGTERM)
        daemon.communicate(timeout=90)
    assert max(took) < LONGEST
