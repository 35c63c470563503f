"""Requests really go through the socket: with the key, as they come, and nowhere else."""

import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from mulligan.sandbox.egress import MAX_REFUSED_HOSTS, AccessLog
from mulligan.sandbox.egress_rules import refuse
from world.egress import KEY, PORT, answering, echo, head_of, open_egress_proxy, send_listener
from world.model import serve_model
from world.model_script import Turn, conversation

HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = b"Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
ASKED = {"model": "m", "stream": False}


def origin(address: tuple[str, int]) -> str:
    return f"http://{address[0]}:{address[1]}"


def test_the_model_is_sent_the_key_in_place_of_what_the_agent_has(tmp_path: Path) -> None:
    with (
        serve_model(conversation(Turn("Hi."))) as model,
        open_egress_proxy(tmp_path, model.address) as way,
    ):
        with way.client() as client:
            own = {"x-api-key": "mine", "Authorization": "Bearer mine"}
            answer = client.post("/model/v1/messages?beta=true", json=ASKED, headers=own)
    assert answer.json()["content"][0]["text"] == "Hi."
    (headers,) = model.headers
    assert headers["x-api-key"] == KEY
    assert "authorization" not in headers
    assert headers["host"] == model.address.removeprefix("http://")
    assert way.log.read_text().split()[2:] == [
        *("passed", "POST", f"{model.address}/v1/messages", "200")
    ]


def test_an_answer_passes_as_it_comes(tmp_path: Path) -> None:
    """Each event is sent only after the one before has arrived."""
    heard = threading.Semaphore(0)

    def talk(line: socket.socket) -> None:
        head_of(line)
        line.sendall(HEAD + CHUNKED)
        for event in (b"data: 1\n\n", b"data: 2\n\n", b"data: 3\n\n"):
            line.sendall(b"9\r\n" + event + b"\r\n")
            assert heard.acquire(timeout=240)
        line.sendall(b"0\r\n\r\n")

    events = list[str]()
    with answering(talk) as address, open_egress_proxy(tmp_path, origin(address)) as way:
        with way.client() as client, client.stream("GET", "/model/events") as answer:
            for line in answer.iter_lines():
                events += [line] if line else []
                if line:
                    heard.release()
    assert events == ["data: 1", "data: 2", "data: 3"]


@pytest.mark.parametrize("chunked", [False, True])
def test_a_large_body_passes_whole(chunked: bool, tmp_path: Path) -> None:  # noqa: FBT001
    size, part = 8 * 1024**2, bytes(64 * 1024)

    def talk(line: socket.socket) -> None:
        head = head_of(line).lower()
        assert (b"transfer-encoding: chunked" in head) is chunked
        got, end = bytearray(), b"0\r\n\r\n" if chunked else b""
        while len(got) < size or not got.endswith(end):
            got += line.recv(1024**2)
        line.sendall(HEAD + b"Content-Length: 2\r\n\r\nok")

    with answering(talk) as address, open_egress_proxy(tmp_path, origin(address)) as way:
        with way.client() as client:
            body = (part for _ in range(size // len(part))) if chunked else bytes(size)
            assert client.post("/model/upload", content=body).text == "ok"


def test_many_at_once_are_served(tmp_path: Path) -> None:
    with (
        serve_model(conversation(Turn("Hi."))) as model,
        open_egress_proxy(tmp_path, model.address) as way,
    ):

        def ask(_: int) -> int:
            with way.client() as client:
                return client.post("/model/v1/messages", json=ASKED).status_code

        with ThreadPoolExecutor(20) as pool:
            assert set(pool.map(ask, range(40))) == {200}
    assert len(model.requests) == 40


def test_what_is_cut_outside_is_cut_inside(tmp_path: Path) -> None:
    def talk(line: socket.socket) -> None:
        head_of(line)
        line.sendall(HEAD + CHUNKED + b"9\r\ndata: 1\n\n\r\n")

    with answering(talk) as address, open_egress_proxy(tmp_path, origin(address)) as way:
        with way.client() as client, pytest.raises(httpx.RemoteProtocolError):
            client.get("/model/events")


def test_a_model_that_is_not_there_is_a_bad_gateway(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = taken.getsockname()
    with open_egress_proxy(tmp_path, origin(address)) as way, way.client() as client:
        answer = client.post("/model/v1/messages", json=ASKED)
    assert answer.status_code == 502
    assert answer.text.startswith(f"Mulligan cannot reach {origin(address)}: ")
    assert "failed   POST" in way.log.read_text()
    assert way.journal.hosts == ()


def test_a_key_is_not_told_inside_where_it_is_wrong(tmp_path: Path) -> None:
    with (
        answering(echo) as there,
        open_egress_proxy(tmp_path, origin(there), key="sk-broken\nx") as way,
    ):
        with way.client() as client:
            answer = client.post("/model/v1/messages", json=ASKED)
    assert answer.status_code == 502
    assert "sk-broken" not in answer.text + way.log.read_text()


def test_the_connection_goes_on_after_a_refusal(tmp_path: Path) -> None:
    with (
        serve_model(conversation(Turn("Hi."))) as model,
        open_egress_proxy(tmp_path, model.address) as way,
    ):
        with way.client() as client:
            assert client.post("/nothing", content=bytes(300_000)).status_code == 403
            elsewhere = {"target": b"http://127.0.0.1:1/x"}
            assert client.post("/", content=b"x", extensions=elsewhere).status_code == 403
            assert client.post("/model/v1/messages", json=ASKED).status_code == 200


@pytest.mark.parametrize(
    "target", ["example.com:443", "169.254.169.254:80", "github.com:22", "10.0.0.1:443"]
)
def test_a_host_that_is_not_listed_is_refused_and_told(target: str, tmp_path: Path) -> None:
    with open_egress_proxy(tmp_path) as way:
        status, line = way.connect(target)
        line.close()
    assert status == 403
    assert way.journal.hosts == (target.removesuffix(":443"),)
    assert "refused" in way.log.read_text()


def test_a_listed_address_is_reached_through_a_tunnel(tmp_path: Path) -> None:
    with answering(echo) as address, open_egress_proxy(tmp_path, hosts=(address,)) as way:
        status, line = way.connect(f"{address[0]}:{address[1]}")
        with line:
            line.sendall(b"hello")
            assert (status, line.recv(10)) == (200, b"hello")
            line.shutdown(socket.SHUT_WR)
            assert line.recv(10) == b""


def test_a_name_that_stands_for_this_machine_is_refused(tmp_path: Path) -> None:
    """Whoever owns a name decides what it stands for."""
    with (
        answering(echo) as (_, port),
        open_egress_proxy(tmp_path, hosts=(("localhost", port),)) as way,
    ):
        status, line = way.connect(f"localhost:{port}")
        line.close()
    assert (status, way.journal.hosts) == (403, ("localhost",))


def test_a_name_is_fine_whose_address_is_listed_too(tmp_path: Path) -> None:
    with answering(echo) as (host, port):
        with open_egress_proxy(tmp_path, hosts=(("localhost", port), (host, port))) as way:
            status, line = way.connect(f"localhost:{port}")
            line.close()
    assert status == 200


def test_a_tunnel_to_nothing_is_a_bad_gateway(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        host, port = taken.getsockname()
    with open_egress_proxy(tmp_path, hosts=((host, port),)) as way:
        status, line = way.connect(f"{host}:{port}")
        line.close()
    assert status == 502


def test_who_asks_for_the_proxy_through_the_proxy_gets_it(tmp_path: Path) -> None:
    with (
        serve_model(conversation(Turn("Hi."))) as model,
        open_egress_proxy(tmp_path, model.address) as way,
    ):
        status, line = way.connect(f"127.0.0.1:{PORT}")
        with line:
            line.sendall(b"GET /model/v1/models HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (status, line.recv(15)) == (200, b"HTTP/1.1 200 OK")


@pytest.mark.parametrize("said", [b"\0\1\2\r\n\r\n", b"GET /" + b"x" * 200_000, b""])
def test_what_is_no_http_ends_the_connection(said: bytes, tmp_path: Path) -> None:
    with open_egress_proxy(tmp_path) as way, way.open() as line:
        line.settimeout(10)
        try:
            line.sendall(said)
            line.shutdown(socket.SHUT_WR)
            assert line.recv(100) == b""
        except TimeoutError:
            raise
        except OSError:  # the other end was faster
            return


def test_who_waits_to_be_told_to_go_on_is(tmp_path: Path) -> None:
    def talk(line: socket.socket) -> None:
        head_of(line)
        assert line.recv(2) == b"hi"
        line.sendall(HEAD + b"Content-Length: 2\r\n\r\nok")

    with answering(talk) as address, open_egress_proxy(tmp_path, origin(address)) as way:
        with way.open() as line:
            head = b"POST /model/x HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n"
            line.sendall(head + b"Expect: 100-continue\r\n\r\n")
            assert head_of(line).startswith(b"HTTP/1.1 100")
            line.sendall(b"hi")
            assert head_of(line).startswith(b"HTTP/1.1 200")


def test_when_the_block_ends_so_does_everything(tmp_path: Path) -> None:
    with answering(echo) as address:
        with open_egress_proxy(tmp_path, hosts=(address,)) as way:
            _, tunnel = way.connect(f"{address[0]}:{address[1]}")
            waiting = way.open()
        with pytest.raises(ConnectionRefusedError):
            way.open()
        for line in (tunnel, waiting):
            with line:
                line.settimeout(5)
                with suppress(ConnectionResetError):
                    assert line.recv(1) == b""
    assert "egress" not in [thread.name for thread in threading.enumerate()]


def test_the_next_sandbox_replaces_the_listener_of_the_one_before(tmp_path: Path) -> None:
    """Setup commands run one after the other, each in a sandbox of its own."""
    with open_egress_proxy(tmp_path) as way:
        way.open().close()
        following = replace(way, address=send_listener(way.channel))
        status, line = following.connect("elsewhere.example:443")
        line.close()
        assert status == 403
        with pytest.raises(ConnectionRefusedError):
            way.open()


def refusing(journal: AccessLog, count: int) -> None:
    for number in range(count):
        journal.refused(refuse(f"host-{number}\n"))


@pytest.mark.parametrize("clean", [str, str.upper])
def test_the_journal_is_bounded_and_clean(clean: Callable[[str], str], tmp_path: Path) -> None:
    with (tmp_path / "log").open("w") as file:
        journal = AccessLog(file, clean)
        refusing(journal, 10_005)
    lines = (tmp_path / "log").read_text().splitlines()
    assert (len(lines), len(journal.hosts)) == (10_000, MAX_REFUSED_HOSTS)
    assert journal.hosts[0] == clean("host-0")
