"""READ FIRST. The implement phase: the way of one issue, from top to bottom.

`implement` makes one attempt. `make_attempt` changes this machine only. `conclude` decides and
records. `carry_out` changes GitHub; whatever it does may happen twice and shows once. Killed
anywhere, the ledger says which of them comes next, and `resume` does that.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import assert_never

from mulligan.brief import write_brief, write_fix_brief
from mulligan.domain.attempt import (
    NO_TEXT,
    Evidence,
    Task,
    TimeLimit,
    fault_of,
    next_round,
    worth_fixing,
    worth_verifying,
)
from mulligan.domain.case import Case, Result, Skipped
from mulligan.domain.decision import (
    Decision,
    Escalate,
    OpenPullRequest,
    Retry,
    StandDown,
    WaitForBudget,
)
from mulligan.domain.eligibility import (
    POLICY,
    UNCHANGED,
    Facts,
    changed_text,
    first_broken,
    opens_epoch,
)
from mulligan.domain.events import (
    AgentFinished,
    AgentStarted,
    AttemptCompleted,
    AttemptStarted,
    Authorised,
    Decided,
    IssueSeen,
    WorktreeReset,
)
from mulligan.domain.issue import AuthorisingAct, Issue, IssueRef
from mulligan.domain.result import WorkerResultMeta
from mulligan.domain.status import Phase
from mulligan.effects import (
    announce,
    ask_for_label,
    escalate,
    hold,
    publish,
    retry,
    secure,
    stand_down,
    stopped,
    wait,
)
from mulligan.errors import ShutdownError, WithdrawnError, WorldError
from mulligan.retry.budget import allowance_of, used_up
from mulligan.retry.policy import Ended, RetryPolicy, decide
from mulligan.retry.record import commit_text, interrupted, meta_of
from mulligan.retry.sight import is_blank
from mulligan.survey import gather, look
from mulligan.tools import Tools, Trial
from mulligan.verify import verify


def implement(ref: IssueRef, tools: Tools, act: AuthorisingAct | None = None) -> Result:
    """Make one attempt at an issue, and see it to its conclusion.

    `act` is an operator's command; without one, the label and who put it on must allow it.
    """
    facts = gather(ref, tools, act)
    if why := receive(facts, tools):
        return Skipped(why)
    if tools.ledger.status(ref).is_kept and secure(ref, tools):
        return publish_kept(ref, tools)
    case = begin(facts.issue, tools)
    meta = make_attempt(case, tools)
    tools.ledger.append(ref, AttemptCompleted(meta=meta))
    return conclude(ref, tools)


def receive(facts: Facts, tools: Tools) -> str | None:
    """Record what is new about an issue and who asks for it; a new request opens an epoch.

    Gives the reason where it may not be worked on. What a person has to mend first, a text that
    was changed or a policy, is said on the issue (SPEC T2, 17).
    """
    ref, broken = facts.issue.ref, first_broken(facts)
    _record_text(facts, tools, fine=broken is None)
    if facts.act and broken is None and opens_epoch(facts):
        tools.ledger.append(ref, _opening(facts.act))
    if broken is None or broken.refusal is None:
        return None
    if broken.rule == POLICY:
        hold(ref, broken.refusal, tools)
    changed = changed_text(facts) if broken.rule == UNCHANGED else None
    if facts.act and changed:
        ask_for_label(ref, facts.act.act, changed, tools)
    return broken.refusal


def _opening(act: AuthorisingAct) -> Authorised:
    return Authorised(act=act.act, actor=act.actor, act_at=act.at, actor_id=act.actor_id)


def _record_text(facts: Facts, tools: Tools, *, fine: bool) -> None:
    """Keep the text that was asked for: at first sight under an act, and as work starts (T2)."""
    act, issue, status = facts.act, facts.issue, facts.status
    if act is None or not act.trusted or status.phase is not Phase.IDLE:
        return
    another = (status.text_sha256, status.title) != (issue.text_sha256, issue.title)
    if status.text_act != act.act or (fine and another):
        seen = IssueSeen(
            title=issue.title,
            author=issue.author,
            url=issue.url,
            text_sha256=issue.text_sha256,
            act=act.act,
        )
        tools.ledger.append(issue.ref, seen)


def publish_kept(ref: IssueRef, tools: Tools) -> Decision:
    """Publish what an earlier attempt left verified; neither agent nor attempt is spent (O5)."""
    decision = OpenPullRequest(reason="The change of the last attempt is verified and was kept.")
    tools.ledger.append(ref, Decided(decision=decision))
    return carry_out(ref, decision, tools)


def begin(issue: Issue, tools: Tools) -> Case:
    """Record that an attempt starts, before anything else happens (SPEC A1)."""
    case = look(issue, tools)
    started = AttemptStarted(
        attempt=case.status.attempt + 1,
        number=case.status.number + 1,
        worker=tools.worker,
        position=case.counted + 1,
        most=case.max_attempts,
    )
    return replace(case, status=tools.ledger.append(issue.ref, started))


def make_attempt(case: Case, tools: Tools) -> WorkerResultMeta:
    """Let the agent try once in a clean worktree, and verify what it left.

    However the attempt ends, what was known by then is in its record.
    """
    known = Evidence()
    try:
        for step in _steps(case, tools):
            known = step
    except (WorldError, ShutdownError, WithdrawnError) as error:
        known = replace(known, fault=fault_of(error))
    return meta_of(case, known, tools.worker, tools.clock.now())


def _steps(case: Case, tools: Tools) -> Iterator[Evidence]:
    """Worktree and set-up, then one round or more: tell what is known after each step."""
    ref, number = case.issue.ref, case.status.number
    if is_blank(case.issue):
        yield Evidence(fault=NO_TEXT)
        return
    announce(case, tools)
    with tools.worktrees.open(ref) as tree:
        known = Evidence(base_sha=tree.base_sha, start_sha=tree.start_sha)
        reset = WorktreeReset(
            base_sha=tree.base_sha, start_sha=tree.start_sha, recreated=tree.recreated
        )
        tools.ledger.append(ref, reset)
        yield known
        policy = tools.policies.at(ref.repository, tree.start_sha)
        tools.verifier.set_up(policy.setup, tree, tools.artifacts.path(ref, number, "setup.log"))
        yield from _rounds(known, Trial(case, policy, tree, tools))


def _rounds(known: Evidence, at: Trial) -> Iterator[Evidence]:
    """Prompt, agent, commit, verification; again, with what failed, while fix rounds are left."""
    task = brief = write_brief(at.case, at.policy, at.tree, at.tools)
    while True:
        yield (known := _run_agent(known, task, at))
        yield (known := _capture(known, at))
        if known.change and worth_verifying(known):
            for step in verify(known, known.change, at):
                yield (known := step)
        if not worth_fixing(known) or len(known.earlier) == at.policy.max_fix_rounds:
            return
        known = next_round(known)
        task = write_fix_brief(brief, known, at)


def _run_agent(known: Evidence, task: Task, at: Trial) -> Evidence:
    ref, tools, history = at.case.issue.ref, at.tools, at.case.history
    if fault := used_up(history, known, tools.budget):
        return replace(known, fault=fault)
    if why := stopped(ref, tools):
        raise WithdrawnError(why)
    tools.ledger.append(ref, AgentStarted(agent=tools.agent.name))
    run = tools.agent.run(replace(task, allowance=allowance_of(history, known, tools.budget)))
    finished = AgentFinished(
        exit_code=run.exit_code,
        stopped_by=run.stopped_by,
        duration_ms=round(run.duration.total_seconds() * 1000),
    )
    tools.ledger.append(ref, finished)
    known = replace(known, manifest_hash=task.manifest_hash, run=run)
    is_over = run.stopped_by is TimeLimit.BUDGET
    return replace(known, fault=used_up(history, known, tools.budget)) if is_over else known


def _capture(known: Evidence, at: Trial) -> Evidence:
    change = at.tree.capture(commit_text(at.case, at.tools.redactor), at.policy.commit)
    ref, number = at.case.issue.ref, at.case.status.number
    diff = at.tools.artifacts.write(ref, number, "changes.diff", change.diff)
    return replace(known, change=change, diff_artifact=diff)


def conclude(ref: IssueRef, tools: Tools) -> Decision:
    """Decide what follows the attempt that was completed last, record it, and carry it out."""
    secure(ref, tools)
    status = tools.ledger.status(ref)
    *earlier, last = tools.ledger.history(ref)
    epoch = [Ended.of(meta) for meta in earlier if meta.epoch == status.epoch]
    policy = RetryPolicy.of(tools.policies.current(ref.repository), tools.limits)
    decision = decide(Ended.of(last), epoch, policy)
    tools.ledger.append(ref, Decided(decision=decision))
    return carry_out(ref, decision, tools)


def carry_out(ref: IssueRef, decision: Decision, tools: Tools) -> Decision:
    """Make a recorded decision visible. Safe to repeat: every effect is looked up first."""
    instead: Decision | None = None
    match decision:
        case OpenPullRequest():
            head = secure(ref, tools)
            if head is None:
                return conclude(ref, tools)
            instead = publish(ref, head, tools)
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


def resume(ref: IssueRef, tools: Tools) -> Decision | None:
    """Go on where a process that died left an issue (DESIGN 1); None where nothing was open."""
    status = tools.ledger.status(ref)
    match status.phase:
        case Phase.IDLE:
            return None
        case Phase.ATTEMPTING:
            meta = interrupted(status, tools.clock.now())
            tools.ledger.append(ref, AttemptCompleted(meta=meta))
            return conclude(ref, tools)
        case Phase.COMPLETED:
            return conclude(ref, tools)
        case Phase.DECIDED:
            return carry_out(ref, status.decision, tools) if status.decision else None
        case _:
            assert_never(status.phase)
