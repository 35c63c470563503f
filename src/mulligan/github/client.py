"""Talk to GitHub's REST API through PyGithub: the one place where calls are made and judged."""

import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TypeVar
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit

from pydantic import JsonValue, TypeAdapter
from requests import RequestException
from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt
from tenacity.wait import wait_exponential, wait_random
from urllib3.exceptions import HTTPError

from github import GithubException
from mulligan.domain.errors import ConfigError, UnavailableError
from mulligan.github.answers import (
    Answer,
    MovedError,
    TransientError,
    fault,
    is_limit,
    moved,
    parsed,
    rate_limited,
    retry_after,
)
from mulligan.github.connection import (
    InvalidResponseError,
    RedirectError,
    Sessions,
    Transport,
    fetch,
    is_refused,
    reason_of,
)
from mulligan.github.graphql import answered
from mulligan.github.rate_limits import Backoff
from mulligan.sandbox.cancellation import sleep_until_cancelled
from mulligan.text.redact import Redactor

T = TypeVar("T")

BODY: TypeAdapter[JsonValue] = TypeAdapter(JsonValue)

PAGE_SIZE = 100

MAX_PAGES = 100

REPOSITORY_PATH = re.compile(r"/repos/([^/?]+/[^/?]+)")

Tokens = Callable[[str | None], str | None]
"""Gives the token for a repository, or for what belongs to none; None to ask without one."""

NEXT_PAGE = re.compile(r'<([^>]*)>\s*;[^,]*\brel="next"')

LIBRARY_FAULTS = (
    RequestException,
    HTTPError,  # urllib3's, where a body breaks off
    GithubException,
    OSError,
    ValueError,  # a header that is none, text that is not UTF-8
    RuntimeError,
    AssertionError,  # PyGithub's own checks
    InvalidResponseError,
)


class ETagCache:
    """Keeps up to `most` characters of answers, those that were used last; safe for threads."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._size = 0
        self._answers: dict[str, Answer] = {}
        self._lock = threading.Lock()

    def find(self, asked: str) -> Answer | None:
        """Give the answer that came last, if it is still kept."""
        with self._lock:
            found = self._answers.pop(asked, None)
            if found:
                # The first of a dict is the oldest; this one is the newest now.
                self._answers[asked] = found
            return found

    def keep(self, asked: str, answer: Answer) -> None:
        """Keep an answer that has an ETag; what was not used for longest goes."""
        with self._lock:
            self._drop(asked)
            self._answers[asked] = answer
            self._size += len(answer.body)
            while self._size > self._most:
                self._drop(next(iter(self._answers)))

    def _drop(self, asked: str) -> None:
        gone = self._answers.pop(asked, None)
        self._size -= len(gone.body) if gone else 0


@dataclass(frozen=True, slots=True)
class RetrySettings:
    """How long a read is tried, in seconds; `remembered` is for ETags, in characters of answers."""

    attempts: int = 5
    longest_wait: float = 60.0
    first_wait: float = 0.5
    timeout: int = 15
    cache_chars: int = 64 * 1024 * 1024
    sleep: Callable[[float], None] = sleep_until_cancelled
    now: Callable[[], float] = time.monotonic


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """A request; what concerns a `repository` is asked in its name."""

    verb: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: object = None
    repository: str | None = None

    @property
    def repository_asked(self) -> str | None:
        """Give the repository that it concerns, by its path if nothing else; None for none."""
        named = REPOSITORY_PATH.match(self.path)
        return self.repository or (named[1] if named else None)


class Client:
    """GitHub at one address; safe to use from several threads.

    `token` is asked before every call for the token of a repository, None for what belongs to
    none, so that a new one is used as soon as it is there. Clients with one `transport` leave
    GitHub alone together.
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
            message = f"github.api_url is {api_url!r}; write it like https://HOST/api/v3."
            raise ConfigError(message)
        self._api_url = api_url.rstrip("/")
        # GitHub Enterprise: /api/v3 beside /api/graphql.
        self._graphql = f"{self._api_url.removesuffix('/v3')}/graphql"
        self._token = token
        self._patience = retry or RetrySettings()
        self._redactor = redactor or Redactor()
        self._transport = transport or Transport()
        self._sessions = Sessions(self._api_url, self._patience.timeout, self._transport)
        self._known = ETagCache(self._patience.cache_chars)

    def close(self) -> None:
        """Close every thread's connection; the next call opens its own again."""
        self._sessions.close()

    def read(self, shape: TypeAdapter[T], path: str, params: Mapping[str, str] | None = None) -> T:
        """Get one object; NotFoundError for a 404. Free of charge while it is unchanged."""
        return self._with_retries(lambda: self._conditional_get(shape, path, params or {}))[1]

    def read_all(
        self,
        shape: TypeAdapter[tuple[T, ...]],
        path: str,
        params: Mapping[str, str] | None = None,
        enough: Callable[[Sequence[T]], bool] | None = None,
    ) -> list[T]:
        """Get the pages of a list until there is `enough`; free of charge while unchanged."""
        found: list[T] = []
        query = {"per_page": str(PAGE_SIZE), **(params or {})}
        for _ in range(MAX_PAGES):
            answer, page = self._with_retries(
                lambda query=query: self._conditional_get(shape, path, query)
            )
            found += page
            following = self._next(answer)
            if following is None or (enough and enough(page)):
                return found
            query = following
        message = f"GitHub's list at {path} does not end; try again later."
        raise UnavailableError(message)

    def download(self, path: str) -> bytes:
        """Get the end of a file that GitHub keeps elsewhere, where it is asked for no token."""
        return self._with_retries(lambda: self._download_redirected(path))

    def query(self, shape: TypeAdapter[T], text: str, variables: Mapping[str, object]) -> T:
        """Ask GraphQL, which changes nothing; NotFoundError where the server has none."""
        body = {"query": text, "variables": dict(variables)}
        whose = f"{variables['owner']}/{variables['name']}" if "owner" in variables else None
        ask = ApiRequest("POST", self._graphql, body=body, repository=whose)
        return self._with_retries(lambda: answered(shape, self._ask(ask)))

    def mutate(
        self, shape: TypeAdapter[T], text: str, variables: Mapping[str, object], repository: str
    ) -> T:
        """Change something by GraphQL, once; NotFoundError where the server has none.

        After an UnavailableError it may have happened all the same.
        """
        body = {"query": text, "variables": dict(variables)}
        ask = ApiRequest("POST", self._graphql, body=body, repository=repository)
        return answered(shape, self._ask(ask), "the permission to write pull requests")

    def write(self, shape: TypeAdapter[T], verb: str, path: str, body: object) -> T:
        """Change something, once; after an UnavailableError it may have happened all the same.

        What is sent is redacted; `as_sent` gives a text as it will stand on GitHub.
        """
        sent = self._redactor.tree(BODY.validate_python(body))
        return parsed(shape, self._ask(ApiRequest(verb, path, body=sent)), f"{verb} {path}")

    def as_sent(self, text: str) -> str:
        """Give a text as `write` sends it, to be compared with what is there."""
        return self._redactor.text(text)

    def remove(self, shape: TypeAdapter[T], path: str) -> T:
        """Delete something, once, and give what is left; NotFoundError where it was not there."""
        return parsed(shape, self._ask(ApiRequest("DELETE", path)), f"DELETE {path}")

    def _with_retries(self, call: Callable[[], T]) -> T:
        patience = self._patience

        def worth_it(error: BaseException) -> bool:
            return isinstance(error, TransientError) and (error.wait or 0) <= patience.longest_wait

        retrying = Retrying(
            retry=retry_if_exception(worth_it),
            wait=self._wait,
            stop=stop_after_attempt(patience.attempts),
            sleep=patience.sleep,
            reraise=True,
        )
        return retrying(call)

    def _wait(self, state: RetryCallState) -> float:
        """Wait as GitHub asks, else ever longer; with jitter, so that not all come at once."""
        error = state.outcome.exception() if state.outcome else None
        asked = error.wait if isinstance(error, TransientError) else None
        longest = self._patience.longest_wait
        grown = wait_exponential(multiplier=self._patience.first_wait, max=longest)(state)
        return (asked or grown) + wait_random(0, 1)(state)

    def _conditional_get(
        self, shape: TypeAdapter[T], path: str, query: Mapping[str, str]
    ) -> tuple[Answer, T]:
        """Ask GitHub, which says in a word whether what is remembered is still so."""
        key = f"{path}?{urlencode(query)}"
        known = self._known.find(key)
        headers = {"If-None-Match": known.headers["etag"]} if known else {}
        answer = self._ask(ApiRequest("GET", path, query, headers))
        if known and answer.status == HTTPStatus.NOT_MODIFIED:
            return known, parsed(shape, known, f"GET {path}")
        found = parsed(shape, answer, f"GET {path}")
        if "etag" in answer.headers:
            self._known.keep(key, answer)
        return answer, found

    def _download_redirected(self, path: str) -> bytes:
        try:
            answer = self._ask(ApiRequest("GET", path))
        except MovedError as error:
            if error.renames:
                raise
            there = urljoin(f"{self._api_url}/", error.to)
            patience, ca_file = self._patience, self._transport.ca_file
            return fetch(there, self._api_url, patience.timeout, ca_file)
        if wrong := fault(answer, f"GET {path}"):
            raise wrong
        return answer.body.encode()

    def _next(self, answer: Answer) -> dict[str, str] | None:
        """Give what to ask the same path for the next page; None where this was the last.

        GitHub's links name the repository by its number, by which no token would be found.
        """
        found = NEXT_PAGE.search(answer.headers.get("link", ""))
        if found is None:
            return None
        there, here = urlsplit(found[1]), urlsplit(self._api_url)
        same = (there.scheme, there.netloc) == (here.scheme, here.netloc)
        if not same or not there.path.startswith(f"{here.path}/"):
            message = (
                f"A list of {here.netloc} goes on at {there.netloc}{there.path}, which is not "
                "followed; check github.api_url."
            )
            raise UnavailableError(message)
        return dict(parse_qsl(there.query))

    def _ask(self, ask: ApiRequest) -> Answer:
        session = self._sessions.of(self._token(ask.repository_asked))
        sent = {"Accept": "application/vnd.github+json", **ask.headers}
        request = f"{ask.verb} {urlsplit(ask.path).path}"
        self._await_rate_limit(session.backoff, request)
        try:
            status, received, text = session.github.requester.requestJson(
                ask.verb, ask.path, dict(ask.query), sent, ask.body, session.connection
            )
        except RedirectError as error:
            raise moved(request, str(error)) from error
        except LIBRARY_FAULTS as error:
            host = urlsplit(self._api_url).netloc
            advice = "start it, or mend github.api_url" if is_refused(error) else "try again later"
            message = f"GitHub at {host} did not answer {request}: {reason_of(error)}; {advice}."
            raise TransientError(message) from error
        answer = Answer(status, {str(name): str(value) for name, value in received.items()}, text)
        self._transport.metrics.read(answer)
        now = self._patience.now()
        if is_limit(answer):
            session.backoff.begin(now, retry_after(answer))
        else:
            session.backoff.reset(now)
        return answer

    def _await_rate_limit(self, pause: Backoff, request: str) -> None:
        """Let the token rest while it has to; one that would take too long is an error at once."""
        patience, waited = self._patience, 0.0
        while left := pause.remaining(patience.now()):
            waited += left
            if waited > patience.longest_wait:
                raise rate_limited(request, left)
            patience.sleep(left)
