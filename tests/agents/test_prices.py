"""What models cost is looked up by name, and reckoned to the cent."""

import pytest

from mulligan.agents.prices import cost_of, price_of
from mulligan.config.settings import Price

pytestmark = pytest.mark.pure
GPT_5 = Price(input=1.25, cached=0.125, output=10)
OWN = {"gpt-5": Price(input=1, output=2), "local/llama": Price(input=0, output=0)}


@pytest.mark.parametrize(
    ("model", "own", "price"),
    [
        ("gpt-5", {}, GPT_5),
        ("openai/gpt-5", {}, GPT_5),
        ("openrouter/openai/gpt-5", {}, GPT_5),
        ("gpt-5-2025-08-07", {}, GPT_5),
        ("claude-sonnet-4-5-20250929", {}, Price(input=3, cached=0.3, output=15)),
        ("gpt-5", OWN, OWN["gpt-5"]),
        ("openai/gpt-5-2025-08-07", OWN, OWN["gpt-5"]),
        ("local/llama", OWN, OWN["local/llama"]),
        ("llama", OWN, None),
        ("gpt-55", {}, None),
        ("", {}, None),
    ],
)
def test_a_price_is_found_by_the_models_name(
    model: str, own: dict[str, Price], price: Price | None
) -> None:
    assert price_of(model, own) == price


@pytest.mark.parametrize(
    ("price", "tokens", "cost"),
    [
        (GPT_5, (1_000_000, 0, 0), 1.25),
        (GPT_5, (1_000_000, 1_000_000, 0), 0.125),
        (GPT_5, (2000, 0, 200), 0.0045),
        (Price(input=1, output=2), (1_000_000, 500_000, 0), 1.0),
        (Price(input=1, cached=0, output=2), (1_000_000, 2_000_000, 0), 0.0),
    ],
)
def test_cached_input_has_its_own_price(
    price: Price, tokens: tuple[int, int, int], cost: float
) -> None:
    assert cost_of(price, *tokens) == pytest.approx(cost)
