"""`mulligan run` serves its dashboard on loopback, and neither waits for it nor needs it."""

import http.client
import os
import re
import signal
import socket
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from world.place import BIN, NAME, MulliganInstallation, mulligan_installation
from world.processes import said_until
from world.pseudo_terminal import on_a_terminal

OPEN = re.compile(r"event=dashboard_open address=http://127.0.0.1:(\d+)/ key_file=(\S+)")
LISTEN = (
    "GET /api/events?after=0 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n"
    "Accept: text/event-stream\r\n\r\n"
)
WRITE = "pathlib.Path('notes.txt').write_text('two')\n"


@pytest.fixture
def here(tmp_path: Path) -> Generator[MulliganInstallation]:
    with mulligan_installation(tmp_path, {"notes.txt": "one\n"}) as made:
        made.agent(WRITE)
        made.configure(poll={"interval": "300ms"}, dashboard="127.0.0.1:0")
        yield made


def get(port: int, path: str, key: str = "") -> str:
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    line.request("GET", path, headers={"Authorization": f"Bearer {key}"})
    answer = line.getresponse()
    content = answer.read().decode()
    line.close()
    assert answer.status == 200, content
    return content


def test_an_issue_can_be_followed_from_the_label_to_the_pull_request(
    here: MulliganInstallation,
) -> None:
    ref = here.issue("Mend <it>")
    with here.start("run") as daemon:
        said = said_until(daemon, "action=published")
        opened = OPEN.search(said)
        assert opened
        assert "/open?key=" not in said
        port, key = int(opened[1]), Path(opened[2]).read_text().strip()
        assert get(port, "/healthz") == get(port, "/readyz") == "ok\n"
        assert 'mulligan_attempts_total{outcome="SUCCEEDED"} 1.0' in get(port, "/metrics")
        assert "Mend &lt;it&gt;" in get(port, "/", key)
        assert "+two" in get(port, f"/issues/{NAME}/{ref.number}/attempts/1/diff", key)
        with socket.create_connection(("127.0.0.1", port)) as line:
            line.sendall(LISTEN.format(key=key).encode())
            assert b"issue_seen" in read_until(line, b"issue_seen")
            # Whoever listens does not hold up the end.
            daemon.send_signal(signal.SIGTERM)
            daemon.communicate(timeout=120)
    assert daemon.returncode == 0


def test_a_port_that_is_taken_is_said_once_and_stops_nothing(here: MulliganInstallation) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        here.configure(dashboard=address)
        here.issue()
        with here.start("run") as daemon:
            said = said_until(daemon, "action=published")
            daemon.send_signal(signal.SIGTERM)
            daemon.communicate(timeout=120)
    assert said.count("dashboard_closed") == 1
    assert f"listen on {address}" in said
    assert daemon.returncode == 0


@pytest.mark.deep
def test_a_terminal_shows_a_link_that_opens_the_dashboard_and_no_log_has_it(
    here: MulliganInstallation,
) -> None:
    environment = {
        **here.environment,
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "HOME": str(here.directory),
    }
    command = [sys.executable, "-m", "mulligan", "run", "--config", here.config]
    with on_a_terminal(command, here.directory, environment, columns=60) as shown:
        link = shown.wait_for(r"Dashboard: http://127\.0\.0\.1:(\d+)/open\?key=([0-9a-f]{32})\n")
        port, secret = int(link[1]), link[2]
        assert post(port, "/open", f"key={secret}") == 303
        assert post(port, "/open", f"key={secret}") == 403
        shown.press("\x03")
        assert shown.end() == 0, shown.text
    assert shown.text.count("http://127.0.0.1:") == 1
    assert "dashboard.key" in shown.text
    kept = [each for each in here.directory.rglob("*") if each.is_file()]
    assert [each for each in kept if secret.encode() in each.read_bytes()] == []


def post(port: int, path: str, body: str) -> int:
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    line.request("POST", path, body)
    status = line.getresponse().status
    line.close()
    return status


def read_until(line: socket.socket, words: bytes) -> bytes:
    read = b""
    while words not in read:
        chunk = line.recv(65536)
        assert chunk, read
        read += chunk
    return read
