"""Explain why an issue is, or is not, being worked on, and show its prompt; change nothing."""

from dataclasses import replace

from mulligan.daemon.worker import hold_on
from mulligan.domain.attempt import NO_TEXT
from mulligan.domain.eligibility import SETTLED_STAGES, Facts, opens_epoch, refusal
from mulligan.domain.errors import (
    ConfigError,
    DeniedError,
    GoneError,
    UnconfirmedError,
    UsageError,
    WorldError,
)
from mulligan.domain.events import Authorised
from mulligan.domain.explanation import Explanation, ExplanationInputs, explain_unread
from mulligan.domain.explanation import explain as word
from mulligan.domain.fold import advance
from mulligan.domain.issue import IssueRef, OperatorAct
from mulligan.domain.issue_context import IssueContext, commits_on_branch
from mulligan.domain.status import IssueStatus
from mulligan.implement.agent_selection import missing_agent, select_agent
from mulligan.implement.issue_snapshot import collect_facts, ignored_dependencies, load_context
from mulligan.implement.ports import BotContext, ReadContext
from mulligan.implement.prompt.compose import ComposedPrompt
from mulligan.implement.prompt.prompt import is_blank
from mulligan.implement.repository_customs import read_title_style, wanted_title
from mulligan.implement.write_prompt import deliver_prompt

NO_SUCH_ISSUE = (
    "Issue not found. Check its number; it may have been deleted or transferred, or the token may "
    "not read it."
)


def explain(ref: IssueRef, context: BotContext, at_work: str | None) -> Explanation:
    """Explain one issue; `at_work` names the running worker, if there is one.

    UnavailableError if GitHub cannot be read.
    """
    try:
        facts = collect_facts(ref, context)
    except WorldError as error:
        return _unread(context.ledger.status(ref), error, context)
    case = load_context(facts.issue, context)
    around = ExplanationInputs(
        counted=case.counted,
        most=case.max_attempts,
        holder=context.leases.holder(ref),
        asked_at=facts.status.asked_at,
        at_work=at_work,
        unreachable=_unreachable(facts, case, context),
        overlooked=ignored_dependencies(facts.issue, context.tracker),
    )
    return word(facts, around)


def _unreachable(facts: Facts, case: IssueContext, context: BotContext) -> str:
    """Return why an eligible issue still waits: an owner, a pause, this machine or its base branch.

    "" if it does not.
    """
    for back in context.owners.standing_back():
        if back.repository == facts.issue.ref.repository:
            return back.sentence
    if refusal(facts) or facts.status.is_kept:
        return ""
    if held := hold_on(facts.issue.ref.repository, context):
        return held.sentence
    if obstacle := missing_agent(case, context) or context.disk_shortage():
        return obstacle
    try:
        context.worktrees.fetch_base(facts.issue.ref.repository)
        if not facts.status.pull.number:
            ref, own = facts.issue.ref, commits_on_branch(case.status, case.history)
            context.worktrees.check_branch_names(ref.repository, ref, own)
    except WorldError as error:
        return str(error)
    return ""


def _unread(status: IssueStatus, error: WorldError, context: ReadContext) -> Explanation:
    """Explain an issue for which `error` was raised: it is gone, or something it names is unread.

    UnavailableError if GitHub answers nothing at all.
    """
    try:
        context.tracker.repository(status.issue.repository)
        context.tracker.read(status.issue)
    except GoneError as gone:
        return explain_unread(status, str(gone), exists=False)
    except UnconfirmedError as unseen:
        if unseen.what == f"the issue {status.issue}" and not status.number:
            return explain_unread(status, NO_SUCH_ISSUE, exists=False)
        return explain_unread(status, str(unseen), exists=True)
    except DeniedError as denied:
        return explain_unread(status, str(denied), exists=True)
    return explain_unread(status, str(error), exists=True)


def preview(ref: IssueRef, context: BotContext) -> ComposedPrompt:
    """Return the prompt of the next attempt, whether or not one is due.

    If the issue needs a new request first, assume one. GoneError if there is no such issue;
    ConfigError if the repository's policy is invalid.
    """
    context.worktrees.fetch_base(ref.repository)
    if fault := context.policies.fault(ref.repository):
        raise ConfigError(f"The prompt cannot be written, since the policy is invalid: {fault}")
    facts = collect_facts(ref, context)
    if facts.issue.is_pull_request:
        raise UsageError(f"{ref} is a pull request; name an issue.")
    if is_blank(facts.issue):
        raise UsageError(f"Mulligan would not start an agent for {ref}. {NO_TEXT.reason}")
    case = _as_requested(load_context(facts.issue, context), facts)
    policy = context.policies.in_force(ref.repository)
    agent = select_agent(case, policy, context.agents)
    base = context.worktrees.base_sha(ref.repository) or ""
    style = read_title_style(ref.repository, policy, context.worktrees, base)
    case = replace(case, title_request=wanted_title(policy, style))
    return deliver_prompt(case, policy, context.artifacts, context.redactor, agent.limits)


def _as_requested(case: IssueContext, facts: Facts) -> IssueContext:
    """Assume the new epoch that the next attempt would open, if it would open one."""
    if facts.act and opens_epoch(facts):
        act = Authorised.of(facts.act)
    elif case.status.stage in SETTLED_STAGES:
        act = Authorised(act=str(OperatorAct()), actor="", act_at=facts.now)
    else:
        return case
    return replace(case, status=advance(case.status, act, facts.now), counted=0)
