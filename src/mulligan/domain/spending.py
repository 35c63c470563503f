"""Usage of agents in dollars and tokens, and what they may use. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import reduce

from mulligan.domain.issue import IssueRef
from mulligan.domain.result import AgentFacts, WorkerResultMeta


@dataclass(frozen=True, slots=True)
class Spent:
    """What was used: US dollars, and input and output tokens together."""

    usd: float = 0.0
    tokens: int = 0

    def plus(self, other: "Spent") -> "Spent":
        """Add two up; a millionth of a dollar is the least that counts."""
        return Spent(round(self.usd + other.usd, 6), self.tokens + other.tokens)


NOTHING = Spent()


@dataclass(frozen=True, slots=True)
class Allowance:
    """What may be used; None is no limit."""

    usd: float | None = None
    tokens: int | None = None

    def covers(self, spent: Spent) -> bool:
        """Tell whether an amount is within the allowance; exactly the limit is."""
        is_within = self.usd is None or spent.usd <= self.usd
        return is_within and (self.tokens is None or spent.tokens <= self.tokens)

    def after(self, spent: Spent) -> "Allowance":
        """Give what is left of it."""
        return Allowance(
            usd=None if self.usd is None else max(self.usd - spent.usd, 0.0),
            tokens=None if self.tokens is None else max(self.tokens - spent.tokens, 0),
        )

    @property
    def half(self) -> "Allowance":
        """Give half of it."""
        return Allowance(
            usd=None if self.usd is None else self.usd / 2,
            tokens=None if self.tokens is None else self.tokens // 2,
        )

    @property
    def is_used_up(self) -> bool:
        """Tell whether nothing is left."""
        return 0 in (self.usd, self.tokens)


@dataclass(frozen=True, slots=True)
class Run:
    """One run of an `agent`: an attempt's `number` over all epochs, its fix round, its beginning.

    All that a run uses counts for the day on which it began, in UTC.
    """

    issue: IssueRef
    number: int
    fix_round: int
    began: datetime
    agent: str = ""

    @property
    def day(self) -> date:
        """Give the day whose budget it uses."""
        return self.began.astimezone(UTC).date()


CENT = 0.01


def dollars(usd: float) -> str:
    """Write an amount: `$0.31`, or with four digits where it is less than a cent."""
    return f"${usd:,.2f}" if usd >= CENT or not usd else f"${max(usd, CENT / 100):.4f}"


def spent_in(run: AgentFacts) -> Spent:
    """Give the usage of a run as far as its agent reported it."""
    return Spent(run.cost_usd or 0.0, (run.input_tokens or 0) + (run.output_tokens or 0))


def spent_by(attempts: Iterable[WorkerResultMeta]) -> Spent:
    """Add up what attempts have used, fix rounds among it."""
    runs = [
        run for meta in attempts for run in (meta.agent, *(each.usage for each in meta.fix_rounds))
    ]
    return reduce(Spent.plus, (spent_in(run) for run in runs if run), Spent())


def spent_on(day: date, attempts: Iterable[WorkerResultMeta]) -> Spent:
    """Add up what attempts have used that began on a day, in UTC."""
    return spent_by(meta for meta in attempts if meta.started_at.astimezone(UTC).date() == day)
