"""READ FIRST. The implement phase: the way of one issue, from top to bottom.

`implement` makes one attempt. `make_attempt` changes this machine only; its steps are in
attempt.py. `conclude` decides and records. `carry_out` changes GitHub; whatever it does may happen
twice and shows once. Killed anywhere, the ledger says which of them comes next, and `resume` does
that.
"""

from dataclasses import replace
from typing import assert_never

from mulligan.domain.attempt import AttemptState, fault_of
from mulligan.domain.errors import ShutdownError, WithdrawnError, WorldError
from mulligan.domain.events import AttemptCompleted, Decided
from mulligan.domain.issue import AuthorisingAct, IssueRef
from mulligan.domain.issue_context import IssueContext, Result, Skipped
from mulligan.domain.outcome import (
    Decision,
    Escalate,
    OpenPullRequest,
    Retry,
    StandDown,
    WaitForBudget,
)
from mulligan.domain.result import WorkerResultMeta
from mulligan.domain.status import Phase
from mulligan.implement.admission import admit, begin_attempt, defer
from mulligan.implement.attempt import run_attempt
from mulligan.implement.decide import EndedAttempt, RetryPolicy, decide
from mulligan.implement.effects import (
    ensure_commit_stored,
    escalate,
    has_foreign_push,
    publish,
    retry,
    stand_down,
    wait_for_budget,
)
from mulligan.implement.issue_snapshot import collect_facts
from mulligan.implement.ports import BotContext
from mulligan.implement.result import attempt_record, interrupted_record


def implement(ref: IssueRef, context: BotContext, act: AuthorisingAct | None = None) -> Result:
    """Make one attempt at an issue, and see it to its conclusion.

    `act` is an operator's command; without one, the label and who put it on must allow it.
    """
    facts = collect_facts(ref, context, act)
    if why := admit(facts, context):
        return Skipped(why)
    if context.ledger.status(ref).is_kept and ensure_commit_stored(ref, context):
        return publish_kept(ref, context)
    if why := defer(facts, context):
        return Skipped(why)
    case = begin_attempt(facts.issue, context)
    meta = make_attempt(case, context)
    context.ledger.append(ref, AttemptCompleted(meta=meta))
    return conclude(ref, context)


def publish_kept(ref: IssueRef, context: BotContext) -> Decision:
    """Publish what an earlier attempt left verified; neither agent nor attempt is spent (O5)."""
    decision = OpenPullRequest(reason="The change of the last attempt is verified and was kept.")
    context.ledger.append(ref, Decided(decision=decision))
    return carry_out(ref, decision, context)


def make_attempt(case: IssueContext, context: BotContext) -> WorkerResultMeta:
    """Let the agent try once in a clean worktree, and verify what it left.

    However the attempt ends, what was known by then is in its record.
    """
    known = AttemptState()
    try:
        for step in run_attempt(case, context):
            known = step
    except (WorldError, ShutdownError, WithdrawnError) as error:
        known = replace(known, fault=fault_of(error))
    used = context.usage.usage_of_attempt(case.issue.ref, case.status.number)
    return attempt_record(case, known, used, context.worker, context.clock.now())


def conclude(ref: IssueRef, context: BotContext) -> Decision:
    """Decide what follows the attempt that was completed last, record it, and carry it out."""
    ensure_commit_stored(ref, context)
    status = context.ledger.status(ref)
    *earlier, last = context.ledger.history(ref)
    epoch = [EndedAttempt.of(meta) for meta in earlier if meta.epoch == status.epoch]
    policy = RetryPolicy.of(context.policies.in_force(ref.repository), context.limits)
    decision = decide(EndedAttempt.of(last), epoch, policy)
    context.ledger.append(ref, Decided(decision=decision))
    return carry_out(ref, decision, context)


def carry_out(ref: IssueRef, decision: Decision, context: BotContext) -> Decision:
    """Make a recorded decision visible. Safe to repeat: every effect is looked up first."""
    instead: Decision | None = None
    match decision:
        case OpenPullRequest():
            instead = _publish(ref, context)
            if context.ledger.status(ref).phase is Phase.COMPLETED:
                return conclude(ref, context)
        case Retry():
            retry(ref, decision, context)
        case WaitForBudget():
            wait_for_budget(ref, decision, context)
        case Escalate():
            instead = escalate(ref, decision, context)
        case StandDown():
            stand_down(ref, decision, context)
        case _:
            assert_never(decision)
    if instead:
        context.ledger.append(ref, Decided(decision=instead))
        return carry_out(ref, instead, context)
    return decision


def _publish(ref: IssueRef, context: BotContext) -> Escalate | StandDown | None:
    """Publish the verified commit; give the decision that follows instead, if one does.

    Where the commit is lost, overtaken or without its base, the attempt is recorded anew as one
    that came to something else, of which nothing is decided yet.
    """
    head = ensure_commit_stored(ref, context)
    if head is None or has_foreign_push(ref, context):
        return None
    return publish(ref, head, context)


def resume(ref: IssueRef, context: BotContext) -> Decision | None:
    """Go on where a process that died left an issue (DESIGN 1); None where nothing was open."""
    status = context.ledger.status(ref)
    match status.phase:
        case Phase.IDLE:
            return None
        case Phase.ATTEMPTING:
            used = context.usage.usage_of_attempt(ref, status.number)
            meta = interrupted_record(status, used, context.clock.now())
            context.ledger.append(ref, AttemptCompleted(meta=meta))
            return conclude(ref, context)
        case Phase.COMPLETED:
            return conclude(ref, context)
        case Phase.DECIDED:
            return carry_out(ref, status.decision, context) if status.decision else None
        case _:
            assert_never(status.phase)
