"""Take what an agent asks for: to its model, through a tunnel to a named host, or nowhere."""

import asyncio
import socket
from collections.abc import AsyncIterator
from typing import assert_never

import h11
import httpx

from mulligan.egress.journal import Journal
from mulligan.egress.line import CHUNK, Line
from mulligan.egress.rules import (
    Allowed,
    Refused,
    ToHost,
    ToItself,
    ToService,
    headers_back,
    headers_for,
    is_literal,
    is_public,
    refuse,
    way_of,
)

MOST_CONNECTIONS = 64
CONNECT_SECONDS = 30.0
ANSWER_SECONDS = 900.0
"""How long a model may think without a word; an agent's own stall limit is as long by default."""
BROKEN = (OSError, TimeoutError, httpx.HTTPError, httpx.InvalidURL, h11.ProtocolError)

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Proxy:
    """Serves the connections of one sandbox; none of them can tell it what is allowed."""

    def __init__(self, allowed: Allowed, journal: Journal) -> None:
        self._allowed = allowed
        self._journal = journal
        self._room = asyncio.Semaphore(MOST_CONNECTIONS)
        self._client: httpx.AsyncClient | None = None
        self._serving = dict[asyncio.Task[None], socket.socket]()

    def take(self, line: socket.socket) -> None:
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
                await self._converse(Line(reader, writer))
            except (*BROKEN, asyncio.CancelledError):
                writer.transport.abort()
            finally:
                writer.close()

    async def _converse(self, line: Line) -> None:
        while request := await line.request():
            way = way_of(request.method, request.target, self._allowed)
            match way:
                case ToService():
                    await self._forward(line, request, way)
                case ToHost():
                    await self._tunnel(line, way)
                    return
                case ToItself():
                    said = await line.open_tunnel()
                    await self._converse(Line(line.reader, line.writer, said))
                    return
                case Refused():
                    self._journal.refused(way)
                    await line.answer(403, way.said)
                case _:
                    assert_never(way)
            if not await line.again():
                return

    async def _forward(self, line: Line, request: h11.Request, way: ToService) -> None:
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

    async def _tunnel(self, line: Line, way: ToHost) -> None:
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
            await line.answer(403, there.said)
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
                limits=httpx.Limits(max_connections=MOST_CONNECTIONS),
            )
        return self._client


def _reason(error: Exception) -> str:
    """Say why a model was not reached; what is wrong with a header would quote the key in it."""
    quotes = isinstance(error, httpx.LocalProtocolError)
    return type(error).__name__ if quotes else str(error) or type(error).__name__


def _outgoing(line: Line, request: h11.Request, way: ToService) -> httpx.Request:
    given = list(request.headers.raw_items())
    names = {name.lower() for name, _ in given}
    has_body = bool(names & {b"content-length", b"transfer-encoding"})
    return httpx.Request(
        request.method.decode(),
        httpx.URL(way.route.origin).copy_with(raw_path=way.target),
        headers=headers_for(way.route, given),
        content=_body(line) if has_body else None,
    )


async def _body(line: Line) -> AsyncIterator[bytes]:
    while part := await line.body():
        yield part


async def _answer(line: Line, answer: httpx.Response) -> None:
    headers = headers_back(answer.headers.raw)
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
