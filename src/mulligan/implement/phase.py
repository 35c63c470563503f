"""READ FIRST. The route of one issue, from reading it to the decision that is carried out.

Three kinds of functions alternate. Reads (issue_snapshot.py) collect facts and change nothing.
Decisions (decide.py) are pure. Effects (effects.py) change GitHub, git and the ledger, can be
repeated without harm, and report a `Situation` if the world has changed since the decision.

If Mulligan is killed at any point, the ledger shows which step comes next, and `resume` continues
there.
"""

from dataclasses import replace
from typing import assert_never

from mulligan.domain.attempt import CHANGES_WITHDRAWN
from mulligan.domain.events import AttemptCompleted, Decided
from mulligan.domain.issue import AuthorisingAct, IssueRef
from mulligan.domain.issue_context import Result, Skipped
from mulligan.domain.outcome import (
    Decision,
    Escalate,
    OpenPullRequest,
    Outcome,
    Retry,
    StandDown,
    WaitForBudget,
    WaitForPullRequest,
)
from mulligan.domain.status import Phase
from mulligan.implement import effects
from mulligan.implement.attempt import begin_attempt, make_attempt
from mulligan.implement.decide import (
    EndedAttempt,
    LostWork,
    RetryPolicy,
    Situation,
    StartAttempt,
    decide,
    decide_admission,
    decide_start,
    reconsider,
    round_of,
)
from mulligan.implement.issue_snapshot import collect_facts, find_kept_commit, read_start
from mulligan.implement.ports import WriteContext
from mulligan.implement.result import interrupted_record


def implement(ref: IssueRef, context: WriteContext, act: AuthorisingAct | None = None) -> Result:
    """Make one attempt at an issue, decide what follows, and carry that out.

    `act` is an operator's command. Without one, a label, comment or review of a trusted person
    must have asked for the work. Returns `Skipped` with the reason if the issue must wait.
    """
    # 1. Read the issue, its request and its ledger.
    facts = collect_facts(ref, context, act)
    # 2. Decide whether to work on it. Record the request, or show the obstacle.
    admission = decide_admission(facts)
    effects.record_admission(facts, admission, context)
    if admission.refusal:
        return Skipped(admission.refusal)
    # 3. Read again the reviews that the attempt is for. Stop if none still requests changes.
    if effects.read_withdrawn_reviews(ref, context):
        return resume(ref, context) or Skipped(CHANGES_WITHDRAWN)
    # 4. Find the verified commit of an earlier attempt, if one is kept. Record its loss.
    kept = find_kept_commit(ref, context)
    if isinstance(kept, LostWork):
        context.ledger.append(ref, reconsider(kept))
    # 5. Read what else the start depends on, free disk space if that may help, and decide.
    found = read_start(facts, context, has_kept_commit=isinstance(kept, str))
    if found.frees_disk:
        context.git.discard(ref)
        found = replace(found, disk_shortage=context.disk_shortage())
    start = decide_start(found)
    # 6. Publish the kept commit, or defer the attempt, or record that it starts.
    if isinstance(start, OpenPullRequest):
        context.ledger.append(ref, Decided(decision=start))
        return carry_out(ref, start, context)
    if not isinstance(start, StartAttempt):
        effects.defer(ref, start, context)
        return Skipped(start.reason)
    case = begin_attempt(facts.issue, context)
    # 7. Attempt: worktree, prompt, agent, commit, checks (attempt.py). Record the outcome.
    context.ledger.append(ref, AttemptCompleted(meta=make_attempt(case, context)))
    if context.disk_shortage():
        # What the attempt left may be what keeps other issues waiting; its commit is in the mirror.
        context.git.discard(ref)
    # 8. Decide, and carry the decision out.
    return conclude(ref, context)


def admit(ref: IssueRef, context: WriteContext) -> None:
    """Record the request of an issue that must wait for a worker, and show that it is queued."""
    facts = collect_facts(ref, context)
    admission = decide_admission(facts)
    effects.record_admission(facts, admission, context)
    if admission.request and not admission.refusal:
        effects.sync_labels_and_status(ref, context)


def hold(ref: IssueRef, reason: str, context: WriteContext) -> None:
    """Record the request of an issue, and show that no agent of its repository can start a run."""
    if not context.ledger.status(ref).epoch:
        facts = collect_facts(ref, context)
        effects.record_admission(facts, decide_admission(facts), context)
    effects.show_hold(ref, reason, context)


def conclude(ref: IssueRef, context: WriteContext) -> Decision:
    """Decide what follows the last completed attempt, record the decision, and carry it out."""
    # 1. Read the attempts that count together with the last one.
    *earlier, last = context.ledger.history(ref)
    before = round_of(context.ledger.status(ref), earlier)
    # 2. Store the verified commit where every worker finds it.
    if last.outcome is Outcome.SUCCEEDED:
        stored = effects.store_commit(ref, last, context)
        if isinstance(stored, LostWork):
            return _reconsider(ref, stored, context)
    # 3. Decide (decide.py), and record the decision.
    policy = RetryPolicy.of(context.policies.in_force(ref.repository), context.limits)
    decision = decide(EndedAttempt.of(last), before, policy)
    context.ledger.append(ref, Decided(decision=decision))
    # 4. Carry it out (effects.py).
    return carry_out(ref, decision, context)


def carry_out(ref: IssueRef, decision: Decision, context: WriteContext) -> Decision:
    """Carry a recorded decision out on GitHub; give the decision that was carried out in the end.

    Safe to repeat: every effect is looked up first.
    """
    found: Situation | None = None
    match decision:
        case OpenPullRequest():
            stored = effects.store_commit(ref, context.ledger.history(ref)[-1], context)
            found = effects.publish(ref, stored, context) if isinstance(stored, str) else stored
        case Retry():
            effects.retry(ref, decision, context)
        case WaitForBudget():
            effects.wait_for_budget(ref, decision, context)
        case Escalate():
            found = effects.escalate(ref, decision, context)
        case WaitForPullRequest():
            effects.wait_for_pull_request(ref, decision, context)
        case StandDown():
            effects.stand_down(ref, decision, context)
        case _:
            assert_never(decision)
    return _reconsider(ref, found, context) if found else decision


def _reconsider(ref: IssueRef, found: Situation, context: WriteContext) -> Decision:
    """Decide again in a world that has changed, record that, and carry it out."""
    event = reconsider(found)
    context.ledger.append(ref, event)
    if isinstance(event, Decided):
        return carry_out(ref, event.decision, context)
    return conclude(ref, context)


def resume(ref: IssueRef, context: WriteContext) -> Decision | None:
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
