"""READ FIRST. The route of one issue, from reading it to the decision that is carried out.

`implement` makes one attempt; the steps inside it are in attempt.py. `conclude` decides and records
the decision. `carry_out` changes GitHub; each of its effects can be repeated without harm. If
Mulligan is killed at any point, the ledger shows which step comes next, and `resume` continues
there.
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
    """Make one attempt at an issue, decide what follows, and carry that out.

    `act` is an operator's command. Without one, a label, comment or review of a trusted person
    must have asked for the work. Returns `Skipped` with the reason if the issue must wait.
    """
    # 1. Read the issue, its request and its ledger.
    facts = collect_facts(ref, context, act)
    # 2. Admit it, or skip it with the reason.
    if why := admit(facts, context):
        return Skipped(why)
    # 3. Publish the verified commit of an earlier attempt, if one is still waiting.
    if context.ledger.status(ref).is_kept and ensure_commit_stored(ref, context):
        return publish_kept(ref, context)
    # 4. Defer it if there is no disk space, no budget, or no accepted key.
    if why := defer(facts, context):
        return Skipped(why)
    # 5. Record that the attempt starts.
    case = begin_attempt(facts.issue, context)
    # 6. Attempt: worktree, prompt, agent, commit, checks (attempt.py).
    meta = make_attempt(case, context)
    # 7. Record the outcome.
    context.ledger.append(ref, AttemptCompleted(meta=meta))
    # 8. Decide, and carry the decision out.
    return conclude(ref, context)


def publish_kept(ref: IssueRef, context: BotContext) -> Decision:
    """Publish the verified commit of an earlier attempt; no agent runs (PUBLISH-1)."""
    decision = OpenPullRequest(reason="The change of the last attempt is verified and was kept.")
    context.ledger.append(ref, Decided(decision=decision))
    return carry_out(ref, decision, context)


def make_attempt(case: IssueContext, context: BotContext) -> WorkerResultMeta:
    """Run one attempt in a clean worktree, verify the change, and return the record.

    If the attempt ends early, the record holds everything known until then.
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
    """Decide what follows the last completed attempt, record the decision, and carry it out."""
    # 1. Store the verified commit where every worker finds it.
    ensure_commit_stored(ref, context)
    # 2. Read the attempts of this epoch.
    status = context.ledger.status(ref)
    *earlier, last = context.ledger.history(ref)
    epoch = [EndedAttempt.of(meta) for meta in earlier if meta.epoch == status.epoch]
    # 3. Decide (decide.py), and record the decision.
    policy = RetryPolicy.of(context.policies.in_force(ref.repository), context.limits)
    decision = decide(EndedAttempt.of(last), epoch, policy)
    context.ledger.append(ref, Decided(decision=decision))
    # 4. Carry it out (effects.py).
    return carry_out(ref, decision, context)


def carry_out(ref: IssueRef, decision: Decision, context: BotContext) -> Decision:
    """Carry a recorded decision out on GitHub; give the decision that was carried out in the end.

    Safe to repeat: every effect is looked up first.
    """
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
    """Publish the verified commit; give the decision that replaces the publication, if any.

    If the commit is lost, somebody pushed to the pull request, or the base was force-pushed, the
    attempt is recorded again with another outcome, and the caller must decide again.
    """
    head = ensure_commit_stored(ref, context)
    if head is None or has_foreign_push(ref, context):
        return None
    return publish(ref, head, context)


def resume(ref: IssueRef, context: BotContext) -> Decision | None:
    """Continue where a killed process left an issue; None if nothing is unfinished (RECOVERY-1)."""
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
