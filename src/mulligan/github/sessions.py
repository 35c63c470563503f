"""What each thread has of its own to talk to GitHub: a connection, and PyGithub for each token."""

import threading
import weakref
from dataclasses import dataclass, field
from pathlib import Path

from github import Auth, Github
from mulligan.github.connection import Connection, connect
from mulligan.github.gauges import Gauges
from mulligan.github.pause import Pause, Pauses

MOST_TOKENS = 64
"""Of one thread; an app has one for each repository, and a new one every hour."""


class Bearer(Auth.Token):
    """A token of any kind: those of an app itself are taken only so."""

    @property
    def token_type(self) -> str:
        """Name the scheme of the header `Authorization`."""
        return "Bearer"


@dataclass(frozen=True, slots=True)
class Transport:
    """How a server is reached: `ca_file` holds the certificates that are trusted; default: usual.

    Clients with the same `pauses` leave GitHub alone together; `gauges` reads every answer.
    """

    pauses: Pauses = field(default_factory=Pauses)
    ca_file: Path | None = None
    gauges: Gauges = field(default_factory=Gauges)


@dataclass(frozen=True, slots=True)
class Session:
    """PyGithub under one token, the connection it goes by, and the pause that the token keeps."""

    github: Github
    connection: Connection
    pause: Pause


class _OfThread(threading.local):
    """PyGithub's objects are not made to be shared."""

    connection: Connection | None = None

    def __init__(self) -> None:
        self.sessions = dict[str | None, Session]()


class Sessions:
    """The sessions at one address; `timeout` is in seconds."""

    def __init__(self, api_url: str, timeout: int, transport: Transport) -> None:
        self._api_url = api_url
        self._timeout = timeout
        self._transport = transport
        self._mine = _OfThread()
        self._connections: weakref.WeakSet[Connection] = weakref.WeakSet()

    def of(self, token: str | None) -> Session:
        """Give this thread's session under a token."""
        known = self._mine.sessions
        found = known.pop(token, None) or self._open(token)
        known[token] = found
        while len(known) > MOST_TOKENS:
            # The first of a dict is the one that was not used for longest.
            del known[next(iter(known))]
        return found

    def close(self) -> None:
        """Close every thread's connection; the next call opens its own again."""
        for connection in list(self._connections):
            connection.close()

    def _open(self, token: str | None) -> Session:
        if self._mine.connection is None:
            self._mine.connection = connect(self._api_url, self._timeout, self._transport.ca_file)
            self._connections.add(self._mine.connection)
        github = Github(
            auth=Bearer(token) if token else None,
            base_url=self._api_url,
            timeout=self._timeout,
            user_agent="mulligan",
            retry=None,
            seconds_between_requests=None,
            seconds_between_writes=None,
            lazy=True,
            api_version="2022-11-28",
        )
        pause = self._transport.pauses.of(self._api_url, token)
        return Session(github, self._mine.connection, pause)
