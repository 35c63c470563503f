"""Act as a GitHub App: a token for each repository, made anew before it runs out."""

import threading
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import jwt
from pydantic import AwareDatetime, Field, TypeAdapter

from mulligan.config.github import AppSettings
from mulligan.errors import DeniedError, MisconfiguredError
from mulligan.github.answers import NotFoundError
from mulligan.github.client import Client, Patience
from mulligan.github.sessions import Transport
from mulligan.github.shapes import Shape
from mulligan.github.tokens import Note
from mulligan.ports import Clock

LASTS = timedelta(minutes=9)
"""GitHub takes an app's own token for ten minutes at the most."""

CLOCKS_DIFFER = timedelta(minutes=1)
"""How far this clock may be ahead of GitHub's, which takes nothing from the future."""

LEFT = timedelta(minutes=10)
"""How much longer a token has to last for work to begin with it; it was made for an hour."""


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
        patience: Patience | None = None,
        transport: Transport | None = None,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._client = Client(api_url, self._own_token, patience, transport)
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
            if known is None or known.until - LEFT <= now:
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
                f"The app is not installed on {repository}; install it there, or take the "
                "repository out of the configuration."
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
            "iat": round((now - CLOCKS_DIFFER).timestamp()),
            "exp": round((now + LASTS).timestamp()),
            "iss": str(self._settings.id),
        }
        try:
            return jwt.encode(claims, private_key(self._settings), algorithm="RS256")
        except (jwt.PyJWTError, ValueError, TypeError) as error:
            message = "The app's private key is none in PEM form; mend github.app."
            raise MisconfiguredError(message) from error


def private_key(settings: AppSettings) -> str:
    """Read the key where the configuration says; MisconfiguredError where it cannot be."""
    if settings.private_key:
        return settings.private_key.get_secret_value()
    place = settings.private_key_file or Path()
    try:
        return place.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        message = f"{place} cannot be read; mend github.app.private_key_file."
        raise MisconfiguredError(message) from error
