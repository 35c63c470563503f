"""Choose the agent of an attempt: by label, by repository, by number of attempts (AGENT-5)."""

from datetime import timedelta

from mulligan.config.policy import Policy
from mulligan.domain.errors import MisconfiguredError
from mulligan.domain.issue_context import IssueContext
from mulligan.implement.decide import AgentUnavailable
from mulligan.implement.ports import AgentRegistry, CodingAgent, StartContext


def select_agent(case: IssueContext, policy: Policy, registry: AgentRegistry) -> CodingAgent:
    """Choose the agent of this attempt.

    Raises MisconfiguredError if the repository chooses an agent that mulligan.yml does not name.
    """
    name = agent_of(case, policy, registry)
    if not name:
        return registry.default
    agent = registry.named.get(name)
    if agent is None:
        known = ", ".join(registry.named) or "no other agent"
        raise MisconfiguredError(
            f"The repository's policy chooses the agent {name!r}, and mulligan.yml knows {known};"
            " name it under `agents` there, or fix the policy."
        )
    return agent


def agent_of(case: IssueContext, policy: Policy, registry: AgentRegistry) -> str:
    """Name the agent: the chosen one, or its fallback after attempts that counted."""
    first = _by_label(case, policy) or policy.agent
    order = (first, *registry.fallback.get(first, ()))
    return order[min(case.counted, len(order) - 1)]


def choosable_agents(repository: str, context: StartContext) -> frozenset[str]:
    """Name every configured agent that an issue of a repository may get, now or on a retry."""
    policy, registry = context.policies.in_force(repository), context.agents
    first = {policy.agent, *policy.labels.agents.values()}
    later = {name for each in first for name in registry.fallback.get(each, ())}
    return frozenset((first | later) & {"", *registry.named})


def missing_agent(case: IssueContext, context: StartContext) -> str:
    """Say that the agent of the next attempt cannot start on this machine; "" if it can."""
    name = agent_of(case, context.policies.in_force(case.issue.ref.repository), context.agents)
    if not context.holds.is_missing(name):
        return ""
    shown = context.agents.named.get(name, context.agents.default).name
    return (
        f"The agent {shown!r} is not installed where Mulligan runs, or its settings are incomplete."
        " `mulligan doctor` names the fix. Work begins when that is fixed."
    )


def _by_label(case: IssueContext, policy: Policy) -> str:
    """Name the agent that a label chooses; of several labels, the policy's first one counts."""
    carried = {label.casefold() for label in case.issue.labels}
    chosen = (name for label, name in policy.labels.agents.items() if label.casefold() in carried)
    return next(chosen, "")


KEY_PROBE_INTERVAL = timedelta(hours=1)
"""How long an agent with a refused key waits before one attempt tries the key again."""


def refused_until(case: IssueContext, context: StartContext) -> AgentUnavailable | None:
    """Return until when, and why, the next attempt waits for the model's service; None if not."""
    name = agent_of(case, context.policies.in_force(case.issue.ref.repository), context.agents)
    agent = context.agents.named.get(name, context.agents.default).name
    retry_at = context.usage.retry_at(agent)
    if retry_at and retry_at > context.clock.now():
        until = f"{retry_at:%Y-%m-%d %H:%M:%S} UTC (`Retry-After`)"
        reason = f"The model's service asked the agent {agent!r} to wait until {until}."
        return AgentUnavailable(retry_at, reason)
    refused = context.usage.key_refused_at(agent)
    if refused is None or refused + KEY_PROBE_INTERVAL <= context.clock.now():
        return None
    reason = (
        f"The model's service refused the key of the agent {agent!r}, or its credit, at"
        f" {refused:%Y-%m-%d %H:%M} UTC; fix that. It is tried every hour, and at once by"
        " `mulligan work`."
    )
    return AgentUnavailable(refused + KEY_PROBE_INTERVAL, reason)
