"""Connections to GitHub: bounded answers, no redirects, sessions per thread, downloads."""

import threading
import time
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from github.Requester import (
    HTTPRequestsConnectionClass,
    HTTPSRequestsConnectionClass,
    RequestsResponse,
)
from requests import PreparedRequest, RequestException, Response, Session, Timeout
from requests.exceptions import SSLError
from urllib3.exceptions import HTTPError
from urllib3.exceptions import TimeoutError as SocketTimeout

from github import Auth, Github
from mulligan.domain.errors import CertificateError, UnavailableError
from mulligan.github.answers import DeletedError
from mulligan.github.rate_limits import Backoff, Backoffs, RateLimitMetrics
from mulligan.github.retries import DELETED_DOWNLOAD, TransientError
from mulligan.text.certificates import GITHUB_TRUST, certificate_fault

CHUNK = 64 * 1024

MAX_BODY = 50 * 1024 * 1024
"""Limit of one answer in bytes; GitHub's largest pages are about 10 MB."""

Connection = HTTPRequestsConnectionClass | HTTPSRequestsConnectionClass

MAX_SESSIONS = 64
"""Limit per thread; an App uses one session per repository, and a new one every hour."""

MAX_DOWNLOAD_TAIL = 8 * 1024 * 1024
"""Bytes kept from the end of a file, where the failure is."""

MAX_DOWNLOAD = 256 * 1024 * 1024

DOWNLOAD_SECONDS = 60.0
"""Limit of a whole download in seconds."""

UPLOAD_SECONDS = 20.0
"""Limit of one upload in seconds."""

MAX_REDIRECTS = 3


def reason_of(error: Exception) -> str:
    """Return in words why no answer arrived."""
    match error:
        case Timeout() | SocketTimeout():
            return "it took too long"
        case SSLError():
            return "no TLS connection could be made"
        case InvalidResponseError():
            return str(error)
        case OSError() | HTTPError() if is_refused(error):
            return "connection refused"
        case OSError() | HTTPError():
            return "the connection failed"
        case _:
            return f"its answer could not be read ({type(error).__name__})"


def certificate_error(error: Exception, server: str) -> CertificateError | None:
    """Return the error if the certificate of `server` was not accepted, else None.

    Its message does not name the request, since every request fails with it.
    """
    refused = certificate_fault(error)
    if refused is None:
        return None
    return CertificateError(f"The certificate of {server} {refused.explain(GITHUB_TRUST)}.")


def is_refused(error: BaseException | None) -> bool:
    """Return whether the connection was refused: nothing listens on that port."""
    while error and not isinstance(error, ConnectionRefusedError):
        error = error.__cause__ or error.__context__
    return error is not None


class InvalidResponseError(Exception):
    """A response that GitHub never sends; the text says what is wrong."""


TRANSFER_FAULTS = (
    RequestException,
    HTTPError,  # from urllib3, if a body ends early
    OSError,
    ValueError,  # an invalid header, or text that is not UTF-8
    InvalidResponseError,
)
"""Errors if no answer arrived, or none that can be read: the request may be sent again."""


class RedirectError(Exception):
    """The server redirects the request; the text is the new address."""


class _Reply(RequestsResponse):
    """A response with a deadline for its whole body, not only for each read."""

    def __init__(self, response: Response, seconds: int) -> None:
        super().__init__(response)
        self._seconds = seconds

    def read(self) -> str:
        body, deadline = bytearray(), time.monotonic() + self._seconds
        while chunk := self.response.raw.read1(CHUNK, decode_content=True):
            body += chunk
            if time.monotonic() > deadline or len(body) > MAX_BODY:
                self.response.close()
                raise InvalidResponseError(f"its answer was not complete within {self._seconds} s")
        return body.decode("utf-8")


class _Http(HTTPRequestsConnectionClass):
    def getresponse(self) -> RequestsResponse:
        return _exchange(self)


class _Https(HTTPSRequestsConnectionClass):
    def getresponse(self) -> RequestsResponse:
        return _exchange(self)


def connect(api_url: str, timeout: int, bundle: Path | None = None) -> Connection:
    """Return a connection for one thread; `timeout` limits each wait and each body, in seconds.

    `bundle` holds the trusted certificates, see config/certificates.py. Proxies come from the
    environment.
    """
    parts = urlsplit(api_url)
    kind = _Https if parts.scheme == "https" else _Http
    verify = str(bundle) if bundle else True
    connection = kind(parts.hostname or "", parts.port, timeout=timeout, verify=verify)
    # Read the environment once: doing so for each request takes a quarter of its time.
    session = connection.session
    given = session.merge_environment_settings(api_url, {}, None, verify, None)
    session.proxies, connection.verify = given["proxies"], given["verify"]
    session.trust_env = False
    return connection


def _exchange(connection: Connection) -> RequestsResponse:
    session, request = connection.session, PreparedRequest()
    # Session.request would merge settings that never differ, which takes half of its own time.
    request.prepare(
        connection.verb,
        f"{connection.protocol}://{connection.host}:{connection.port}{connection.url}",
        headers={**session.headers, **connection.headers},
        data=connection.input,
    )
    response = session.send(
        request,
        timeout=connection.timeout,
        verify=connection.verify,
        proxies=session.proxies,
        allow_redirects=False,
        stream=True,
    )
    status = response.status_code
    if status == HTTPStatus.ACCEPTED:
        response.close()
        message = "its answer was not ready"  # PyGithub would retry without limit
        raise InvalidResponseError(message)
    if response.is_redirect or status in {HTTPStatus.MULTIPLE_CHOICES, HTTPStatus.USE_PROXY}:
        response.close()
        raise RedirectError(response.headers.get("location", ""))
    return _Reply(response, connection.timeout or 0)


class Bearer(Auth.Token):
    """Sends any token as `Bearer`, the only scheme that GitHub accepts for an App's JWT."""

    @property
    def token_type(self) -> str:
        """Return the scheme of the `Authorization` header."""
        return "Bearer"


@dataclass(frozen=True, slots=True)
class Transport:
    """Settings of connections: `bundle` holds trusted certificates; default: those of certifi.

    Clients share the rate-limit `backoffs`; `metrics` reads every answer.
    """

    backoffs: Backoffs = field(default_factory=Backoffs)
    bundle: Path | None = None
    metrics: RateLimitMetrics = field(default_factory=RateLimitMetrics)


@dataclass(frozen=True, slots=True)
class ThreadSession:
    """PyGithub under one token, its connection, and the rate-limit backoff of the token."""

    github: Github
    connection: Connection
    backoff: Backoff


class _OfThread(threading.local):
    """The sessions of one thread: PyGithub's objects are not thread-safe."""

    connection: Connection | None = None

    def __init__(self) -> None:
        self.sessions = dict[str | None, ThreadSession]()


class Sessions:
    """The sessions at one address; `timeout` is in seconds."""

    def __init__(self, api_url: str, timeout: int, transport: Transport) -> None:
        self._api_url = api_url
        self._timeout = timeout
        self._transport = transport
        self._mine = _OfThread()
        self._connections: weakref.WeakSet[Connection] = weakref.WeakSet()

    def of(self, token: str | None) -> ThreadSession:
        """Return this thread's session for a token."""
        known = self._mine.sessions
        found = known.pop(token, None) or self._open(token)
        known[token] = found
        while len(known) > MAX_SESSIONS:
            # The first key of a dict is the least recently used.
            del known[next(iter(known))]
        return found

    def close(self) -> None:
        """Close every thread's connection; the next call opens its own again."""
        for connection in list(self._connections):
            connection.close()

    def _open(self, token: str | None) -> ThreadSession:
        if self._mine.connection is None:
            self._mine.connection = connect(self._api_url, self._timeout, self._transport.bundle)
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
        backoff = self._transport.backoffs.of(self._api_url, token)
        return ThreadSession(github, self._mine.connection, backoff)


def fetch(url: str, api_url: str, timeout: int, bundle: Path | None = None) -> bytes:
    """Download the end of a file; follow no redirects. `timeout` limits each read, in seconds."""
    return _answered(_get(url, api_url, timeout, bundle, _end_of), url)


def fetch_upload(
    url: str, api_url: str, timeout: int, bundle: Path | None = None, *, most: int
) -> bytes:
    """Download the first `most` bytes of what a person uploaded; follow redirects to its storage.

    No request has a token.
    """
    for _ in range(MAX_REDIRECTS):
        got = _get(url, api_url, timeout, bundle, partial(_beginning_of, most=most))
        if not got.location:
            return _answered(got, url)
        url = urljoin(url, got.location)
    raise UnavailableError("GitHub redirects the address of a file too often.")


@dataclass(frozen=True, slots=True)
class _Download:
    """The answer of a storage: `location` is the address of a redirect, else empty."""

    status: int
    body: bytes = b""
    location: str = ""


def _answered(got: _Download, url: str) -> bytes:
    """Return the file; DeletedError if it is gone, or a WorldError."""
    host = urlsplit(url).hostname
    if got.status in DELETED_DOWNLOAD:
        raise DeletedError(f"{host} no longer has a file that GitHub kept there.")
    if got.status != HTTPStatus.OK:
        raise TransientError(f"{host} answered {got.status} for GitHub's file; try again later.")
    return got.body


def _host_of(url: str, api_url: str) -> str:
    parts = urlsplit(url)
    allowed = {"https"} if urlsplit(api_url).scheme == "https" else {"http", "https"}
    if parts.scheme not in allowed or not parts.hostname:
        raise UnavailableError("GitHub keeps a file at an unsafe address; open it in a browser.")
    return parts.hostname


def _get(
    url: str,
    api_url: str,
    timeout: int,
    bundle: Path | None,
    read: Callable[[Response], bytes],
) -> _Download:
    host = _host_of(url, api_url)
    try:
        with (
            Session() as session,
            session.get(
                url,
                auth=_without_credentials,
                timeout=timeout,
                verify=str(bundle) if bundle else True,
                allow_redirects=False,
                stream=True,
            ) as response,
        ):
            fine = response.status_code == HTTPStatus.OK
            location = response.headers.get("location", "") if response.is_redirect else ""
            return _Download(response.status_code, read(response) if fine else b"", location)
    except TRANSFER_FAULTS as error:
        raise certificate_error(error, host) or TransientError(
            f"{host} did not send GitHub's file: {reason_of(error)}; try again later."
        ) from error


def _without_credentials(request: PreparedRequest) -> PreparedRequest:
    """Replace requests' authentication, so that it takes no credentials from a .netrc file."""
    return request


def _beginning_of(response: Response, most: int) -> bytes:
    kept = bytearray()
    for chunk in _chunks(response, UPLOAD_SECONDS):
        kept += chunk
        if len(kept) >= most:
            break
    return bytes(kept[:most])


def _end_of(response: Response) -> bytes:
    kept, read = bytearray(), 0
    for chunk in _chunks(response, DOWNLOAD_SECONDS):
        kept += chunk
        read += len(chunk)
        if read > MAX_DOWNLOAD:
            raise InvalidResponseError(f"it has more than {MAX_DOWNLOAD >> 20} MB")
        if len(kept) > 2 * MAX_DOWNLOAD_TAIL:
            del kept[:-MAX_DOWNLOAD_TAIL]
    return bytes(kept[-MAX_DOWNLOAD_TAIL:])


def _chunks(response: Response, seconds: float) -> Iterator[bytes]:
    deadline = time.monotonic() + seconds
    while chunk := response.raw.read1(CHUNK, decode_content=True):
        yield chunk
        if time.monotonic() > deadline:
            raise InvalidResponseError(f"it was not complete within {seconds:.0f} s")
