"""Spending that no agent reported is unknown: it is neither shown nor added up as zero."""

import pytest

from mulligan.domain.result import AgentFacts
from mulligan.domain.spending import UNREPORTED, Allowance, Spent, spending_text, spent_in

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("spent", "words"),
    [
        (UNREPORTED, ""),
        (Spent(0.0, 0), "$0.00 · 0 tokens"),
        (Spent(usd=0.31), "$0.31"),
        (Spent(tokens=1), "1 token"),
        (Spent(0.00412, 52_131), "$0.0041 · 52,131 tokens"),
        (Spent(1234.5, 2), "$1,234.50 · 2 tokens"),
    ],
)
def test_only_reported_amounts_are_named(spent: Spent, words: str) -> None:
    assert spending_text(spent) == words


@pytest.mark.parametrize(
    ("first", "second", "total"),
    [
        (UNREPORTED, UNREPORTED, UNREPORTED),
        (UNREPORTED, Spent(0.0, 0), Spent(0.0, 0)),
        (Spent(usd=0.1), Spent(0.2, 5), Spent(0.3, 5)),
    ],
)
def test_a_sum_is_unreported_only_if_both_are(first: Spent, second: Spent, total: Spent) -> None:
    assert first.plus(second) == second.plus(first) == total


@pytest.mark.parametrize(
    ("facts", "spent"),
    [
        (AgentFacts(kind="command"), UNREPORTED),
        (AgentFacts(kind="claude", cost_usd=0.0, output_tokens=0), Spent(0.0, 0)),
        (AgentFacts(kind="codex", input_tokens=7), Spent(None, 7)),
    ],
)
def test_a_run_that_reports_zero_differs_from_a_silent_one(facts: AgentFacts, spent: Spent) -> None:
    assert spent_in(facts) == spent


def test_unreported_spending_uses_nothing_of_an_allowance() -> None:
    allowance = Allowance(usd=2.0, tokens=10)
    assert allowance.covers(UNREPORTED)
    assert allowance.after(UNREPORTED) == allowance
