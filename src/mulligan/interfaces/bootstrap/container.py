"""Build what a pass works with: on GitHub, or as a rehearsal that changes nothing there."""

import os
import socket
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Protocol

from mulligan.agents.invocation import OperatorAgents, litter_of
from mulligan.agents.runner import CommandAgent
from mulligan.checks.runner import CommandVerifier
from mulligan.config.operator import Operator
from mulligan.domain.events import Event
from mulligan.domain.status import IssueStatus
from mulligan.git.worktrees.base_policy import BasePolicies
from mulligan.git.worktrees.dry_run import DryRunWorktrees
from mulligan.git.worktrees.worktrees import GitWorktrees
from mulligan.github.app import AppCredentials
from mulligan.github.client import Client, RetrySettings
from mulligan.github.connection import Transport
from mulligan.github.credentials import TokenCredentials
from mulligan.github.dry_run import DryRunTracker
from mulligan.github.rate_limits import Backoffs, RateLimitMetrics
from mulligan.github.rate_limits import RateLimitMetrics as Gauges
from mulligan.github.tracker import GitHubTracker
from mulligan.implement.ports import (
    AgentRegistry,
    BotContext,
    CodingAgent,
    Credentials,
    Listener,
    Policies,
    Tracker,
    Worktrees,
)
from mulligan.interfaces.bootstrap.clock_and_backoff import SystemClock
from mulligan.interfaces.bootstrap.redaction import redactor_of
from mulligan.interfaces.bootstrap.sandbox import confine, disk_shortage_of, network_for
from mulligan.interfaces.bootstrap.stores import Stores, open_stores
from mulligan.interfaces.notify import WebhookNotifier, open_notifier
from mulligan.sandbox.sandbox import Sandbox, Unconfined
from mulligan.storage.artifacts import ScratchArtifacts
from mulligan.storage.database import open_database
from mulligan.storage.ledger import WatchedLedger
from mulligan.storage.memory import MemoryLeases, MemoryLedger
from mulligan.storage.serialization import redacted
from mulligan.storage.usage import MemoryUsageStore
from mulligan.text.redact import Redactor

__all__ = ["GAUGES", "Gauges"]

Environment = Mapping[str, str]

QUICK_RETRIES = RetrySettings(attempts=2, longest_wait=5, timeout=10)
"""Of a command that a person waits for."""

BACKOFFS = Backoffs()
"""One for the process: whatever the configuration says now, GitHub counts by the token."""

GAUGES = RateLimitMetrics()
"""One for the process."""


@dataclass(frozen=True, slots=True)
class Container:
    """The repositories that are served, and the tools to work on them."""

    repositories: tuple[str, ...]
    context: BotContext

    def with_worktrees(self, worktrees: Worktrees) -> "Container":
        """Give the same bench with other worktrees."""
        return replace(self, context=replace(self.context, worktrees=worktrees))


class IssueSource(Protocol):
    """Where issues come from, and what opens their repositories."""

    @property
    def tracker(self) -> Tracker: ...
    @property
    def credentials(self) -> Credentials: ...


@contextmanager
def build(operator: Operator, environment: Environment, listener: Listener) -> Generator[Container]:
    """Build for real work; `listener` hears every event."""
    with (
        open_github(operator, redactor_of(operator, environment)) as github,
        build_on(github, operator, environment, listener) as bench,
    ):
        yield bench


@contextmanager
def build_on(
    github: IssueSource, operator: Operator, environment: Environment, listener: Listener
) -> Generator[Container]:
    """Build for real work on the issues of any tracker."""
    sandbox = confine(operator, environment)
    redactor = redactor_of(operator, environment)
    with (
        open_database(operator.state.url) as database,
        with_listeners(operator, listener, redactor) as hears,
    ):
        books = open_stores(operator, database, redactor, hears)
        git = open_git(operator, github, environment)
        yield assemble(operator, environment, sandbox, github.tracker, git, books)


@contextmanager
def build_read_only(operator: Operator, environment: Environment) -> Generator[Container]:
    """Build for a command that only looks; it needs no lock, and may run beside a worker."""
    redactor = redactor_of(operator, environment)
    with (
        open_github(operator, redactor, QUICK_RETRIES) as github,
        open_database(operator.state.url) as database,
    ):
        books = open_stores(operator, database, redactor, _ignore_event)
        git = open_git(operator, github, environment)
        yield assemble(operator, environment, Unconfined(), github.tracker, git, books)


@contextmanager
def build_dry(
    operator: Operator, environment: Environment, listener: Listener, say: Callable[[str], None]
) -> Generator[Container]:
    """Build a rehearsal: GitHub is only read, nothing is pushed, no attempt is recorded."""
    sandbox = confine(operator, environment)
    redactor, clock = redactor_of(operator, environment), SystemClock()

    def say_redacted(what: str) -> None:
        say(redactor.text(what))

    with open_github(operator, redactor) as github, ScratchArtifacts(redactor) as artifacts:
        tracker = DryRunTracker(github.tracker, say_redacted)
        worktrees, policies = open_git(operator, github, environment)
        rehearsed = DryRunWorktrees(worktrees, say_redacted)
        leases = MemoryLeases(clock)
        ledger = WatchedLedger(MemoryLedger(clock, leases, redactor), redacting(listener, redactor))
        books = Stores(ledger, leases, MemoryUsageStore(), artifacts, redactor)
        yield assemble(operator, environment, sandbox, tracker, (rehearsed, policies), books)


@contextmanager
def with_listeners(
    operator: Operator, listener: Listener, redactor: Redactor
) -> Generator[Listener]:
    """Let a listener hear of events as they are stored, and whoever is to be notified as well."""
    with open_notifier(operator.notify) as hook:
        yield redacting(_both(listener, hook), redactor)


def _ignore_event(_status: IssueStatus, _event: Event) -> None:
    """Hear nothing."""


def _both(listener: Listener, hook: WebhookNotifier | None) -> Listener:
    """Let the hook hear as well, where there is one."""
    if hook is None:
        return listener

    def hear(status: IssueStatus, event: Event) -> None:
        hook.on_event(status, event)
        listener(status, event)

    return hear


def redacting(listener: Listener, redactor: Redactor) -> Listener:
    """Let a listener hear of events as they are stored."""

    def hear(status: IssueStatus, event: Event) -> None:
        listener(status, redacted(event, redactor))

    return hear


def assemble(
    operator: Operator,
    environment: Environment,
    sandbox: Sandbox,
    tracker: Tracker,
    git: tuple[Worktrees, Policies],
    books: Stores,
) -> Container:
    """Put the tools together."""
    agents = _agents(operator, environment, sandbox, books.redactor)
    context = BotContext(
        tracker=tracker,
        worktrees=git[0],
        policies=git[1],
        agent=agents[""],
        verifier=CommandVerifier(environment, sandbox, redactor=books.redactor),
        ledger=books.ledger,
        leases=books.leases,
        usage=books.accounts,
        artifacts=books.artifacts,
        clock=SystemClock(),
        worker=f"{socket.gethostname()}:{os.getpid()}",
        limits=operator.limits,
        budget=operator.budget,
        retention=operator.retention,
        redactor=books.redactor,
        agents=_agent_registry(operator, agents),
        retention_store=books.attic,
        disk_shortage=lambda: disk_shortage_of(operator),
    )
    return Container(tuple(each.name for each in operator.repositories), context)


def _agents(
    operator: Operator, environment: Environment, sandbox: Sandbox, redactor: Redactor
) -> Mapping[str, CodingAgent]:
    """Build every agent, by name; the one without a name is ""."""
    return {
        name: CommandAgent(
            settings,
            environment,
            redactor,
            sandbox,
            network_for(settings, operator, sandbox),
            OperatorAgents(operator.adapters, operator.prices, operator.sandbox.hosts, name),
        )
        for name, settings in {"": operator.agent, **operator.agents}.items()
    }


def _agent_registry(operator: Operator, agents: Mapping[str, CodingAgent]) -> AgentRegistry:
    settings = {"": operator.agent, **operator.agents}
    named = {name: agent for name, agent in agents.items() if name}
    return AgentRegistry(named, {name: each.fallback for name, each in settings.items()})


@dataclass(frozen=True, slots=True)
class GitHub:
    """GitHub, and what Mulligan shows there."""

    tracker: GitHubTracker
    credentials: TokenCredentials | AppCredentials


@contextmanager
def open_github(
    operator: Operator, redactor: Redactor, retry: RetrySettings | None = None
) -> Generator[GitHub]:
    """Give GitHub; `patience` says how long it is waited for."""
    settings, clock = operator.github, SystemClock()
    transport = Transport(BACKOFFS, settings.ca_file, GAUGES)
    credentials = (
        AppCredentials(settings.api_url, settings.app, clock, retry, transport)
        if settings.app
        else TokenCredentials(settings)
    )
    client = Client(settings.api_url, credentials.api_token, retry, transport, redactor)
    try:
        tracker = GitHubTracker(client, operator.trust, clock, credentials.login)
        yield GitHub(tracker, credentials)
    finally:
        client.close()
        credentials.close()


def open_git(
    operator: Operator, github: IssueSource, environment: Environment
) -> tuple[GitWorktrees, BasePolicies]:
    """Give the worktrees, and the policies that are read from them."""
    settings = {each.name: each for each in operator.repositories}

    def sets_up(repository: str, sha: str) -> bool:
        return bool(policies.at(repository, sha).setup)

    worktrees = GitWorktrees(
        root=operator.workspace.root,
        repositories=settings,
        credentials=github.credentials,
        facts=github.tracker.repository,
        environment=for_git(operator, environment),
        keep_ignored=operator.workspace.keep_ignored,
        has_set_up=sets_up,
        litter=litter_of(operator.adapters),
    )
    policies = BasePolicies(worktrees, {name: each.policy for name, each in settings.items()})
    return worktrees, policies


def for_git(operator: Operator, environment: Environment) -> Environment:
    """Give the environment in which git trusts what the operator trusts."""
    if not operator.github.ca_file:
        return environment
    return {**environment, "GIT_SSL_CAINFO": str(operator.github.ca_file)}
