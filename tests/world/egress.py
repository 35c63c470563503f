"""A way out as an agent has it, and services on loopback that it may lead to."""

import os
import socket
import ssl
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx

from mulligan.agents.model_traffic import ModelTraffic
from mulligan.sandbox.egress import AccessLog, open_proxy
from mulligan.sandbox.egress_rules import Address, Allowed, Route

PORT = 3128
KEY = "sk-the-real-one"


@dataclass(frozen=True)
class EgressProxy:
    """An address that leads out, and what is kept of what went through."""

    address: Address
    channel: int
    journal: AccessLog
    log: Path
    traffic: ModelTraffic

    @contextmanager
    def client(self) -> Generator[httpx.Client]:
        address = f"http://{self.address[0]}:{self.address[1]}"
        # No certificates: reading them takes longer than a request.
        plain = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        with httpx.Client(base_url=address, timeout=120, trust_env=False, verify=plain) as made:
            yield made

    def open(self) -> socket.socket:
        """Connect to it."""
        return socket.create_connection(self.address, timeout=120)

    def connect(self, target: str) -> tuple[int, socket.socket]:
        """Ask for a tunnel; give the status of the answer, and the connection."""
        line = self.open()
        line.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += line.recv(1)
        return int(answer.split()[1]), line


@contextmanager
def open_egress_proxy(
    place: Path,
    origin: str = "",
    hosts: tuple[Address, ...] = (),
    key: str = KEY,
    header: tuple[str, str] = ("x-api-key", "{key}"),
    bundle: Path | None = None,
) -> Generator[EgressProxy]:
    """Open a way out to one service, and to hosts."""
    routes = (Route("model", origin, header[0], key, header[1]),) if origin else ()
    log = place / "egress.log"
    with log.open("w") as file:
        journal, traffic = AccessLog(file), ModelTraffic()
        with open_proxy(Allowed(PORT, routes, hosts), journal, traffic, bundle) as channel:
            address = send_listener(channel)
            yield EgressProxy(address, channel, journal, log, traffic)


def send_listener(channel: int) -> Address:
    """Do as entry_point.py does in a sandbox; give the address of what was sent."""
    with (
        socket.create_server(("127.0.0.1", 0), backlog=128) as listener,
        socket.socket(fileno=os.dup(channel)) as line,
    ):
        socket.send_fds(line, [b"."], [listener.fileno()])
        return "127.0.0.1", listener.getsockname()[1]


@contextmanager
def answering(talk: Callable[[socket.socket], None]) -> Generator[Address]:
    """Listen on loopback, and let `talk` have every connection, each in a thread."""
    listener = socket.create_server(("127.0.0.1", 0))

    def lines() -> Iterator[socket.socket]:
        while True:
            try:
                yield listener.accept()[0]
            except OSError:
                return

    def serve() -> None:
        for line in lines():
            threading.Thread(target=_talk, args=(talk, line), daemon=True).start()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield "127.0.0.1", listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def _talk(talk: Callable[[socket.socket], None], line: socket.socket) -> None:
    # The proxy may end the connection first.
    with line, suppress(ConnectionError):
        talk(line)


def head_of(line: socket.socket) -> bytes:
    """Read the head of a request, and not a byte more."""
    head = b""
    while not head.endswith(b"\r\n\r\n") and (more := line.recv(1)):
        head += more
    return head


def echo(line: socket.socket) -> None:
    while said := line.recv(65536):
        line.sendall(said)
