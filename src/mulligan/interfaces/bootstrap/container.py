"""Build all objects from the configuration: for real work, for reading, or for a dry run."""

import os
import socket
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

from pydantic import JsonValue

from mulligan.agents.invocation import OperatorAgents, litter_of
from mulligan.agents.runner import CommandAgent
from mulligan.checks.runner import CommandVerifier
from mulligan.config.certificates import configured_bundle, trusted_bundle
from mulligan.config.operator import Operator, SandboxMode
from mulligan.daemon.cleanup import RetentionPlan
from mulligan.domain.errors import ConfigError
from mulligan.domain.events import Event
from mulligan.domain.host import MIB
from mulligan.domain.status import IssueStatus
from mulligan.git.commits import SigningKey
from mulligan.git.remote_ref import RemoteRef, open_remote_ref
from mulligan.git.repository import Remote
from mulligan.git.worktrees.base_policy import BasePolicies
from mulligan.git.worktrees.dry_run import DryRunGit
from mulligan.git.worktrees.worktrees import GitWorktrees
from mulligan.github.app import AppCredentials
from mulligan.github.client import Client, RetrySettings
from mulligan.github.comments import StatusComments
from mulligan.github.connection import Transport
from mulligan.github.credentials import TokenCredentials
from mulligan.github.lfs import LfsDownloads
from mulligan.github.rate_limits import Backoffs, RateLimitMetrics
from mulligan.github.tracker import GitHubTracker
from mulligan.github.writer import DryRunWriter, GitHubWriter
from mulligan.implement.ports import (
    AgentRegistry,
    BotContext,
    CodingAgent,
    Credentials,
    Listener,
    NoOwners,
    Tracker,
    TrackerWriter,
    VisitQueue,
    ignore_event,
)
from mulligan.interfaces.bootstrap.clock_and_backoff import SystemClock
from mulligan.interfaces.bootstrap.machine import MachineHolds, MachineProbes
from mulligan.interfaces.bootstrap.sandbox import (
    confine,
    disk_shortage_of,
    image_store,
    network_for,
    with_layers,
)
from mulligan.interfaces.bootstrap.stores import (
    Stores,
    connections_of,
    open_queue,
    open_stores,
    publishing_redactor_of,
)
from mulligan.interfaces.notify import open_notifier
from mulligan.sandbox.operator_network import operator_network
from mulligan.sandbox.probe import LayerChoice
from mulligan.sandbox.sandbox import Bubblewrap, Sandbox, Unconfined
from mulligan.storage.artifacts import scratch_artifacts
from mulligan.storage.database import Database, clock_of, open_database
from mulligan.storage.git_ref import StateRef, open_state_ref
from mulligan.storage.leases import SqlLeases
from mulligan.storage.memory import MemoryLeases, MemoryLedger
from mulligan.storage.owner_ref import OWNER_REF, OWNER_TITLE, Installation, RefOwners
from mulligan.storage.serialization import redacted
from mulligan.storage.sightings import SqlSightings, installation_id
from mulligan.storage.state_directory import make_private
from mulligan.storage.state_mirror import StateMirror
from mulligan.storage.usage import MemoryUsageStore
from mulligan.text.redact import Redactor

Environment = Mapping[str, str]

QUICK_RETRIES = RetrySettings(attempts=2, longest_wait=5, first_wait=0.25, timeout=10)
"""For a command whose user waits for the answer."""

BACKOFFS = Backoffs()
"""Shared by the process: it outlives a reload, since GitHub limits each token."""

Gauges = RateLimitMetrics
"""The type of GAUGES. The dashboard imports it from here, because it must not import `github`."""

GAUGES = RateLimitMetrics()
"""The rate-limit metrics of this process, which the dashboard shows."""


@dataclass(frozen=True, slots=True)
class Container:
    """The repositories to work on, and the context for the work."""

    repositories: tuple[str, ...]
    context: BotContext
    retention: RetentionPlan
    open_queue: Callable[[], VisitQueue | None] = lambda: None

    def with_dry_git(self, say: Callable[[str], None]) -> "Container":
        """Return this container with a git that pushes nothing, and says what it would."""
        git = DryRunGit(self.context.git, say)
        return replace(self, context=replace(self.context, git=git))


@dataclass(frozen=True, slots=True)
class Source:
    """What reads and writes issues, where that is not GitHub; has the credentials for git."""

    tracker: Tracker
    writer: TrackerWriter
    credentials: Credentials


@dataclass(frozen=True, slots=True)
class OwnerOptions:
    """How a command owns repositories (OWNER-1).

    `take_over` replaces other owners at once; `ends` tells at the end whether to release them.
    """

    take_over: bool = False
    ends: Callable[[], bool] = lambda: True


@contextmanager
def build(
    operator: Operator,
    environment: Environment,
    listener: Listener,
    options: OwnerOptions | None = None,
) -> Generator[Container]:
    """Build for real work on GitHub; `listener` receives every event."""
    redactor = publishing_redactor_of(operator, environment)
    with open_github(operator, environment, redactor) as github:
        mirror = _mirror(operator, environment, github, redactor)
        on_event = _both(listener, mirror.on_event if mirror else None)
        with build_on(github, operator, environment, on_event) as (container, database):
            worker = container.context.worker
            installation = _installation(database, worker, options or OwnerOptions())
            queue = partial(open_queue, operator, database, github.tracker.own_login)
            with (
                open_owners(operator, environment, github, container, installation) as owned,
                _mirrored(replace(owned, open_queue=queue), mirror) as built,
            ):
                yield built


def _mirror(
    operator: Operator, environment: Environment, github: "GitHub", redactor: Redactor
) -> StateMirror | None:
    """Build the mirror of the ledger on the state ref, if it is on (RESTORE-3)."""

    def open_ref(name: str) -> AbstractContextManager[StateRef]:
        return open_state_ref(for_git(operator, environment), remote_of(operator, github, name))

    if not operator.state.mirror:
        return None
    may_be_public = operator.state.mirror == "public"
    facts = github.tracker.recent_repository
    return StateMirror(open_ref, facts, redactor, may_be_public=may_be_public)


@contextmanager
def _mirrored(container: Container, mirror: StateMirror | None) -> Generator[Container]:
    context = container.context
    if mirror is None:
        yield container
        return
    with mirror.running(context.ledger, context.owners, context.clock):
        yield replace(container, context=replace(context, mirror=mirror))


def _installation(database: Database, worker: str, options: OwnerOptions) -> Installation:
    clock = clock_of(database, SystemClock())
    leases = SqlLeases(database, clock)

    def may_release() -> bool:
        return options.ends() and not {*leases.present()} - {worker}

    sightings = SqlSightings(database, clock)
    return Installation(installation_id(database), sightings, clock, may_release, options.take_over)


@contextmanager
def open_owners(
    operator: Operator,
    environment: Environment,
    github: "GitHub",
    container: Container,
    installation: Installation,
) -> Generator[Container]:
    """Make a container work only in repositories that its installation owns (OWNER-1)."""

    def open_ref(name: str) -> AbstractContextManager[RemoteRef]:
        remote = remote_of(operator, github, name)
        return open_remote_ref(OWNER_REF, OWNER_TITLE, for_git(operator, environment), remote)

    def ready_label(name: str) -> str:
        return container.context.policies.in_force(name).labels.ready

    with RefOwners(installation, open_ref, ready_label) as owners:
        yield replace(container, context=replace(container.context, owners=owners))


@contextmanager
def build_on(
    github: "GitHub | Source",
    operator: Operator,
    environment: Environment,
    listener: Listener,
    set_up_root: Path | None = None,
    image_root: Path | None = None,
) -> Generator[tuple[Container, Database]]:
    """Build for real work on the issues of a tracker that nobody else works on.

    What setup commands leave is kept in `set_up_root`, and the files of images below `image_root`,
    both by default in the workspace.
    """
    confined = confine(operator, environment)
    make_private(operator.workspace.root)
    layers = with_layers(confined, operator, environment)
    redactor = publishing_redactor_of(operator, environment)
    with (
        open_database(operator.state.url, connections_of(operator)) as database,
        with_listeners(operator, environment, listener, redactor) as event_listener,
    ):
        stores = open_stores(operator, database, redactor, event_listener)
        git = open_git(operator, github, environment, set_up_root, layers)
        built = assemble(operator, environment, layers.sandbox, github, git, stores)
        images = image_store(operator, environment, layers.sandbox, image_root)
        yield replace(built, context=replace(built.context, images=images)), database


@contextmanager
def build_read_only(operator: Operator, environment: Environment) -> Generator[Container]:
    """Build for a command that only reads; it takes no lock, so it may run beside a worker.

    Its agents are in the sandbox of a worker's, since their rests depend on that.
    """
    try:
        sandbox = confine(operator, environment)
    except ConfigError:
        sandbox = Unconfined()
    redactor = publishing_redactor_of(operator, environment)
    with (
        open_github(operator, environment, redactor, QUICK_RETRIES) as github,
        open_database(operator.state.url) as database,
    ):
        stores = open_stores(operator, database, redactor, ignore_event)
        git = open_git(operator, github, environment)
        built = assemble(operator, environment, sandbox, github, git, stores)
        owners = NoOwners(SqlSightings(database, SystemClock()).all())
        yield replace(built, context=replace(built.context, owners=owners))


@contextmanager
def build_dry(
    operator: Operator, environment: Environment, listener: Listener, say: Callable[[str], None]
) -> Generator[Container]:
    """Build for a dry run: only read GitHub, push nothing, record no attempt."""
    layers = with_layers(confine(operator, environment), operator, environment)
    redactor, clock = publishing_redactor_of(operator, environment), SystemClock()

    def write_redacted(text: str) -> None:
        say(redactor.text(text))

    with (
        open_github(operator, environment, redactor) as github,
        scratch_artifacts(redactor) as artifacts,
    ):
        writer = DryRunWriter(github.tracker, write_redacted)
        source = Source(github.tracker, writer, github.credentials)
        git = open_git(operator, github, environment, layers=layers)
        leases = MemoryLeases(clock)
        ledger = MemoryLedger(clock, leases, redactor, listener=redacting(listener, redactor))
        stores = Stores(ledger, leases, MemoryUsageStore(), artifacts, redactor)
        built = assemble(operator, environment, layers.sandbox, source, git, stores)
        yield built.with_dry_git(write_redacted)


@contextmanager
def with_listeners(
    operator: Operator, environment: Environment, listener: Listener, redactor: Redactor
) -> Generator[Listener]:
    """Combine a listener with the configured notifier; both receive redacted events."""
    with open_notifier(operator.notify, trusted_bundle(environment)) as notifier:
        yield redacting(_both(listener, notifier.on_event if notifier else None), redactor)


def _both(listener: Listener, first: Listener | None) -> Listener:
    """Call `first`, if there is one, before the listener."""
    if first is None:
        return listener

    def on_event(status: IssueStatus, event: Event) -> None:
        first(status, event)
        listener(status, event)

    return on_event


def redacting(listener: Listener, redactor: Redactor) -> Listener:
    """Redact each event before the listener receives it, as the ledger does."""

    def on_event(status: IssueStatus, event: Event) -> None:
        listener(status, redacted(event, redactor))

    return on_event


def assemble(
    operator: Operator,
    environment: Environment,
    sandbox: Sandbox,
    github: "GitHub | Source",
    git: tuple[GitWorktrees, BasePolicies],
    stores: Stores,
) -> Container:
    """Build the agents and the verifier, and combine all objects in one context."""
    worktrees, policies = git
    agents = build_agents(operator, environment, sandbox, stores.redactor)
    named = {name: agent for name, agent in agents.items() if name}
    fallback = {name: each.fallback for name, each in operator.all_agents.items()}
    is_confined = isinstance(sandbox, Bubblewrap)
    trusted = is_confined or operator.sandbox.mode is SandboxMode.OFF
    machine = MachineProbes(operator, environment, is_confined, sandbox if trusted else None)
    context = BotContext(
        tracker=github.tracker,
        writer=github.writer,
        worktrees=worktrees,
        git=worktrees,
        policies=policies,
        verifier=build_verifier(operator, environment, sandbox, stores.redactor),
        ledger=stores.ledger,
        leases=stores.leases,
        usage=stores.usage,
        artifacts=stores.artifacts,
        clock=SystemClock(),
        worker=f"{socket.gethostname()}:{os.getpid()}",
        limits=operator.limits,
        budget=operator.budget,
        redactor=stores.redactor,
        agents=AgentRegistry(agents[""], named, fallback),
        disk_shortage=lambda: disk_shortage_of(operator),
        holds=MachineHolds(machine, stores.paused, SystemClock()),
        images=image_store(operator, environment, sandbox),
    )
    retention = RetentionPlan(operator.retention, stores.retention)
    return Container(tuple(each.name for each in operator.repositories), context, retention)


def build_verifier(
    operator: Operator, environment: Environment, sandbox: Sandbox, redactor: Redactor
) -> CommandVerifier:
    """Build what runs the setup commands and checks of attempts."""
    network = operator_network(operator.sandbox, environment)
    return CommandVerifier(environment, sandbox, redactor=redactor, network=network)


def build_agents(
    operator: Operator, environment: Environment, sandbox: Sandbox, redactor: Redactor
) -> Mapping[str, CodingAgent]:
    """Build every configured agent, by name; the default agent has the name ""."""
    return {
        name: CommandAgent(
            settings,
            environment,
            redactor,
            sandbox,
            network_for(settings, operator, sandbox),
            OperatorAgents(operator.adapters, operator.prices, operator.sandbox.hosts, name),
        )
        for name, settings in operator.all_agents.items()
    }


@dataclass(frozen=True, slots=True)
class GitHub:
    """The readers and writers of GitHub, and Mulligan's credentials there."""

    tracker: GitHubTracker
    writer: GitHubWriter
    credentials: TokenCredentials | AppCredentials


@contextmanager
def open_github(
    operator: Operator,
    environment: Environment,
    redactor: Redactor,
    retry: RetrySettings | None = None,
) -> Generator[GitHub]:
    """Open GitHub; `retry` limits the retries and waits of reads."""
    settings, clock = operator.github, SystemClock()
    transport = Transport(BACKOFFS, trusted_bundle(environment, settings.ca_file), GAUGES)
    credentials = (
        AppCredentials(settings.api_url, settings.app, clock, retry, transport)
        if settings.app
        else TokenCredentials(settings)
    )
    client = Client(settings.api_url, credentials.api_token, retry, transport, redactor)
    try:
        tracker = GitHubTracker(client, operator.trust, clock, credentials.login)
        statuses = StatusComments(clock, operator.dashboard.url)
        writer = GitHubWriter(client, tracker.own_login, statuses)
        yield GitHub(tracker, writer, credentials)
    finally:
        client.close()
        credentials.close()


def open_git(
    operator: Operator,
    github: "GitHub | Source",
    environment: Environment,
    set_up_root: Path | None = None,
    layers: LayerChoice | None = None,
    policy_defaults: Mapping[str, JsonValue] | None = None,
) -> tuple[GitWorktrees, BasePolicies]:
    """Build the worktrees, and the policies that are read from their base branches."""
    settings = {each.name: each for each in operator.repositories}
    worktrees = GitWorktrees(
        root=operator.workspace.root,
        repositories=settings,
        credentials=github.credentials,
        facts=github.tracker.recent_repository,
        environment=for_git(operator, environment),
        keep_ignored=operator.workspace.keep_ignored,
        max_set_up_bytes=operator.retention.setup_mib * MIB,
        litter=litter_of(operator.adapters),
        set_up_root=set_up_root,
        is_layered=layers is not None and not layers.problem,
        bubblewrap=layers.bubblewrap if layers else "",
        copied_because=layers.problem if layers else "",
        lfs_server=LfsDownloads(trusted_bundle(environment, operator.github.ca_file)),
        signing_key=signing_key_of(operator),
    )
    overrides = {name: each.policy for name, each in settings.items()}
    return worktrees, BasePolicies(worktrees, overrides, policy_defaults or {})


def signing_key_of(operator: Operator) -> SigningKey | None:
    """Return the key that signs Mulligan's commits, if one is configured (COMMIT-3)."""
    file = operator.github.signing_key_file
    return SigningKey(file.absolute()) if file else None


def remote_of(operator: Operator, github: GitHub, name: str) -> Callable[[], Remote]:
    """Return a function that returns the URL of a repository and a current token."""
    settings = next(each for each in operator.repositories if each.name == name)

    @cache
    def url() -> str:
        return settings.clone_url or github.tracker.repository(name).clone_url

    return lambda: Remote(url(), github.credentials.git_token(name))


def for_git(operator: Operator, environment: Environment) -> Environment:
    """Return the environment for git, with the certificates that the configuration names, if any.

    Git with GnuTLS reads none of these variables, except its own.
    """
    bundle = configured_bundle(environment, operator.github.ca_file)
    is_set = "GIT_SSL_CAINFO" in environment and not operator.github.ca_file
    if bundle is None or bundle.is_dir() or is_set:
        return environment
    return {**environment, "GIT_SSL_CAINFO": str(bundle)}
