"""Explain what Mulligan will do with an issue now, and why, for `mulligan explain`. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from mulligan.domain.eligibility import (
    BASE,
    DEPENDS,
    IN_HAND,
    Facts,
    Finding,
    findings,
    opens_epoch,
    refusal,
)
from mulligan.domain.feedback import describe_failed_checks
from mulligan.domain.issue import AuthorisingAct, IssueRef, ReviewAct, Stage
from mulligan.domain.outcome import OpenPullRequest
from mulligan.domain.status import IssueStatus, Phase

STAGE_TITLES: Mapping[Stage, str] = {
    Stage.READY: "waiting",
    Stage.RUNNING: "running",
    Stage.REVIEW: "in review",
    Stage.HITL: "needs human review",
    Stage.RESOLVED: "done",
}
"""The names of stages for people."""


@dataclass(frozen=True, slots=True)
class ExplanationInputs:
    """Facts for an explanation beyond those of the rules.

    `counted` of `most` attempts of the epoch are used. `holder` is the worker on the issue.
    `asked_at` is the URL of the escalation comment. `at_work` is the running Mulligan.
    `unreachable` is why the base branch cannot be fetched. `overlooked` are the issue's ignored
    dependencies.
    """

    counted: int
    most: int
    holder: str | None = None
    asked_at: str = ""
    at_work: str | None = None
    unreachable: str = ""
    overlooked: str = ""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why an issue is, or is not, worked on; `act` is the request, if there is one.

    `exists` is whether GitHub has the issue.
    """

    issue: IssueRef
    title: str
    stage: Stage
    eligible: bool
    summary: str
    act: AuthorisingAct | None = None
    notes: tuple[str, ...] = ()
    rules: tuple[Finding, ...] = ()
    exists: bool = True


def explain(facts: Facts, around: ExplanationInputs) -> Explanation:
    """Explain an issue that could be read."""
    return Explanation(
        issue=facts.issue.ref,
        title=facts.issue.title,
        stage=facts.status.stage,
        eligible=not refusal(facts),
        summary=_summary(facts, around),
        act=_act(facts),
        notes=tuple(_notes(facts, around)),
        rules=findings(facts),
    )


def explain_unread(status: IssueStatus, reason: str, *, exists: bool) -> Explanation:
    """Explain an issue that is gone, or for which something could not be read."""
    summary = f"It {'cannot be worked on now' if exists else 'will not be worked on'}: {reason}"
    return Explanation(
        status.issue,
        status.text.title,
        status.stage,
        eligible=False,
        summary=summary,
        exists=exists,
    )


def _summary(facts: Facts, around: ExplanationInputs) -> str:
    broken = {found.rule: found.refusal for found in findings(facts) if found.refusal}
    if around.holder:
        return _under_way(around.holder, facts.status)
    if order := facts.status.next_order:
        return f"The next pass carries out `{order.verb}`, given by {order.actor or 'an operator'}."
    if not broken and facts.status.is_kept:
        return "The next pass publishes the commit of its last attempt, which was kept."
    if not broken and around.unreachable:
        return f"It cannot be worked on now: {around.unreachable}"
    if not broken:
        counted = 0 if opens_epoch(facts) else around.counted
        return f"Mulligan starts work at the next pass: attempt {counted + 1} of {around.most}."
    rule, why = next(iter(broken.items()))
    if rule in {"open", "issue", "repository"}:
        return f"It will not be worked on: {why}"
    if "concluded" in broken:
        return _unfinished(facts.status)
    if "stage" in broken:
        return _settled(facts.status, around)
    return why if rule in {"due", DEPENDS, IN_HAND, BASE} else f"It will not be worked on: {why}"


def _under_way(holder: str, status: IssueStatus) -> str:
    if status.phase is Phase.ATTEMPTING:
        since = f", since {_written(status.started_at)}" if status.started_at else ""
        return f"The worker {holder} is working on it now: attempt {status.attempt}{since}."
    return f"The worker {holder} is working on it now."


def _unfinished(status: IssueStatus) -> str:
    if status.phase is Phase.ATTEMPTING:
        return f"Attempt {status.attempt} was cut off; the next pass records that and continues."
    if status.phase is Phase.COMPLETED:
        return f"Attempt {status.attempt} has ended; the next pass decides what follows."
    if isinstance(status.decision, OpenPullRequest):
        text = "Its change is not published yet; the next pass publishes it."
        delay = describe_publication(status)
        return " ".join(part for part in (text, delay, status.reason) if part)
    return f"The next pass carries out the decision: {status.reason}"


def _settled(status: IssueStatus, around: ExplanationInputs) -> str:
    """Return the sentence for a stage that only a new request ends."""
    if status.stage is Stage.REVIEW:
        return f"It is in review: {status.pull.url} {status.reason}".rstrip()
    if status.stage is Stage.HITL:
        where = f" See {around.asked_at}" if around.asked_at else ""
        return f"It needs human review: {status.reason}{where}"
    if status.elsewhere:
        return f"Another installation of Mulligan has it: {status.reason}"
    return f"It is resolved: {status.reason}"


def _act(facts: Facts) -> AuthorisingAct | None:
    """Return the request that counts: a new one, else the epoch's, else an insufficient one."""
    request = facts.status.request
    if opens_epoch(facts) or request.act is None or request.at is None:
        return facts.act
    return AuthorisingAct(request.act, request.actor, request.at, trusted=True)


def _notes(facts: Facts, around: ExplanationInputs) -> list[str]:
    waits = facts.status.due is not None or facts.status.phase is not Phase.IDLE
    idle = around.at_work is None and around.holder is None
    reviewed = describe_review(facts.status)
    return [
        *([describe_restoration(facts.status)] if facts.status.restored else []),
        *([reviewed] if reviewed else []),
        *([failed] if (failed := describe_failed_checks(facts.status.feedback)) else []),
        *facts.status.effects.pull_notes,
        *([NOBODY_AT_WORK] if idle and (waits or not refusal(facts)) else []),
        *([around.overlooked] if around.overlooked else []),
        *([LOCKED] if facts.issue.is_locked else []),
        *([NOT_TELLING] if facts.act and not facts.act.edits.names_authors else []),
    ]


LOCKED = (
    "Its conversation is locked. The work continues, but only people with write access can "
    "answer there."
)

NOBODY_AT_WORK = (
    "No Mulligan is running with this state. Start `mulligan run`, or make one pass with "
    "`mulligan once`."
)

NOT_TELLING = (
    "This server does not report who edited a text. Mulligan compares the text with the one that "
    "it first read."
)


def describe_request(act: AuthorisingAct | None) -> str:
    """Return who requested the work, and how."""
    if act is None:
        return "Nobody has requested the work."
    at = _written(act.at)
    if act.by_comment and act.trusted:
        return f"{act.actor} requested the work with a comment at {at}."
    if isinstance(act.act, ReviewAct):
        return f"{act.actor} requested the work with a review at {at}."
    if not act.by_label and not act.by_comment:
        return f"An operator's command requested the work at {at}."
    if not act.trusted:
        how = "added the label" if act.by_label else "wrote a command"
        return f"{act.actor or 'Somebody'} {how} at {at}, without the permission to start work."
    return f"{act.actor} requested the work with the label at {at}."


def describe_review(status: IssueStatus) -> str:
    """Return when a waiting review is acted on; empty if none waits."""
    if status.reviews_settle_at is None:
        return ""
    settled_at = _written(status.reviews_settle_at)
    return (
        f"A review requests changes. Mulligan acts on it after {settled_at}, together with "
        "the reviews that come until then."
    )


def describe_attempt(status: IssueStatus) -> str:
    """Return when the running attempt began; empty if none runs."""
    if status.phase is not Phase.ATTEMPTING:
        return ""
    return f"Attempt {status.attempt} began at {_written(status.started_at)}."


QUEUED = "Queued; an attempt starts when a worker is free."


def describe_queue(status: IssueStatus, now: datetime) -> str:
    """Say that an issue waits for a worker; empty if it waits for something else, or runs."""
    rests = status.stage is Stage.READY and status.phase is Phase.IDLE
    waits = status.paused_by or status.reason or (status.due and status.due > now)
    return QUEUED if rests and status.epoch and not waits else ""


def describe_publication(status: IssueStatus) -> str:
    """Return since when, and why, a finished change is not published; empty if it is."""
    delay = status.publication_delay
    if delay is None:
        return ""
    return f"Publishing has failed since {_written(delay.since)}, and is repeated: {delay.reason}"


def describe_restoration(status: IssueStatus) -> str:
    """Name the source of a restored status; empty if the ledger was not lost."""
    if not status.restored:
        return ""
    return f"The ledger was lost. Mulligan restored this issue from {status.restored}."


def _written(at: datetime | None) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC" if at else ""
