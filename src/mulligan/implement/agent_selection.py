"""Choose the agent of an attempt: by label, by repository, and by what was tried (SPEC 13b)."""

from dataclasses import replace
from datetime import datetime, timedelta

from mulligan.config.policy import Policy
from mulligan.domain.errors import MisconfiguredError
from mulligan.domain.issue_context import IssueContext
from mulligan.implement.ports import AgentRegistry, BotContext


def select_agent(case: IssueContext, policy: Policy, context: BotContext) -> BotContext:
    """Give the tools with the agent of the attempt that begins.

    MisconfiguredError where the repository chooses one that the operator does not know.
    """
    name = agent_of(case, policy, context.agents)
    if not name:
        return context
    agent = context.agents.named.get(name)
    if agent is None:
        known = ", ".join(context.agents.named) or "no other agent"
        message = (
            f"The repository's policy chooses the agent {name!r}, and mulligan.yml knows {known};"
            " name it under `agents` there, or mend the policy."
        )
        raise MisconfiguredError(message)
    return replace(context, agent=agent)


def agent_of(case: IssueContext, policy: Policy, registry: AgentRegistry) -> str:
    """Name the agent: the chosen one, or what follows it after attempts that counted."""
    first = _by_label(case, policy) or policy.agent
    line = (first, *registry.fallback.get(first, ()))
    return line[min(case.counted, len(line) - 1)]


def _by_label(case: IssueContext, policy: Policy) -> str:
    """Name what a label on the issue chooses; of several the one that the policy names first."""
    carried = {label.casefold() for label in case.issue.labels}
    chosen = (name for label, name in policy.labels.agents.items() if label.casefold() in carried)
    return next(chosen, "")


KEY_PROBE_INTERVAL = timedelta(hours=1)
"""How long an agent rests whose key was refused, before one attempt tries it again."""


def refused_until(case: IssueContext, context: BotContext) -> tuple[datetime, str] | None:
    """Say until when the agent of the next attempt waits, whose key was refused, and why."""
    name = agent_of(case, context.policies.in_force(case.issue.ref.repository), context.agents)
    agent = context.agents.named.get(name, context.agent).name
    refused = context.usage.key_refused_at(agent)
    if refused is None or refused + KEY_PROBE_INTERVAL <= context.clock.now():
        return None
    reason = (
        f"The model's service refused the key of the agent {agent!r}, or its credit, at"
        f" {refused:%Y-%m-%d %H:%M} UTC; mend that. It is tried every hour, and at once by"
        " `mulligan work`."
    )
    return refused + KEY_PROBE_INTERVAL, reason
