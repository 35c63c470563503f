"""Build the objects for a run of the GitHub Action, with its state on a ref of the repository."""

from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import timedelta

from pydantic import JsonValue

from mulligan.config.operator import Operator
from mulligan.config.policy import Baseline
from mulligan.domain.errors import WorldError
from mulligan.domain.issue import IssueRef
from mulligan.implement.ports import Listener
from mulligan.interfaces.bootstrap.clock_and_backoff import SystemClock
from mulligan.interfaces.bootstrap.container import (
    QUICK_RETRIES,
    Container,
    Environment,
    assemble,
    for_git,
    open_git,
    open_github,
    open_owners,
    remote_of,
    with_listeners,
)
from mulligan.interfaces.bootstrap.redaction import redactor_of
from mulligan.interfaces.bootstrap.sandbox import confine
from mulligan.interfaces.bootstrap.stores import Stores, open_artifacts, publishing_redactor_of
from mulligan.storage.database import open_database
from mulligan.storage.git_ref import (
    LEASE_TIME,
    RefLedger,
    RefMirror,
    RefSession,
    StateRef,
    open_state_ref,
)
from mulligan.storage.ledger import SqlLedger
from mulligan.storage.owner_ref import Installation, RecordedTimes
from mulligan.storage.transfer import ReadMark, count_spending, export_to_ref, import_from_ref
from mulligan.storage.usage import SqlUsageStore

ACTION = "github-action"
"""The installation id of all runs of the Action, which share the state ref."""

POLICY_DEFAULTS: Mapping[str, JsonValue] = {"baseline": Baseline.ON_FAILURE.value}
"""The Action's own defaults: minutes are paid, and a runner has few processors."""


@contextmanager
def build_shared(
    operator: Operator,
    environment: Environment,
    listener: Listener,
    worker: str,
    lease: timedelta | None,
) -> Generator[Container]:
    """Build for one run on one repository; a `lease` of None means the default."""
    sandbox = confine(operator, environment)
    redactor, clock = publishing_redactor_of(operator, environment), SystemClock()
    with ExitStack() as opened:
        github = opened.enter_context(open_github(operator, environment, redactor))
        database = opened.enter_context(open_database(operator.state.url))
        name = operator.repositories[0].name
        remote = remote_of(operator, github, name)
        ref = opened.enter_context(open_state_ref(for_git(operator, environment), remote))
        session = RefSession(
            ref, SqlLedger(database, clock, redactor=redactor), clock, redactor, lease or LEASE_TIME
        )
        session.restore()
        usage = SqlUsageStore(database, redactor)
        known = [status.issue for status in session.ledger.statuses()]
        count_spending(session.ledger, usage, known)
        event_listener = opened.enter_context(
            with_listeners(operator, environment, listener, redactor)
        )
        ledger = RefLedger(session, listener=event_listener)
        artifacts = open_artifacts(operator, redactor)
        stores = Stores(ledger, session, usage, artifacts, redactor)
        worktrees, policies = open_git(
            operator, github, environment, policy_defaults=POLICY_DEFAULTS
        )
        storing = replace(worktrees, stores_verified_remotely=True)
        git = (storing, policies)
        container = assemble(operator, environment, sandbox, github, git, stores)
        context = replace(container.context, worker=worker, mirror=RefMirror(session))
        container = replace(container, context=context)
        installation = Installation(ACTION, RecordedTimes(clock), clock)
        yield opened.enter_context(
            open_owners(operator, environment, github, container, installation)
        )
        with suppress(WorldError):  # a ref that stays is harmless
            storing.delete_old_verified(
                name, lambda number: session.needs_commit(IssueRef(name, number))
            )


def read_base_file(operator: Operator, environment: Environment, path: str) -> bytes | None:
    """Read a file on the base branch of the one configured repository; None if it has none."""
    name = operator.repositories[0].name
    with open_github(operator, environment, redactor_of(operator, environment)) as github:
        worktrees, _ = open_git(operator, github, environment)
        worktrees.fetch_base(name)
        return worktrees.base_file(name, path)


def pull_state(operator: Operator, environment: Environment) -> list[str]:
    """Import newer records from the state refs of all repositories; return a report."""
    return _move(operator, environment, import_from_ref)


def push_state(operator: Operator, environment: Environment) -> list[str]:
    """Export newer records to the state refs of all repositories; return a report."""
    return _move(operator, environment, export_to_ref)


def _move(
    operator: Operator,
    environment: Environment,
    move: Callable[[StateRef, str, SqlLedger, ReadMark], list[str]],
) -> list[str]:
    redactor, moved = redactor_of(operator, environment), list[str]()
    with (
        open_github(operator, environment, redactor, QUICK_RETRIES) as github,
        open_database(operator.state.url) as database,
    ):
        ledger = SqlLedger(database, SystemClock(), redactor=redactor)
        for each in operator.repositories:
            remote = remote_of(operator, github, each.name)
            with open_state_ref(for_git(operator, environment), remote) as ref:
                moved += move(ref, each.name, ledger, github.tracker.state_mark)
    return moved
