"""The dashboard as a web application: which address leads where, and what becomes of errors."""

from functools import partial
from pathlib import Path
from urllib.parse import parse_qs

import structlog
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from mulligan.errors import MulliganError, UsageError
from mulligan.surfaces.dashboard import api, texts
from mulligan.surfaces.dashboard.desk import Desk
from mulligan.surfaces.dashboard.guard import LOGIN, Guard, cookie_name
from mulligan.surfaces.dashboard.health import illness, unready
from mulligan.surfaces.dashboard.key import Key
from mulligan.surfaces.dashboard.metrics import CONTENT_TYPE, Measures
from mulligan.surfaces.dashboard.pages import Pages
from mulligan.surfaces.dashboard.render import renderer
from mulligan.wiring.records import in_haste

STATIC = Path(__file__).with_name("static")
KINDS = {"style.css": "text/css", "live.js": "text/javascript", "icon.svg": "image/svg+xml"}
MOST_FORM = 2048
"""Bytes of a form; it has one field."""

A_YEAR = 365 * 24 * 3600
NOWHERE = "There is nothing here."
A_BUG = "A bug in Mulligan; its log has the traceback."

log = structlog.get_logger()


def build(desk: Desk, key: Key, hosts: frozenset[str], measures: Measures) -> ASGIApp:
    """Make the application; everything in it only reads, but for who is let in."""
    pages = Pages(desk, renderer(lambda: desk.redactor))
    issue = "/issues/{owner}/{name}/{number}"
    routes = [
        Route("/", pages.home),
        Route(issue, pages.issue),
        Route(issue + "/attempts/{attempt}/{part}", partial(texts.text, desk)),
        Route("/api/issues", partial(api.issues, desk)),
        Route("/api" + issue, partial(api.issue, desk)),
        Route("/api/events", partial(api.events, desk)),
        Route("/healthz", partial(_healthz, desk)),
        Route("/readyz", partial(_readyz, desk)),
        Route("/metrics", partial(_metrics, measures)),
        Route(LOGIN, partial(_login, pages, key), methods=["GET", "POST"]),
        Route("/logout", _logout, methods=["POST"]),
        Route("/static/{file}", _static),
    ]

    def say(request: Request, status: int, message: str) -> Response:
        said = desk.redactor.text(message)
        if request.url.path.startswith("/api/"):
            return JSONResponse({"error": said}, status)
        return pages.plain("error.html", status, message=said)

    def refused(request: Request, error: Exception) -> Response:
        return say(request, 404 if isinstance(error, UsageError) else 503, str(error))

    def missing(request: Request, error: Exception) -> Response:
        return say(request, error.status_code if isinstance(error, HTTPException) else 404, NOWHERE)

    def failed(request: Request, error: Exception) -> Response:
        log.error("dashboard_failed", path=request.url.path, exc_info=error)
        return say(request, 500, A_BUG)

    handled = {MulliganError: refused, HTTPException: missing, Exception: failed}
    served = Starlette(routes=routes, exception_handlers=handled)
    return Guard(_hurrying(served), key, hosts)


def _hurrying(app: ASGIApp) -> ASGIApp:
    """Answer at once while the ledger is away; what works waits for it."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        with in_haste():
            await app(scope, receive, send)

    return answer


def _healthz(desk: Desk, _: Request) -> Response:
    wrong = illness(desk)
    return PlainTextResponse(f"{wrong or 'ok'}\n", 503 if wrong else 200)


def _readyz(desk: Desk, _: Request) -> Response:
    wrong = desk.redactor.text("\n".join(unready(desk)))
    return PlainTextResponse(f"{wrong or 'ok'}\n", 503 if wrong else 200)


def _metrics(measures: Measures, _: Request) -> Response:
    return Response(measures.text(), media_type=CONTENT_TYPE)


async def _login(pages: Pages, key: Key, request: Request) -> Response:
    if request.method != "POST":
        return pages.plain("login.html", 200, place=str(key.place), refused=False)
    form = b""
    async for chunk in request.stream():
        form += chunk
        if len(form) > MOST_FORM:
            break
    shown = parse_qs(form[:MOST_FORM].decode(errors="replace")).get("key", [""])[0]
    if not key.opens(shown.strip()):
        return pages.plain("login.html", 403, place=str(key.place), refused=True)
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


def _static(request: Request) -> Response:
    name = request.path_params["file"]
    if name not in KINDS:
        raise HTTPException(404)
    content = (STATIC / name).read_bytes()
    return Response(content, media_type=KINDS[name], headers={"Cache-Control": "no-cache"})
