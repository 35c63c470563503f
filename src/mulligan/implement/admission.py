"""Admit an issue: record its request, or show why it is blocked; then start the attempt."""

from dataclasses import replace

import structlog

from mulligan.domain.eligibility import (
    DEPENDS,
    PAUSED,
    POLICY,
    SETTLED_STAGES,
    UNCHANGED,
    Facts,
    Finding,
    changed_text,
    first_broken,
    opens_epoch,
)
from mulligan.domain.events import AttemptStarted, Authorised, IssueSeen
from mulligan.domain.issue import Issue, IssueRef
from mulligan.domain.issue_context import IssueContext
from mulligan.domain.outcome import WaitForBudget
from mulligan.domain.recorded_effects import Obstacle, block_shown
from mulligan.domain.status import Phase
from mulligan.implement.agent_selection import refused_until
from mulligan.implement.budget_meter import spent_today
from mulligan.implement.effects import (
    ask_for_label,
    report_blocked,
    sync_labels_and_status,
    wait_for_budget,
    wait_until,
)
from mulligan.implement.issue_snapshot import load_context
from mulligan.implement.ports import BotContext

log = structlog.get_logger()


def admit(facts: Facts, context: BotContext) -> str | None:
    """Record an issue's text and request; give the reason if it must not be worked on.

    A new request opens an epoch, even while the issue is paused. If a person must act first (an
    invalid policy, an open dependency, a changed text), the issue shows that (TRUST-2, CONFIG-3).
    """
    ref, broken = facts.issue.ref, first_broken(facts)
    _record_text(facts, context, fine=broken is None)
    if facts.act and (broken is None or _begins_paused(facts, broken)) and opens_epoch(facts):
        context.ledger.append(ref, Authorised.of(facts.act))
        if broken:
            sync_labels_and_status(ref, context)
    if broken is None or broken.refusal is None:
        return None
    if broken.rule in {POLICY, DEPENDS}:
        report_blocked(ref, broken.refusal, context)
    changed = changed_text(facts) if broken.rule == UNCHANGED else None
    if facts.act and changed:
        ask_for_label(ref, facts.act.act, changed, context)
    return broken.refusal


def _record_text(facts: Facts, context: BotContext, *, fine: bool) -> None:
    """Record the requested text: when an act is first seen, and when work starts (TRUST-2)."""
    act, issue, status = facts.act, facts.issue, facts.status
    if act is None or not act.trusted or status.phase is not Phase.IDLE:
        return
    another = (status.text.sha256, status.text.title) != (issue.text_sha256, issue.title)
    if status.text.act != act.act or (fine and another):
        seen = IssueSeen(
            title=issue.title,
            author=issue.author,
            url=issue.url,
            text_sha256=issue.text_sha256,
            act=str(act.act),
        )
        context.ledger.append(issue.ref, seen)


def _begins_paused(facts: Facts, broken: Finding) -> bool:
    """Tell whether a pause is the first obstacle for an issue without queued work."""
    rests = facts.status.stage in SETTLED_STAGES or not facts.status.epoch
    return rests and broken.rule == PAUSED


def defer(facts: Facts, context: BotContext) -> str | None:
    """Defer an issue while a disk is full, a budget is used up, or a key is refused.

    Gives the reason, None if the attempt may start. An operator's command ignores a refused key.
    """
    ref = facts.issue.ref
    if short := _disk_shortage(ref, context):
        status = context.ledger.status(ref)
        others = block_shown(Obstacle.DISK, status.epoch, status.reason)
        # Otherwise several workers with full disks would keep replacing each other's reason.
        if status.reason == short or others not in status.effects.done:
            report_blocked(ref, short, context, Obstacle.DISK)
        log.warning("no_room", issue=str(ref), reason=short)
        return short
    if spent := spent_today(ref, context):
        wait_for_budget(ref, WaitForBudget(reason=spent.reason), context)
        return spent.reason
    refused = None if facts.at_once else refused_until(load_context(facts.issue, context), context)
    if refused:
        wait_until(ref, *refused, context)
        log.warning("agent_refused", issue=str(ref), reason=refused[1])
        return refused[1]
    return None


def _disk_shortage(ref: IssueRef, context: BotContext) -> str | None:
    """Check the disk space; if it is short, delete this issue's worktree and check again."""
    short = context.disk_shortage()
    if short and context.worktrees.exists(ref):
        context.git.discard(ref)
        return context.disk_shortage()
    return short


def begin_attempt(issue: Issue, context: BotContext) -> IssueContext:
    """Record that an attempt starts, before any other step of it (ATTEMPT-1)."""
    case = load_context(issue, context)
    started = AttemptStarted(
        attempt=case.status.attempt + 1,
        number=case.status.number + 1,
        worker=context.worker,
        position=case.counted + 1,
        most=case.max_attempts,
    )
    return replace(case, status=context.ledger.append(issue.ref, started))
