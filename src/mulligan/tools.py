"""Everything the route needs of the world: built by wiring, passed from top to bottom."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from mulligan.accounts import Accounts
from mulligan.artifacts import Artifacts
from mulligan.attic import Attic, Undisturbed
from mulligan.config.budget import Budget
from mulligan.config.operator import Limits, Retention
from mulligan.config.policy import Policy
from mulligan.domain.case import Case
from mulligan.ports import (
    Clock,
    CodingAgent,
    Leases,
    Ledger,
    Policies,
    Tracker,
    Worktree,
    Worktrees,
)
from mulligan.text.redact import Redactor
from mulligan.verifier import Verifier


@dataclass(frozen=True, slots=True)
class Roster:
    """The agents that have names, and which of them follow which; "" is the one without a name."""

    named: Mapping[str, CodingAgent] = field(default_factory=dict[str, CodingAgent])
    fallback: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])


def _none() -> None:
    return None


@dataclass(frozen=True, slots=True)
class Tools:
    """Everything the route needs, built by wiring.py."""

    tracker: Tracker
    worktrees: Worktrees
    policies: Policies
    agent: CodingAgent
    verifier: Verifier
    ledger: Ledger
    leases: Leases
    accounts: Accounts
    artifacts: Artifacts
    clock: Clock
    worker: str
    limits: Limits
    budget: Budget = field(default_factory=Budget)
    retention: Retention = field(default_factory=Retention)
    redactor: Redactor = field(default_factory=Redactor)
    roster: Roster = field(default_factory=Roster)
    attic: Attic = field(default_factory=Undisturbed)
    shortage: Callable[[], str | None] = _none
    """Says what there is too little room for to begin anything; None where there is enough."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One attempt under way: the issue, the rules it is judged by, its worktree, and the tools."""

    case: Case
    policy: Policy
    tree: Worktree
    tools: Tools
