"""The proxy that is an agent's one way out: to its model, or a named host."""

import asyncio
import os
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, assert_never

import h11
import httpx

from mulligan.domain.errors import UnavailableError
from mulligan.sandbox.egress_rules import (
    Allowed,
    Refused,
    ToHost,
    ToItself,
    ToService,
    decide_route,
    is_literal,
    is_public,
    refuse,
    request_headers,
    response_headers,
)
from mulligan.text.escape import one_line

# The log of one proxy.

MAX_LOG_LINES = 10_000

MAX_REFUSED_HOSTS = 20

LINE_CHARS = 300


class AccessLog:
    """Writes a line for each request; `hosts` are those that were refused, in order.

    Every line goes through `clean` first. A full disk ends the journal, and nothing else.
    """

    def __init__(self, file: IO[str], redact: Callable[[str], str] = str) -> None:
        self._file = file
        self._clean = redact
        self._started = time.monotonic()
        self._lines = 0
        self._hosts = dict[str, None]()

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(self._hosts)

    def passed(self, what: str) -> None:
        """Tell of a request that went out."""
        self._write("passed", what)

    def failed(self, what: str) -> None:
        """Tell of one that was allowed and did not succeed."""
        self._write("failed", what)

    def refused(self, refusal: Refused) -> None:
        """Tell of one that was not allowed."""
        if refusal.host and len(self._hosts) < MAX_REFUSED_HOSTS:
            self._hosts[self._clean(refusal.host)] = None
        self._write("refused", refusal.host or refusal.message)

    def _write(self, verb: str, what: str) -> None:
        self._lines += 1
        if self._lines > MAX_LOG_LINES:
            return
        seconds = time.monotonic() - self._started
        with suppress(OSError):
            said = one_line(self._clean(what), LINE_CHARS)
            self._file.write(f"{seconds:9.3f} s  {verb:7}  {said}\n")
            self._file.flush()


# One connection from the sandbox.

CHUNK = 64 * 1024

MAX_HEADER_BYTES = 64 * 1024

SILENCE_SECONDS = 300
"""How long a connection may say nothing while it is its turn."""

REASONS = {400: b"Bad Request", 403: b"Forbidden", 502: b"Bad Gateway"}


class Connection:
    """Reads requests and sends answers; one request at a time, as they come."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, said: bytes = b""
    ) -> None:
        self.reader = reader
        self.writer = writer
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEADER_BYTES)
        if said:
            self._http.receive_data(said)

    async def request(self) -> h11.Request | None:
        """Give the next request; None where no more come."""
        event = await self._next()
        return event if isinstance(event, h11.Request) else None

    async def body(self) -> bytes:
        """Give the next part of the request's body; nothing at its end."""
        event = await self._next()
        return bytes(event.data) if isinstance(event, h11.Data) else b""

    async def _next(self) -> h11.Event | None:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            if self._http.they_are_waiting_for_100_continue:
                await self.send(h11.InformationalResponse(status_code=100, headers=[]))
            async with asyncio.timeout(SILENCE_SECONDS):
                self._http.receive_data(await self.reader.read(CHUNK))
        return event if isinstance(event, h11.Event) else None

    async def send(self, event: h11.Event) -> None:
        """Send a part of an answer, as fast as it is read."""
        if written := self._http.send(event):
            self.writer.write(written)
            await self.writer.drain()

    async def answer(self, status: int, said: str) -> None:
        """Answer in a sentence."""
        text = f"{said}\n".encode()
        headers = [(b"content-type", b"text/plain; charset=utf-8")]
        length = [(b"content-length", str(len(text)).encode())]
        reason = REASONS[status]
        await self.send(
            h11.Response(status_code=status, headers=[*headers, *length], reason=reason)
        )
        await self.send(h11.Data(data=text))
        await self.send(h11.EndOfMessage())

    async def open_tunnel(self) -> bytes:
        """Agree to a CONNECT; give what was said already."""
        await self.body()
        await self.send(h11.Response(status_code=200, headers=[], reason=b"Connected"))
        return self._http.trailing_data[0]

    async def reset(self) -> bool:
        """Make ready for another request; False where the connection is to end."""
        while await self.body():
            pass
        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            self._http.start_next_cycle()
            return True
        return False


# The proxy.

MAX_CONNECTIONS = 64

CONNECT_SECONDS = 30.0

ANSWER_SECONDS = 900.0
"""How long a model may think without a word; an agent's own stall limit is as long by default."""

CONNECTION_ERRORS = (OSError, TimeoutError, httpx.HTTPError, httpx.InvalidURL, h11.ProtocolError)

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Proxy:
    """Serves the connections of one sandbox; none of them can tell it what is allowed."""

    def __init__(self, allowed: Allowed, journal: AccessLog) -> None:
        self._allowed = allowed
        self._journal = journal
        self._room = asyncio.Semaphore(MAX_CONNECTIONS)
        self._client: httpx.AsyncClient | None = None
        self._serving = dict[asyncio.Task[None], socket.socket]()

    def accept(self, line: socket.socket) -> None:
        """Answer one connection from its start to its end, beside all others."""
        serving = asyncio.create_task(self._serve(line))
        self._serving[serving] = line
        serving.add_done_callback(self._serving.pop)

    async def close(self) -> None:
        """Break off whatever is still under way."""
        under_way = dict(self._serving)
        for serving in under_way:
            serving.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
        for line in under_way.values():
            line.close()
        if self._client:
            await self._client.aclose()

    async def _serve(self, line: socket.socket) -> None:
        async with self._room:
            reader, writer = await asyncio.open_unix_connection(sock=line, limit=CHUNK)
            try:
                await self._serve_requests(Connection(reader, writer))
            except (*CONNECTION_ERRORS, asyncio.CancelledError):
                writer.transport.abort()
            finally:
                writer.close()

    async def _serve_requests(self, line: Connection) -> None:
        while request := await line.request():
            way = decide_route(request.method, request.target, self._allowed)
            match way:
                case ToService():
                    await self._forward(line, request, way)
                case ToHost():
                    await self._tunnel(line, way)
                    return
                case ToItself():
                    said = await line.open_tunnel()
                    await self._serve_requests(Connection(line.reader, line.writer, said))
                    return
                case Refused():
                    self._journal.refused(way)
                    await line.answer(403, way.message)
                case _:
                    assert_never(way)
            if not await line.reset():
                return

    async def _forward(self, line: Connection, request: h11.Request, way: ToService) -> None:
        """Send a request on with the key, and its answer back as it comes."""
        path = way.target.partition(b"?")[0].decode()
        what = f"{request.method.decode()} {way.route.origin}{path}"
        try:
            answer = await self._outside().send(_outgoing(line, request, way), stream=True)
        except (OSError, httpx.HTTPError, httpx.InvalidURL) as error:
            why = _reason(error)
            self._journal.failed(f"{what}: {why}")
            await line.answer(502, f"Mulligan cannot reach {way.route.origin}: {why}.")
            return
        self._journal.passed(f"{what} {answer.status_code}")
        try:
            await _answer(line, answer)
        finally:
            await answer.aclose()

    async def _tunnel(self, line: Connection, way: ToHost) -> None:
        """Join a connection to a host, and look at nothing that passes."""
        what = f"CONNECT {way.host}:{way.port}"
        try:
            there = await self._connect(way)
        except OSError as error:
            self._journal.failed(f"{what}: {error}")
            await line.answer(502, f"Mulligan cannot reach {way.host}: {error}.")
            return
        if isinstance(there, Refused):
            self._journal.refused(there)
            await line.answer(403, there.message)
            return
        self._journal.passed(what)
        try:
            there[1].write(await line.open_tunnel())
            await _join((line.reader, line.writer), there)
        finally:
            there[1].close()

    async def _connect(self, way: ToHost) -> Streams | Refused:
        """Connect to an address of a host; a name that stands for one of ours is refused."""
        found = await asyncio.get_running_loop().getaddrinfo(
            way.host, way.port, type=socket.SOCK_STREAM
        )
        addresses = list(dict.fromkeys(str(each[4][0]) for each in found))
        fine = [each for each in addresses if self._is_fine(each, way)]
        if not fine:
            return refuse(way.host, f"stands for {addresses[0]}, which is not on the internet")
        async with asyncio.timeout(CONNECT_SECONDS):
            return await asyncio.open_connection(fine[0], way.port, limit=CHUNK)

    def _is_fine(self, address: str, way: ToHost) -> bool:
        listed = (address, way.port) in self._allowed.hosts
        return listed or is_literal(way.host) or is_public(address)

    def _outside(self) -> httpx.AsyncClient:
        """Make the client at the first need: its certificates take a moment to read."""
        if self._client is None:
            self._client = httpx.AsyncClient(
                timeout=httpx.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS),
                limits=httpx.Limits(max_connections=MAX_CONNECTIONS),
            )
        return self._client


def _reason(error: Exception) -> str:
    """Say why a model was not reached; what is wrong with a header would quote the key in it."""
    quotes = isinstance(error, httpx.LocalProtocolError)
    return type(error).__name__ if quotes else str(error) or type(error).__name__


def _outgoing(line: Connection, request: h11.Request, way: ToService) -> httpx.Request:
    given = list(request.headers.raw_items())
    names = {name.lower() for name, _ in given}
    has_body = bool(names & {b"content-length", b"transfer-encoding"})
    return httpx.Request(
        request.method.decode(),
        httpx.URL(way.route.origin).copy_with(raw_path=way.target),
        headers=request_headers(way.route, given),
        content=_body(line) if has_body else None,
    )


async def _body(line: Connection) -> AsyncIterator[bytes]:
    while part := await line.body():
        yield part


async def _answer(line: Connection, answer: httpx.Response) -> None:
    headers = response_headers(answer.headers.raw)
    await line.send(
        h11.Response(
            status_code=answer.status_code,
            headers=headers,
            reason=answer.reason_phrase.encode("ascii", errors="replace"),
        )
    )
    async for part in answer.aiter_raw():
        await line.send(h11.Data(data=part))
    await line.send(h11.EndOfMessage())


async def _join(one: Streams, other: Streams) -> None:
    """Copy both ways until both have ended; where one breaks off, so does the other."""
    ways = [
        asyncio.create_task(_pour(one[0], other[1])),
        asyncio.create_task(_pour(other[0], one[1])),
    ]
    try:
        await asyncio.gather(*ways)
    finally:
        for each in ways:
            each.cancel()


async def _pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while part := await reader.read(CHUNK):
        writer.write(part)
        await writer.drain()
    writer.write_eof()


# Starting and stopping it, in a thread of its own.

SOCKET_NAME = "door"


@contextmanager
def open_proxy(allowed: Allowed, journal: AccessLog) -> Generator[Path]:
    """Give the socket; when the block ends, so does every connection through it.

    Raises UnavailableError where there is no room for it.
    """
    with TemporaryDirectory(prefix="mulligan-door-", ignore_cleanup_errors=True) as directory:
        runner, ended = asyncio.Runner(), asyncio.Event()
        loop = runner.get_loop()
        serving = _serve(_listener(Path(directory)), Proxy(allowed, journal), ended)
        thread = threading.Thread(target=_run, args=(runner, serving), name="egress")
        thread.start()
        try:
            yield Path(directory, SOCKET_NAME)
        finally:
            loop.call_soon_threadsafe(ended.set)
            thread.join()


def _run(runner: asyncio.Runner, serving: Coroutine[None, None, None]) -> None:
    with runner:
        runner.run(serving)


async def _serve(listener: socket.socket, proxy: Proxy, ended: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()

    def accept() -> None:
        with suppress(BlockingIOError, ConnectionError):
            proxy.accept(listener.accept()[0])

    with listener:
        loop.add_reader(listener, accept)
        await ended.wait()
        loop.remove_reader(listener)
        await proxy.close()


def _listener(directory: Path) -> socket.socket:
    """Make the socket; its whole path may be longer than an address can be (unix(7): 107)."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    place = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        listener.bind(f"/proc/self/fd/{place}/{SOCKET_NAME}")
        listener.listen()
        listener.settimeout(0)
    except OSError as error:
        listener.close()
        raise _no_room(error) from error
    finally:
        os.close(place)
    return listener


def _no_room(error: OSError) -> UnavailableError:
    why = error.strerror
    return UnavailableError(f"The agent's way out cannot be opened in /tmp: {why}; make room.")
