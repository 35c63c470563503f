"""Run one attempt step by step: worktree, setup commands, prompt, agent, commit, checks."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

from mulligan.config.policy import TitleSource
from mulligan.domain.attempt import (
    NO_TEXT,
    AttemptState,
    Change,
    Task,
    TimeLimit,
    fault_of,
    next_round,
    worth_fixing,
    worth_verifying,
)
from mulligan.domain.attempt_times import Part
from mulligan.domain.errors import ReviewsWithdrawnError, ShutdownError, WithdrawnError, WorldError
from mulligan.domain.events import AgentFinished, AgentStarted, AttemptStarted, WorktreeReset
from mulligan.domain.issue import Issue
from mulligan.domain.issue_context import IssueContext, bases_of, commits_on_branch, own_commits
from mulligan.domain.meanwhile import digests_of
from mulligan.domain.result import WorkerResultMeta
from mulligan.implement.agent_selection import select_agent
from mulligan.implement.baselines import baselines_beside
from mulligan.implement.budget_meter import open_budget_meter
from mulligan.implement.change_title import title_of
from mulligan.implement.commit_message import commit_text
from mulligan.implement.effects import (
    announce_attempt,
    ask_after_edit,
    read_withdrawn_reviews,
)
from mulligan.implement.image import in_image
from mulligan.implement.issue_snapshot import check_request, load_context
from mulligan.implement.ports import AttemptContext, PullRequestBase, WriteContext
from mulligan.implement.prompt.prompt import is_blank
from mulligan.implement.repository_customs import read_title_style, wanted_title
from mulligan.implement.result import attempt_record, with_times
from mulligan.implement.set_up import set_up
from mulligan.implement.stopwatch import Stopwatch
from mulligan.implement.verify import verify
from mulligan.implement.write_prompt import write_first_prompt, write_fix_prompt
from mulligan.sandbox.cancellation import ignore_cancellation


def begin_attempt(issue: Issue, context: WriteContext) -> IssueContext:
    """Record that an attempt starts, before any other step of it (ATTEMPT-1)."""
    case = load_context(issue, context)
    started = AttemptStarted(
        attempt=case.status.attempt + 1,
        number=case.status.number + 1,
        worker=context.worker,
        position=case.counted + 1,
        most=case.max_attempts,
        comments=digests_of(case.issue.comments),
    )
    return replace(case, status=context.ledger.append(issue.ref, started))


def make_attempt(case: IssueContext, context: WriteContext) -> WorkerResultMeta:
    """Run one attempt in a clean worktree, verify the change, and return the record.

    If the attempt ends early, the record holds everything known until then.
    """
    known, stopwatch = AttemptState(), Stopwatch(context.clock.now)
    try:
        for step in _run_steps(case, context, stopwatch):
            known = step
    except (WorldError, ShutdownError, WithdrawnError) as error:
        known = replace(known, fault=fault_of(error))
    used = context.usage.usage_of_attempt(case.issue.ref, case.status.number)
    record = attempt_record(case, known, used, context.worker, context.clock.now())
    reused, copies = stopwatch.set_up_reused, stopwatch.copies
    return with_times(record, case, stopwatch.measured, set_up_reused=reused, copies=copies)


def _run_steps(
    case: IssueContext, context: WriteContext, stopwatch: Stopwatch
) -> Iterator[AttemptState]:
    """Prepare the worktree, then run one or more rounds; yield the state after each step."""
    ref = case.issue.ref
    if is_blank(case.issue):
        yield AttemptState(fault=NO_TEXT)
        return
    announce_attempt(case, context)
    standing = _pull_request_base(case)
    if standing is None:
        own = commits_on_branch(case.status, case.history)
        context.worktrees.check_branch_names(ref.repository, ref, own)
    with ExitStack() as opened:
        with stopwatch.measure(Part.WORKTREE):
            tree = opened.enter_context(context.worktrees.open(ref, standing))
        known = AttemptState(base_sha=tree.base_sha, start_sha=tree.start_sha)
        reset = WorktreeReset(
            base_sha=tree.base_sha, start_sha=tree.start_sha, recreated=tree.recreated
        )
        context.ledger.append(ref, reset)
        yield known
        policy = context.policies.at(ref.repository, tree.base_sha)
        agent = select_agent(case, policy, context.agents)
        with stopwatch.measure(Part.WORKTREE):
            tree = tree.with_checkout(policy.checkout)
        with stopwatch.measure(Part.SET_UP):
            tree = in_image(tree, ref, case.status.number, policy, context, opened)
            known = replace(known, image=tree.image.name if tree.image else "")
            yield known
            ready = set_up(tree, ref, case.status.number, policy, context, stopwatch)
        style = read_title_style(ref.repository, policy, context.worktrees, tree.base_sha)
        case = replace(case, title_request=wanted_title(policy, style))
        at = AttemptContext(case, policy, ready, agent, context, stopwatch, style)
        opened.enter_context(baselines_beside(at))
        yield from _rounds(known, at)


def _pull_request_base(case: IssueContext) -> PullRequestBase | None:
    """Describe the open pull request and Mulligan's commits in it; None without one."""
    if case.status.pull.number is None:
        return None
    own, bases = own_commits(case.status, case.history), bases_of(case.status, case.history)
    feedback = case.status.feedback
    if feedback is None or feedback.conflict:
        return PullRequestBase(own, bases)
    return PullRequestBase(own, bases, is_answered=True, is_reviewed=bool(feedback.remarks))


def _rounds(known: AttemptState, at: AttemptContext) -> Iterator[AttemptState]:
    """Prompt, agent, commit, checks; repeat with the failures while fix rounds are left."""
    task = first_task = write_first_prompt(at)
    while True:
        try:
            known = _run_agent(known, task, at)
        except WithdrawnError:
            yield _keep_partial_change(known, at)
            raise
        yield known
        yield (known := _capture(known, at))
        if known.change and worth_verifying(known):
            for step in verify(known, known.change, at):
                yield (known := step)
        if not worth_fixing(known) or len(known.earlier) == at.policy.max_fix_rounds:
            return
        known = next_round(known)
        task = write_fix_prompt(first_task, known, at)


def _run_agent(known: AttemptState, task: Task, at: AttemptContext) -> AttemptState:
    ref, agent, context = at.case.issue.ref, at.agent, at.context
    budget_meter = open_budget_meter(at.case, known, agent, context)
    if fault := budget_meter.exhausted(known):
        return replace(known, fault=fault)
    if found := check_request(ref, context):
        ask_after_edit(ref, found, context)
        raise WithdrawnError(found.reason)
    if read_withdrawn_reviews(ref, context):
        raise ReviewsWithdrawnError
    before = context.usage.rest(agent.name)
    context.ledger.append(ref, AgentStarted(agent=agent.name))
    with at.stopwatch.measure(Part.AGENT):
        run = agent.run(replace(task, meter=budget_meter.meter, allowance=budget_meter.allowance))
    run = run.ended_at(context.clock.now(), before, agent.account)
    context.usage.record(budget_meter.run, run.facts)
    finished = AgentFinished(
        exit_code=run.exit_code,
        stopped_by=run.stopped_by,
        duration_ms=round(run.duration.total_seconds() * 1000),
    )
    context.ledger.append(ref, finished)
    known = replace(known, manifest_hash=task.manifest_hash, run=run)
    is_over = run.stopped_by is TimeLimit.BUDGET
    return replace(known, fault=budget_meter.exhausted(known)) if is_over else known


def _keep_partial_change(known: AttemptState, at: AttemptContext) -> AttemptState:
    """Commit the partial change of a stopped agent; best effort (ATTEMPT-2, COMMAND-1)."""
    try:
        with ignore_cancellation():
            return _commit_change(known, at)
    except (WorldError, ShutdownError):
        return known


def _capture(known: AttemptState, at: AttemptContext) -> AttemptState:
    """Commit the agent's change; if it filled the disk, only as far as there is space for it."""
    if known.run and known.run.stopped_by is TimeLimit.DISK:
        kept = _keep_partial_change(known, at)
        nothing = Change(known.start_sha, None, 0)
        return kept if kept.change else replace(known, change=nothing)
    return _commit_change(known, at)


def _commit_change(known: AttemptState, at: AttemptContext) -> AttemptState:
    policy, style, issue = at.policy, at.title_style, at.case.issue
    proposed = known.proposed_title if policy.pull_request.title is TitleSource.CHANGE else ""
    title = at.context.redactor.text(title_of(issue, proposed, style))
    text = commit_text(at.case, at.context.redactor, title, has_number=style.has_number)
    change = at.worktree.capture(text, policy.commit, policy.scope)
    ref, number = at.case.issue.ref, at.case.status.number
    diff = at.context.artifacts.write(ref, number, "changes.diff", change.diff)
    return replace(known, change=change, diff_artifact=diff, title=title)
