"""May this issue be worked on now? The rules as a list, read by intake and by `explain`. Pure."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from mulligan.domain.issue import AuthorisingAct, Issue, Stage
from mulligan.domain.status import IssueStatus, Phase

SETTLED = frozenset({Stage.REVIEW, Stage.HITL, Stage.RESOLVED})
"""Stages from which only a new authorising act leads back to work (SPEC L6)."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What the rules look at; `act` is None when GitHub showed no authorising act."""

    issue: Issue
    status: IssueStatus
    act: AuthorisingAct | None
    ready_label: str
    now: datetime
    archived: bool = False
    policy_fault: str = ""

    @property
    def by_operator(self) -> bool:
        """Tell whether an operator's command asked for the work, not a label."""
        return self.act is not None and self.act.act.startswith("operator:")


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: `refusal` gives the reason and what would change it, or None where it is kept.

    `kept` is what is so then.
    """

    name: str
    kept: str
    refusal: Callable[[Facts], str | None]


@dataclass(frozen=True, slots=True)
class Finding:
    """How one rule came out for one issue."""

    rule: str
    kept: str
    refusal: str | None


def _closed(facts: Facts) -> str | None:
    return None if facts.issue.is_open else "The issue is closed; reopen it."


def _pull_request(facts: Facts) -> str | None:
    if not facts.issue.is_pull_request:
        return None
    return "It is a pull request; put the label on an issue."


def _archived(facts: Facts) -> str | None:
    return "The repository is archived; unarchive it." if facts.archived else None


def _unlabelled(facts: Facts) -> str | None:
    if facts.by_operator or _carried(facts):
        return None
    return f"The label {facts.ready_label!r} is not on it; put it on."


def _carried(facts: Facts) -> bool:
    carried = {label.casefold() for label in facts.issue.labels}
    return facts.ready_label.casefold() in carried


def _unauthorised(facts: Facts) -> str | None:
    if facts.act is None:
        return "GitHub does not show yet who put the label on; wait, or put it on again."
    return None if facts.act.trusted else facts.act.reason


def _settled(facts: Facts) -> str | None:
    if facts.status.stage not in SETTLED or opens_epoch(facts):
        return None
    how = "take the label off and put it on again" if _carried(facts) else "put the label on"
    return f"It is in {facts.status.stage}; {how} for a new epoch."


def _unconcluded(facts: Facts) -> str | None:
    phase = facts.status.phase
    if phase is Phase.IDLE:
        return None
    return f"Its last attempt is not concluded ({phase}); the next pass goes on with it."


def _not_due(facts: Facts) -> str | None:
    due = facts.status.due
    if due is None or due <= facts.now or facts.by_operator:
        return None
    return f"It waits until {due:%Y-%m-%d %H:%M:%S} UTC: {facts.status.reason}"


def _misconfigured(facts: Facts) -> str | None:
    if not facts.policy_fault:
        return None
    return (
        f"The repository's policy is invalid: {facts.policy_fault} Mend it on the base branch; "
        "the work then begins by itself."
    )


RULES = (
    Rule("open", "It is open.", _closed),
    Rule("issue", "It is an issue, not a pull request.", _pull_request),
    Rule("repository", "Its repository can be written to.", _archived),
    Rule("labelled", "The label is on it.", _unlabelled),
    Rule("authorised", "A person who may has asked for the work.", _unauthorised),
    Rule("concluded", "No attempt at it is unfinished.", _unconcluded),
    Rule("stage", "It is not in review, with a person, or done with.", _settled),
    Rule("due", "It has nothing to wait for.", _not_due),
    Rule("policy", "Its repository's policy is valid.", _misconfigured),
)


def findings(facts: Facts) -> tuple[Finding, ...]:
    """Say how every rule came out, in order."""
    return tuple(Finding(rule.name, rule.kept, rule.refusal(facts)) for rule in RULES)


def refusal(facts: Facts) -> str | None:
    """Give the first reason not to work on the issue, or None where there is none."""
    return next((found.refusal for found in findings(facts) if found.refusal), None)


def is_misconfigured(facts: Facts) -> bool:
    """Tell whether nothing but the repository's policy is in the way (SPEC 17)."""
    return bool(facts.policy_fault) and refusal(facts) == _misconfigured(facts)


def opens_epoch(facts: Facts) -> bool:
    """Tell whether the act is a new request (SPEC L6), so that the attempts are counted afresh."""
    if facts.act is None or not facts.act.trusted or facts.act.act == facts.status.act:
        return False
    if facts.status.epoch == 0:
        return True
    newer = facts.status.act_at is None or facts.act.at > facts.status.act_at
    return newer and facts.status.stage in SETTLED
