"""Spending of agents in dollars and tokens, and its limits. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import reduce

from mulligan.domain.issue import IssueRef
from mulligan.domain.result import AgentFacts, WorkerResultMeta


@dataclass(frozen=True, slots=True)
class Spent:
    """An amount spent: US dollars, and input and output tokens together; None: not reported."""

    usd: float | None = None
    tokens: int | None = None

    def plus(self, other: "Spent") -> "Spent":
        """Return the sum of what is reported, rounded to a millionth of a dollar."""
        usd = [each.usd for each in (self, other) if each.usd is not None]
        tokens = [each.tokens for each in (self, other) if each.tokens is not None]
        return Spent(round(sum(usd), 6) if usd else None, sum(tokens) if tokens else None)


UNREPORTED = Spent()


@dataclass(frozen=True, slots=True)
class Allowance:
    """A spending limit; None is no limit."""

    usd: float | None = None
    tokens: int | None = None

    def covers(self, spent: Spent) -> bool:
        """Return whether an amount is within the limit, which itself is allowed."""
        is_within = self.usd is None or (spent.usd or 0.0) <= self.usd
        return is_within and (self.tokens is None or (spent.tokens or 0) <= self.tokens)

    def after(self, spent: Spent) -> "Allowance":
        """Return the remaining allowance."""
        return Allowance(
            usd=None if self.usd is None else max(self.usd - (spent.usd or 0.0), 0.0),
            tokens=None if self.tokens is None else max(self.tokens - (spent.tokens or 0), 0),
        )

    def at_least(self, other: "Allowance") -> "Allowance":
        """Return the larger of each limit; no limit is the largest."""
        usd, tokens = (self.usd, other.usd), (self.tokens, other.tokens)
        return Allowance(
            usd=None if None in usd else max(each for each in usd if each is not None),
            tokens=None if None in tokens else max(each for each in tokens if each is not None),
        )

    @property
    def half(self) -> "Allowance":
        """Return half of the allowance."""
        return Allowance(
            usd=None if self.usd is None else self.usd / 2,
            tokens=None if self.tokens is None else self.tokens // 2,
        )

    @property
    def is_used_up(self) -> bool:
        """Return whether nothing is left."""
        return 0 in (self.usd, self.tokens)


UNLIMITED = Allowance()


@dataclass(frozen=True, slots=True)
class Run:
    """One run of an `agent`: an attempt's `number` over all epochs, its fix round, its start.

    A run's whole usage counts for the day on which it began, in UTC.
    """

    issue: IssueRef
    number: int
    fix_round: int
    began: datetime
    agent: str = ""

    @property
    def day(self) -> date:
        """Return the day whose budget it uses."""
        return self.began.astimezone(UTC).date()


CENT = 0.01


def dollars(usd: float) -> str:
    """Format an amount: `$0.31`, or with four digits if it is less than a cent."""
    return f"${usd:,.2f}" if usd >= CENT or not usd else f"${max(usd, CENT / 100):.4f}"


def spending_text(spent: Spent, between: str = " · ") -> str:
    """Format what agents reported: `$0.31 · 52,131 tokens`; empty if they reported nothing."""
    cost = [] if spent.usd is None else [dollars(spent.usd)]
    plural = "" if spent.tokens == 1 else "s"
    tokens = [] if spent.tokens is None else [f"{spent.tokens:,} token{plural}"]
    return between.join([*cost, *tokens])


def spent_in(run: AgentFacts) -> Spent:
    """Return the usage of a run as far as its agent reported it."""
    tokens = [each for each in (run.input_tokens, run.output_tokens) if each is not None]
    return Spent(run.cost_usd, sum(tokens) if tokens else None)


def bounded(run: AgentFacts, bound: Allowance) -> AgentFacts:
    """Return the usage of a run with what it claims above a bound cut off."""
    if bound.covers(spent_in(run)):
        return run
    cost, read, written = run.cost_usd, run.input_tokens, run.output_tokens
    if bound.usd is not None and cost is not None:
        cost = min(cost, bound.usd)
    if bound.tokens is not None:
        read = None if read is None else min(read, bound.tokens)
        written = None if written is None else min(written, bound.tokens - (read or 0))
    found = {"cost_usd": cost, "input_tokens": read, "output_tokens": written}
    return run.model_copy(update=found)


def spent_by(attempts: Iterable[WorkerResultMeta]) -> Spent:
    """Return the sum that attempts used, including fix rounds."""
    runs = [
        run for meta in attempts for run in (meta.agent, *(each.usage for each in meta.fix_rounds))
    ]
    return reduce(Spent.plus, (spent_in(run) for run in runs if run), UNREPORTED)


def spent_on(day: date, attempts: Iterable[WorkerResultMeta]) -> Spent:
    """Return the sum used by attempts that began on a day, in UTC."""
    return spent_by(meta for meta in attempts if meta.started_at.astimezone(UTC).date() == day)
