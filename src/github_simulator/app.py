"""Serve the simulated GitHub on loopback: authentication, rate limits, faults."""

import asyncio
import base64
import os
import re
import socket
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from urllib.parse import urlsplit

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from github_simulator.bare_repository import SimulatorError
from github_simulator.pages import routes as pages
from github_simulator.pages.render import error_page
from github_simulator.records import User
from github_simulator.reply import (
    NOT_MODIFIED,
    ErrorReply,
    Exchange,
    Reply,
    etag,
    matches,
    not_found,
)
from github_simulator.reply import Request as Answered
from github_simulator.request import ApiCall, Handler
from github_simulator.routes import ROUTES
from github_simulator.routes.git_http import is_of_git
from github_simulator.world import CORE, GRAPHQL, STALE, Fault, Window, World

HOST = "127.0.0.1"

LOOPBACK = {HOST, "localhost"}
"""The names by which a browser on this machine may ask for pages."""

THREADS = 16

METHODS = ["GET", "POST", "PATCH", "PUT", "DELETE"]

JSON = "application/json; charset=utf-8"

COMMON_HEADERS = {
    "cache-control": "private, max-age=60, s-maxage=60",
    "vary": "Accept, Authorization, Cookie, X-GitHub-OTP",
    "x-github-media-type": "github.v3; format=json",
    "x-github-api-version-selected": "2022-11-28",
}

UNMETERED_PATH, QUERIES = "/rate_limit", "/graphql"

APP_PATHS = ("/app", "/installation", "/access_tokens")

REPOSITORY_BY_ID = re.compile(r"/repositories/(\d+)(/.*)?")


@dataclass(frozen=True, slots=True)
class Answer:
    """A complete answer, and whether it counts towards the user's rate limit."""

    status: int
    body: bytes
    headers: Mapping[str, str]
    counted: bool


def build_app(world: World) -> Starlette:
    """Return the web application that serves a world."""
    executor = ThreadPoolExecutor(THREADS, thread_name_prefix="simulator")

    @asynccontextmanager
    async def threads(_: Starlette) -> AsyncGenerator[None]:
        yield
        executor.shutdown()

    def route(method: str, path: str, handler: Handler) -> Route:
        return Route(path, partial(_respond, world, executor, handler), methods=[method])

    def page(method: str, path: str, handler: Handler) -> Route:
        return Route(path, partial(_show, world, executor, handler), methods=[method])

    def unknown(path: str) -> Route:
        return Route(path, partial(_miss, world, executor), methods=METHODS)

    api, shown = [route(*each) for each in ROUTES], [page(*each) for each in pages.ROUTES]
    # A page's path is OWNER/NAME; below "repos" everything is the API's.
    routes = [*api, unknown("/repos/{path:path}"), *shown, unknown("/{path:path}")]
    app = Starlette(routes=routes, lifespan=threads)
    app.add_middleware(_RepositoriesById, world=world)
    return app


def unknown_path(_: ApiCall) -> Reply:
    raise not_found()


@dataclass(frozen=True, slots=True)
class _RepositoriesById:
    """Accepts a repository's id instead of its name, as GitHub's Link headers and redirects use."""

    app: ASGIApp
    world: World

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = REPOSITORY_BY_ID.fullmatch(scope["path"]) if scope["type"] == "http" else None
        if found:
            with self.world.lock:
                names = {str(one.id): one.full_name for one in self.world.repositories.values()}
            name = names.get(found[1], found[1])
            scope["path"] = f"/repos/{name}{found[2] or ''}"
        await self.app(scope, receive, send)


async def _received(world: World, request: Request) -> ApiCall:
    return ApiCall(
        world,
        request.method,
        str(request.scope["path"]),
        {name: str(value) for name, value in request.path_params.items()},
        dict(request.query_params),
        request.headers,
        await request.body(),
        str(request.base_url).rstrip("/"),
    )


async def _show(
    world: World, executor: ThreadPoolExecutor, handler: Handler, request: Request
) -> Response:
    work = partial(answer_browser, handler, await _received(world, request))
    reply = await asyncio.get_running_loop().run_in_executor(executor, work)
    return Response(reply.raw, reply.status, reply.headers)


def answer_browser(handler: Handler, call: ApiCall) -> Reply:
    """Answer a browser as `world.viewer`, without rate limit or faults: those are of the API."""
    with call.world.lock:
        viewer = call.world.viewer
        try:
            _check_origin(call)
            return handler(replace(call, user=viewer))
        except ErrorReply as refused:
            return error_page(refused, viewer)


def _check_origin(call: ApiCall) -> None:
    """Refuse a form of another site, and a name that somebody else's DNS gave this machine."""
    origin = call.headers.get("origin", call.base)
    if urlsplit(call.base).hostname not in LOOPBACK or (
        call.method != "GET" and origin != call.base
    ):
        raise ErrorReply(403, "This request came from another site. Open the page itself.")


async def _miss(world: World, executor: ThreadPoolExecutor, request: Request) -> Response:
    """Answer 404: as a page to a browser, otherwise as JSON."""
    is_browser = "text/html" in request.headers.get("accept", "")
    return await (_show if is_browser else _respond)(world, executor, unknown_path, request)


async def _respond(
    world: World, executor: ThreadPoolExecutor, handler: Handler, request: Request
) -> Response:
    call = await _received(world, request)
    fault = world.faults(call.method, call.path) if world.faults else None
    if fault and fault.delay:
        await asyncio.sleep(fault.delay)
    work = partial(answer_request, handler, call, fault)
    answer = await asyncio.get_running_loop().run_in_executor(executor, work)
    if fault and fault.cut:
        return StreamingResponse(_is_truncated(answer.body), answer.status, answer.headers)
    return Response(answer.body, answer.status, answer.headers)


async def _is_truncated(body: bytes) -> AsyncIterator[bytes]:
    yield body[: len(body) // 2]
    raise ConnectionAbortedError("the simulator was asked to cut this answer")


def answer_request(handler: Handler, call: ApiCall, fault: Fault | None) -> Answer:
    """Answer a request, unless a fault replaces the answer, and record it."""
    world = call.world
    with world.lock:
        if fault and fault.replaces and not fault.apply:
            answer = _finished(replace(call, user=_user_if_known(call)), Reply(200, {}))
        else:
            answer = _carry_out(handler, call, is_stale=bool(fault and fault.is_stale))
        if fault and fault.status is not None:
            answer = _with_fault(answer, fault, fault.status)
        done = Answered(call.method, call.path, answer.status, answer.counted)
        world.requests.append(done)
        if world.exchanges is not None:
            world.exchanges.append(Exchange(done, call.query, call.body, answer.body))
    return answer


def _with_fault(answer: Answer, fault: Fault, status: int) -> Answer:
    body = (
        fault.body.encode() if fault.body is not None else Reply.of(ErrorReply(status, "Fault")).raw
    )
    headers = {name: value for name, value in answer.headers.items() if name != "etag"}
    lowered = {name.lower(): value for name, value in fault.headers.items()}
    return replace(
        answer,
        status=status,
        body=body,
        headers={**headers, "content-type": fault.content_type, **lowered},
    )


def _carry_out(handler: Handler, call: ApiCall, *, is_stale: bool) -> Answer:
    try:
        token = _token(call.headers.get("authorization", ""))
        call = replace(call, token=token, user=_user(call.world, token, call.path))
    except ErrorReply as refused:
        return _finished(call, Reply.of(refused))
    is_metered = call.path != UNMETERED_PATH and not is_of_git(call.path)
    if is_metered and not _rate_limit_window(call).remaining:
        return _finished(call, _exhausted(call))
    try:
        reply = handler(call)
    except ErrorReply as refused:
        reply = Reply.of(refused)
    if call.world.faults and call.method == "GET":
        asked = f"{token} {call.path} {call.query}"
        reply = _of_replica(call.world, asked, reply, is_stale=is_stale)
    return _finished(call, reply)


def _of_replica(world: World, asked: str, reply: Reply, *, is_stale: bool) -> Reply:
    """Return the earlier reply to the same request if a stale one is wanted and it is new."""
    now = world.stamps.clock()
    at, before = world.earlier.get(asked, (now, reply))
    world.earlier[asked] = (now, reply)
    return before if is_stale and now - at <= STALE else reply


def _token(header: str) -> str:
    """Return the token of `Bearer`, `token` or basic authentication."""
    kind, _, token = header.partition(" ")
    if kind.lower() == "basic":
        with suppress(ValueError):
            token = base64.b64decode(token).decode(errors="replace").rpartition(":")[2]
    return token.strip()


def _user(world: World, token: str, path: str) -> User | None:
    """Return the user of a token; 401 if it is unknown or has expired."""
    if not token or (token.count(".") == 2 and path.endswith(APP_PATHS)):  # noqa: PLR2004
        return None  # an app's own token is checked by its routes
    if grant := world.apps.grants.get(token):
        grant.check(path, world.stamps.clock())
    found = world.tokens.get(token)
    if found is None:
        raise ErrorReply(401, "Bad credentials")
    return found


def _user_if_known(call: ApiCall) -> User | None:
    with suppress(ErrorReply):
        return _user(call.world, _token(call.headers.get("authorization", "")), call.path)
    return None


def _rate_limit_window(call: ApiCall) -> Window:
    resource = GRAPHQL if call.path == QUERIES else CORE
    return call.world.meter.window(call.user.login if call.user else "", resource)


def _exhausted(call: ApiCall) -> Reply:
    """Refuse a request over the rate limit; GraphQL does so with status 200."""
    whose = f"user ID {call.user.id}" if call.user else "127.0.0.1"
    message = f"API rate limit exceeded for {whose}."
    if call.path == QUERIES and call.user:
        return Reply(200, {"errors": [{"type": "RATE_LIMITED", "message": message}]})
    return Reply.of(ErrorReply(403, message))


def _finished(call: ApiCall, reply: Reply) -> Answer:
    """Add the common headers, and count the request, except a 304 for a user with a token."""
    status, raw, headers = reply.status, reply.raw, {**COMMON_HEADERS, **reply.headers}
    if call.method in {"GET", "HEAD"} and status == 200:  # noqa: PLR2004 - the status OK
        headers["etag"] = etag(raw, call.headers.get("authorization", ""))
        if matches(call.headers.get("if-none-match", ""), headers["etag"]):
            status, raw = NOT_MODIFIED, b""
    is_metered = call.path != UNMETERED_PATH and not is_of_git(call.path)
    counted = is_metered and not (status == NOT_MODIFIED and call.user)
    window = _rate_limit_window(call)
    window.used += counted
    if raw:
        headers.setdefault("content-type", JSON)
    headers["x-github-request-id"] = f"51A0:{len(call.world.requests):08X}"
    return Answer(status, raw, {**headers, **window.headers}, counted)


# The server.


@contextmanager
def running(world: World, port: int = 0, host: str = HOST) -> Generator[str]:
    """Serve a world in a thread; yield its address, without a trailing slash.

    Port 0 selects a free port. Stop the thread and close the socket afterwards. SimulatorError if
    the port is in use.
    """
    listening = _listen(host, port)
    config = uvicorn.Config(
        build_app(world),
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        headers=[("server", "GitHub.com")],
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listening],), name="simulator")
    address = f"http://{host}:{listening.getsockname()[1]}"
    thread.start()
    try:
        yield address
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


def _listen(host: str, port: int) -> socket.socket:
    try:
        # Opened again by its number, which finds out that it is TCP: asyncio asks for that.
        return socket.socket(fileno=socket.create_server((host, port)).detach())
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else error
        raise SimulatorError(
            f"The simulator cannot listen on port {port}: {reason}."
            f" Choose another port: --port {port + 1}"
        ) from error
