"""The dashboard as a web application, served in a thread beside the daemon."""

import asyncio
import socket
import threading
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from functools import partial
from http import HTTPStatus
from operator import attrgetter
from pathlib import Path
from typing import cast

import structlog
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from mulligan.config.operator import Operator
from mulligan.daemon.daemon import Daemon
from mulligan.daemon.poll import poll_interval
from mulligan.domain.errors import MulliganError, UnavailableError, UsageError
from mulligan.implement.ports import Listener
from mulligan.interfaces.bootstrap.container import GAUGES
from mulligan.interfaces.bootstrap.stores import (
    check_writable,
    read_ledger,
    state_directory_of,
    without_waiting,
)
from mulligan.interfaces.dashboard import api, commands, files
from mulligan.interfaces.dashboard.access import (
    LINK_LIFETIME,
    LOGIN,
    OPEN,
    WEBHOOK,
    AccessMiddleware,
    DashboardKey,
    OneTimeKey,
    cookie_name,
    key_in,
)
from mulligan.interfaces.dashboard.commands import read_form
from mulligan.interfaces.dashboard.metrics import (
    CONTENT_TYPE,
    MetricsRegistry,
    liveness_problem,
    unready,
)
from mulligan.interfaces.dashboard.openapi import ROOT
from mulligan.interfaces.dashboard.pages import Pages, renderer
from mulligan.interfaces.dashboard.state import DashboardState, DashboardStores, StatsReader
from mulligan.interfaces.dashboard.webhook import Webhook, webhook_secret

# Serving the dashboard beside the daemon

log = structlog.get_logger()

MAX_QUIET = timedelta(minutes=10)
"""Limit for a poll without progress: GitHub may delay several requests by a minute each."""

MISSED_POLLS = 3


@contextmanager
def open_dashboard(
    operator: Operator,
    daemon: Daemon,
    address: tuple[str, int],
    listen: Callable[[Listener], None],
    show_link: Callable[[str], None] | None = None,
) -> Generator[None]:
    """Serve the dashboard while the block lasts; `listen` registers its counters for events.

    `show_link` shows a person the text with the link that signs a browser in once. Without it,
    there is no such link, and the log has the address.
    """

    def timeout() -> float:
        interval = poll_interval(operator.poll.interval, daemon.repositories)
        return max(MAX_QUIET, MISSED_POLLS * interval).total_seconds()

    def heartbeat() -> None:
        if context := daemon.context:
            context.leases.heartbeat(context.worker)

    def find_stores() -> DashboardStores | None:
        context = daemon.context
        return DashboardStores.of(context) if context else None

    state = DashboardState(
        find_stores=find_stores,
        pulse=daemon.pulse,
        gauges=GAUGES,
        timeout=timeout,
        check_writable=partial(check_writable, operator, heartbeat),
        read_history=partial(read_ledger, operator),
    )
    measures = MetricsRegistry(state)
    listen(measures.on_event)
    with ExitStack() as stack:
        try:
            key = key_in(state_directory_of(operator))
            hook = Webhook(webhook_secret(operator.github), daemon.hint)
            link_key = OneTimeKey() if show_link else None
            app = build(state, key, link_key, frozenset(operator.dashboard.hosts), measures, hook)
            url = stack.enter_context(serving(app, address, state.ending))
        except UnavailableError as error:
            log.warning("dashboard_closed", reason=str(error), again="at the next start")
        else:
            if show_link and link_key:
                show_link(LINK_TEXT.format(link=link_to(url, link_key), key_file=key.place))
            else:
                log.info("dashboard_open", address=url, key_file=str(key.place))
        yield


MAX_CONNECTIONS = 64
MAX_WAITING = 32
"""Limit of connections without a complete request; one more closes the oldest."""
REQUEST_SECONDS = 10.0
SECONDS_TO_END = 1


class _BoundedConnection(H11Protocol):
    """A connection that is closed if its request does not arrive, so that others are served.

    Uvicorn 0.54 has no setting for that (Kludex/uvicorn, issue 157). With `limit_concurrency` and
    `timeout_keep_alive` alone, 70 silent connections made it answer all others with 503.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Start to wait for a request."""
        super().connection_made(transport)
        self.began: float = self.loop.time()
        self.loop.call_later(REQUEST_SECONDS, self._close_if_waiting)
        known = cast("set[_BoundedConnection]", self.connections)
        waiting = sorted((each for each in known if each.is_waiting), key=attrgetter("began"))
        for each in waiting[:-MAX_WAITING]:
            each.transport.close()

    @property
    def is_waiting(self) -> bool:
        """Return whether a request is still missing or incomplete."""
        # Despite its type, it is None before the first request.
        cycle = cast("RequestResponseCycle | None", self.cycle)
        return cycle is None or bool(cycle.response_complete or cycle.more_body)

    def _close_if_waiting(self) -> None:
        if self.is_waiting:
            self.transport.close()


@contextmanager
def serving(app: ASGIApp, address: tuple[str, int], ending: threading.Event) -> Generator[str]:
    """Serve an application; yield its address. Stop the thread and close the socket afterwards.

    Set `ending` at the end, for answers that never end by themselves. UnavailableError if it cannot
    listen on the address.
    """
    listening = _listen(address)
    config = uvicorn.Config(
        app,
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
        http=_BoundedConnection,
        loop="asyncio",
        proxy_headers=False,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_graceful_shutdown=SECONDS_TO_END,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listening],), name="dashboard")
    thread.start()
    try:
        yield _where(listening)
    finally:
        ending.set()
        server.should_exit = True
        thread.join()
        listening.close()


def _listen(address: tuple[str, int]) -> socket.socket:
    host, port = address
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # IPPROTO_TCP is named because asyncio disables delays only on sockets that say they are TCP.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen()
    except OSError as error:
        listening.close()
        raise UnavailableError(
            f"The dashboard cannot listen on {host}:{port} ({error.strerror}). Free the port, or "
            "name another in dashboard.listen."
        ) from error
    return listening


def _where(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


LINK_MINUTES = LINK_LIFETIME // timedelta(minutes=1)
LINK_TEXT = f"""\
Dashboard: {{link}}
It works once, within {LINK_MINUTES} minutes. Later, sign in with the key in this file:
{{key_file}}"""


def link_to(url: str, key: OneTimeKey) -> str:
    """Return the link that signs a browser on this machine in."""
    local = url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")
    return f"{local.rstrip('/')}{OPEN}?key={key.secret}"


# The web application

NOT_FOUND_TEXT = "Page not found."
BUG_MESSAGE = "Internal error: this is a bug in Mulligan. Its log has the traceback."


def build(
    state: DashboardState,
    key: DashboardKey,
    link_key: OneTimeKey | None,
    hosts: frozenset[str],
    measures: MetricsRegistry,
    hook: Webhook,
) -> ASGIApp:
    """Return the application; its routes only read, but for login, logout, commands, webhooks."""
    figures = StatsReader(state.read_history)
    pages = Pages(state, renderer(lambda: state.redactor), key.form_token, figures)
    issue = "/issues/{owner}/{name}/{number}"
    routes = [
        Route("/", pages.home),
        Route("/running", pages.running),
        Route("/issues", pages.issues),
        Route("/stats", pages.stats),
        Route("/stats/{name}.svg", pages.plot),
        Route(issue, pages.issue),
        Route(issue + "/commands", partial(commands.give, state, key), methods=["POST"]),
        Route(issue + "/attempts/{attempt}", pages.issue),
        Route(issue + "/attempts/{attempt}/follow", partial(files.log, state)),
        Route(issue + "/attempts/{attempt}/{part}", partial(files.text, state)),
        *(
            Route(root + path, endpoint)
            for root in (ROOT, "/api")
            for path, endpoint in (
                ("/issues", partial(api.issues, state)),
                (issue, partial(api.issue, state)),
                ("/events", partial(api.events, state)),
                ("/stats", partial(api.stats, state, figures)),
                ("/openapi.json", api.openapi),
            )
        ),
        Route("/healthz", partial(_healthz, state)),
        Route("/readyz", partial(_readyz, state)),
        Route("/metrics", partial(_metrics, measures)),
        Route(LOGIN, partial(_login, pages, key), methods=["GET", "POST"]),
        Route(OPEN, partial(_open, pages, key, link_key), methods=["GET", "POST"]),
        Route("/logout", _logout, methods=["POST"]),
        Route(WEBHOOK, hook.receive, methods=["POST"]),
        Mount("/static", StaticFiles(directory=STATIC)),
    ]

    def say(request: Request, status: int, message: str) -> Response:
        text = state.redactor.text(message)
        if request.url.path.startswith("/api/"):
            return JSONResponse({"error": text}, status)
        return pages.plain("error.html", status, message=text)

    def refused(request: Request, error: Exception) -> Response:
        refused = 400 if request.method == "POST" else 404
        return say(request, refused if isinstance(error, UsageError) else 503, str(error))

    def missing(request: Request, error: Exception) -> Response:
        if not isinstance(error, HTTPException):
            return say(request, 404, NOT_FOUND_TEXT)
        is_told = error.status_code == HTTPStatus.BAD_REQUEST
        return say(request, error.status_code, error.detail if is_told else NOT_FOUND_TEXT)

    def failed(request: Request, error: Exception) -> Response:
        log.error("dashboard_failed", path=request.url.path, exc_info=error)
        return say(request, 500, BUG_MESSAGE)

    handled = {MulliganError: refused, HTTPException: missing, Exception: failed}
    served = Starlette(routes=routes, exception_handlers=handled)
    return AccessMiddleware(_without_waiting(served), key, hosts)


def _without_waiting(app: ASGIApp) -> ASGIApp:
    """Answer at once if the ledger is unavailable, instead of waiting for it as workers do."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        with without_waiting():
            await app(scope, receive, send)

    return answer


def _healthz(state: DashboardState, _: Request) -> Response:
    problem = liveness_problem(state)
    return PlainTextResponse(f"{problem or 'ok'}\n", 503 if problem else 200)


def _readyz(state: DashboardState, _: Request) -> Response:
    problem = state.redactor.text("\n".join(unready(state)))
    return PlainTextResponse(f"{problem or 'ok'}\n", 503 if problem else 200)


def _metrics(measures: MetricsRegistry, _: Request) -> Response:
    return Response(measures.text(), media_type=CONTENT_TYPE)


A_YEAR = 365 * 24 * 3600


WRONG_KEY = "Wrong access key."
DEAD_LINK = (
    "This link does not work any more. It signs in one browser, once, in the first"
    f" {LINK_MINUTES} minutes of `mulligan run`. Enter the access key instead."
)


async def _login(pages: Pages, key: DashboardKey, request: Request) -> Response:
    if request.method != "POST":
        return _sign_in_form(pages, key)
    shown = (await read_form(request)).get("key", "")
    return (
        _signed_in(key, request)
        if key.matches_key(shown.strip())
        else _sign_in_form(pages, key, WRONG_KEY)
    )


async def _open(
    pages: Pages, key: DashboardKey, link_key: OneTimeKey | None, request: Request
) -> Response:
    """Sign a browser in with the printed link.

    A GET shows a form and uses nothing up: previews and prefetches of the link send one too.
    """
    if request.method != "POST":
        return pages.plain("open.html", 200, key=request.query_params.get("key", ""))
    shown = (await read_form(request)).get("key", "")
    is_valid = link_key is not None and link_key.use(shown)
    if is_valid or key.is_signed_in(request):
        return _signed_in(key, request)
    return _sign_in_form(pages, key, DEAD_LINK)


def _sign_in_form(pages: Pages, key: DashboardKey, problem: str = "") -> Response:
    status = 403 if problem else 200
    return pages.plain("login.html", status, place=key.place.name, problem=problem)


def _signed_in(key: DashboardKey, request: Request) -> Response:
    answer = RedirectResponse("/", 303)
    answer.set_cookie(
        cookie_name(request),
        key.cookie,
        max_age=A_YEAR,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return answer


def _logout(request: Request) -> Response:
    answer = RedirectResponse(LOGIN, 303)
    answer.delete_cookie(cookie_name(request))
    return answer


STATIC = Path(__file__).with_name("static")
