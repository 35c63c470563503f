"""The proxy through which commands reach a model, package indexes and the allowed hosts."""

import asyncio
import errno
import os
import resource
import socket
import ssl
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, Protocol, assert_never

import h11
import httpx

from mulligan.config.certificates import context_of
from mulligan.domain.errors import UnavailableError
from mulligan.sandbox.authority import Authority
from mulligan.sandbox.egress_rules import (
    COMPRESSED,
    Allowed,
    KeyFilter,
    Refused,
    Registry,
    Route,
    ToHost,
    ToItself,
    ToRegistry,
    ToService,
    decide_route,
    is_authorized,
    is_literal,
    is_partial,
    is_public,
    is_readable,
    refuse,
    request_headers,
    response_headers,
    to_registry,
)
from mulligan.sandbox.upstream_proxy import open_upstream_tunnel, proxy_hint, upstream_proxy_for
from mulligan.text.certificates import REGISTRY_TRUST, TRUST, certificate_fault
from mulligan.text.escape import one_line

# The log of one proxy.

MAX_LOG_LINES = 10_000

MAX_REFUSED_HOSTS = 20

LINE_CHARS = 300

UNAUTHORIZED = 401

DENIED = frozenset({UNAUTHORIZED, 403})


class AccessLog:
    """Writes one line per request.

    `hosts` are the refused ones, and `problems` says which servers failed or refused Mulligan's
    credentials; both in order. Every line goes through `redact` first. A full disk loses lines,
    but stops no work.
    """

    def __init__(self, file: IO[str], redact: Callable[[str], str] = str) -> None:
        self._file = file
        self._redact = redact
        self._started = time.monotonic()
        self._lines = 0
        self._hosts = dict[str, None]()
        self._problems = dict[str, None]()

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(self._hosts)

    @property
    def problems(self) -> tuple[str, ...]:
        return tuple(self._problems)

    def passed(self, what: str) -> None:
        """Log a request that was forwarded."""
        self._write("passed", what)

    def answered(self, route: Route, what: str, status: int) -> None:
        """Log a request with its answer's status."""
        self._write("passed", f"{what} {status}")
        if route.header and status in DENIED:
            self._note(f"{route.origin} refused Mulligan's credentials with {status}")

    def failed(self, what: str, origin: str = "", why: str = "") -> None:
        """Log a request that was allowed but failed, with the server and the reason if known."""
        self._write("failed", f"{what}: {why}" if why else what)
        if origin:
            self._note(f"{origin} could not be reached: {why}")

    def interrupted(self, what: str, origin: str) -> None:
        """Log a request whose answer the server did not complete."""
        self._write("failed", f"{what}: the answer ended too early")
        self._note(f"{origin} ended an answer too early")

    def masked(self, what: str, origin: str) -> None:
        """Log an answer that contained the password, which may also be a word of a package."""
        self._write("masked", f"{what}: the answer contains the password or token")
        self._note(f"{origin} sent an answer that contains its password; Mulligan masked it there")

    def _note(self, problem: str) -> None:
        if len(self._problems) < MAX_REFUSED_HOSTS:
            self._problems[one_line(self._redact(problem), LINE_CHARS)] = None

    def refused(self, refusal: Refused) -> None:
        """Log a request that was refused."""
        if refusal.host and len(self._hosts) < MAX_REFUSED_HOSTS:
            self._hosts[self._redact(refusal.host)] = None
        self._write("refused", refusal.host or refusal.message)

    def _write(self, verb: str, what: str) -> None:
        self._lines += 1
        if self._lines > MAX_LOG_LINES:
            return
        seconds = time.monotonic() - self._started
        with suppress(OSError):
            message = one_line(self._redact(what), LINE_CHARS)
            self._file.write(f"{seconds:9.3f} s  {verb:7}  {message}\n")
            self._file.flush()


@contextmanager
def open_access_log(log: Path, clean: Callable[[str], str]) -> Generator[AccessLog]:
    """Open the log of one proxy; UnavailableError if it cannot be written."""
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        file = log.open("w", encoding="utf-8")
    except OSError as error:
        raise UnavailableError(
            f"The log {log} could not be written: {error.strerror}; free some disk space."
        ) from error
    with file:
        yield AccessLog(file, clean)


# Observation of the requests to services.


class ServiceExchange(Protocol):
    """Observes one request to a service, in the proxy's thread. See agents/model_traffic.py."""

    def waits(self) -> None:
        """The request is sent, and the next bytes are the service's."""
        ...

    def answered(self, status: int, headers: Sequence[tuple[bytes, bytes]]) -> None:
        """The service sent the status and headers of its answer."""
        ...

    def received(self, part: bytes) -> None:
        """The service sent a part of the body."""
        ...

    def failed(self, reason: str = "") -> None:
        """The service could not be reached; `reason` says why if a person must fix it."""
        ...

    def ended(self) -> None:
        """The answer is complete, or the agent closed the connection."""
        ...


class ServiceObserver(Protocol):
    """Observes all requests of one proxy to services."""

    def begin(self) -> ServiceExchange:
        """Observe another request."""
        ...


class Unobserved:
    """Observes nothing: for package indexes, whose answers mean nothing to Mulligan."""

    def begin(self) -> "Unobserved":
        """Return this object, which ignores every request."""
        return self

    def waits(self) -> None:
        """Ignore the request."""

    def answered(self, status: int, headers: Sequence[tuple[bytes, bytes]]) -> None:
        """Ignore the answer."""

    def received(self, part: bytes) -> None:
        """Ignore the body."""

    def failed(self, reason: str = "") -> None:
        """Ignore the failure."""

    def ended(self) -> None:
        """Ignore the end."""


# One connection from the sandbox.

CHUNK = 64 * 1024

MAX_HEADER_BYTES = 64 * 1024

SILENCE_SECONDS = 300
"""How long the proxy waits for the next bytes of a request."""

REASONS = {
    400: b"Bad Request",
    403: b"Forbidden",
    407: b"Proxy Authentication Required",
    502: b"Bad Gateway",
}


class Connection:
    """Reads requests and sends responses on one socket, one request at a time."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, buffered: bytes = b""
    ) -> None:
        self.reader = reader
        self.writer = writer
        self.has_answered = False
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEADER_BYTES)
        if buffered:
            self._http.receive_data(buffered)

    async def request(self) -> h11.Request | None:
        """Return the next request; None if no more come."""
        event = await self._next()
        return event if isinstance(event, h11.Request) else None

    async def body(self) -> bytes:
        """Return the next part of the request's body; empty at its end."""
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
        """Send a part of a response; wait while the reader is slow."""
        if written := self._http.send(event):
            self.writer.write(written)
            await self.writer.drain()

    async def answer(self, status: int, message: str) -> None:
        """Send a response with one sentence of text."""
        text = f"{message}\n".encode()
        headers = [(b"content-type", b"text/plain; charset=utf-8")]
        if status == PASSWORD_WANTED:
            headers.append((b"proxy-authenticate", b"Basic realm=Mulligan"))
        length = [(b"content-length", str(len(text)).encode())]
        reason = REASONS[status]
        await self.send(
            h11.Response(status_code=status, headers=[*headers, *length], reason=reason)
        )
        await self.send(h11.Data(data=text))
        await self.send(h11.EndOfMessage())

    async def open_tunnel(self) -> bytes:
        """Accept a CONNECT; return the bytes that were received after it."""
        await self.body()
        await self.send(h11.Response(status_code=200, headers=[], reason=b"Connected"))
        return self._http.trailing_data[0]

    async def reset(self) -> bool:
        """Prepare for the next request; False if the connection must end."""
        while await self.body():
            pass
        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            self._http.start_next_cycle()
            self.has_answered = True
            return True
        return False


# The proxy.

PASSWORD_WANTED = 407
"""Proxy Authentication Required (RFC 9110, 15.5.8)."""

MAX_CONNECTIONS = 64
"""Limit of connections per sandbox; each takes at most two descriptors of Mulligan's."""

IDLE_SECONDS = 1.0
"""How long a connection waits for its client before another one may take its place."""

CONNECT_SECONDS = 30.0

PROBE_SECONDS = 10.0

ANSWER_SECONDS = 900.0
"""Limit of a model's silence, equal to the default stall limit of an agent."""

CONNECTION_ERRORS = (OSError, TimeoutError, httpx.HTTPError, httpx.InvalidURL, h11.ProtocolError)

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Proxy:
    """Serves the connections of one sandbox; `allowed` is fixed by the caller.

    `bundle` holds the certificates that it trusts, see config/certificates.py. Tunnels to package
    indexes need an `authority`, which the commands trust.
    """

    def __init__(
        self,
        allowed: Allowed,
        access_log: AccessLog,
        observer: ServiceObserver,
        bundle: Path | None = None,
        authority: Authority | None = None,
    ) -> None:
        self._allowed = allowed
        self._bundle = bundle
        self._log = access_log
        self._observer = observer
        self._authority = authority
        self._client: httpx.AsyncClient | None = None
        self._serving = dict[asyncio.Task[None], socket.socket]()
        self._idle = dict[asyncio.Task[None] | None, float]()
        self.when_idle: Callable[[], None] = lambda: None

    @property
    def is_full(self) -> bool:
        """Return whether no connection can be accepted now."""
        return len(self._serving) >= MAX_CONNECTIONS

    @property
    def can_make_room(self) -> bool:
        """Return whether a connection waits for its client's next request."""
        return bool(self._idle)

    def make_room(self) -> None:
        """End the connection that waits longest, as a server may (RFC 9112, 9.3).

        Programs keep connections for later, and would wait for a further one forever. The next
        request of one that waits for a moment only may be under way.
        """
        oldest, since = next(iter(self._idle.items()), (None, 0.0))
        loop = asyncio.get_running_loop()
        left = since + IDLE_SECONDS - loop.time()
        if left > 0:
            loop.call_later(left, self.when_idle)
        elif oldest:
            del self._idle[oldest]
            oldest.cancel()

    def accept(self, connection: socket.socket, when_done: Callable[[], None]) -> None:
        """Serve one connection until it ends, concurrently with the others."""
        serving = asyncio.create_task(self._serve(connection))
        self._serving[serving] = connection

        def forget(task: asyncio.Task[None]) -> None:
            del self._serving[task]
            when_done()

        serving.add_done_callback(forget)

    async def close(self) -> None:
        """Abort all connections."""
        under_way = dict(self._serving)
        for serving in under_way:
            serving.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
        for connection in under_way.values():
            connection.close()
        if self._client:
            await self._client.aclose()

    async def _serve(self, connection: socket.socket) -> None:
        reader, writer = await asyncio.open_connection(sock=connection, limit=CHUNK)
        try:
            await self._serve_requests(Connection(reader, writer), self._allowed)
        except (*CONNECTION_ERRORS, asyncio.CancelledError):
            writer.transport.abort()
        finally:
            # It counts as long as it has a descriptor.
            with suppress(*CONNECTION_ERRORS):
                writer.close()
                async with asyncio.timeout(SILENCE_SECONDS):
                    await writer.wait_closed()

    async def _request(self, connection: Connection) -> h11.Request | None:
        """Return the next request; None if no more come."""
        if not connection.has_answered:
            return await connection.request()
        serving = asyncio.current_task()
        self._idle[serving] = asyncio.get_running_loop().time()
        if self.is_full:
            self.when_idle()
        try:
            return await connection.request()
        finally:
            self._idle.pop(serving, None)

    async def _serve_requests(self, connection: Connection, allowed: Allowed) -> None:
        while request := await self._request(connection):
            if not is_authorized(request.headers, allowed.password):
                await connection.answer(PASSWORD_WANTED, "This proxy needs its password.")
                if await connection.reset():
                    continue
                return
            decision = decide_route(request.method, request.target, allowed)
            match decision:
                case ToService():
                    await self._forward(connection, request, decision)
                case ToHost():
                    await self._tunnel(connection, decision)
                    return
                case ToRegistry(registry):
                    await self._serve_registry(connection, registry)
                    return
                case ToItself():
                    tunnel = await connection.open_tunnel()
                    # Nested tunnels would have no end.
                    await self._serve_requests(
                        Connection(connection.reader, connection.writer, tunnel),
                        replace(allowed, tunnels_to_itself=False, password=""),
                    )
                    return
                case Refused():
                    self._log.refused(decision)
                    await connection.answer(403, decision.message)
                case _:
                    assert_never(decision)
            if not await connection.reset():
                return

    async def _serve_registry(self, connection: Connection, registry: Registry) -> None:
        """Open a tunnel to a package index, and forward its requests with the credentials."""
        if self._authority is None:
            message = "the proxy has package indexes, but no authority for them"
            raise AssertionError(message)
        context = self._authority.serve(registry.address[0])
        if await connection.open_tunnel():
            raise h11.RemoteProtocolError(SPOKE_FIRST)
        reader, writer = await _start_tls(connection.writer.transport, context)
        try:
            inside = Connection(reader, writer)
            while request := await self._request(inside):
                decision = to_registry(
                    registry, request.method, request.target, list(request.headers)
                )
                if isinstance(decision, Refused):
                    self._log.refused(decision)
                    await inside.answer(403, decision.message)
                else:
                    await self._forward(inside, request, decision)
                if not await inside.reset():
                    return
        finally:
            writer.close()

    async def _forward(
        self, connection: Connection, request: h11.Request, decision: ToService
    ) -> None:
        """Forward a request with the key, and stream the response back."""
        exchange = self._observer.begin()
        try:
            await self._exchange(connection, request, decision, exchange)
        finally:
            exchange.ended()

    async def _exchange(
        self,
        connection: Connection,
        request: h11.Request,
        decision: ToService,
        exchange: ServiceExchange,
    ) -> None:
        path = decision.target.partition(b"?")[0].decode()
        what = f"{request.method.decode()} {decision.route.origin}{path}"
        try:
            answer = await self._outside().send(
                _outgoing(connection, request, decision, exchange), stream=True
            )
        except REQUEST_ERRORS as error:
            refused = certificate_fault(error)
            trust = REGISTRY_TRUST if self._authority else TRUST
            why = (
                f"its certificate {refused.explain(trust)}"
                if refused
                else _reason(error, decision.route)
            )
            exchange.failed(why if refused else "")
            self._log.failed(what, decision.route.origin, why)
            await connection.answer(502, f"Mulligan cannot reach {decision.route.origin}: {why}.")
            return
        exchange.answered(answer.status_code, answer.headers.raw)
        self._log.answered(decision.route, what, answer.status_code)
        try:
            await self._pass_on(connection, answer, decision.route, what, exchange)
        except _CompressedError:
            self._log.failed(f"{what}: the service {COMPRESSES}")
            raise
        except httpx.HTTPError:
            self._log.interrupted(what, decision.route.origin)
            raise
        finally:
            await answer.aclose()

    async def _pass_on(
        self,
        connection: Connection,
        answer: httpx.Response,
        route: Route,
        what: str,
        exchange: ServiceExchange,
    ) -> None:
        """Forward an answer in which a key can be found, without the key."""
        encoding = answer.headers.get("content-encoding", "")
        if not (route.is_index or is_readable(encoding)):
            await connection.answer(502, f"{route.origin} {COMPRESSES}")
            return
        if route.header and is_partial(answer.status_code, answer.headers.raw):
            self._log.failed(f"{what}: the service {CUTS}")
            await connection.answer(502, f"{route.origin} {CUTS}")
            return
        # A piece of a password may be part of a package, which must arrive as it is.
        keys = KeyFilter(route.key, *route.masked, pieces=not route.is_index)
        await _answer(connection, answer, route, keys, exchange)
        if route.is_index and keys.has_masked:
            self._log.masked(what, route.origin)

    async def _tunnel(self, connection: Connection, decision: ToHost) -> None:
        """Connect to a host and copy bytes both ways, unread."""
        what = f"CONNECT {decision.host}:{decision.port}"
        try:
            upstream = await self._connect(decision)
        except OSError as error:
            why = f"{error}{proxy_hint(decision.host)}"
            self._log.failed(what, decision.host, why)
            await connection.answer(502, f"Mulligan cannot reach {decision.host}: {why}.")
            return
        if isinstance(upstream, Refused):
            self._log.refused(upstream)
            await connection.answer(403, upstream.message)
            return
        self._log.passed(what)
        try:
            upstream[1].write(await connection.open_tunnel())
            await _copy_both_ways((connection.reader, connection.writer), upstream)
        finally:
            upstream[1].close()

    async def _connect(self, decision: ToHost) -> Streams | Refused:
        """Connect to a host; refuse a name that resolves to an address that is not public.

        A proxy of the operator's network (HTTPS_PROXY of Mulligan) resolves names itself.
        """
        if upstream := upstream_proxy_for(decision.host):
            async with asyncio.timeout(CONNECT_SECONDS):
                return await open_upstream_tunnel(upstream, decision.host, decision.port)
        found = await asyncio.get_running_loop().getaddrinfo(
            decision.host, decision.port, type=socket.SOCK_STREAM
        )
        addresses = list(dict.fromkeys(str(each[4][0]) for each in found))
        fine = [each for each in addresses if self._is_fine(each, decision)]
        if not fine:
            return refuse(decision.host, f"stands for {addresses[0]}, which is not on the internet")
        async with asyncio.timeout(CONNECT_SECONDS):
            return await asyncio.open_connection(fine[0], decision.port, limit=CHUNK)

    def _is_fine(self, address: str, decision: ToHost) -> bool:
        listed = (address, decision.port) in self._allowed.hosts
        is_allowed = listed or self._allowed.any_host
        return is_allowed or is_literal(decision.host) or is_public(address)

    def _outside(self) -> httpx.AsyncClient:
        """Return the HTTP client; made on first use, since loading certificates takes time."""
        if self._client is None:
            self._client = httpx.AsyncClient(
                verify=context_of(self._bundle) if self._bundle else True,
                timeout=httpx.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS),
                limits=httpx.Limits(max_connections=MAX_CONNECTIONS),
            )
        return self._client


SPOKE_FIRST = "the command began TLS before the tunnel was open"


class _TlsProtocol(asyncio.StreamReaderProtocol):
    """Ends the connection when the client ends it: TLS cannot stay half open.

    It reports the end to the protocol that the connection had `before`, for which `_serve` waits.
    """

    def __init__(self, reader: asyncio.StreamReader, before: asyncio.BaseProtocol) -> None:
        super().__init__(reader)
        self._before = before

    def connection_lost(self, exc: Exception | None) -> None:
        """Report the end to both."""
        super().connection_lost(exc)
        self._before.connection_lost(exc)

    def eof_received(self) -> bool:
        """Note the end; the base class does not know yet that this is TLS."""
        super().eof_received()
        return False


async def _start_tls(transport: asyncio.WriteTransport, context: ssl.SSLContext) -> Streams:
    """Become the server of TLS on a connection, before any of its bytes has been read."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=CHUNK)
    protocol = _TlsProtocol(reader, transport.get_protocol())
    try:
        inner = await loop.start_tls(transport, protocol, context, server_side=True)
    except BaseException:
        # A client that does not trust the proxy's authority ends here.
        transport.abort()
        protocol.connection_lost(None)
        raise
    if inner is None:
        raise ConnectionError
    # For an upgraded connection, asyncio leaves this call to the caller.
    protocol.connection_made(inner)
    return reader, asyncio.StreamWriter(inner, protocol, reader, loop)


COMPRESSES = "compressed its answer in a way in which Mulligan cannot look for the key."

CUTS = "sent only a part of its answer, in which Mulligan cannot look for the key."


class _CompressedError(h11.RemoteProtocolError):
    """The service compressed an answer and did not declare it."""


REQUEST_ERRORS = (OSError, ImportError, ValueError, httpx.HTTPError, httpx.InvalidURL)
"""What httpx raises; ImportError and ValueError are for a proxy that it cannot use."""


def _reason(error: Exception, route: Route) -> str:
    """Return why a service was not reached, without the key that an error may quote."""
    if isinstance(error, ImportError | ValueError):
        return "HTTPS_PROXY or HTTP_PROXY does not name an HTTP proxy"
    quotes = isinstance(error, httpx.LocalProtocolError)
    said = type(error).__name__ if quotes else str(error) or type(error).__name__
    return f"{said}{proxy_hint(httpx.URL(route.origin).host)}"


def registry_problem(registry: Registry, bundle: Path | None) -> str:
    """Ask a package index for its first page; return why that failed, or an empty string."""
    route, verify = registry.route, context_of(bundle) if bundle else True
    try:
        answer = httpx.get(
            f"{route.origin}/",
            headers={route.header: route.value},
            verify=verify,
            timeout=PROBE_SECONDS,
        )
    except REQUEST_ERRORS as error:
        refused = certificate_fault(error)
        if refused:
            return f"The certificate of {route.origin} {refused.explain(REGISTRY_TRUST)}."
        return f"{route.origin} could not be reached: {_reason(error, route)}."
    if answer.status_code == UNAUTHORIZED:
        return f"{route.origin} refused Mulligan's credentials with {UNAUTHORIZED}."
    return ""


def _outgoing(
    connection: Connection, request: h11.Request, decision: ToService, exchange: ServiceExchange
) -> httpx.Request:
    given = list(request.headers.raw_items())
    names = {name.lower() for name, _ in given}
    has_body = bool(names & {b"content-length", b"transfer-encoding"})
    if not has_body:
        exchange.waits()
    return httpx.Request(
        request.method.decode(),
        httpx.URL(decision.route.origin).copy_with(raw_path=decision.target),
        headers=request_headers(decision.route, given),
        content=_body(connection, exchange) if has_body else None,
    )


async def _body(connection: Connection, exchange: ServiceExchange) -> AsyncIterator[bytes]:
    while part := await connection.body():
        yield part
    exchange.waits()


async def _answer(
    connection: Connection,
    answer: httpx.Response,
    route: Route,
    key_filter: KeyFilter,
    exchange: ServiceExchange,
) -> None:
    """Forward an answer, without the key that a service may have included."""
    is_plain = route.is_index or "content-encoding" not in answer.headers
    headers = response_headers(route, answer.headers.raw, is_plain=is_plain)
    await connection.send(
        h11.Response(
            status_code=answer.status_code,
            headers=[(key_filter.text(name), key_filter.text(value)) for name, value in headers],
            reason=key_filter.text(answer.reason_phrase.encode("ascii", errors="replace")),
        )
    )
    exchange.waits()
    begun = b""
    async for part in answer.aiter_raw() if is_plain else answer.aiter_bytes():
        exchange.received(part)
        begun = begun if len(begun) >= len(COMPRESSED[-1]) else begun + part
        if begun.startswith(COMPRESSED) and not route.is_index:
            raise _CompressedError(COMPRESSES)
        if shown := key_filter.feed(part):
            await connection.send(h11.Data(data=shown))
        exchange.waits()
    if rest := key_filter.end():
        await connection.send(h11.Data(data=rest))
    await connection.send(h11.EndOfMessage())


async def _copy_both_ways(one: Streams, other: Streams) -> None:
    """Copy both ways until both have ended; if one fails, cancel the other."""
    ways = [
        asyncio.create_task(_copy(one[0], other[1])),
        asyncio.create_task(_copy(other[0], one[1])),
    ]
    try:
        await asyncio.gather(*ways)
    finally:
        for each in ways:
            each.cancel()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while part := await reader.read(CHUNK):
        writer.write(part)
        await writer.drain()
    writer.write_eof()


# Starting and stopping it, in a thread of its own.


@contextmanager
def open_proxy(
    allowed: Allowed,
    access_log: AccessLog,
    observer: ServiceObserver,
    bundle: Path | None = None,
    authority: Authority | None = None,
) -> Generator[int]:
    """Start a proxy; return the descriptor for CommandAccess. The end of the block ends everything.

    Each sandbox sends a listening socket through the descriptor, and the proxy serves the newest
    one. Raises UnavailableError if no descriptors are left.
    """
    try:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    except OSError as error:
        raise UnavailableError(
            f"The agent's proxy could not be opened: {error.strerror}; it is tried again later."
        ) from error
    with ours, theirs:
        runner, ended = asyncio.Runner(), asyncio.Event()
        loop = runner.get_loop()
        serving = _serve(ours, Proxy(allowed, access_log, observer, bundle, authority), ended)
        thread = threading.Thread(target=_run, args=(runner, serving), name="egress")
        thread.start()
        try:
            yield theirs.fileno()
        finally:
            loop.call_soon_threadsafe(ended.set)
            thread.join()


def _run(runner: asyncio.Runner, serving: Coroutine[None, None, None]) -> None:
    with runner:
        runner.run(serving)


LOOPBACK = "127.0.0.1"


@contextmanager
def open_local_proxy(
    allowed: Allowed,
    access_log: AccessLog,
    observer: ServiceObserver,
    bundle: Path | None = None,
    authority: Authority | None = None,
) -> Generator[int]:
    """Start a proxy at a free port of this machine's loopback; return the port.

    Every program of the machine can reach it, so `allowed` needs a password.
    """
    with (
        open_proxy(allowed, access_log, observer, bundle, authority) as channel,
        socket.socket(fileno=os.dup(channel)) as line,
        socket.create_server((LOOPBACK, 0)) as listener,
    ):
        socket.send_fds(line, [b"."], [listener.fileno()])
        yield listener.getsockname()[1]


PAUSE_SECONDS = 1.0
"""How long the proxy pauses after it failed to accept, for example without descriptors."""

RESERVED_DESCRIPTORS = 256
"""Descriptors of Mulligan's that no proxy takes, however many sandboxes there are."""


class _Connections:
    """Counts the connections of all proxies of this process, which share its descriptors."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open = 0

    def add(self) -> bool:
        """Count another connection; False if there are too many."""
        limit = (resource.getrlimit(resource.RLIMIT_NOFILE)[0] - RESERVED_DESCRIPTORS) // 2
        with self._lock:
            is_free = self._open < limit
            self._open += is_free
            return is_free

    def remove(self) -> None:
        """Count one less."""
        with self._lock:
            self._open -= 1


_connections = _Connections()


async def _serve(channel: socket.socket, proxy: Proxy, ended: asyncio.Event) -> None:
    """Serve each listener that arrives through the channel, instead of the one before."""
    loop = asyncio.get_running_loop()
    channel.settimeout(0)
    entrance = _Entrance(proxy)

    def receive() -> None:
        _, received, *_ = socket.recv_fds(channel, 1, 1, socket.MSG_CMSG_CLOEXEC)
        for descriptor in received:
            entrance.open(socket.socket(fileno=descriptor))

    loop.add_reader(channel, receive)
    await ended.wait()
    loop.remove_reader(channel)
    entrance.close()
    await proxy.close()


class _Entrance:
    """Accepts connections while the proxy has room; the others wait in the listener's queue."""

    def __init__(self, proxy: Proxy) -> None:
        self._proxy = proxy
        self._loop = asyncio.get_running_loop()
        self._listener: socket.socket | None = None
        proxy.when_idle = self._resume

    def open(self, listener: socket.socket) -> None:
        """Accept connections at this listener instead of the previous one."""
        self.close()
        listener.settimeout(0)
        self._listener = listener
        self._resume()

    def close(self) -> None:
        """Accept no more."""
        if self._listener:
            self._loop.remove_reader(self._listener)
            self._listener.close()
            self._listener = None

    def _resume(self) -> None:
        if self._listener and (self._proxy.can_make_room or not self._proxy.is_full):
            self._loop.add_reader(self._listener, self._accept, self._listener)

    def _accept(self, listener: socket.socket) -> None:
        if self._proxy.is_full:
            # The end of a connection resumes.
            self._loop.remove_reader(listener)
            self._proxy.make_room()
            return
        try:
            connection = _accept(listener)
        except (BlockingIOError, ConnectionError):
            return
        except OSError:
            self._loop.remove_reader(listener)
            self._loop.call_later(PAUSE_SECONDS, self._resume)
            return
        self._proxy.accept(connection, self._end_one)
        if self._proxy.is_full and not self._proxy.can_make_room:
            self._loop.remove_reader(listener)

    def _end_one(self) -> None:
        _connections.remove()
        self._resume()


def _accept(listener: socket.socket) -> socket.socket:
    """Accept a connection; OSError if there is none, or no descriptor for it."""
    if not _connections.add():
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
    try:
        return listener.accept()[0]
    except OSError:
        _connections.remove()
        raise
