"""Back up, check and restore the ledger in an SQLite file (LEDGER-4)."""

import os
import sqlite3
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from sqlalchemy import and_, delete, select, text
from sqlalchemy.engine import make_url

from mulligan.domain.errors import ConfigError, UnavailableError, UsageError
from mulligan.domain.events import RecordedEvent
from mulligan.domain.issue import IssueRef
from mulligan.storage import HEAD, VERSION_TABLE, sqlite
from mulligan.storage.database import ROWS_PER_STATEMENT, Database, open_database
from mulligan.storage.schema import (
    EVENTS_TABLE,
    INSTALLATION_TABLE,
    ISSUE,
    ISSUES_TABLE,
    LEASES_TABLE,
    OWNERS_TABLE,
    REPOSITORIES_TABLE,
)
from mulligan.storage.serialization import Row, recorded_of, replay, written

REVISION = f"SELECT version_num FROM {VERSION_TABLE}"  # noqa: S608 - a name of ours

MAX_FAULTS = 20


@dataclass(frozen=True, slots=True)
class LedgerCheck:
    """The result of a check: counts, and a sentence for each fault.

    `unsummed` events had no checksum.
    """

    issues: int
    events: int
    unsummed: int
    faults: tuple[str, ...]


def file_of(url: str) -> Path:
    """Return the file of a ledger; UsageError if there is none, or it is on a server."""
    parsed = make_url(url)
    if parsed.drivername not in sqlite.NAMES:
        message = "The ledger is on a PostgreSQL server; use pg_dump and pg_restore for it."
        raise UsageError(message)
    return sqlite.path_of(parsed)


def write_backup(ledger: Path, target: Path) -> None:
    """Copy a ledger, also while it is in use, to a new file that only its owner can read."""
    if target.exists():
        message = f"{target} exists; name a new file."
        raise UsageError(message)
    _revision(ledger)
    with _errors_of(target), _beside(target) as new:
        _copy(ledger, new)
        _check_pages(new, ledger)
        new.replace(target)
        _sync(target.parent)


def check_ledger(database: Database) -> LedgerCheck:
    """Compare every event with its checksum, and every status with its events."""
    with database.read() as connection:
        faults = []
        if not database.is_shared:
            pages = connection.execute(text(f"PRAGMA integrity_check({MAX_FAULTS})")).scalars()
            faults = [f"The file is damaged: {each}." for each in pages if each != "ok"]
        stored = {
            IssueRef(repository, number): status
            for repository, number, status in connection.execute(
                select(ISSUE.repository, ISSUE.number, ISSUE.status)
            )
        }
        wanted = select(EVENTS_TABLE).order_by(EVENTS_TABLE.c.seq)
        rows = connection.execute(wanted.execution_options(yield_per=ROWS_PER_STATEMENT))
        read = _Reading()
        found, _ = replay(read.sound(Row._make(row) for row in rows))
    known = {ref: written(status) for ref, status in found.items() if ref not in read.damaged}
    differing = [
        ref for ref in sorted({*known, *stored} - read.damaged) if known.get(ref) != stored.get(ref)
    ]
    faults += read.faults
    faults += [f"The status of {ref} does not follow from its events." for ref in differing]
    return LedgerCheck(len(stored), read.events, read.unsummed, tuple(faults))


@contextmanager
def opened_backup(backup: Path) -> Generator[Database]:
    """Open a copy of a backup, brought up to date; the backup itself does not change."""
    _revision(backup)
    with TemporaryDirectory(prefix="mulligan-backup-") as scratch:
        copy = Path(scratch, "mulligan.db")
        _copy(backup, copy)
        with open_database(f"sqlite:///{copy}") as database:
            yield replace(database, name=str(backup))


@contextmanager
def restoring(backup: Path, ledger: Path, aside: Path) -> Generator[tuple[Database, LedgerCheck]]:
    """Replace a ledger by a backup at the end of the block, and keep what was there as `aside`.

    Yield the restored ledger, to be changed before. ConfigError if the backup has a fault; after
    any error nothing has changed. A kill leaves either ledger whole. The restored ledger is another
    installation, since the one of the backup may still run.
    """
    _revision(backup)
    with _errors_of(ledger), _beside(ledger) as new:
        _copy(backup, new)
        with open_database(f"sqlite:///{new}") as database:
            found = check_ledger(database)
            if found.faults:
                message = f"{backup} cannot be restored: {found.faults[0]} Use another backup."
                raise ConfigError(message)
            with database.write() as connection:
                for each in (INSTALLATION_TABLE, OWNERS_TABLE, LEASES_TABLE):
                    connection.execute(delete(each))
            yield database, found
        _flatten(new)
        _put_aside(ledger, aside)
        new.replace(ledger)
        _sync(ledger.parent)


def forget_issues(database: Database, refs: Iterable[IssueRef]) -> None:
    """Delete issues, and up to where their repositories' comments were read (RESTORE-1)."""
    with database.write() as connection:
        for ref in refs:
            for each in (EVENTS_TABLE, ISSUES_TABLE):
                of_issue = and_(each.c.repository == ref.repository, each.c.number == ref.number)
                connection.execute(delete(each).where(of_issue))
            cursors = REPOSITORIES_TABLE.c.repository == ref.repository
            connection.execute(delete(REPOSITORIES_TABLE).where(cursors))


class _Reading:
    """Reads events and collects faults instead of stopping at the first one."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.damaged: set[IssueRef] = set()
        self.events = 0
        self.unsummed = 0

    def sound(self, rows: Iterator[Row]) -> Iterator[RecordedEvent]:
        for row in rows:
            self.events += 1
            self.unsummed += row.checksum is None
            try:
                yield recorded_of(row)
            except ConfigError as error:
                self.faults.append(str(error))
                self.damaged.add(row.issue)


def _revision(ledger: Path) -> None:
    """Refuse a file that is no ledger, or that a newer version wrote."""
    if not ledger.is_file():
        message = f"{ledger} does not exist; name the file of a ledger."
        raise UsageError(message)
    with _errors_of(ledger), closing(_connect(ledger)) as connection:
        try:
            (found,) = connection.execute(REVISION).fetchone() or (None,)
        except sqlite3.OperationalError as error:
            if "no such table" not in str(error):
                raise
            message = f"{ledger} is not a ledger of Mulligan; name another file."
            raise ConfigError(message) from error
    if found and found > HEAD:
        message = f"{ledger} was written by a newer Mulligan; use that version or a later one."
        raise ConfigError(message)


def _connect(file: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{file.absolute().as_uri()}?mode=rw", uri=True, timeout=20)


def _copy(source: Path, target: Path) -> None:
    """Copy a database by SQLite's backup API; nothing of its journal is missing in the copy."""
    target.touch(mode=0o600)
    with (
        _errors_of(source),
        closing(_connect(source)) as old,
        closing(sqlite3.connect(target)) as new,
    ):
        old.backup(new)
    _flatten(target)


def _flatten(file: Path) -> None:
    """Make a database one file, without a journal beside it, and write it to the disk."""
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE").close()
    with file.open("rb") as written_file:
        os.fsync(written_file.fileno())


def _check_pages(file: Path, source: Path) -> None:
    with closing(sqlite3.connect(file)) as connection:
        ((result, *_), *_) = connection.execute("PRAGMA integrity_check(1)").fetchall()
    if result != "ok":
        message = f"{source} is damaged, so no backup was written; restore an earlier backup."
        raise ConfigError(message)


def _put_aside(ledger: Path, aside: Path) -> None:
    """Keep a ledger with its journal under other names, and empty the journal."""
    if not ledger.exists():
        return
    with suppress(sqlite3.Error), closing(sqlite3.connect(ledger)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").close()
    os.link(ledger, aside)
    for suffix in ("-wal", "-shm"):
        with suppress(FileNotFoundError):
            ledger.with_name(ledger.name + suffix).rename(aside.with_name(aside.name + suffix))


@contextmanager
def _beside(target: Path) -> Generator[Path]:
    """Yield a temporary name beside a file, on the same disk; remove it afterwards."""
    new = target.with_name(f".{target.name}.{os.getpid()}.new")
    try:
        yield new
    finally:
        for suffix in ("", "-wal", "-shm", "-journal"):
            new.with_name(new.name + suffix).unlink(missing_ok=True)


@contextmanager
def _errors_of(file: Path) -> Generator[None]:
    """Turn the errors of a file into a sentence."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        raise sqlite.translate_code(code, str(file), str(error)) from error
    except OSError as error:
        message = f"{file} could not be written ({error.strerror}); check its directory and disk."
        raise UnavailableError(message) from error


def _sync(directory: Path) -> None:
    """Write the names in a directory to the disk."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
