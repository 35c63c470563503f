"""Prices of models, for agents that report tokens but no cost. Pure.

List prices in USD per million tokens as of 2026-02-05, from litellm's table
`model_prices_and_context_window.json`, release 1.106.2. Longer contexts, batches and priority may
cost more or less; `prices` in mulligan.yml overrides this table.
"""

import re
from collections.abc import Mapping

from mulligan.config.settings import Price

LIST: Mapping[str, tuple[float, float, float]] = {
    "claude-haiku-4-5": (1.0, 0.1, 5.0),
    "claude-opus-4-1": (15.0, 1.5, 75.0),
    "claude-opus-4-5": (5.0, 0.5, 25.0),
    "claude-opus-4-6": (5.0, 0.5, 25.0),
    "claude-opus-4": (15.0, 1.5, 75.0),
    "claude-sonnet-4-5": (3.0, 0.3, 15.0),
    "claude-sonnet-4": (3.0, 0.3, 15.0),
    "codex-mini-latest": (1.5, 0.375, 6.0),
    "gemini-2.5-flash": (0.3, 0.03, 2.5),
    "gemini-2.5-flash-lite": (0.1, 0.01, 0.4),
    "gemini-2.5-pro": (1.25, 0.125, 10.0),
    "gemini-3-flash-preview": (0.5, 0.05, 3.0),
    "gemini-3-pro-preview": (2.0, 0.2, 12.0),
    "gpt-4.1": (2.0, 0.5, 8.0),
    "gpt-4.1-mini": (0.4, 0.1, 1.6),
    "gpt-4o": (2.5, 1.25, 10.0),
    "gpt-4o-mini": (0.15, 0.075, 0.6),
    "gpt-5": (1.25, 0.125, 10.0),
    "gpt-5-codex": (1.25, 0.125, 10.0),
    "gpt-5-mini": (0.25, 0.025, 2.0),
    "gpt-5-nano": (0.05, 0.005, 0.4),
    "gpt-5-pro": (15.0, 15.0, 120.0),
    "gpt-5.1": (1.25, 0.125, 10.0),
    "gpt-5.1-codex": (1.25, 0.125, 10.0),
    "gpt-5.1-codex-max": (1.25, 0.125, 10.0),
    "gpt-5.1-codex-mini": (0.25, 0.025, 2.0),
    "gpt-5.2": (1.75, 0.175, 14.0),
    "gpt-5.2-codex": (1.75, 0.175, 14.0),
    "gpt-5.2-pro": (21.0, 21.0, 168.0),
    "o3": (2.0, 0.5, 8.0),
    "o3-pro": (20.0, 20.0, 80.0),
    "o4-mini": (1.1, 0.275, 4.4),
}
"""Prices for input, cached input, output."""

DATED = re.compile(r"[-@](?:\d{8}|\d{4}-\d{2}-\d{2}|latest)$")
MILLION = 1_000_000


def price_of(model: str, own: Mapping[str, Price]) -> Price | None:
    """Return the price of a model, written with or without its provider and its date."""
    name = model.rpartition("/")[2]
    for known in (model, name, DATED.sub("", name)):
        if known in own:
            return own[known]
        if found := LIST.get(known):
            return Price(input=found[0], cached=found[1], output=found[2])
    return None


def cost_of(price: Price, input_tokens: int, cached_tokens: int, output_tokens: int) -> float:
    """Return the cost in USD; `input_tokens` include the `cached_tokens`."""
    cached = price.input if price.cached is None else price.cached
    fresh = max(input_tokens - cached_tokens, 0)
    spent = fresh * price.input + cached_tokens * cached + output_tokens * price.output
    return spent / MILLION
