"""Download Git LFS objects with the batch API, and verify each (WORKTREE-5).

https://github.com/git-lfs/git-lfs/blob/main/docs/api/batch.md
"""

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from pydantic import Field, JsonValue, TypeAdapter, ValidationError
from requests import PreparedRequest, Response, Session

from mulligan.domain.errors import ForbiddenError, UnavailableError
from mulligan.domain.lfs import LfsObject
from mulligan.github.connection import (
    CHUNK,
    MAX_REDIRECTS,
    TRANSFER_FAULTS,
    certificate_error,
    reason_of,
)
from mulligan.github.shapes import Shape
from mulligan.sandbox.cancellation import reason_to_stop
from mulligan.text.escape import one_line

MEDIA_TYPE = "application/vnd.git-lfs+json"

PER_BATCH = 100
"""Objects of one request, as git-lfs asks for."""

MAX_ANSWER = 4 * 1024 * 1024
"""Limit of the answer to a batch in bytes."""

TIMEOUT = 30
"""Limit of each wait in seconds."""

MAX_WORDS = 200
"""Length to which an error cuts a server's message."""

BASIC = "basic"
USER = "x-access-token"


class _Action(Shape):
    href: str
    header: dict[str, str] = Field(default_factory=dict[str, str])


class _Actions(Shape):
    download: _Action | None = None


class _Error(Shape):
    code: int = 0
    message: str = ""


class _Object(Shape):
    oid: str
    actions: _Actions | None = None
    error: _Error | None = None


class _Batch(Shape):
    objects: list[_Object]
    transfer: str = BASIC


class _Refusal(Shape):
    message: str = ""


BATCH, REFUSAL = TypeAdapter(_Batch), TypeAdapter(_Refusal)


@dataclass(frozen=True, slots=True)
class LfsDownloads:
    """Implements the port LfsServer; `bundle` holds the trusted certificates."""

    bundle: Path | None = field(default=None)

    def download(
        self,
        endpoint: str,
        token: str | None,
        wanted: Sequence[LfsObject],
        directory: Path,
        until: float,
    ) -> Iterator[tuple[LfsObject, Path]]:
        """The token goes to the endpoint only, never to the address of a download or redirect."""
        with Session() as session:
            exchange = _Exchange(session, self.bundle, until)
            for start in range(0, len(wanted), PER_BATCH):
                some = wanted[start : start + PER_BATCH]
                actions = exchange.actions(endpoint, token, some)
                for each in some:
                    file = directory / each.oid
                    exchange.receive(endpoint, each, actions[each.oid], file)
                    yield each, file


@dataclass(frozen=True, slots=True)
class _Exchange:
    """The requests for one commit's objects."""

    session: Session
    bundle: Path | None
    until: float

    def actions(
        self, endpoint: str, token: str | None, wanted: Sequence[LfsObject]
    ) -> Mapping[str, _Action]:
        """Ask where the objects are."""
        body: dict[str, JsonValue] = {
            "operation": "download",
            "transfers": [BASIC],
            "objects": [{"oid": each.oid, "size": each.size} for each in wanted],
        }
        url, host = f"{endpoint}/objects/batch", _host(endpoint)
        for _ in range(MAX_REDIRECTS + 1):
            with self._send("POST", url, {}, token=token, body=body) as response:
                text = self._body(response, host)
                status, location = response.status_code, _location(response)
            if not location:
                return _actions(host, status, text, wanted)
            url = urljoin(url, location)
            if _origin(url) != _origin(endpoint):
                raise UnavailableError(
                    f"The Git LFS server {host} redirects to another host ({_host(url)}). Mulligan"
                    " does not follow with its credential; it is tried again later."
                )
        raise UnavailableError(f"The Git LFS server {host} redirects too often; try again later.")

    def receive(self, endpoint: str, wanted: LfsObject, action: _Action, file: Path) -> None:
        """Download one object to a file, which is never larger than its size."""
        url, header = action.href, action.header
        for _ in range(MAX_REDIRECTS + 1):
            _require_safe(url, endpoint)
            with self._send("GET", url, header) as response:
                location = _location(response)
                if not location:
                    self._write(response, wanted, file, _host(url))
                    return
            to = urljoin(url, location)
            # The server gave the headers for its own address.
            header = header if _origin(to) == _origin(url) else {}
            url = to
        raise UnavailableError(f"{_host(url)} redirects a download too often; try again later.")

    def _write(self, response: Response, wanted: LfsObject, file: Path, host: str) -> None:
        if response.status_code != HTTPStatus.OK:
            raise UnavailableError(
                f"{host} answered {response.status_code} for the Git LFS object"
                f" {wanted.oid[:10]}; it is tried again later."
            )
        content, size = hashlib.sha256(), 0
        with file.open("wb") as opened:
            for chunk in self._chunks(response, host):
                size += len(chunk)
                if size > wanted.size:
                    break
                content.update(chunk)
                opened.write(chunk)
        if size != wanted.size or content.hexdigest() != wanted.oid:
            file.unlink()
            raise UnavailableError(
                f"{host} sent other content for the Git LFS object {wanted.oid[:10]} than its"
                " pointer names; it is tried again later."
            )

    def _body(self, response: Response, host: str) -> bytes:
        body = bytearray()
        for chunk in self._chunks(response, host):
            body += chunk
            if len(body) > MAX_ANSWER:
                raise UnavailableError(f"The answer of {host} is too long; try again later.")
        return bytes(body)

    def _chunks(self, response: Response, host: str) -> Iterator[bytes]:
        try:
            while chunk := response.raw.read1(CHUNK, decode_content=False):
                yield chunk
                self._require_time(host)
        except TRANSFER_FAULTS as error:
            raise _failed(host, error) from error

    def _require_time(self, host: str) -> None:
        if reason := reason_to_stop():
            raise reason
        if time.monotonic() > self.until:
            raise UnavailableError(f"{host} did not send all Git LFS objects in time; try again.")

    def _send(
        self,
        method: str,
        url: str,
        header: Mapping[str, str],
        *,
        token: str | None = None,
        body: dict[str, JsonValue] | None = None,
    ) -> Response:
        host = _host(url)
        self._require_time(host)
        own = {"Accept": MEDIA_TYPE, "Content-Type": MEDIA_TYPE} if body else {}
        try:
            return self.session.request(
                method,
                url,
                json=body,
                headers={**own, **header, "Accept-Encoding": "identity"},
                auth=(USER, token) if token else _without_credentials,
                timeout=TIMEOUT,
                verify=str(self.bundle) if self.bundle else True,
                allow_redirects=False,
                stream=True,
            )
        except TRANSFER_FAULTS as error:
            raise _failed(host, error) from error


def _actions(
    host: str, status: int, text: bytes, wanted: Sequence[LfsObject]
) -> Mapping[str, _Action]:
    if status != HTTPStatus.OK:
        raise _refused(host, status, text)
    try:
        answer = BATCH.validate_json(text)
    except ValidationError as error:
        raise UnavailableError(
            f"The answer of the Git LFS server {host} cannot be read; it is tried again later."
        ) from error
    if answer.transfer != BASIC:
        raise UnavailableError(f"The Git LFS server {host} has no transfer `basic`.")
    by_oid = {each.oid: each for each in answer.objects}
    actions = dict[str, _Action]()
    for each in wanted:
        found = by_oid.get(each.oid)
        action = found.actions.download if found and found.actions else None
        if found is None or found.error or action is None:
            said = (
                f" ({found.error.code} {_words(found.error.message)})"
                if found and found.error
                else ""
            )
            raise UnavailableError(
                f"The Git LFS server {host} does not have the object {each.oid[:10]}{said}. Push it"
                " with `git lfs push --all`; it is tried again later."
            )
        actions[each.oid] = action
    return actions


def _refused(host: str, status: int, text: bytes) -> UnavailableError | ForbiddenError:
    try:
        said = f" ({_words(REFUSAL.validate_json(text).message)})"
    except ValidationError:
        said = ""
    message = f"The Git LFS server {host} answered {status}{said}"
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        return ForbiddenError(f"{message}; check the credential and its permissions.")
    return UnavailableError(f"{message}; it is tried again later.")


def _words(text: str) -> str:
    return one_line(text, MAX_WORDS)


def _failed(host: str, error: Exception) -> UnavailableError:
    return certificate_error(error, host) or UnavailableError(
        f"{host} did not send the Git LFS objects: {reason_of(error)}; it is tried again later."
    )


def _location(response: Response) -> str:
    return response.headers.get("location", "") if response.is_redirect else ""


def _require_safe(url: str, endpoint: str) -> None:
    parts = _origin(url)
    if parts[0] not in ({"https"} if _origin(endpoint)[0] == "https" else {"http", "https"}):
        raise UnavailableError(
            f"The Git LFS server {_host(endpoint)} gives an address that is not https; it is tried"
            " again later."
        )


def _origin(url: str) -> tuple[str, str]:
    try:
        parts = urlsplit(url)
    except ValueError:
        return "", ""
    return parts.scheme, parts.netloc.lower()


def _host(url: str) -> str:
    return _origin(url)[1].rpartition("@")[2] or "an invalid address"


def _without_credentials(request: PreparedRequest) -> PreparedRequest:
    """Replace requests' authentication, so that it takes no credentials from a .netrc file."""
    return request
