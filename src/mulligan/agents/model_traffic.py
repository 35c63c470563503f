"""Observe the traffic between an agent and its model's service, in the proxy (AGENT-6).

It records how long the service has been silent, when the service accepts the next request, and how
many tokens the service counted. The proxy calls it from its own thread, the runner from another.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import reduce
from threading import Lock

from pydantic import JsonValue, TypeAdapter, ValidationError

from mulligan.agents.output import (
    DENIED,
    LIMITED,
    MAX_LINE_BYTES,
    SERVER_ERROR,
    StreamFacts,
    json_object,
    number_in,
    values,
)
from mulligan.agents.prices import cost_of, price_of
from mulligan.config.adapters import Fact
from mulligan.config.settings import Price
from mulligan.domain.result import AgentFacts
from mulligan.domain.retry_after import seconds_asked
from mulligan.domain.spending import Allowance

# Tokens.


@dataclass(frozen=True, slots=True)
class TokenCount:
    """Tokens as the model's service counted them; `input` includes the `cached` ones."""

    input: int = 0
    cached: int = 0
    output: int = 0

    def plus(self, other: "TokenCount") -> "TokenCount":
        """Return the sum of two counts."""
        return TokenCount(
            self.input + other.input, self.cached + other.cached, self.output + other.output
        )

    def at_least(self, other: "TokenCount") -> "TokenCount":
        """Return the larger of each number: within one answer, a service reports running totals."""
        return TokenCount(
            max(self.input, other.input),
            max(self.cached, other.cached),
            max(self.output, other.output),
        )


NO_TOKENS = TokenCount()


def with_tokens(facts: StreamFacts, tokens: TokenCount) -> StreamFacts:
    """Raise the counts that an agent printed to those of its model's service.

    An agent does not print the tokens of an answer that a limit interrupted.
    """
    counted = {Fact.INPUT: tokens.input, Fact.CACHED: tokens.cached, Fact.OUTPUT: tokens.output}
    higher = {fact: n for fact, n in counted.items() if n > facts.numbers.get(fact, 0)}
    return replace(facts, numbers={**facts.numbers, **higher})


def raise_counts(reported: AgentFacts, tokens: TokenCount) -> AgentFacts:
    """Raise the counts that an agent without rules reported to those of its model's service."""
    counted = {"input_tokens": tokens.input, "output_tokens": tokens.output}
    known = {"input_tokens": reported.input_tokens, "output_tokens": reported.output_tokens}
    return reported.model_copy(
        update={name: count for name, count in counted.items() if count > (known[name] or 0)}
    )


USAGE_PATHS = ("usage", "message.usage", "response.usage", "usageMetadata")
"""Paths of the usage in answers: Messages, chat completions, Responses, generateContent."""

WHOLE_INPUT = ("prompt_tokens", "promptTokenCount")

INPUT = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
"""Anthropic counts cached tokens separately; OpenAI's input_tokens include them."""

CACHED = (
    "cache_read_input_tokens",
    "input_tokens_details.cached_tokens",
    "prompt_tokens_details.cached_tokens",
    "cachedContentTokenCount",
)

OUTPUT = ("output_tokens", "completion_tokens", "candidatesTokenCount", "thoughtsTokenCount")


def tokens_in(answer: JsonValue) -> TokenCount:
    """Return the usage in an answer, or in one event of its stream; zero if it has none."""
    found = NO_TOKENS
    for path in USAGE_PATHS:
        for usage in values(answer, path):
            whole = _sum(usage, WHOLE_INPUT)
            found = found.at_least(
                TokenCount(whole or _sum(usage, INPUT), _sum(usage, CACHED), _sum(usage, OUTPUT))
            )
    return found


MODEL_PATHS = ("model", "message.model", "response.model", "modelVersion")
"""Paths of the model's name in the same answers."""


def model_in(answer: JsonValue) -> str:
    """Return the model that an answer, or an event of its stream, names; "" if it names none."""
    found = (value for path in MODEL_PATHS for value in values(answer, path))
    return next((name for name in found if isinstance(name, str)), "")


MARGIN = 2
"""How much more a run may cost than the count says: writing a cache, and long contexts, cost up to
twice the price of input."""


@dataclass(frozen=True, slots=True)
class ServiceCount:
    """The tokens that a service counted for a run, by model.

    It `is_complete` if every answer of a model said what it used.
    """

    tokens: Mapping[str, TokenCount]
    is_complete: bool

    def bound(self, prices: Mapping[str, Price], allowed: Allowance) -> Allowance:
        """Return what a run may claim: up to the count, or `allowed` where nothing was counted."""
        total, usd = reduce(TokenCount.plus, self.tokens.values(), NO_TOKENS), 0.0
        found = [(price_of(model, prices), count) for model, count in self.tokens.items()]
        for price, count in found:
            usd += cost_of(price, count.input, count.cached, count.output) if price else 0.0
        counted = Allowance(MARGIN * usd, MARGIN * (total.input + total.output))
        if not (self.is_complete and self.tokens):
            return allowed.at_least(counted)
        is_priced = all(price for price, _ in found)
        usd_bound = counted.usd if is_priced else allowed.at_least(counted).usd
        return Allowance(usd_bound, counted.tokens)


def _sum(usage: JsonValue, paths: Sequence[str]) -> int:
    numbers = (number_in(value) for path in paths for value in values(usage, path))
    return round(sum(number for number in numbers if number is not None))


ANY_JSON: TypeAdapter[JsonValue] = TypeAdapter(JsonValue)


class UsageReader:
    """Reads the usage from the body of one answer, in parts of any size.

    The body is a stream of events (text/event-stream) or one JSON value. A line, or a JSON value,
    of more than MAX_LINE_BYTES is skipped.
    """

    def __init__(self, *, streams: bool) -> None:
        self.tokens = NO_TOKENS
        self.model = ""
        self._streams = streams
        self._rest = bytearray()
        self._is_too_long = False

    def feed(self, part: bytes) -> None:
        """Read a part of the body."""
        *lines, rest = part.split(b"\n") if self._streams else [part]
        for line in lines:
            self._add(line)
            self._read_event()
        self._add(rest)

    def close(self) -> None:
        """Read an incomplete last line."""
        if self._streams:
            self._read_event()
        elif not self._is_too_long:
            with suppress(ValidationError):
                answer = ANY_JSON.validate_json(bytes(self._rest))
                for each in answer if isinstance(answer, list) else [answer]:
                    self._note(each)
            self._rest.clear()

    def _add(self, part: bytes) -> None:
        self._is_too_long = self._is_too_long or len(self._rest) + len(part) > MAX_LINE_BYTES
        if self._is_too_long:
            self._rest.clear()
        else:
            self._rest += part

    def _read_event(self) -> None:
        field, _, data = bytes(self._rest).partition(b":")
        tells = b"usage" in data or (b"model" in data and not self.model)
        if field == b"data" and tells and (event := json_object(data)):
            self._note(event)
        self._rest.clear()
        self._is_too_long = False

    def _note(self, answer: JsonValue) -> None:
        self.tokens = self.tokens.at_least(tokens_in(answer))
        self.model = self.model or model_in(answer)


# Waiting.

NO_TIME = timedelta()

LONGEST_WAIT = timedelta(days=1)
"""Maximum of `Retry-After`; a longer one is cut to this."""


@dataclass(frozen=True, slots=True)
class ServiceRefusal:
    """The service's last answer, if it was an error or limited the rate.

    `status` is 0 if the service was unreachable, and `reason` says why if a person must
    fix that. `retry_after` is how long it still refuses
    requests, and `age` is the time since its first refusal without another answer in between.
    """

    status: int
    retry_after: timedelta | None = None
    age: timedelta = NO_TIME
    reason: str = ""


class ModelTraffic:
    """Implements ServiceObserver: records the proxy's view of all requests of one run."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._lock = Lock()
        self._open = set[ModelExchange]()
        self._counted = defaultdict[str, TokenCount](TokenCount)
        self._is_complete = True
        self._last_byte_at = float("-inf")
        self._unreachable_since: float | None = None
        self._refused: tuple[float, ServiceRefusal] | None = None
        self._refused_since: float | None = None

    def begin(self) -> "ModelExchange":
        exchange = ModelExchange(self)
        with self._lock:
            self._open.add(exchange)
        return exchange

    @property
    def tokens(self) -> TokenCount:
        """The tokens that the service has counted so far."""
        return reduce(TokenCount.plus, self.count.tokens.values(), NO_TOKENS)

    @property
    def count(self) -> ServiceCount:
        """The tokens that the service has counted so far, by model."""
        with self._lock:
            counted = self._counted.copy()
            for each in self._open:
                if each.tokens != NO_TOKENS:
                    counted[each.model] = counted[each.model].plus(each.tokens)
            return ServiceCount(counted, self._is_complete)

    @property
    def silence(self) -> timedelta:
        """The time for which a requested answer has been silent; zero if no request is open."""
        with self._lock:
            since = [each.waiting_since for each in self._open] + [self._unreachable_since]
            begun = min((moment for moment in since if moment is not None), default=self.clock())
            return timedelta(seconds=self.clock() - max(begun, self._last_byte_at))

    @property
    def refusal(self) -> ServiceRefusal | None:
        """The service's last answer, if it refused the request or did not arrive."""
        if self._refused is None or self._refused_since is None:
            return None
        now, (at, refusal) = self.clock(), self._refused
        wait = refusal.retry_after
        left = None if wait is None else max(wait - timedelta(seconds=now - at), NO_TIME)
        age = timedelta(seconds=now - self._refused_since)
        return replace(refusal, retry_after=left, age=age)

    def note_bytes(self) -> None:
        """Record that the service sent bytes."""
        with self._lock:
            self._last_byte_at, self._unreachable_since = self.clock(), None

    def note_answer(self, refusal: ServiceRefusal | None) -> None:
        """Record the outcome of an answer; None if it was on time and no error."""
        with self._lock:
            now, since = self.clock(), self._refused_since
            self._refused = (now, refusal) if refusal else None
            self._refused_since = (now if since is None else since) if refusal else None

    def note_unreachable(self, since: float) -> None:
        """Record that the service could not be reached."""
        with self._lock:
            if self._unreachable_since is None:
                self._unreachable_since = since

    def close(self, exchange: "ModelExchange") -> None:
        """Keep only the tokens of a completed request."""
        with self._lock:
            self._open.discard(exchange)
            if exchange.tokens != NO_TOKENS:
                known = self._counted[exchange.model]
                self._counted[exchange.model] = known.plus(exchange.tokens)
            elif exchange.model:
                self._is_complete = False


class ModelExchange:
    """Implements ServiceExchange: one request to the model's service, and its answer."""

    def __init__(self, traffic: ModelTraffic) -> None:
        self.waiting_since: float | None = None
        self._traffic = traffic
        self._begun = traffic.clock()
        self._usage = UsageReader(streams=True)

    @property
    def tokens(self) -> TokenCount:
        """The tokens that the answer counts so far."""
        return self._usage.tokens

    @property
    def model(self) -> str:
        """The model that the answer names; "" if it names none."""
        return self._usage.model

    def waits(self) -> None:
        self.waiting_since = self._traffic.clock()

    def answered(self, status: int, headers: Sequence[tuple[bytes, bytes]]) -> None:
        given = {name.decode().lower(): value.decode("latin-1") for name, value in headers}
        self._usage = UsageReader(streams="event-stream" in given.get("content-type", ""))
        asked = seconds_asked(given)
        wait = None if asked is None else min(timedelta(seconds=asked), LONGEST_WAIT)
        refuses = status in {*DENIED, LIMITED} or status >= SERVER_ERROR
        self._traffic.note_answer(ServiceRefusal(status, wait) if refuses else None)
        self._note_bytes()

    def received(self, part: bytes) -> None:
        self._usage.feed(part)
        self._note_bytes()

    def failed(self, reason: str = "") -> None:
        self._traffic.note_unreachable(self._begun)
        self._traffic.note_answer(ServiceRefusal(0, reason=reason))

    def ended(self) -> None:
        self.waiting_since = None
        self._usage.close()
        self._traffic.close(self)

    def _note_bytes(self) -> None:
        self.waiting_since = None
        self._traffic.note_bytes()
