"""Everything the route needs of the world: built by wiring, passed from top to bottom."""

from dataclasses import dataclass, field

from mulligan.config.operator import Limits
from mulligan.ports import (
    Artifacts,
    Clock,
    CodingAgent,
    Leases,
    Ledger,
    Policies,
    Tracker,
    Verifier,
    Worktrees,
)
from mulligan.text.redact import Redactor


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
    artifacts: Artifacts
    clock: Clock
    worker: str
    limits: Limits
    redactor: Redactor = field(default_factory=Redactor)
