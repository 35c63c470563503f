"""Act as a GitHub App: created from a manifest, one token per repository, renewed in time."""

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
"""GitHub's own limit for the name of an App."""

PERMISSIONS: dict[str, JsonValue] = {
    **dict.fromkeys(("contents", "issues", "pull_requests"), "write"),
    **dict.fromkeys(("metadata", "checks", "statuses", "actions"), "read"),
}

PAGE = """\
<!doctype html><meta charset="utf-8"><title>Mulligan: make a GitHub App</title>
<p>This asks {host} to make the App <b>{name}</b>. You can review it there first.</p>
<form method="post" action="{action}"><input type="hidden" name="manifest" value="{manifest}">
<button>Continue on {host}</button></form>
"""

JWT_LIFETIME = timedelta(minutes=9)
"""GitHub takes an app's own token for ten minutes at the most."""

CLOCK_SKEW = timedelta(minutes=1)
"""How far this clock may be ahead of GitHub's, which takes nothing from the future."""

MIN_TOKEN_LIFETIME = timedelta(minutes=10)
"""How much longer a token has to last for work to begin with it; it was made for an hour."""


class MadeApp(Shape):
    """An App that was just made; GitHub gives its private key this once."""

    id: int
    html_url: str = Field(min_length=1)
    pem: str = Field(min_length=1, repr=False)

    @property
    def install_url(self) -> str:
        """Give the page on which it is installed on repositories."""
        return f"{self.html_url}/installations/new"


MADE = TypeAdapter(MadeApp)


def web_url(api_url: str) -> str:
    """Give the address for people of the GitHub whose API is there, without a slash at the end."""
    parts = urlsplit(api_url)
    host = parts.netloc
    if host == "api.github.com" or (host.startswith("api.") and host.endswith(".ghe.com")):
        host = host.removeprefix("api.")
    return f"{parts.scheme}://{host}"


def manifest(name: str, homepage: str, back: str) -> dict[str, JsonValue]:
    """Write what the App is to be: rights, no webhook, and where GitHub sends the browser then."""
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
    """Write the page whose button brings the manifest to GitHub, for an account or organisation."""
    whose = f"/organizations/{quote(organization, safe='')}" if organization else ""
    return PAGE.format(
        host=escape(urlsplit(web).netloc),
        name=escape(str(asked["name"])),
        action=escape(f"{web}{whose}/settings/apps/new?{urlencode({'state': state})}"),
        manifest=escape(json.dumps(asked)),
    )


def convert(client: Client, code: str) -> MadeApp:
    """Exchange the code that the browser came back with; it is good once, for an hour."""
    path = f"/app-manifests/{quote(code, safe='')}/conversions"
    try:
        return client.write(MADE, "POST", path, {})
    except NotFoundError as error:
        message = (
            "GitHub does not know the code that the browser brought, which is good once and for "
            "an hour; start again with `mulligan init --app`."
        )
        raise DeniedError(message) from error


class AppShape(Shape):
    """An app, as it sees itself."""

    slug: str = Field(min_length=1)


class InstallationShape(Shape):
    """Where an app is installed."""

    id: int


class TokenShape(Shape):
    """What acts for an installation."""

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
    """The port Credentials of an app, for any number of installations; safe for threads."""

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
        """Give the token for git, which is good for this repository alone."""
        return self.api_token(repository)

    def api_token(self, repository: str | None) -> str:
        """Give the token for a repository, or the app's own for what belongs to none."""
        if repository is None:
            return self._own_token(None)
        with self._lock:
            known, now = self._tokens.get(repository), self._clock.now()
            if known is None or known.until - MIN_TOKEN_LIFETIME <= now:
                known = self._tokens[repository] = self._make(repository)
            return known.text

    def login(self) -> str:
        """Give the login that the app's comments bear."""
        return f"{self._client.read(APP, '/app').slug}[bot]"

    def notes(self) -> tuple[Note, ...]:
        """Say nothing: an app's tokens are renewed, and kept to what they are for."""
        return ()

    def _make(self, repository: str) -> _Token:
        """Have a token made that is good for one repository and nothing else."""
        try:
            where = self._client.read(INSTALLATION, f"/repos/{repository}/installation")
        except NotFoundError as error:
            message = (
                f"The app is not installed on {repository}; install it there, or "
                "remove the repository from the configuration."
            )
            raise DeniedError(message) from error
        name = repository.partition("/")[2]
        path = f"/app/installations/{where.id}/access_tokens"
        made = self._client.write(TOKEN, "POST", path, {"repositories": [name]})
        return _Token(made.token, made.expires_at)

    def _own_token(self, _repository: str | None) -> str:
        """Sign who it is; GitHub knows the other half of the key."""
        now = self._clock.now()
        claims = {
            "iat": round((now - CLOCK_SKEW).timestamp()),
            "exp": round((now + JWT_LIFETIME).timestamp()),
            "iss": str(self._settings.id),
        }
        try:
            return jwt.encode(claims, private_key(self._settings), algorithm="RS256")
        except (jwt.PyJWTError, ValueError, TypeError) as error:
            message = "The App's private key is not in PEM form; fix github.app."
            raise MisconfiguredError(message) from error


def private_key(settings: AppSettings) -> str:
    """Read the key where the configuration says; MisconfiguredError where it cannot be."""
    if settings.private_key:
        return settings.private_key.get_secret_value()
    place = settings.private_key_file or Path()
    try:
        return place.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        message = f"{place} could not be read; fix github.app.private_key_file."
        raise MisconfiguredError(message) from error
