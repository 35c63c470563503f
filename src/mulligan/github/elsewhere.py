"""Fetch a file from where GitHub keeps it: at a signed address, which no token is sent to."""

import time
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlsplit

from requests import PreparedRequest, RequestException, Response, Session
from urllib3.exceptions import HTTPError

from mulligan.errors import UnavailableError
from mulligan.github.answers import NotFoundError, TransientError
from mulligan.github.connection import CHUNK, OddAnswerError
from mulligan.github.reasons import reason_of

MOST_KEPT = 8 * 1024 * 1024
"""Bytes of the end of a file; what failed stands there."""
MOST_READ = 256 * 1024 * 1024
DEADLINE = 60.0
"""Seconds for the whole of it."""
GONE = frozenset({HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND, HTTPStatus.GONE})


def fetch(url: str, api_url: str, timeout: int, ca_file: Path | None = None) -> bytes:
    """Give the end of a file; `timeout` is in seconds of silence. Redirects are not followed.

    Only http(s) addresses are asked, and where the API is spoken to under TLS, so are they.
    """
    host = _host_of(url, api_url)
    try:
        status, body = _get(url, timeout, ca_file)
    except (RequestException, HTTPError, OSError, ValueError, OddAnswerError) as error:
        message = f"{host} did not give a file of GitHub's: {reason_of(error)}; try again later."
        raise TransientError(message) from error
    if status in GONE:
        message = f"{host} does not have a file any more that GitHub kept there."
        raise NotFoundError(message)
    if status != HTTPStatus.OK:
        message = f"{host} answered with status {status} for a file of GitHub's; try again later."
        raise TransientError(message)
    return body


def _host_of(url: str, api_url: str) -> str:
    parts = urlsplit(url)
    allowed = {"https"} if urlsplit(api_url).scheme == "https" else {"http", "https"}
    if parts.scheme not in allowed or not parts.hostname:
        message = "GitHub keeps a file at an address that is no safe one; read it in the browser."
        raise UnavailableError(message)
    return parts.hostname


def _get(url: str, timeout: int, ca_file: Path | None) -> tuple[int, bytes]:
    verify = str(ca_file) if ca_file else True
    with (
        Session() as session,
        session.get(
            url,
            auth=_without_any,
            timeout=timeout,
            verify=verify,
            allow_redirects=False,
            stream=True,
        ) as response,
    ):
        fine = response.status_code == HTTPStatus.OK
        return response.status_code, _end_of(response) if fine else b""


def _without_any(request: PreparedRequest) -> PreparedRequest:
    """Stand in for credentials, so that none are taken from a .netrc file."""
    return request


def _end_of(response: Response) -> bytes:
    kept, read, deadline = bytearray(), 0, time.monotonic() + DEADLINE
    while chunk := response.raw.read1(CHUNK, decode_content=True):
        kept += chunk
        read += len(chunk)
        if time.monotonic() > deadline or read > MOST_READ:
            message = f"it was not complete within {DEADLINE:.0f} s"
            raise OddAnswerError(message)
        if len(kept) > 2 * MOST_KEPT:
            del kept[:-MOST_KEPT]
    return bytes(kept[-MOST_KEPT:])
