"""One attempt on this machine, step by step: worktree, prompt, agent, commit, verification."""

from collections.abc import Iterator
from dataclasses import replace

from mulligan.brief import write_brief, write_fix_brief
from mulligan.casting import cast
from mulligan.domain.attempt import (
    NO_TEXT,
    Evidence,
    Task,
    TimeLimit,
    next_round,
    worth_fixing,
    worth_verifying,
)
from mulligan.domain.case import Case, bases_of, own_commits
from mulligan.domain.events import AgentFinished, AgentStarted, WorktreeReset
from mulligan.effects import announce, stopped
from mulligan.errors import ShutdownError, WithdrawnError, WorldError
from mulligan.pulls import Standing
from mulligan.purse import open_purse
from mulligan.retry.record import commit_text
from mulligan.retry.sight import is_blank
from mulligan.stop import unstopped
from mulligan.tools import Tools, Trial
from mulligan.verify import verify


def steps(case: Case, tools: Tools) -> Iterator[Evidence]:
    """Worktree and set-up, then one round or more: tell what is known after each step."""
    ref, number = case.issue.ref, case.status.number
    if is_blank(case.issue):
        yield Evidence(fault=NO_TEXT)
        return
    announce(case, tools)
    with tools.worktrees.open(ref, _standing(case)) as tree:
        known = Evidence(base_sha=tree.base_sha, start_sha=tree.start_sha)
        reset = WorktreeReset(
            base_sha=tree.base_sha, start_sha=tree.start_sha, recreated=tree.recreated
        )
        tools.ledger.append(ref, reset)
        yield known
        policy = tools.policies.at(ref.repository, tree.base_sha)
        tools = cast(case, policy, tools)
        tools.verifier.set_up(policy.setup, tree, tools.artifacts.path(ref, number, "setup.log"))
        yield from _rounds(known, Trial(case, policy, tree, tools))


def _standing(case: Case) -> Standing | None:
    """Tell the worktree of the pull request that is open, and which commits there are ours."""
    if case.status.pull_number is None:
        return None
    own, bases = own_commits(case.status, case.history), bases_of(case.status, case.history)
    feedback = case.status.feedback
    if feedback is None or feedback.conflict:
        return Standing(own, bases)
    return Standing(own, bases, is_answered=True, is_reviewed=bool(feedback.remarks))


def _rounds(known: Evidence, at: Trial) -> Iterator[Evidence]:
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


def _run_agent(known: Evidence, task: Task, at: Trial) -> Evidence:
    ref, tools = at.case.issue.ref, at.tools
    purse = open_purse(at.case, known, tools)
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


def _salvaged(known: Evidence, at: Trial) -> Evidence:
    """Keep what an agent has done that was stopped, as far as that can be (SPEC A8, H4)."""
    try:
        with unstopped():
            return _capture(known, at)
    except (WorldError, ShutdownError):
        return known


def _capture(known: Evidence, at: Trial) -> Evidence:
    change = at.tree.capture(commit_text(at.case, at.tools.redactor), at.policy.commit)
    ref, number = at.case.issue.ref, at.case.status.number
    diff = at.tools.artifacts.write(ref, number, "changes.diff", change.diff)
    return replace(known, change=change, diff_artifact=diff)
