"""Choose the agent of an attempt: by label, by repository, by number of attempts (AGENT-5)."""

from collections.abc import Collection
from datetime import datetime

from mulligan.config.policy import Policy
from mulligan.domain.agent_rest import rest_on_issues, rest_sentence
from mulligan.domain.errors import MisconfiguredError
from mulligan.domain.hold import Hold
from mulligan.domain.issue_context import IssueContext
from mulligan.domain.result import Rest, RestKind
from mulligan.implement.decide import AgentUnavailable
from mulligan.implement.ports import AgentRegistry, CodingAgent, ReadContext, UsageStore


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


def choosable_agents(repository: str, context: ReadContext) -> frozenset[str]:
    """Name every configured agent that an issue of a repository may get, now or on a retry."""
    policy, registry = context.policies.in_force(repository), context.agents
    first = {policy.agent, *policy.labels.agents.values()}
    later = {name for each in first for name in registry.fallback.get(each, ())}
    return frozenset((first | later) & {"", *registry.named})


def missing_agent(case: IssueContext, context: ReadContext) -> str:
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


def rests_until(case: IssueContext, context: ReadContext) -> AgentUnavailable | None:
    """Return until when, and why, the agent of the next attempt rests; None if it does not."""
    name = agent_of(case, context.policies.in_force(case.issue.ref.repository), context.agents)
    agent = context.agents.named.get(name, context.agents.default)
    rest = rest_now(agent, context.usage, context.clock.now())
    return AgentUnavailable(rest.until, rest_sentence(agent.name, rest)) if rest else None


def hold_of_agents(
    agents: Collection[str], context: ReadContext, *, until_a_run: bool = False
) -> Hold | None:
    """Return why none of these agents may start a run: all rest, or are missing (OUTCOME-6).

    With `until_a_run`, a rest lasts until the agent's next run, which the end of its time allows.
    """
    registry, now, rests = context.agents, context.clock.now(), list[tuple[str, Rest]]()
    for name in sorted(agents):
        if context.holds.is_missing(name):
            continue
        agent = registry.named.get(name, registry.default)
        rest = last_failure(agent, context.usage)
        if rest is None or not (until_a_run or rest.until > now):
            return None
        rests.append((agent.name, rest))
    if not rests:
        return None
    reasons = " ".join(rest_sentence(name, rest) for name, rest in rests)
    faults = [(name, rest) for name, rest in rests if rest.kind is not RestKind.ASKED]
    return Hold(
        f"Mulligan starts no attempt. {reasons}",
        is_fault=bool(faults),
        on_issues=" ".join(rest_on_issues(name, rest) for name, rest in faults),
        until=min(rest.until for _, rest in rests) if faults else None,
    )


def rest_now(agent: CodingAgent, usage: UsageStore, now: datetime) -> Rest | None:
    """Return the rest of an agent that is not over, and that no new configuration has ended."""
    rest = last_failure(agent, usage)
    return rest if rest and rest.until > now else None


def last_failure(agent: CodingAgent, usage: UsageStore) -> Rest | None:
    """Return the rest that the agent's last run began, unless its configuration has changed."""
    rest = usage.rest(agent.name)
    return rest if rest and rest.account == agent.account else None
