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
from mulligan.implement.admission import begin, defer, receive
from mulligan.implement.attempt import steps
from mulligan.implement.decide import EndedAttempt, RetryPolicy, decide
from mulligan.implement.effects import (
    ensure_commit_stored,
    escalate,
    has_foreign_push,
    publish,
    retry,
    stand_down,
    wait,
)
from mulligan.implement.issue_snapshot import collect_facts
from mulligan.implement.ports import Tools
from mulligan.implement.result import interrupted, meta_of


def implement(ref: IssueRef, tools: Tools, act: AuthorisingAct | None = None) -> Result:
    """Make one attempt at an issue, and see it to its conclusion.

    `act` is an operator's command; without one, the label and who put it on must allow it.
    """
    facts = collect_facts(ref, tools, act)
    if why := receive(facts, tools):
        return Skipped(why)
    if tools.ledger.status(ref).is_kept and ensure_commit_stored(ref, tools):
        return publish_kept(ref, tools)
    if why := defer(facts, tools):
        return Skipped(why)
    case = begin(facts.issue, tools)
    meta = make_attempt(case, tools)
    tools.ledger.append(ref, AttemptCompleted(meta=meta))
    return conclude(ref, tools)


def publish_kept(ref: IssueRef, tools: Tools) -> Decision:
    """Publish what an earlier attempt left verified; neither agent nor attempt is spent (O5)."""
    decision = OpenPullRequest(reason="The change of the last attempt is verified and was kept.")
    tools.ledger.append(ref, Decided(decision=decision))
    return carry_out(ref, decision, tools)


def make_attempt(case: IssueContext, tools: Tools) -> WorkerResultMeta:
    """Let the agent try once in a clean worktree, and verify what it left.

    However the attempt ends, what was known by then is in its record.
    """
    known = AttemptState()
    try:
        for step in steps(case, tools):
            known = step
    except (WorldError, ShutdownError, WithdrawnError) as error:
        known = replace(known, fault=fault_of(error))
    used = tools.accounts.of(case.issue.ref, case.status.number)
    return meta_of(case, known, used, tools.worker, tools.clock.now())


def conclude(ref: IssueRef, tools: Tools) -> Decision:
    """Decide what follows the attempt that was completed last, record it, and carry it out."""
    ensure_commit_stored(ref, tools)
    status = tools.ledger.status(ref)
    *earlier, last = tools.ledger.history(ref)
    epoch = [EndedAttempt.of(meta) for meta in earlier if meta.epoch == status.epoch]
    policy = RetryPolicy.of(tools.policies.current(ref.repository), tools.limits)
    decision = decide(EndedAttempt.of(last), epoch, policy)
    tools.ledger.append(ref, Decided(decision=decision))
    return carry_out(ref, decision, tools)


def carry_out(ref: IssueRef, decision: Decision, tools: Tools) -> Decision:
    """Make a recorded decision visible. Safe to repeat: every effect is looked up first."""
    instead: Decision | None = None
    match decision:
        case OpenPullRequest():
            instead = _publish(ref, tools)
            if tools.ledger.status(ref).phase is Phase.COMPLETED:
                return conclude(ref, tools)
        case Retry():
            retry(ref, decision, tools)
        case WaitForBudget():
            wait(ref, decision, tools)
        case Escalate():
            instead = escalate(ref, decision, tools)
        case StandDown():
            stand_down(ref, decision, tools)
        case _:
            assert_never(decision)
    if instead:
        tools.ledger.append(ref, Decided(decision=instead))
        return carry_out(ref, instead, tools)
    return decision


def _publish(ref: IssueRef, tools: Tools) -> Escalate | StandDown | None:
    """Publish the verified commit; give the decision that follows instead, if one does.

    Where the commit is lost, overtaken or without its base, the attempt is recorded anew as one
    that came to something else, of which nothing is decided yet.
    """
    head = ensure_commit_stored(ref, tools)
    if head is None or has_foreign_push(ref, tools):
        return None
    return publish(ref, head, tools)


def resume(ref: IssueRef, tools: Tools) -> Decision | None:
    """Go on where a process that died left an issue (DESIGN 1); None where nothing was open."""
    status = tools.ledger.status(ref)
    match status.phase:
        case Phase.IDLE:
            return None
        case Phase.ATTEMPTING:
            used = tools.accounts.of(ref, status.number)
            meta = interrupted(status, used, tools.clock.now())
            tools.ledger.append(ref, AttemptCompleted(meta=meta))
            return conclude(ref, tools)
        case Phase.COMPLETED:
            return conclude(ref, tools)
        case Phase.DECIDED:
            return carry_out(ref, status.decision, tools) if status.decision else None
        case _:
            assert_never(status.phase)
