"""Open the stores: for a worker, for commands that only read, and to copy them."""

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from mulligan.config.operator import Engine, Operator
from mulligan.daemon.fleet import Working
from mulligan.domain.errors import ConfigError, UnavailableError, UsageError
from mulligan.domain.hold import Pause
from mulligan.domain.issue import IssueRef
from mulligan.domain.ownership import StandBack
from mulligan.domain.retention import needs_files
from mulligan.domain.stats import LedgerHistory
from mulligan.implement.ports import (
    Artifacts,
    Leases,
    Ledger,
    Listener,
    NoRetention,
    RetentionStore,
    UsageStore,
    VisitQueue,
)
from mulligan.interfaces.bootstrap.clock_and_backoff import SystemClock
from mulligan.interfaces.bootstrap.redaction import redactor_of, without_machine_paths
from mulligan.storage.artifacts import FileArtifacts, SharedArtifacts
from mulligan.storage.backup import (
    LedgerCheck,
    check_ledger,
    file_of,
    forget_issues,
    opened_backup,
    restoring,
    write_backup,
)
from mulligan.storage.database import (
    CONNECTIONS,
    Database,
    clock_of,
    open_database,
    state_directory,
    without_waiting,
)
from mulligan.storage.leases import SqlLeases
from mulligan.storage.ledger import SqlLedger
from mulligan.storage.pauses import SqlPauses
from mulligan.storage.retention import SqlRetentionStore
from mulligan.storage.sightings import SqlSightings
from mulligan.storage.state_directory import disk_space_for, holder, locked
from mulligan.storage.stats_query import read_ledger_history
from mulligan.storage.transfer import import_from_ledger
from mulligan.storage.usage import SqlUsageStore
from mulligan.text.redact import Redactor

__all__ = [
    "LedgerCheck",
    "at_work",
    "lock_state",
    "open_artifacts",
    "open_ledger",
    "open_records",
    "read_ledger",
    "without_waiting",
]


@dataclass(frozen=True, slots=True)
class Stores:
    """The stores of one worker, and the redactor for everything written elsewhere."""

    ledger: Ledger
    leases: Leases
    usage: UsageStore
    artifacts: Artifacts
    redactor: Redactor
    retention: RetentionStore = field(default_factory=NoRetention)
    paused: Callable[[], Sequence[Pause]] = tuple


def open_stores(
    operator: Operator, database: Database, redactor: Redactor, listener: Listener
) -> Stores:
    """Open the stores of a database; `listener` receives every event recorded through them."""
    clock = clock_of(database, SystemClock())
    return Stores(
        ledger=SqlLedger(database, clock, redactor=redactor, listener=listener),
        leases=SqlLeases(database, clock, operator.limits.lease),
        usage=SqlUsageStore(database, redactor),
        artifacts=open_artifacts(operator, redactor, database),
        redactor=redactor,
        retention=SqlRetentionStore(database, clock),
        paused=SqlPauses(database, clock).all,
    )


JOB_CONNECTIONS = 2
"""The connections of storage/jobs.py: one listens for jobs, and one fetches them."""


def connections_of(operator: Operator) -> int:
    """Return how many connections the ledger may use, so that a worker has three in all."""
    return CONNECTIONS - (JOB_CONNECTIONS if operator.engine is Engine.FLEET else 0)


def open_queue(
    operator: Operator, database: Database, account: Callable[[], str]
) -> VisitQueue | None:
    """Open the queue of a fleet's job engine; None if each worker polls."""
    if operator.engine is not Engine.FLEET:
        return None
    with _needing_procrastinate():
        from mulligan.storage.jobs import open_jobs  # noqa: PLC0415
    return open_jobs(database, clock_of(database, SystemClock()), operator.limits, account)


def fetching_jobs(operator: Operator) -> Working:
    """Return a function that fetches the jobs of a fleet, and visits their issues."""
    with _needing_procrastinate():
        from mulligan.storage.jobs import working  # noqa: PLC0415
    url, concurrency = operator.state.url, operator.limits.concurrency
    return lambda visit, hinted: working(url, visit, concurrency, hinted)


@contextmanager
def _needing_procrastinate() -> Generator[None]:
    """Import in this block what needs Procrastinate, which is an optional dependency."""
    try:
        yield
    except ImportError as error:
        raise ConfigError(
            "A fleet needs Procrastinate; run: pip install 'mulligan[fleet]'."
        ) from error


def copy_state(operator: Operator, other: Operator) -> list[str]:
    """Import the issues whose history is newer in the other ledger; return their names.

    UsageError if a worker uses either ledger.
    """
    if operator.state.url == other.state.url:
        raise UsageError(
            "Both configurations have the same state.url, so there is nothing to copy."
        )
    for each in (other, operator):
        if worker := at_work(each):
            raise UsageError(f"{worker} is running. Stop it, then repeat this command.")
    with (
        lock_state(operator, "state copy"),
        open_database(other.state.url) as old,
        open_database(operator.state.url) as new,
    ):
        source, ledger = SqlLedger(old, SystemClock()), SqlLedger(new, SystemClock())
        moved = import_from_ledger(source, ledger)
        for ref in moved:
            if needs_files(ledger.status(ref)):
                _copy_files(ref, (other, old), (operator, new))
    return [str(ref) for ref in moved]


def back_up_state(operator: Operator, target: Path) -> None:
    """Copy the ledger to a new file, also while a worker uses it."""
    write_backup(file_of(operator.state.url), target)


def check_state(operator: Operator, backup: Path | None) -> LedgerCheck:
    """Check the ledger, or a backup of one; nothing is changed."""
    if backup is None and state_directory(operator.state.url) is None:
        with open_database(operator.state.url) as database:
            return check_ledger(database)
    with opened_backup(backup or file_of(operator.state.url)) as database:
        return check_ledger(database)


@dataclass(frozen=True, slots=True)
class RestoredState:
    """A restored ledger; `forgotten` are the issues that changed on GitHub since the backup."""

    found: LedgerCheck
    aside: Path | None
    forgotten: Sequence[IssueRef]


def restore_state(
    operator: Operator, backup: Path, updated: Callable[[str, datetime], Collection[int]]
) -> RestoredState:
    """Replace the ledger by a backup, without the issues that changed on GitHub since.

    `updated` lists the numbers of a repository's issues and pull requests that changed since a
    time. Mulligan restores these issues from GitHub at the next start. UsageError if it runs now.
    """
    place, now = file_of(operator.state.url), SystemClock().now()
    aside = place.with_name(f"{place.name}.before-{now:%Y%m%dT%H%M%SZ}")
    existed = place.exists()
    with (
        locked(state_directory_of(operator), what="state restore", since=now),
        restoring(backup, place, aside) as (database, found),
    ):
        ledger = SqlLedger(database, SystemClock())
        names = {each.name for each in operator.repositories}
        forgotten = _changed_since(ledger, names, updated)
        forget_issues(database, forgotten)
    return RestoredState(found, aside if existed else None, forgotten)


def _changed_since(
    ledger: SqlLedger,
    names: Collection[str],
    updated: Callable[[str, datetime], Collection[int]],
) -> list[IssueRef]:
    """List the issues of a ledger of which GitHub knows more than it does."""
    last = ledger.events(after=ledger.last_seq() - 1)
    statuses = [each for each in ledger.statuses() if each.issue.repository in names]
    changed = {
        name: updated(name, last[-1].at) for name in {each.issue.repository for each in statuses}
    }
    return [
        each.issue
        for each in statuses
        if {each.issue.number, each.pull.number} & {*changed[each.issue.repository]}
    ]


def _copy_files(
    ref: IssueRef, old: tuple[Operator, Database], new: tuple[Operator, Database]
) -> None:
    """Copy the files that the next attempt needs to the new workers' directory."""
    source = old[0]
    if old[1].is_shared:
        source = new[0]
        _artifacts(source, old[1]).fetch_issue(ref)
    if new[1].is_shared:
        _artifacts(source, new[1]).share_issue(ref)


def _artifacts(operator: Operator, database: Database) -> SharedArtifacts:
    files = FileArtifacts(operator.workspace.root / "artifacts")
    return SharedArtifacts(files, database, SystemClock())


@contextmanager
def open_ledger(operator: Operator, redactor: Redactor | None = None) -> Generator[Ledger]:
    """Open the ledger without the lock of a worker; pass a redactor in order to write."""
    with open_database(operator.state.url) as database:
        clock = clock_of(database, SystemClock())
        yield SqlLedger(database, clock, redactor=redactor or Redactor())


def read_pauses(operator: Operator) -> Sequence[Pause]:
    """List the pauses."""
    with open_database(operator.state.url) as database:
        return SqlPauses(database, SystemClock()).all()


def read_stand_backs(operator: Operator) -> Sequence[StandBack]:
    """List the other installations that this one stands back for."""
    with open_database(operator.state.url) as database:
        return SqlSightings(database, SystemClock()).all()


def set_pause(operator: Operator, repository: str, *, paused: bool) -> Sequence[Pause]:
    """Pause or resume a repository, or EVERYTHING; return the resulting pauses."""
    with open_database(operator.state.url) as database:
        pauses = SqlPauses(database, clock_of(database, SystemClock()))
        if paused:
            pauses.pause(repository)
        else:
            pauses.resume(repository)
        return pauses.all()


def read_ledger(operator: Operator) -> LedgerHistory:
    """Read the ledger's history for the statistics."""
    with open_database(operator.state.url) as database:
        return read_ledger_history(database)


@contextmanager
def open_records(operator: Operator) -> Generator[tuple[Ledger, Artifacts]]:
    """Open the ledger and the files of all attempts, for reading."""
    with open_database(operator.state.url) as database:
        clock = clock_of(database, SystemClock())
        yield SqlLedger(database, clock), open_artifacts(operator, database=database)


def open_artifacts(
    operator: Operator, redactor: Redactor | None = None, database: Database | None = None
) -> Artifacts:
    """Open the files of all attempts; pass a redactor in order to write.

    With a `database`, files that other workers shared are included.
    """
    files = FileArtifacts(operator.workspace.root / "artifacts", redactor or Redactor())
    if database is None or state_directory(operator.state.url):
        return files
    return SharedArtifacts(files, database, clock_of(database, SystemClock()))


def check_writable(operator: Operator, heartbeat: Callable[[], None]) -> None:
    """Raise a MulliganError if the ledger cannot be written.

    A server's is tested by the worker's `heartbeat`, over a connection that the worker has.
    """
    place = state_directory(operator.state.url)
    if place is None:
        heartbeat()
        return
    with open_database(operator.state.url) as database, database.write():
        pass
    if not disk_space_for(place).writable:
        raise UnavailableError(
            f"{place} is not writable. Check its permissions and the free space on its disk."
        )


def publishing_redactor_of(operator: Operator, environment: Mapping[str, str]) -> Redactor:
    """Build the redactor of comments, prompts and events, which also removes machine paths."""
    state, root = state_directory(operator.state.url), operator.workspace.root
    return without_machine_paths(redactor_of(operator, environment), root, state)


def state_directory_of(operator: Operator) -> Path:
    """Return the directory to lock: the ledger's, or the workspace if that is on a server."""
    return state_directory(operator.state.url) or operator.workspace.root


def at_work(operator: Operator) -> str | None:
    """Return the worker that runs here, or the fleet's workers; None if there is none."""
    local, url = holder(state_directory_of(operator)), operator.state.url
    if local or state_directory(url):
        return local
    with open_database(url) as database:
        clock = clock_of(database, SystemClock())
        workers = SqlLeases(database, clock).present()
    if len(workers) > 1:
        return f"Each of {', '.join(workers[:-1])} and {workers[-1]}"
    return f"The worker {workers[0]}" if workers else None


@contextmanager
def lock_state(operator: Operator, what: str) -> Generator[None]:
    """Lock the state for the command `what`; UsageError names the holder of the lock.

    With the lock, no other worker uses a state directory, so all its leases are released.
    Leases in a database that workers share expire by themselves.
    """
    url, clock = operator.state.url, SystemClock()
    with locked(state_directory_of(operator), what=what, since=clock.now()):
        if state_directory(url):
            with open_database(url) as database:
                SqlLeases(database, clock).release_all()
        yield
