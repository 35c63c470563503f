"""GitHub App credentials: create the App from a manifest; create and renew its tokens."""

import json
import threading
from dataclasses import dataclass
from datetime import datetime, timedelta
from html import escape
from pathlib import Path
from urllib.parse import quote, urlencode, urlsplit

import jwt
from pydantic import AwareDatetime, Field, JsonValue, TypeAdapter

from mulligan.config.operator import AppSettings
from mulligan.domain.errors import DeniedError, MisconfiguredError
from mulligan.github.answers import NotFoundError
from mulligan.github.client import Client, RetrySettings
from mulligan.github.connection import Transport
from mulligan.github.credentials import Note
from mulligan.github.shapes import Shape
from mulligan.implement.ports import Clock

MAX_NAME_CHARS = 34
"""GitHub's limit for the name of an App."""

PERMISSIONS: dict[str, JsonValue] = {
    **dict.fromkeys(("contents", "issues", "pull_requests", "checks"), "write"),
    **dict.fromkeys(("metadata", "statuses", "actions"), "read"),
}

PAGE = """\
<!doctype html><meta charset="utf-8"><title>Mulligan: make a GitHub App</title>
<p>This asks {host} to make the App <b>{name}</b>. You can review it there first.</p>
<form method="post" action="{action}"><input type="hidden" name="manifest" value="{manifest}">
<button>Continue on {host}</button></form>
"""

JWT_LIFETIME = timedelta(minutes=9)
"""Lifetime of the App's JWT; GitHub accepts at most ten minutes."""

CLOCK_SKEW = timedelta(minutes=1)
"""Allowance for a clock ahead of GitHub's: GitHub rejects a JWT issued in the future."""

MIN_TOKEN_LIFETIME = timedelta(minutes=10)
"""Minimum remaining lifetime of a cached token (they last an hour), so that work can finish."""


class MadeApp(Shape):
    """A newly created App. GitHub returns the private key only once."""

    id: int
    html_url: str = Field(min_length=1)
    pem: str = Field(min_length=1, repr=False)

    @property
    def install_url(self) -> str:
        """Return the page where a user installs the App on repositories."""
        return f"{self.html_url}/installations/new"


MADE = TypeAdapter(MadeApp)


def web_url(api_url: str) -> str:
    """Return GitHub's web address for an API address, without a trailing slash."""
    parts = urlsplit(api_url)
    host = parts.netloc
    if host == "api.github.com" or (host.startswith("api.") and host.endswith(".ghe.com")):
        host = host.removeprefix("api.")
    return f"{parts.scheme}://{host}"


def manifest(name: str, homepage: str, back: str) -> dict[str, JsonValue]:
    """Return the App's manifest: permissions, no webhook, and the redirect address."""
    return {
        "name": name[:MAX_NAME_CHARS],
        "url": homepage,
        "hook_attributes": {"url": homepage, "active": False},
        "redirect_url": back,
        "public": False,
        "default_permissions": PERMISSIONS,
        "default_events": [],
    }


def page(web: str, organization: str | None, state: str, asked: dict[str, JsonValue]) -> str:
    """Return the HTML form that posts the manifest to GitHub, for an account or organisation."""
    whose = f"/organizations/{quote(organization, safe='')}" if organization else ""
    return PAGE.format(
        host=escape(urlsplit(web).netloc),
        name=escape(str(asked["name"])),
        action=escape(f"{web}{whose}/settings/apps/new?{urlencode({'state': state})}"),
        manifest=escape(json.dumps(asked)),
    )


def convert(client: Client, code: str) -> MadeApp:
    """Exchange the code from the redirect for the App; it works once, within an hour."""
    path = f"/app-manifests/{quote(code, safe='')}/conversions"
    try:
        return client.write(MADE, "POST", path, {})
    except NotFoundError as error:
        raise DeniedError(
            "GitHub does not know the code from the browser. A code works once, within an hour. "
            "Start again with `mulligan init --app`."
        ) from error


class AppShape(Shape):
    """The App itself, from `GET /app`."""

    slug: str = Field(min_length=1)


class InstallationShape(Shape):
    """An installation of the App."""

    id: int


class TokenShape(Shape):
    """An installation access token."""

    token: str = Field(min_length=1)
    expires_at: AwareDatetime


APP, INSTALLATION, TOKEN = (
    TypeAdapter(AppShape),
    TypeAdapter(InstallationShape),
    TypeAdapter(TokenShape),
)


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    until: datetime


class AppCredentials:
    """Implements the port Credentials for an App with any number of installations; thread-safe."""

    def __init__(
        self,
        api_url: str,
        settings: AppSettings,
        clock: Clock,
        retry: RetrySettings | None = None,
        transport: Transport | None = None,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._client = Client(api_url, self._own_token, retry, transport)
        self._lock = threading.Lock()
        self._tokens: dict[str, _Token] = {}

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def git_token(self, repository: str) -> str:
        """The token is valid for this repository only."""
        return self.api_token(repository)

    def api_token(self, repository: str | None) -> str:
        """Return the token for a repository, or the App's JWT for calls outside any repository."""
        if repository is None:
            return self._own_token(None)
        with self._lock:
            known, now = self._tokens.get(repository), self._clock.now()
            if known is None or known.until - MIN_TOKEN_LIFETIME <= now:
                known = self._tokens[repository] = self._make(repository)
            return known.text

    def login(self) -> str:
        """Return the login of the App's comments, `slug[bot]`."""
        return f"{self._client.read(APP, '/app').slug}[bot]"

    def notes(self) -> tuple[Note, ...]:
        """Return no notes: an App's tokens are short-lived and limited to one repository."""
        return ()

    def _make(self, repository: str) -> _Token:
        """Create an installation token for this repository only."""
        try:
            where = self._client.read(INSTALLATION, f"/repos/{repository}/installation")
        except NotFoundError as error:
            raise DeniedError(
                f"The app is not installed on {repository}; install it there, or "
                "remove the repository from the configuration."
            ) from error
        name = repository.partition("/")[2]
        path = f"/app/installations/{where.id}/access_tokens"
        token = self._client.write(TOKEN, "POST", path, {"repositories": [name]})
        return _Token(token.token, token.expires_at)

    def _own_token(self, _repository: str | None) -> str:
        """Return the App's JWT, signed with its private key."""
        now = self._clock.now()
        claims = {
            "iat": round((now - CLOCK_SKEW).timestamp()),
            "exp": round((now + JWT_LIFETIME).timestamp()),
            "iss": str(self._settings.id),
        }
        try:
            return jwt.encode(claims, private_key(self._settings), algorithm="RS256")
        except (jwt.PyJWTError, ValueError, TypeError) as error:
            raise MisconfiguredError(
                "The App's private key is not in PEM form; fix github.app."
            ) from error


def private_key(settings: AppSettings) -> str:
    """Read the App's private key as configured; MisconfiguredError if it cannot be read."""
    if settings.private_key:
        return settings.private_key.get_secret_value()
    place = settings.private_key_file or Path()
    try:
        return place.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise MisconfiguredError(
            f"{place} could not be read; fix github.app.private_key_file."
        ) from error
