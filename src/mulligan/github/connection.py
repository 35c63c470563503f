"""One exchange with a server: its whole answer within a bounded time, and never a redirect.

PyGithub follows a 301 for every verb, and the time-out of its socket starts afresh with every
byte that drips in; both are closed here.
"""

import time
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlsplit

from github.Requester import (
    HTTPRequestsConnectionClass,
    HTTPSRequestsConnectionClass,
    RequestsResponse,
)
from requests import Response

CHUNK = 64 * 1024
MAX_BODY = 50 * 1024 * 1024
"""Bytes of one answer; GitHub's largest pages are about 10 MB."""

Connection = HTTPRequestsConnectionClass | HTTPSRequestsConnectionClass


class OddAnswerError(Exception):
    """The server did something that no answer of GitHub's does; the text says what."""


class RedirectError(Exception):
    """The server wants the request to go elsewhere; the text is the address."""


class _Reply(RequestsResponse):
    """An answer whose body is read against a deadline, not against silence."""

    def __init__(self, response: Response, seconds: int) -> None:
        super().__init__(response)
        self._seconds = seconds

    def read(self) -> str:
        body, deadline = bytearray(), time.monotonic() + self._seconds
        while chunk := self.response.raw.read1(CHUNK, decode_content=True):
            body += chunk
            if time.monotonic() > deadline or len(body) > MAX_BODY:
                self.response.close()
                message = f"its answer was not complete within {self._seconds} s"
                raise OddAnswerError(message)
        return body.decode("utf-8")


class _Http(HTTPRequestsConnectionClass):
    def getresponse(self) -> RequestsResponse:
        return _exchange(self)


class _Https(HTTPSRequestsConnectionClass):
    def getresponse(self) -> RequestsResponse:
        return _exchange(self)


def connect(api_url: str, timeout: int, ca_file: Path | None = None) -> Connection:
    """Make the connection of one thread; `timeout` is in seconds, for a wait and for the body.

    `ca_file` holds the certificates that are trusted; default: those of the requests library.
    Proxies are those of the environment.
    """
    parts = urlsplit(api_url)
    kind = _Https if parts.scheme == "https" else _Http
    verify = str(ca_file) if ca_file else True
    connection = kind(parts.hostname or "", parts.port, timeout=timeout, verify=verify)
    # Asked once, not for each request, a quarter of whose time it would take.
    session = connection.session
    given = session.merge_environment_settings(api_url, {}, None, verify, None)
    session.proxies, connection.verify = given["proxies"], given["verify"]
    session.trust_env = False
    return connection


def _exchange(connection: Connection) -> RequestsResponse:
    response = connection.session.request(
        connection.verb,
        f"{connection.protocol}://{connection.host}:{connection.port}{connection.url}",
        headers=connection.headers,
        data=connection.input,
        timeout=connection.timeout,
        verify=connection.verify,
        allow_redirects=False,
        stream=True,
    )
    status = response.status_code
    if status == HTTPStatus.ACCEPTED:
        response.close()
        message = "its answer was not ready"  # PyGithub would ask again for ever
        raise OddAnswerError(message)
    if response.is_redirect or status in {HTTPStatus.MULTIPLE_CHOICES, HTTPStatus.USE_PROXY}:
        response.close()
        raise RedirectError(response.headers.get("location", ""))
    return _Reply(response, connection.timeout or 0)
