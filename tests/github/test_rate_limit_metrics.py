"""What GitHub's answers say of the token is kept, as the last answer had it."""

import pytest

from mulligan.github.rate_limits import MAX_RESOURCES, RateLimitMetrics
from mulligan.github.shapes import Answer

pytestmark = pytest.mark.pure


def left(resource: str, remaining: str) -> Answer:
    return Answer(200, {"x-ratelimit-resource": resource, "x-ratelimit-remaining": remaining}, "")


def test_each_limit_is_known_by_its_name() -> None:
    gauges = RateLimitMetrics()
    for answer in (left("core", "10"), left("graphql", "5"), left("core", "9"), left("core", "x")):
        gauges.read(answer)
    assert gauges.remaining == {"core": 9, "graphql": 5}


def test_a_server_cannot_make_up_any_number_of_names() -> None:
    gauges = RateLimitMetrics()
    for number in range(100):
        gauges.read(left(f"limit_{chr(97 + number % 26)}{chr(97 + number // 26)}", "1"))
    gauges.read(left('core"} 1', "1"))
    assert len(gauges.remaining) == MAX_RESOURCES


def test_a_token_is_refused_until_one_is_taken() -> None:
    gauges = RateLimitMetrics()
    gauges.read(Answer(401, {}, ""))
    assert gauges.refused
    gauges.read(Answer(404, {}, ""))
    assert not gauges.refused
