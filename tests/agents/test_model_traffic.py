"""What the proxy sees of a model's service: its silence, its refusals, and the tokens it counts."""

import json
from collections.abc import Callable, Iterable
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from mulligan.agents.model_traffic import (
    LONGEST_WAIT,
    NO_TOKENS,
    ModelTraffic,
    ServiceCount,
    ServiceRefusal,
    TokenCount,
    UsageReader,
    raise_counts,
    tokens_in,
    with_tokens,
)
from mulligan.agents.output import MAX_LINE_BYTES, StreamFacts
from mulligan.config.adapters import Fact
from mulligan.config.settings import Price
from mulligan.domain.result import AgentFacts
from mulligan.domain.spending import Allowance
from world.model import ANTHROPIC, CHAT, GEMINI, RESPONSES, ModelProtocol
from world.model_script import Json, ModelRequest, Turn

ASKED = ModelRequest("m", "", 0, streaming=True)
TURN = Turn("Hi.", input_tokens=1000, cached_tokens=400, output_tokens=77)
EVENTS = [(b"content-type", b"text/event-stream; charset=utf-8")]
WIRES = {"anthropic": ANTHROPIC, "responses": RESPONSES, "chat": CHAT, "gemini": GEMINI}


def streamed(events: Iterable[Json]) -> bytes:
    return "".join(f"event: x\ndata: {json.dumps(event)}\n\n" for event in events).encode()


def counted(body: bytes, *, streams: bool, size: int = 7) -> TokenCount:
    reader = UsageReader(streams=streams)
    for start in range(0, len(body), size):
        reader.feed(body[start : start + size])
    reader.close()
    return reader.tokens


@pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
def test_each_protocol_is_counted_in_a_stream_and_at_once(wire: ModelProtocol) -> None:
    body = streamed(wire.stream(TURN, ASKED))
    whole = json.dumps(wire.whole(TURN, ASKED), indent=1).encode()
    assert counted(body, streams=True) == TokenCount(1000, 400, 77)
    assert counted(whole, streams=False) == TokenCount(1000, 400, 77)


@given(st.integers(1, 300))
def test_parts_may_have_any_size(size: int) -> None:
    body = streamed(ANTHROPIC.stream(TURN, ASKED))
    assert counted(body, streams=True, size=size) == TokenCount(1000, 400, 77)


@pytest.mark.parametrize(
    ("answer", "tokens"),
    [
        ({"usage": {"input_tokens": 5, "cache_creation_input_tokens": 2}}, TokenCount(7)),
        # LiteLLM names both; prompt_tokens hold what came from the cache.
        ({"usage": {"prompt_tokens": 9, "cache_read_input_tokens": 4}}, TokenCount(9, 4)),
        (
            {"usageMetadata": {"candidatesTokenCount": 3, "thoughtsTokenCount": 4}},
            TokenCount(0, 0, 7),
        ),
        ({"input_tokens": 10}, NO_TOKENS),
        ({"usage": None}, NO_TOKENS),
        ({"usage": {"input_tokens": "many"}}, NO_TOKENS),
        ([], NO_TOKENS),
        (None, NO_TOKENS),
    ],
)
def test_usage_is_read_where_a_protocol_has_it(answer: JsonValue, tokens: TokenCount) -> None:
    assert tokens_in(answer) == tokens


def test_words_of_a_model_that_look_like_usage_count_nothing() -> None:
    said: Json = {"type": "delta", "delta": {"text": '"usage": {"input_tokens": 9}'}}
    assert counted(streamed([said]), streams=True) == NO_TOKENS


@pytest.mark.parametrize(
    ("body", "streams"),
    [
        (b'data: {"usage": {"output_tokens": 1', True),
        (b"usage", True),
        (b'{"usage": {', False),
        (b'{"usage": {"output_tokens": 1}, "x": "' + b"x" * MAX_LINE_BYTES + b'"}', False),
    ],
    ids=["cut off", "no event", "no end", "too long"],
)
def test_what_is_not_whole_counts_nothing(body: bytes, *, streams: bool) -> None:
    assert counted(body, streams=streams, size=65536) == NO_TOKENS


def test_a_line_that_is_too_long_hides_only_itself() -> None:
    body = (
        b"data: usage" + b"x" * MAX_LINE_BYTES + b"\n" + streamed([{"usage": {"output_tokens": 1}}])
    )
    assert counted(body, streams=True, size=65536).output == 1


def test_a_list_of_answers_is_counted_as_it_grows() -> None:
    """Gemini without `alt=sse`."""
    parts: list[Json] = [
        {"usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": n}} for n in (1, 3)
    ]
    assert counted(json.dumps(parts).encode(), streams=False) == TokenCount(5, 0, 3)


# Silence


@pytest.fixture
def clock() -> "Clock":
    return Clock()


class Clock:
    def __init__(self) -> None:
        self.time = 100.0

    def __call__(self) -> float:
        return self.time


Step = Callable[[ModelTraffic, Clock], None]


def seconds(traffic: ModelTraffic) -> float:
    return traffic.silence.total_seconds()


def test_a_service_is_silent_while_a_request_waits_for_it(clock: Clock) -> None:
    traffic = ModelTraffic(clock)
    assert seconds(traffic) == 0
    exchange = traffic.begin()
    clock.time += 50
    assert seconds(traffic) == 0, "the agent has not sent all of its request yet"
    exchange.waits()
    clock.time += 60
    assert seconds(traffic) == 60
    exchange.received(b"x")
    clock.time += 70
    assert seconds(traffic) == 0, "the agent does not read what the service sent"
    exchange.waits()
    clock.time += 5
    assert seconds(traffic) == 5
    exchange.ended()
    assert seconds(traffic) == 0


def test_bytes_of_any_answer_end_the_silence(clock: Clock) -> None:
    traffic = ModelTraffic(clock)
    held, other = traffic.begin(), traffic.begin()
    held.waits()
    clock.time += 300
    other.answered(200, EVENTS)
    clock.time += 10
    assert seconds(traffic) == 10


def test_a_service_that_is_not_reached_is_silent_until_it_is(clock: Clock) -> None:
    traffic = ModelTraffic(clock)
    for _ in range(3):
        exchange = traffic.begin()
        clock.time += 30
        exchange.failed()
        exchange.ended()
        clock.time += 10
    assert seconds(traffic) == 120
    assert traffic.refusal == ServiceRefusal(0, age=timedelta(seconds=90))
    traffic.begin().answered(200, EVENTS)
    assert (seconds(traffic), traffic.refusal) == (0, None)


# Refusals


@pytest.mark.parametrize(
    ("status", "refuses"),
    [(200, False), (400, False), (401, True), (404, False), (429, True), (529, True)],
)
def test_the_last_answer_tells_whether_the_service_refuses(
    status: int, clock: Clock, *, refuses: bool
) -> None:
    traffic = ModelTraffic(clock)
    traffic.begin().answered(500, ())
    traffic.begin().answered(status, ())
    assert (traffic.refusal is not None) == refuses


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ([(b"Retry-After", b"600")], timedelta(seconds=600)),
        ([(b"Retry-After", b"9" * 40)], LONGEST_WAIT),
        ([(b"Retry-After", b"soon")], None),
        ([], None),
        (
            [
                (b"Date", b"Tue, 04 Mar 2025 09:00:00 GMT"),
                (b"Retry-After", b"Tue, 04 Mar 2025 09:01:00 GMT"),
            ],
            timedelta(minutes=1),
        ),
    ],
)
def test_the_wait_that_a_service_asks_for_is_kept(
    headers: list[tuple[bytes, bytes]], wait: timedelta | None, clock: Clock
) -> None:
    traffic = ModelTraffic(clock)
    traffic.begin().answered(429, headers)
    assert traffic.refusal == ServiceRefusal(429, wait)
    clock.time += 10
    left = None if wait is None else wait - timedelta(seconds=10)
    assert traffic.refusal == ServiceRefusal(429, left, timedelta(seconds=10))


# Tokens of a run


def test_tokens_of_answers_that_go_on_are_counted_with_those_that_ended(clock: Clock) -> None:
    traffic, body = ModelTraffic(clock), streamed(ANTHROPIC.stream(TURN, ASKED))
    for _ in range(2):
        exchange = traffic.begin()
        exchange.answered(200, EVENTS)
        exchange.received(body)
        exchange.ended()
    halfway = traffic.begin()
    halfway.answered(200, EVENTS)
    halfway.received(streamed([next(iter(ANTHROPIC.stream(TURN, ASKED)))]))
    assert (traffic.tokens.input, traffic.tokens.cached) == (3000, 1200)
    assert traffic.tokens.output >= 154


@pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
def test_tokens_are_counted_by_the_model_that_the_service_names(
    wire: ModelProtocol, clock: Clock
) -> None:
    traffic = ModelTraffic(clock)
    for name, streams in (("big", True), ("small", False), ("big", True)):
        asked = ModelRequest(name, "", 0, streaming=streams)
        body = streamed(wire.stream(TURN, asked)) if streams else b""
        exchange = traffic.begin()
        exchange.answered(200, EVENTS if streams else [(b"content-type", b"application/json")])
        exchange.received(body or json.dumps(wire.whole(TURN, asked)).encode())
        exchange.ended()
    found = traffic.count
    assert found.is_complete
    assert found.tokens == {"big": TokenCount(2000, 800, 154), "small": TokenCount(1000, 400, 77)}


def test_an_answer_of_a_model_without_a_count_is_missing(clock: Clock) -> None:
    traffic = ModelTraffic(clock)
    for body, is_complete in ((b'{"data": []}', True), (b'{"model": "m", "choices": []}', False)):
        exchange = traffic.begin()
        exchange.answered(200, [(b"content-type", b"application/json")])
        exchange.received(body)
        exchange.ended()
        assert traffic.count == ServiceCount({}, is_complete)


PRICES = {"big": Price(input=10, output=50), "small": Price(input=1, output=5)}
A_LITTLE = TokenCount(100_000, 0, 20_000)
"""Two dollars with the big model."""


@pytest.mark.parametrize(
    ("tokens", "is_complete", "allowed", "bound"),
    [
        ({"big": A_LITTLE}, True, Allowance(50, 10**9), Allowance(4, 240_000)),
        ({"big": A_LITTLE}, True, Allowance(1), Allowance(4, 240_000)),
        ({"big": A_LITTLE, "small": A_LITTLE}, True, Allowance(), Allowance(4.4, 480_000)),
        # The price of a model is not known.
        ({"own": A_LITTLE}, True, Allowance(50), Allowance(50, 240_000)),
        ({"own": A_LITTLE}, True, Allowance(), Allowance(None, 240_000)),
        # The proxy saw nothing, or not everything.
        ({}, True, Allowance(2.5, 9), Allowance(2.5, 9)),
        ({"big": A_LITTLE}, False, Allowance(2.5, 9), Allowance(4, 240_000)),
        ({"big": A_LITTLE}, False, Allowance(50), Allowance(50)),
    ],
)
def test_a_run_may_claim_twice_what_its_service_counted(
    tokens: dict[str, TokenCount], *, is_complete: bool, allowed: Allowance, bound: Allowance
) -> None:
    found = ServiceCount(tokens, is_complete).bound(PRICES, allowed)
    assert (found.usd, found.tokens) == (pytest.approx(bound.usd), bound.tokens)


def test_the_counts_of_an_agent_are_raised_and_never_lowered() -> None:
    facts = StreamFacts(numbers={Fact.INPUT: 10, Fact.OUTPUT: 50})
    raised = with_tokens(facts, TokenCount(20, 5, 40))
    assert raised.numbers == {Fact.INPUT: 20, Fact.CACHED: 5, Fact.OUTPUT: 50}
    assert with_tokens(StreamFacts(), NO_TOKENS).numbers == {}
    assert facts.numbers == {Fact.INPUT: 10, Fact.OUTPUT: 50}


@pytest.mark.parametrize(("reported", "kept"), [(None, (20, 40)), (90, (90, 90))])
def test_the_counts_of_an_agent_without_rules_are_raised_too(
    reported: int | None, kept: tuple[int, int]
) -> None:
    facts = AgentFacts(kind="command", input_tokens=reported, output_tokens=reported)
    raised = raise_counts(facts, TokenCount(20, 5, 40))
    assert (raised.input_tokens, raised.output_tokens) == kept
