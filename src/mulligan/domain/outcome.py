"""What an attempt can come to: the closed sets of SPEC 6. Pure."""

from enum import StrEnum


class Outcome(StrEnum):
    """The closed set of SPEC 6, in the order in which they are looked for."""

    CANCELLED = "CANCELLED"
    INTERRUPTED = "INTERRUPTED"
    DENIED = "DENIED"
    MISCONFIGURED = "MISCONFIGURED"
    INFRASTRUCTURE = "INFRASTRUCTURE"
    OVER_BUDGET = "OVER_BUDGET"
    AGENT_TIMED_OUT = "AGENT_TIMED_OUT"
    BLOCKED = "BLOCKED"
    NOTHING_TO_DO = "NOTHING_TO_DO"
    AGENT_CRASHED = "AGENT_CRASHED"
    ZERO_COMMIT = "ZERO_COMMIT"
    ZERO_DIFF = "ZERO_DIFF"
    SCOPE_VIOLATION = "SCOPE_VIOLATION"
    CHECKS_FAILED = "CHECKS_FAILED"
    REJECTED = "REJECTED"
    SUCCEEDED = "SUCCEEDED"


FREE = frozenset(
    {
        Outcome.CANCELLED,
        Outcome.INTERRUPTED,
        Outcome.DENIED,
        Outcome.MISCONFIGURED,
        Outcome.INFRASTRUCTURE,
        Outcome.OVER_BUDGET,
    }
)
"""Outcomes that are not the agent's doing, and cost no attempt (but see `INTERRUPTED`, SPEC 6)."""

NO_OUTPUT = frozenset({Outcome.ZERO_COMMIT, Outcome.ZERO_DIFF})
"""Outcomes of an agent that left the tree as it was."""


class ZeroKind(StrEnum):
    """How an agent came to leave no change, in the order in which it is looked for (SPEC 6)."""

    REFUSED = "refused"
    CUT_OFF = "cut_off"
    ASKED = "asked"
    ONLY_IGNORED = "only_ignored"
    PROPOSED = "proposed"
    UNDONE = "undone"
    NOTHING = "nothing"
