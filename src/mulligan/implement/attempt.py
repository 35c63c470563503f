"""One attempt on this machine, step by step: worktree, prompt, agent, commit, verification."""

from collections.abc import Iterator
from dataclasses import replace

from mulligan.domain.attempt import (
    NO_TEXT,
    AttemptState,
    Task,
    TimeLimit,
    next_round,
    worth_fixing,
    worth_verifying,
)
from mulligan.domain.errors import ShutdownError, WithdrawnError, WorldError
from mulligan.domain.events import AgentFinished, AgentStarted, WorktreeReset
from mulligan.domain.issue_context import IssueContext, bases_of, own_commits
from mulligan.implement.agent_selection import select_agent
from mulligan.implement.budget_meter import open_budget_meter
from mulligan.implement.effects import announce, stopped
from mulligan.implement.ports import AttemptContext, PullRequestBase, Tools
from mulligan.implement.prompt.prompt import is_blank
from mulligan.implement.result import commit_text
from mulligan.implement.verify import verify
from mulligan.implement.write_prompt import write_brief, write_fix_brief
from mulligan.sandbox.cancellation import unstopped


def steps(case: IssueContext, tools: Tools) -> Iterator[AttemptState]:
    """Worktree and set-up, then one round or more: tell what is known after each step."""
    ref, number = case.issue.ref, case.status.number
    if is_blank(case.issue):
        yield AttemptState(fault=NO_TEXT)
        return
    announce(case, tools)
    with tools.worktrees.open(ref, _standing(case)) as tree:
        known = AttemptState(base_sha=tree.base_sha, start_sha=tree.start_sha)
        reset = WorktreeReset(
            base_sha=tree.base_sha, start_sha=tree.start_sha, recreated=tree.recreated
        )
        tools.ledger.append(ref, reset)
        yield known
        policy = tools.policies.at(ref.repository, tree.base_sha)
        tools = select_agent(case, policy, tools)
        tools.verifier.set_up(policy.setup, tree, tools.artifacts.path(ref, number, "setup.log"))
        yield from _rounds(known, AttemptContext(case, policy, tree, tools))


def _standing(case: IssueContext) -> PullRequestBase | None:
    """Tell the worktree of the pull request that is open, and which commits there are ours."""
    if case.status.pull_number is None:
        return None
    own, bases = own_commits(case.status, case.history), bases_of(case.status, case.history)
    feedback = case.status.feedback
    if feedback is None or feedback.conflict:
        return PullRequestBase(own, bases)
    return PullRequestBase(own, bases, is_answered=True, is_reviewed=bool(feedback.remarks))


def _rounds(known: AttemptState, at: AttemptContext) -> Iterator[AttemptState]:
    """Prompt, agent, commit, verification; again, with what failed, while fix rounds are left."""
    task = brief = write_brief(at.case, at.policy, at.tree, at.tools)
    while True:
        try:
            known = _run_agent(known, task, at)
        except WithdrawnError:
            yield _salvaged(known, at)
            raise
        yield known
        yield (known := _capture(known, at))
        if known.change and worth_verifying(known):
            for step in verify(known, known.change, at):
                yield (known := step)
        if not worth_fixing(known) or len(known.earlier) == at.policy.max_fix_rounds:
            return
        known = next_round(known)
        task = write_fix_brief(brief, known, at)


def _run_agent(known: AttemptState, task: Task, at: AttemptContext) -> AttemptState:
    ref, tools = at.case.issue.ref, at.tools
    purse = open_budget_meter(at.case, known, tools)
    if fault := purse.exhausted(known):
        return replace(known, fault=fault)
    if why := stopped(ref, tools):
        raise WithdrawnError(why)
    probe = tools.accounts.refused_at(tools.agent.name) is not None
    tools.ledger.append(ref, AgentStarted(agent=tools.agent.name))
    run = tools.agent.run(replace(task, meter=purse.meter))
    tools.accounts.record(purse.run, run.facts)
    finished = AgentFinished(
        exit_code=run.exit_code,
        stopped_by=run.stopped_by,
        duration_ms=round(run.duration.total_seconds() * 1000),
    )
    tools.ledger.append(ref, finished)
    known = replace(known, manifest_hash=task.manifest_hash, run=run, probe=probe)
    is_over = run.stopped_by is TimeLimit.BUDGET
    return replace(known, fault=purse.exhausted(known)) if is_over else known


def _salvaged(known: AttemptState, at: AttemptContext) -> AttemptState:
    """Keep what an agent has done that was stopped, as far as that can be (SPEC A8, H4)."""
    try:
        with unstopped():
            return _capture(known, at)
    except (WorldError, ShutdownError):
        return known


def _capture(known: AttemptState, at: AttemptContext) -> AttemptState:
    change = at.tree.capture(commit_text(at.case, at.tools.redactor), at.policy.commit)
    ref, number = at.case.issue.ref, at.case.status.number
    diff = at.tools.artifacts.write(ref, number, "changes.diff", change.diff)
    return replace(known, change=change, diff_artifact=diff)
