"""Call GitHub's REST and GraphQL APIs through PyGithub, with retries, ETags and rate limits."""

import re
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import TypeVar
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit

from pydantic import JsonValue, TypeAdapter
from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt
from tenacity.wait import wait_exponential, wait_random

from github import GithubException
from mulligan.domain.errors import ConfigError, UnavailableError
from mulligan.github.answers import (
    MovedError,
    fault,
    moved,
    parsed,
    rate_limited,
)
from mulligan.github.connection import (
    TRANSFER_FAULTS,
    RedirectError,
    Sessions,
    Transport,
    certificate_error,
    fetch,
    fetch_upload,
    is_refused,
    reason_of,
)
from mulligan.github.graphql import answered
from mulligan.github.rate_limits import Backoff
from mulligan.github.retries import (
    REPEATS,
    TransientError,
    is_limit,
    is_repeated_at_once,
    is_retriable,
    retry_after,
)
from mulligan.github.shapes import Answer
from mulligan.github.uploads import Uploads
from mulligan.implement.ports import Guard
from mulligan.sandbox.cancellation import sleep_until_cancelled
from mulligan.text.redact import Redactor

T = TypeVar("T")

Tokens = Callable[[str | None], str | None]
"""Returns the token for a repository, or for calls outside any; None to send none."""

BODY: TypeAdapter[JsonValue] = TypeAdapter(JsonValue)

FACTS_KEY = re.compile(r"/repos/[^/?]+/[^/?]+\?")
"""The key of a repository's own facts, which no write of Mulligan's changes."""

REPOSITORY_PATH = re.compile(r"/repos/([^/?]+/[^/?]+)")

PUBLIC_API = "api.github.com"
"""The host of GitHub.com's API, which has GraphQL; an older server may lack it."""

PAGE_SIZE = 100

MAX_PAGES = 100

NEXT_PAGE = re.compile(r'<([^>]*)>\s*;[^,]*\brel="next"')

LIBRARY_FAULTS = (
    *TRANSFER_FAULTS,
    GithubException,
    RuntimeError,
    AssertionError,  # PyGithub's own checks
)
"""Errors of the libraries if no answer arrived, or none that can be read."""

JSON = "application/vnd.github+json"
FULL = "application/vnd.github.full+json"
"""The media types of answers; with the second one, a text comes with GitHub's rendering of it."""


class ETagCache:
    """Caches answers by request, up to `most` characters, least recently used out; thread-safe."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._size = 0
        self._answers: dict[str, Answer] = {}
        self._lock = threading.Lock()

    def find(self, key: str) -> Answer | None:
        """Return the cached answer of a request, if any."""
        with self._lock:
            found = self._answers.pop(key, None)
            if found:
                # A dict keeps insertion order: this answer becomes the newest.
                self._answers[key] = found
            return found

    def keep(self, key: str, answer: Answer) -> None:
        """Cache an answer that has an ETag; drop the least recently used."""
        with self._lock:
            self._drop(key)
            self._answers[key] = answer
            self._size += len(answer.body)
            while self._size > self._most:
                self._drop(next(iter(self._answers)))

    def _drop(self, key: str) -> None:
        gone = self._answers.pop(key, None)
        self._size -= len(gone.body) if gone else 0


class CachedReads(threading.local):
    """The answers that a thread has read in a `cached_reads` block; None outside of any."""

    answers: dict[str, Answer] | None = None

    def find(self, key: str) -> Answer | None:
        """Return the answer of a request that was read in this block."""
        return self.answers.get(key) if self.answers else None

    def keep(self, key: str, answer: Answer) -> None:
        """Keep an answer until the block ends, or the thread writes."""
        if self.answers is not None:
            self.answers[key] = answer

    def drop(self, path: str) -> None:
        """Drop cached answers that a write to `path` may change: all but facts about repositories.

        A comment does not change the text and labels of its issue.
        """
        self.answers = self.answers and {
            key: answer
            for key, answer in self.answers.items()
            if FACTS_KEY.match(key) or f"{key.removesuffix('?')}/comments" == path
        }


@dataclass(frozen=True, slots=True)
class RetrySettings:
    """Retries and waits of reads, in seconds; `cache_chars` limits the ETag cache in characters."""

    attempts: int = 5
    longest_wait: float = 60.0
    first_wait: float = 0.5
    timeout: int = 15
    cache_chars: int = 64 * 1024 * 1024
    sleep: Callable[[float], None] = sleep_until_cancelled
    now: Callable[[], float] = time.monotonic


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """A request; `repository` chooses the token, if the path does not name one.

    The client's guard is called right before one that `is_write`.
    """

    verb: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: object = None
    repository: str | None = None
    is_write: bool = False

    @property
    def repository_asked(self) -> str | None:
        """Return the repository whose token to use: `repository`, or else the path's, or None."""
        named = REPOSITORY_PATH.match(self.path)
        return self.repository or (named[1] if named else None)


class Client:
    """GitHub at one address; safe for threads.

    `token` is called before every request, so that a renewed token is used at once. Clients with
    the same `transport` share their rate-limit backoffs.
    """

    def __init__(
        self,
        api_url: str,
        token: Tokens,
        retry: RetrySettings | None = None,
        transport: Transport | None = None,
        redactor: Redactor | None = None,
    ) -> None:
        parts = urlsplit(api_url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ConfigError(f"github.api_url is {api_url!r}; write it like https://HOST/api/v3.")
        self._api_url = api_url.rstrip("/")
        # GitHub Enterprise: /api/v3 beside /api/graphql.
        self._graphql = f"{self._api_url.removesuffix('/v3')}/graphql"
        self._token = token
        self._uploads = Uploads.of(self._api_url)
        self._retry = retry or RetrySettings()
        self._redactor = redactor or Redactor()
        self._transport = transport or Transport()
        self._sessions = Sessions(self._api_url, self._retry.timeout, self._transport)
        self._cache = ETagCache(self._retry.cache_chars)
        self._cached_reads = CachedReads()
        self.has_graphql = threading.Event()
        if parts.hostname == PUBLIC_API:
            self.has_graphql.set()
        self.guard: Guard | None = None

    def guarded(self, guard: Guard) -> "Client":
        """Return the same client, which calls `guard` right before each request that writes."""
        made = copy(self)
        made.guard = guard
        return made

    @contextmanager
    def cached_reads(self) -> Generator[None]:
        """Read each address once while the block lasts, in this thread, and again after a write."""
        if self._cached_reads.answers is not None:
            yield
            return
        self._cached_reads.answers = {}
        try:
            yield
        finally:
            self._cached_reads.answers = None

    def close(self) -> None:
        """Close every thread's connection; the next call opens its own again."""
        self._sessions.close()

    def read(
        self,
        shape: TypeAdapter[T],
        path: str,
        params: Mapping[str, str] | None = None,
        accept: str = JSON,
    ) -> T:
        """Get one object; NotFoundError for a 404, DeletedError for a 410.

        An unchanged answer costs no quota. `accept` is the media type.
        """
        get = partial(self._conditional_get, shape, path, params or {}, accept)
        return self._with_retries(get)[1]

    def read_all(
        self,
        shape: TypeAdapter[tuple[T, ...]],
        path: str,
        params: Mapping[str, str] | None = None,
        enough: Callable[[Sequence[T]], bool] | None = None,
        accept: str = JSON,
    ) -> list[T]:
        """Get the pages of a list until `enough` accepts one; unchanged pages cost no quota."""
        found: list[T] = []
        query = {"per_page": str(PAGE_SIZE), **(params or {})}
        for _ in range(MAX_PAGES):
            answer, page = self._with_retries(
                partial(self._conditional_get, shape, path, query, accept)
            )
            found += page
            following = self._next(answer)
            if following is None or (enough and enough(page)):
                return found
            query = following
        raise UnavailableError(f"GitHub's list at {path} does not end; try again later.")

    def download(self, path: str) -> bytes:
        """Get the end of a file; follow the redirect to its storage without sending the token."""
        return self._with_retries(lambda: self._download_redirected(path))

    def is_upload(self, address: str) -> bool:
        """Return whether people's attachments to issues are at such an address of this GitHub."""
        return self._uploads.has(address)

    def fetch_upload(self, address: str, most: int) -> bytes:
        """Get the first `most` bytes of an attachment, without a token; once."""
        settings, bundle = self._retry, self._transport.bundle
        return fetch_upload(address, self._api_url, settings.timeout, bundle, most=most)

    def query(
        self,
        shape: TypeAdapter[T],
        text: str,
        variables: Mapping[str, object],
        repository: str | None = None,
    ) -> T:
        """Send a GraphQL query, with retries; NotFoundError if the server has no GraphQL.

        `repository` chooses the token, if the variables do not name one.
        """
        body = {"query": text, "variables": dict(variables)}
        named = f"{variables['owner']}/{variables['name']}" if "owner" in variables else None
        whose = repository or named
        ask = ApiRequest("POST", self._graphql, body=body, repository=whose)
        return self._with_retries(lambda: answered(shape, self._ask_graphql(ask)))

    def mutate(
        self,
        shape: TypeAdapter[T],
        text: str,
        variables: Mapping[str, object],
        repository: str,
        right: str = "the permission to write pull requests",
    ) -> T:
        """Send a GraphQL mutation, once; NotFoundError if the server has no GraphQL.

        `right` is what the token needs for it. After an UnavailableError the change may have
        happened.
        """
        body = {"query": text, "variables": dict(variables)}
        ask = ApiRequest("POST", self._graphql, body=body, repository=repository, is_write=True)
        return answered(shape, self._ask_graphql(ask), right)

    def write(self, shape: TypeAdapter[T], verb: str, path: str, body: object) -> T:
        """Send a write, once; after an UnavailableError the change may have happened.

        The body is redacted; `as_sent` returns a text as it will appear on GitHub.
        """
        sent = self._redactor.tree(BODY.validate_python(body))
        answer = self._ask(ApiRequest(verb, path, body=sent, is_write=True))
        return parsed(shape, answer, f"{verb} {path}")

    def as_sent(self, text: str) -> str:
        """Return a text as `write` sends it, to compare it with the text on GitHub."""
        return self._redactor.text(text)

    def remove(self, shape: TypeAdapter[T], path: str) -> T:
        """Send a DELETE, once, and return the answer; NotFoundError if nothing was there."""
        return parsed(shape, self._ask(ApiRequest("DELETE", path, is_write=True)), f"DELETE {path}")

    def _with_retries(self, call: Callable[[], T]) -> T:
        settings = self._retry
        retrying = Retrying(
            retry=retry_if_exception(partial(is_retriable, longest_wait=settings.longest_wait)),
            wait=self._wait,
            stop=stop_after_attempt(settings.attempts),
            sleep=settings.sleep,
            reraise=True,
        )
        return retrying(call)

    def _wait(self, state: RetryCallState) -> float:
        """Return GitHub's Retry-After, or else an exponential wait; with up to 1 s of jitter."""
        error = state.outcome.exception() if state.outcome else None
        seconds = error.wait if isinstance(error, TransientError) else None
        longest = self._retry.longest_wait
        grown = wait_exponential(multiplier=self._retry.first_wait, max=longest)(state)
        return (seconds or grown) + wait_random(0, 1)(state)

    def _conditional_get(
        self, shape: TypeAdapter[T], path: str, query: Mapping[str, str], accept: str
    ) -> tuple[Answer, T]:
        """Send a GET with the cached ETag; on 304 Not Modified return the cached answer."""
        key = f"{path}?{urlencode(query)}" + ("" if accept == JSON else f" {accept}")
        if seen := self._cached_reads.find(key):
            return seen, parsed(shape, seen, f"GET {path}")
        known = self._cache.find(key)
        headers = {"Accept": accept}
        headers |= {"If-None-Match": known.headers["etag"]} if known else {}
        answer = self._ask(ApiRequest("GET", path, query, headers))
        if known and answer.status == HTTPStatus.NOT_MODIFIED:
            self._cached_reads.keep(key, known)
            return known, parsed(shape, known, f"GET {path}")
        found = parsed(shape, answer, f"GET {path}")
        self._cached_reads.keep(key, answer)
        if "etag" in answer.headers:
            self._cache.keep(key, answer)
        return answer, found

    def _download_redirected(self, path: str) -> bytes:
        try:
            answer = self._ask(ApiRequest("GET", path))
        except MovedError as error:
            if error.renames:
                raise
            target = urljoin(f"{self._api_url}/", error.to)
            settings, bundle = self._retry, self._transport.bundle
            return fetch(target, self._api_url, settings.timeout, bundle)
        if wrong := fault(answer, f"GET {path}"):
            raise wrong
        return answer.body.encode()

    def _next(self, answer: Answer) -> dict[str, str] | None:
        """Return the query of the next page, for the same path; None after the last page.

        Only the query is used: GitHub's links name the repository by its id, which selects no
        token.
        """
        found = NEXT_PAGE.search(answer.headers.get("link", ""))
        if found is None:
            return None
        target, api = urlsplit(found[1]), urlsplit(self._api_url)
        same = (target.scheme, target.netloc) == (api.scheme, api.netloc)
        if not same or not target.path.startswith(f"{api.path}/"):
            raise UnavailableError(
                f"A list of {api.netloc} continues at {target.netloc}{target.path}, which Mulligan"
                " does not read; check github.api_url."
            )
        return dict(parse_qsl(target.query))

    def _ask(self, ask: ApiRequest) -> Answer:
        """Send a request, and repeat it at once if `is_repeated_at_once` says so."""
        answer = self._ask_once(ask)
        wait, request = self._retry.first_wait, f"{ask.verb} {urlsplit(ask.path).path}"
        repeats = min(REPEATS, self._retry.attempts - 1)
        for _ in range(repeats if ask.path != self._graphql else 0):
            if not is_repeated_at_once(answer, request, is_write=ask.is_write):
                break
            if answer.status != HTTPStatus.NOT_FOUND:
                wait *= 2
            self._retry.sleep(wait)
            answer = self._ask_once(ask)
        return answer

    def _ask_graphql(self, ask: ApiRequest) -> Answer:
        """Send a GraphQL request; TransientError if a server that has GraphQL does not find it."""
        answer = self._ask(ask)
        if answer.status != HTTPStatus.NOT_FOUND:
            self.has_graphql.set()
        elif self.has_graphql.is_set():
            raise TransientError("GitHub did not find its GraphQL API; try again later.")
        return answer

    def _ask_once(self, ask: ApiRequest) -> Answer:
        session = self._sessions.of(self._token(ask.repository_asked))
        sent = {"Accept": JSON, **ask.headers}
        request = f"{ask.verb} {urlsplit(ask.path).path}"
        self._await_rate_limit(session.backoff, request)
        if ask.is_write:
            self._cached_reads.drop(ask.path)
            if self.guard:
                self.guard()
        try:
            status, received, text = session.github.requester.requestJson(
                ask.verb, ask.path, dict(ask.query), sent, ask.body, session.connection
            )
        except RedirectError as error:
            raise moved(request, str(error)) from error
        except LIBRARY_FAULTS as error:
            host = urlsplit(self._api_url).netloc
            advice = "start it, or fix github.api_url" if is_refused(error) else "try again later"
            raise certificate_error(error, f"GitHub at {host}") or TransientError(
                f"GitHub at {host} did not answer {request}: {reason_of(error)}; {advice}."
            ) from error
        answer = Answer(status, {str(name): str(value) for name, value in received.items()}, text)
        self._transport.metrics.read(answer)
        now = self._retry.now()
        if is_limit(answer):
            session.backoff.begin(now, retry_after(answer))
        else:
            session.backoff.reset(now)
        return answer

    def _await_rate_limit(self, backoff: Backoff, request: str) -> None:
        """Wait for the token's backoff; raise TransientError at once if that takes too long."""
        settings, waited = self._retry, 0.0
        while left := backoff.remaining(settings.now()):
            waited += left
            if waited > settings.longest_wait:
                raise rate_limited(request, left)
            settings.sleep(left)
