"""Access to the dashboard: its key, the hosts and origins allowed, and security headers."""

import hmac
import os
import re
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from hashlib import sha256
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mulligan.domain.errors import UnavailableError

# The access key

KEY_FILE = "dashboard.key"

MIN_KEY_CHARS = 20
"""Minimum length of a key; a shorter file is incomplete."""


@dataclass(frozen=True, slots=True)
class DashboardKey:
    """The access key: a bearer token for programs, typed once by people; it survives restarts.

    Every user of the machine can reach loopback, and so can agents with an open network.
    """

    secret: str
    place: Path

    @property
    def cookie(self) -> str:
        """Return the browser's cookie, which grants access to the dashboard only."""
        return hmac.new(self.secret.encode(), b"cookie", sha256).hexdigest()

    @property
    def form_token(self) -> str:
        """Return the token of this server's forms, which another website cannot read."""
        return hmac.new(self.secret.encode(), b"form", sha256).hexdigest()

    def matches_form(self, token: str) -> bool:
        """Return whether a form's token is correct."""
        return hmac.compare_digest(token.encode(errors="replace"), self.form_token.encode())

    def is_bearer(self, request: Request) -> bool:
        """Return whether a program sent the key itself, which a form cannot."""
        scheme, _, shown = request.headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and self.matches_key(shown.strip())

    def matches_key(self, shown: str) -> bool:
        """Return whether a request's key is correct."""
        return hmac.compare_digest(shown.encode(errors="replace"), self.secret.encode())

    def is_signed_in(self, request: Request) -> bool:
        """Return whether a browser has the cookie."""
        cookie = request.cookies.get(cookie_name(request), "")
        return hmac.compare_digest(cookie.encode(errors="replace"), self.cookie.encode())


def key_in(directory: Path) -> DashboardKey:
    """Read the key, or create it; UnavailableError if both fail."""
    place = directory / KEY_FILE
    try:
        return DashboardKey(_read(place) or _make(place), place)
    except (OSError, UnicodeError) as error:
        raise UnavailableError(
            f"The dashboard's access key could not be written to {place}"
            f" ({error}). Check the directory and its free space."
        ) from error


def _read(place: Path) -> str:
    try:
        found = place.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return ""
    return found if len(found) >= MIN_KEY_CHARS else ""


def _make(place: Path) -> str:
    token = secrets.token_urlsafe(32)
    new = place.with_name(f".{place.name}.{secrets.token_hex(4)}")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(token + "\n")
    new.replace(place)
    return token


# The key of the printed link

LINK_LIFETIME = timedelta(minutes=10)


@dataclass(slots=True)
class OneTimeKey:
    """The key in the link that `mulligan run` prints; it works once, within `LINK_LIFETIME`.

    It is kept in memory only. Thread-safe. `clock` returns seconds that only grow.
    """

    clock: Callable[[], float] = time.monotonic
    secret: str = field(default_factory=lambda: secrets.token_hex(16), repr=False)
    _created: float = field(init=False)
    _is_used: bool = field(init=False, default=False)
    _lock: threading.Lock = field(init=False, repr=False, default_factory=threading.Lock)

    def __post_init__(self) -> None:
        """Start the lifetime."""
        self._created = self.clock()

    def use(self, shown: str) -> bool:
        """Return whether the key is correct and current; if so, it never is again."""
        is_correct = hmac.compare_digest(shown.encode(errors="replace"), self.secret.encode())
        with self._lock:
            age = self.clock() - self._created
            is_valid = is_correct and not self._is_used and age < LINK_LIFETIME.total_seconds()
            self._is_used |= is_valid
        return is_valid


# Allowed requests

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
        "img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # With no-referrer, browsers would send `Origin: null` for our own forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}

STATIC = "/static/"
LOGIN = "/login"
OPEN = "/open"
WEBHOOK = "/webhook"

PUBLIC_PATHS = frozenset({"/healthz", "/readyz", "/metrics", LOGIN, OPEN})
"""Paths without a key: their answers name no issue and no repository."""

POST_PATHS = re.compile(r"/login|/open|/logout|/issues/[^/]+/[^/]+/[^/]+/commands")
"""The only paths that accept POST: login, printed link and logout of a browser, and commands."""

WRONG_HOST = (
    "Unknown host name. Open the dashboard by IP address, by localhost, or by a"
    " name in dashboard.hosts.\n"
)
NOTHING_TO_POST = (
    "Nothing can be changed here. Give commands on the page of an issue, on the command line, or in"
    " comments on GitHub.\n"
)
STRANGE_ORIGIN = "Another website sent this form. Open the dashboard directly.\n"
NO_KEY = "The access key is missing or wrong. Send it in a header: Authorization: Bearer KEY"


@dataclass(frozen=True, slots=True)
class AccessMiddleware:
    """Refuses requests for other hosts or from other sites, and those without the key."""

    app: ASGIApp
    key: DashboardKey
    hosts: frozenset[str]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if scope["path"].startswith(STATIC):
                    # Browsers ask whether their copy is current.
                    headers["Cache-Control"] = "no-cache"
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        answer = self._refusal(Request(scope)) or self.app
        await answer(scope, receive, send_guarded)

    def _refusal(self, request: Request) -> Response | None:
        path, headers = request.url.path, request.headers
        if path == WEBHOOK and request.method == "POST":
            return None  # GitHub signs it instead (webhook.py).
        if not is_ours(headers.get("host", ""), self.hosts):
            return PlainTextResponse(WRONG_HOST, 421)
        if request.method not in {"GET", "HEAD"}:
            if not POST_PATHS.fullmatch(path) or request.method != "POST":
                return PlainTextResponse(NOTHING_TO_POST, 405, {"Allow": "GET, HEAD"})
            if not is_same_origin(headers):
                return PlainTextResponse(STRANGE_ORIGIN, 403)
        if path in PUBLIC_PATHS or path.startswith(STATIC) or self._is_known(request):
            return None
        if path.startswith("/api/"):
            return JSONResponse({"error": NO_KEY}, 401, {"WWW-Authenticate": "Bearer"})
        return Response(status_code=303, headers={"Location": LOGIN})

    def _is_known(self, request: Request) -> bool:
        return self.key.is_bearer(request) or self.key.is_signed_in(request)


def cookie_name(request: Request) -> str:
    """Return the name of the cookie; browsers send a host's cookies to all of its ports."""
    return f"mulligan-{request.url.port or 80}"


def is_ours(host: str, names: frozenset[str]) -> bool:
    """Return whether a Host header is allowed.

    A foreign page can point its own name at loopback (DNS rebinding), but not an IP address.
    """
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    if name == "localhost" or name in names:
        return True
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def is_same_origin(headers: Headers) -> bool:
    """Return whether a page of this server sent a form, by the browser's headers."""
    origin = headers.get("origin")
    sites = {"same-origin", "none"}
    came_from = headers.get("sec-fetch-site", "same-origin")
    return came_from in sites and (
        origin is None or urlsplit(origin).netloc == headers.get("host", "")
    )
