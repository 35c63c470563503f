"""What an agent can do to the proxy that leads out: take its descriptors, its stack or its key."""

import gzip
import os
import re
import resource
import socket
import subprocess
import sys
import threading
from base64 import b64encode
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from mulligan.sandbox import egress
from mulligan.sandbox.egress import MAX_CONNECTIONS
from world.egress import KEY, PORT, EgressProxy, answering, head_of, open_egress_proxy
from world.model import serve_model
from world.model_script import Turn, conversation
from world.processes import wait_until

ASKED = {"model": "m", "stream": False}
HOLD = """
import socket, sys
held = []
for _ in range(int(sys.argv[2])):
    line = socket.socket()
    line.setblocking(False)
    line.connect_ex(("127.0.0.1", int(sys.argv[1])))
    held.append(line)
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def holding(way: EgressProxy, connections: int) -> Generator[None]:
    """Keep connections open in another process."""
    argv = [sys.executable, "-c", HOLD, str(way.address[1]), str(connections)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as held:
        assert held.stdout
        assert held.stdout.readline() == "held\n"
        yield


def is_refused(way: EgressProxy) -> bool:
    """Tell whether another connection is not served within a second."""
    try:
        with way.client() as waiting:
            waiting.post("/model/v1/messages", json=ASKED, timeout=1)
    except httpx.ReadTimeout:
        return True
    return False


def open_descriptors() -> list[int]:
    return [int(each.name) for each in Path("/proc/self/fd").iterdir()]


def origin(address: tuple[str, int]) -> str:
    return f"http://{address[0]}:{address[1]}"


def test_connections_cost_mulligan_a_fixed_number_of_descriptors(tmp_path: Path) -> None:
    with (
        serve_model(conversation(Turn("Hi."))) as model,
        open_egress_proxy(tmp_path, model.address) as way,
    ):
        before = len(open_descriptors())
        # More than are served, and fewer than the kernel queues (128) though none is accepted yet.
        with holding(way, 110):
            # Its turn does not come, so everything that is accepted has been accepted by then.
            assert is_refused(way)
            taken = len(open_descriptors()) - before
        with way.client() as client:
            assert client.post("/model/v1/messages", json=ASKED).status_code == 200
    assert taken <= MAX_CONNECTIONS + 10


def test_all_proxies_together_leave_mulligan_some_descriptors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        egress, "RESERVED_DESCRIPTORS", resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 2 * 20
    )
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    with (
        serve_model(conversation(Turn("Hi."))) as model,
        open_egress_proxy(one, model.address) as greedy,
        open_egress_proxy(other, model.address) as modest,
    ):
        with holding(greedy, 20):
            wait_until(lambda: is_refused(modest))
        with modest.client() as client:
            assert client.post("/model/v1/messages", json=ASKED).status_code == 200


def test_where_no_descriptor_is_left_the_proxy_waits_and_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with (
        serve_model(conversation(Turn("Hi."))) as model,
        open_egress_proxy(tmp_path, model.address) as way,
        way.client() as first,
        way.client() as second,
    ):
        assert first.post("/model/v1/messages", json=ASKED).status_code == 200
        full = max(open_descriptors())
        fillers = [os.open("/", os.O_RDONLY) for _ in range(full - len(open_descriptors()))]
        line = socket.socket()
        resource.setrlimit(resource.RLIMIT_NOFILE, (line.fileno() + 1, hard))
        try:
            line.settimeout(1)
            line.connect(way.address)
            with pytest.raises(TimeoutError):
                line.recv(1)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            line.close()
            for filler in fillers:
                os.close(filler)
        assert second.post("/model/v1/messages", json=ASKED).status_code == 200
    assert [record.name for record in caplog.records if record.name == "asyncio"] == []


def test_a_tunnel_in_a_tunnel_has_an_end(tmp_path: Path) -> None:
    """As many as Python's stack would not hold."""
    with open_egress_proxy(tmp_path, "http://127.0.0.1:9") as way:
        status, line = way.connect(f"127.0.0.1:{PORT}")
        assert status == 200
        asked = f"CONNECT 127.0.0.1:{PORT} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
        line.sendall(asked)
        assert line.recv(12) == b"HTTP/1.1 403"
        line.close()


def packed(head: bytes) -> tuple[bytes, bytes]:
    body = gzip.compress(head)
    return body, b"Content-Encoding: gzip\r\nContent-Length: %d\r\n" % len(body)


def plain(head: bytes) -> tuple[bytes, bytes]:
    return head, b"Content-Length: %d\r\n" % len(head)


@pytest.mark.parametrize("written", [plain, packed])
def test_an_answer_that_repeats_the_request_does_not_tell_the_key(
    tmp_path: Path, written: Callable[[bytes], tuple[bytes, bytes]]
) -> None:
    def talk(line: socket.socket) -> None:
        head = head_of(line)
        assert KEY.encode() in head
        body, length = written(head)
        line.sendall(b"HTTP/1.1 200 %b\r\nX-Asked: %b\r\n%b: 1\r\n" % ((KEY.encode(),) * 3))
        line.sendall(length + b"\r\n")
        # Its parts end in the middle of the key.
        cut = body.find(KEY.encode()) + 4
        line.sendall(body[:cut])
        line.sendall(body[cut:])

    with (
        answering(talk) as there,
        open_egress_proxy(tmp_path, origin(there)) as way,
        way.client() as client,
    ):
        answer = client.get("/model/echo")
    assert answer.status_code == 200
    assert "GET /echo" in answer.text
    assert KEY not in answer.text + str(answer.headers.raw) + answer.reason_phrase


def coded(key: str) -> str:
    return b64encode(key.encode()).decode()


@pytest.mark.parametrize("write", [str, quote, coded])
def test_an_answer_that_repeats_only_the_key_does_not_tell_it(
    tmp_path: Path, write: Callable[[str], str]
) -> None:
    """The header has a word before it, which an error message about the key leaves away."""
    shown = write(KEY)

    def talk(line: socket.socket) -> None:
        assert f"Bearer {KEY}" in head_of(line).decode()
        body, length = plain(f'{{"error": "{shown} is not valid"}}'.encode())
        line.sendall(b"HTTP/1.1 401 Unauthorized\r\n%b\r\n%b" % (length, body))

    with (
        answering(talk) as there,
        open_egress_proxy(tmp_path, origin(there), header=("Authorization", "Bearer {key}")) as way,
        way.client() as client,
    ):
        answer = client.get("/model/models")
    assert "is not valid" in answer.text
    assert shown.rstrip("=")[:-2] not in answer.text


def undeclared(head: bytes) -> tuple[bytes, bytes]:
    return plain(gzip.compress(head))


def unknown(head: bytes) -> tuple[bytes, bytes]:
    body = gzip.compress(head)
    return body, b"Content-Encoding: x-pack, gzip\r\nContent-Length: %d\r\n" % len(body)


def twice(head: bytes) -> tuple[bytes, bytes]:
    return packed(gzip.compress(head))


@pytest.mark.parametrize("written", [undeclared, unknown, twice])
def test_an_answer_in_which_the_key_cannot_be_found_is_not_forwarded(
    tmp_path: Path, written: Callable[[bytes], tuple[bytes, bytes]]
) -> None:
    def talk(line: socket.socket) -> None:
        body, length = written(head_of(line))
        line.sendall(b"HTTP/1.1 200 OK\r\n%b\r\n" % length)
        for part in (body[:1], body[1:]):
            line.sendall(part)

    with (
        answering(talk) as there,
        open_egress_proxy(tmp_path, origin(there)) as way,
        way.client() as client,
        client.stream("GET", "/model/echo") as answer,
    ):
        received = list[bytes]()
        with suppress(httpx.RemoteProtocolError):
            received.extend(answer.iter_raw())
    forwarded = b"".join(received)
    assert len(forwarded) < 4 or answer.status_code == 502
    assert "compressed its answer" in way.log.read_text() + forwarded.decode(errors="replace")


def test_trace_is_not_sent_on(tmp_path: Path) -> None:
    def talk(line: socket.socket) -> None:
        head = head_of(line)
        line.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(head) + head)

    with (
        answering(talk) as there,
        open_egress_proxy(tmp_path, origin(there)) as way,
        way.client() as client,
    ):
        assert client.request("TRACE", "/model/x").status_code == 403


def test_of_two_lengths_the_service_sees_one(tmp_path: Path) -> None:
    heads = list[bytes]()

    def talk(line: socket.socket) -> None:
        heads.append(head_of(line).lower())
        while not line.recv(1024).endswith(b"0\r\n\r\n"):
            pass
        line.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    with (
        answering(talk) as there,
        open_egress_proxy(tmp_path, origin(there)) as way,
        way.open() as line,
    ):
        line.settimeout(10)
        line.sendall(
            b"POST /model/x HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n"
        )
        # Refused, or sent on with one length.
        assert line.recv(12) in {b"HTTP/1.1 200", b""}
    assert all((b"content-length" in head) + (b"transfer-encoding" in head) == 1 for head in heads)


LONG_KEY = "sk-api03-9XbQz7Lr2TnVw8Yc4KdHm6Pf1GsJ5eRa-3uNq0"
"""A key as services make them: it is no word."""


def parts_of(head: str, target: str) -> tuple[bytes, bytes]:
    """Answer with what was asked for: of the head, as `Range` says or the address does."""
    wanted = re.search(r"\r\nrange: *bytes=(\d+)-(\d+)", head, re.IGNORECASE)
    if wanted is None and (asked := re.search(r"from=(\d+)&to=(\d+)", target)):
        return b"200 OK", head[int(asked[1]) : int(asked[2]) + 1].encode()
    if wanted is None:
        return b"200 OK", head.encode()
    return b"206 Partial Content", head[int(wanted[1]) : int(wanted[2]) + 1].encode()


def repeat(line: socket.socket) -> None:
    """Repeat the request, or the wanted part of it."""
    head = head_of(line).decode()
    status, body = parts_of(head, head.partition("\r\n")[0])
    line.sendall(b"HTTP/1.1 %b\r\nAccept-Ranges: bytes\r\n" % status)
    line.sendall(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))


def gathered(step: int, ask: Callable[[int, int], httpx.Response]) -> str:
    """Ask for an echo a few characters at a time, and put the answers together."""
    found = ""
    for start in range(0, 400, step):
        answer = ask(start, start + step - 1)
        found += answer.text if answer.status_code in {200, 206} else ""
    return found


@pytest.mark.parametrize("name", ["Range", "range", "X-Range", "x-ms-range"])
def test_a_service_is_not_asked_for_the_key_in_pieces(tmp_path: Path, name: str) -> None:
    with (
        answering(repeat) as there,
        open_egress_proxy(tmp_path, origin(there), key=LONG_KEY) as way,
        way.client() as client,
    ):

        def ask(start: int, end: int) -> httpx.Response:
            return client.get(
                "/model/echo", headers={name: f"bytes={start}-{end}", "If-Range": "x"}
            )

        answer = ask(0, 9)
        assert LONG_KEY not in gathered(10, ask)
    # The whole answer came, as if the service knew no ranges.
    assert (answer.status_code, "GET /echo" in answer.text) == (200, True)
    assert "range" not in answer.text.lower() + str(answer.headers).lower()


@pytest.mark.parametrize(
    "head",
    [
        b"206 Partial Content\r\n",
        b"226 IM Used\r\n",
        b"200 OK\r\nContent-Range: bytes 0-9/90\r\n",
        b"200 OK\r\nContent-Type: Multipart/ByteRanges; boundary=x\r\n",
    ],
)
def test_a_part_of_an_answer_is_not_forwarded(tmp_path: Path, head: bytes) -> None:
    def talk(line: socket.socket) -> None:
        head_of(line)
        line.sendall(b"HTTP/1.1 %bContent-Length: 10\r\n\r\n0123456789" % head)

    with (
        answering(talk) as there,
        open_egress_proxy(tmp_path, origin(there)) as way,
        way.client() as client,
    ):
        answer = client.get("/model/echo")
    assert (answer.status_code, "0123456789" in answer.text) == (502, False)
    assert "only a part" in answer.text


@pytest.mark.parametrize("step", [8, 10, 16])
def test_a_service_that_cuts_its_answers_itself_does_not_tell_the_key(
    tmp_path: Path, step: int
) -> None:
    with (
        answering(repeat) as there,
        open_egress_proxy(tmp_path, origin(there), key=LONG_KEY) as way,
        way.client() as client,
    ):

        def ask(start: int, end: int) -> httpx.Response:
            return client.get("/model/echo", params={"from": start, "to": end})

        shown = gathered(step, ask)
    told = LONG_KEY[len("sk-api03-") :]
    # Where a part begins or ends within the key, it has fewer characters than are masked.
    assert all(told[at : at + 8] not in shown for at in range(len(told) - 8))


@pytest.mark.parametrize("spell", [str.lower, str.upper, str])
def test_headers_of_an_answer_tell_no_piece_of_the_key(
    tmp_path: Path, spell: Callable[[str], str]
) -> None:
    def talk(line: socket.socket) -> None:
        head_of(line)
        one, two = spell(LONG_KEY[:24]), spell(LONG_KEY[24:])
        line.sendall(f"HTTP/1.1 302 {one}\r\nX-One: {one}\r\nLocation: /?{two}\r\n".encode())
        line.sendall(f"Content-Length: 24\r\n\r\n{one}".encode())

    with (
        answering(talk) as there,
        open_egress_proxy(tmp_path, origin(there), key=LONG_KEY) as way,
        way.client() as client,
    ):
        answer = client.get("/model/echo")
    told = answer.text + str(answer.headers.raw) + answer.reason_phrase
    assert all(spell(LONG_KEY[at : at + 8]) not in told for at in range(8, len(LONG_KEY) - 8))


def test_an_answer_that_ends_within_the_key_tells_only_its_first_characters(tmp_path: Path) -> None:
    def talk(line: socket.socket) -> None:
        head_of(line)
        line.sendall(b"HTTP/1.0 200 OK\r\n\r\nyour key: %b" % LONG_KEY[:30].encode())

    with (
        answering(talk) as there,
        open_egress_proxy(tmp_path, origin(there), key=LONG_KEY) as way,
        way.client() as client,
    ):
        answer = client.get("/model/echo")
    assert answer.text.startswith("your key: ")
    assert LONG_KEY[:10] not in answer.text


def test_a_stream_of_a_model_stays_live(tmp_path: Path) -> None:
    """Each event arrives before the next one is sent."""
    heard = threading.Event()

    def talk(line: socket.socket) -> None:
        head_of(line)
        line.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        for _ in range(3):
            line.sendall(b'data: {"text": "the key of sk-api03"}\n\n')
            assert heard.wait(20)
            heard.clear()

    with (
        answering(talk) as there,
        open_egress_proxy(tmp_path, origin(there), key=LONG_KEY) as way,
        way.client() as client,
        client.stream("GET", "/model/stream") as answer,
    ):
        events = 0
        for line in answer.iter_lines():
            events += line == 'data: {"text": "the key of sk-api03"}'
            if not line:
                heard.set()
    assert events == 3
