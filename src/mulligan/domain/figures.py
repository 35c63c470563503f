"""What is counted of the work, and what the counting comes to, as values. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.outcome import Outcome


class Turn(StrEnum):
    """A turn in an issue's life."""

    ASKED = "asked"
    PUBLISHED = "published"
    MERGED = "merged"
    CLOSED = "closed"
    LEFT = "left"


@dataclass(frozen=True, slots=True)
class Moment:
    """When a turn was recorded; `asked_at` is when the person who asked did so."""

    issue: IssueRef
    turn: Turn
    at: datetime
    asked_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """A required check that failed an attempt; `summary` names the first thing it found."""

    check: str
    fingerprint: str = ""
    summary: str = ""


@dataclass(frozen=True, slots=True)
class Try:
    """One attempt that is over. `runs` counts its runs of an agent.

    `costs` and `tokens` are of those runs that told, and may be fewer than the runs.
    """

    issue: IssueRef
    epoch: int
    number: int
    at: datetime
    outcome: Outcome
    agent: str = ""
    runs: int = 0
    costs: tuple[float, ...] = ()
    tokens: tuple[int, ...] = ()
    failures: tuple[Failure, ...] = ()


@dataclass(frozen=True, slots=True)
class Chronicle:
    """What the ledger holds, in its order; `since` is when that begins."""

    since: datetime | None
    tries: Sequence[Try]
    moments: Sequence[Moment]
    stages: Sequence[tuple[IssueRef, Stage]]


@dataclass(frozen=True, slots=True)
class Cost:
    """What was spent, as far as it is known; None where nothing is.

    `silent` counts the attempts whose agent did not say what they cost, `wordless` those of which
    it did not say how many tokens they took.
    """

    usd: float | None
    tokens: int | None
    silent: int
    wordless: int

    def per(self, count: int) -> float | None:
        """Divide it among so many; None where that cannot be said."""
        return None if self.usd is None or not count else self.usd / count


@dataclass(frozen=True, slots=True)
class Place:
    """How the attempts came out that were the `place`-th to count in their epoch."""

    place: int
    made: int
    succeeded: int


@dataclass(frozen=True, slots=True)
class Frequent:
    """What fails often, in how many attempts at how many issues; `summary` is empty for a check."""

    repository: str
    check: str
    attempts: int
    issues: int
    summary: str = ""
    fingerprint: str = ""


@dataclass(frozen=True, slots=True)
class Figures:
    """The numbers of one repository, or of all; a stage counts the issues that stand there now."""

    taken: int
    published: int
    merged: int
    closed: int
    left: int
    stages: dict[Stage, int]
    tried: int
    attempts: int
    counted: int
    succeeded: int
    cost: Cost
    to_pull_request: timedelta | None
    to_merge: timedelta | None


@dataclass(frozen=True, slots=True)
class AgentFigures:
    """The numbers of one agent."""

    agent: str
    attempts: int
    counted: int
    succeeded: int
    cost: Cost


@dataclass(frozen=True, slots=True)
class Stats:
    """All of it; `since` is where what is counted begins, None for an empty ledger."""

    since: datetime | None
    until: datetime
    overall: Figures
    outcomes: dict[Outcome, int]
    places: tuple[Place, ...]
    checks: tuple[Frequent, ...]
    failures: tuple[Frequent, ...]
    repositories: dict[str, Figures]
    agents: tuple[AgentFigures, ...]
