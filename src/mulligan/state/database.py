"""Open the database of the ledger: made, brought up to date, and durable; its errors are ours."""

import sqlite3
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from sqlalchemy import (
    Connection,
    Engine,
    String,
    column,
    create_engine,
    event,
    inspect,
    select,
    table,
)
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DatabaseError
from sqlalchemy.pool import ConnectionPoolEntry

from mulligan.errors import ConfigError, UnavailableError
from mulligan.state.refold import fold_anew
from mulligan.state.schema import HEAD, VERSION_TABLE

MIGRATIONS = Path(__file__).with_name("migrations")
BUSY_SECONDS = 20.0
SHORT_WHILE = 0.01
IMMEDIATE = "immediate"
VERSION = select(column("version_num", String)).select_from(table(VERSION_TABLE))
OUR_BUGS = frozenset(
    {
        sqlite3.SQLITE_ERROR,
        sqlite3.SQLITE_CONSTRAINT,
        sqlite3.SQLITE_MISMATCH,
        sqlite3.SQLITE_MISUSE,
    }
)
"""Result codes that say that a statement is wrong, not the world."""


@dataclass(frozen=True, slots=True)
class Database:
    """An open database, to be used from any thread; `where` names it in messages."""

    engine: Engine
    where: str

    @contextmanager
    def read(self) -> Generator[Connection]:
        """Give one consistent view; never waits for a writer."""
        with _translated(self.where), self.engine.begin() as connection:
            yield connection

    @contextmanager
    def write(self) -> Generator[Connection]:
        """Give the one writing transaction; durable when the block has ended."""
        writers = self.engine.execution_options(**{IMMEDIATE: True})
        with _translated(self.where), writers.begin() as connection:
            yield connection

    def close(self) -> None:
        """Close every connection."""
        self.engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def open_database(url: str) -> Database:
    """Open the database of an SQLAlchemy URL, made and migrated where it has to be.

    Raises ConfigError where it cannot be used as it is, UnavailableError where it is out of reach.
    """
    path = _path(url)
    _make_directory(path.parent)
    database = Database(_engine(path), str(path))
    try:
        _bring_up_to_date(database)
    except BaseException:
        database.close()
        raise
    return database


def state_directory(url: str) -> Path:
    """Name the directory that holds the state, which is what `lock.locked` locks."""
    return _path(url).parent


def _path(url: str) -> Path:
    try:
        parsed: URL = make_url(url)
    except ArgumentError:
        # The URL itself may hold a password.
        message = "state.url is not a database URL; write it like sqlite:////PATH/mulligan.db."
        raise ConfigError(message) from None
    named = parsed.database or ":memory:"
    if parsed.drivername not in {"sqlite", "sqlite+pysqlite"}:
        message = f"Mulligan cannot keep its state in {parsed.drivername}; write sqlite:////PATH."
        raise ConfigError(message)
    if named.startswith((":memory:", "file:")) or parsed.query:
        message = "state.url does not name a plain file; write it like sqlite:////PATH/mulligan.db."
        raise ConfigError(message)
    return Path(named).expanduser().absolute()


def _make_directory(directory: Path) -> None:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        message = f"The directory {directory} cannot be made ({error.strerror}); mend state.url."
        raise UnavailableError(message) from error


def _engine(path: Path) -> Engine:
    """Set SQLite up as SQLAlchemy documents it, so that every BEGIN is ours to word."""
    url = URL.create("sqlite", database=str(path))
    engine = create_engine(url, connect_args={"timeout": BUSY_SECONDS}, max_overflow=-1)
    event.listen(engine, "connect", _prepare)
    event.listen(engine, "begin", _begin)
    return engine


def _prepare(connection: sqlite3.Connection, _entry: ConnectionPoolEntry) -> None:
    connection.isolation_level = None
    _switch_to_wal(connection)
    for setting in ("synchronous = FULL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {setting}").close()


def _switch_to_wal(connection: sqlite3.Connection) -> None:
    """Set the journal mode; of several who make a new database at once, all but one must wait.

    SQLite does not apply its busy time-out to that switch. Later it changes nothing.
    """
    give_up = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            if not _is_another_programs(connection):
                connection.execute("PRAGMA journal_mode = WAL").close()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > give_up:
                raise
            time.sleep(SHORT_WHILE)
        else:
            return


def _is_another_programs(connection: sqlite3.Connection) -> bool:
    """Tell whether there are tables, and none of ours; such a file is not to be touched."""
    found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    return bool(found) and (VERSION_TABLE,) not in found


def _begin(connection: Connection) -> None:
    # A transaction that reads first and then writes fails at once, whatever the busy time-out.
    writes = connection.get_execution_options().get(IMMEDIATE, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _bring_up_to_date(database: Database) -> None:
    with database.read() as connection:
        found = _revision(connection, database.where)
    if found == HEAD:
        return
    with database.write() as connection:
        # Another process may have migrated since; Alembic then finds nothing to do.
        _migrate(connection)
        fold_anew(connection)


def _revision(connection: Connection, where: str) -> str | None:
    """Read the revision of the schema, None for an empty database, and refuse what is not ours."""
    tables = inspect(connection).get_table_names()
    if VERSION_TABLE in tables:
        found = connection.execute(VERSION).scalar()
        if found is not None and found > HEAD:
            message = f"{where} was written by a newer Mulligan; use that version or a later one."
            raise ConfigError(message)
        return found
    if tables:
        message = f"{where} is the database of another program; name another file in state.url."
        raise ConfigError(message)
    return None


def _migrate(connection: Connection) -> None:
    # Imported here, since it takes as long as everything else that `mulligan status` does.
    from alembic import command  # noqa: PLC0415
    from alembic.config import Config  # noqa: PLC0415

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    command.upgrade(config, "head")


@contextmanager
def _translated(where: str) -> Generator[None]:
    try:
        yield
    except DatabaseError as error:
        code = getattr(error.orig, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if code in OUR_BUGS:
            raise
        raise _in_our_words(code, where, str(error.orig)) from error


def _in_our_words(code: int, where: str, said: str) -> ConfigError | UnavailableError:
    """Say what is wrong by SQLite's primary result code (sqlite.org/rescode.html)."""
    match code:
        case sqlite3.SQLITE_NOTADB:
            return ConfigError(f"{where} is not a database; name another file in state.url.")
        case sqlite3.SQLITE_CORRUPT:
            return ConfigError(f"{where} is damaged; put a backup of it in its place.")
        case sqlite3.SQLITE_FULL:
            return UnavailableError(f"The disk is full, so {where} cannot grow; make room on it.")
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM | sqlite3.SQLITE_CANTOPEN:
            advice = "give Mulligan the right to write it and its directory"
            return UnavailableError(f"{where} cannot be opened for writing ({said}); {advice}.")
        case sqlite3.SQLITE_BUSY:
            return UnavailableError(f"{where} is kept busy by another process; try again.")
        case _:
            return UnavailableError(f"{where} cannot be used: {said}.")
