"""Open the ledger's database: create, migrate, and make it durable; translate its errors."""

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Self

from sqlalchemy import (
    Connection,
    DateTime,
    Engine,
    RootTransaction,
    String,
    column,
    delete,
    func,
    insert,
    inspect,
    select,
    table,
    update,
)
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DatabaseError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_fixed

from mulligan.domain.errors import ConfigError, MulliganError, OutdatedError, UnavailableError
from mulligan.implement.ports import Clock
from mulligan.sandbox.cancellation import sleep_until_cancelled
from mulligan.storage import HEAD, OLDEST, VERSION_TABLE, sqlite
from mulligan.storage.schema import (
    ALONE,
    EVENTS_TABLE,
    ISSUES_TABLE,
    REPOSITORIES_TABLE,
    REPOSITORY,
    ROWS,
    WRITES,
)
from mulligan.storage.serialization import Row, projection_of, recorded_of, replay

ErrorTranslation = Callable[[str, DatabaseError], MulliganError | None]
"""Returns the error for a named database; None for an invalid statement, which is a bug."""

SERVER_WAIT_SECONDS, SERVER_RETRY_SECONDS = 30.0, 0.5
"""How long to wait for a server that is away, and how often to try, in seconds."""

_NO_WAIT: ContextVar[bool] = ContextVar("hurried", default=False)

_OPEN: ContextVar[tuple[Engine, Connection] | None] = ContextVar("open", default=None)
"""The transaction that this thread is in: its clock must not wait for a second connection."""


def _never(_error: DatabaseError) -> bool:
    return False


def _always() -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Database:
    """An open database, usable from any thread; `where` names it in messages.

    The whole database has one writer at a time. So a count that it reads stays valid until its end,
    and a reader of events by number misses none that is recorded later. Each write raises
    OutdatedError if a newer Mulligan has migrated the database since it was opened, and
    UnavailableError while its file is in another place.
    """

    engine: Engine
    name: str
    translate_error: ErrorTranslation
    is_away: Callable[[DatabaseError], bool] = _never
    is_migrated: bool = False
    is_in_place: Callable[[], bool] = _always

    def read(self) -> AbstractContextManager[Connection]:
        """Yield one consistent snapshot; never wait for a writer."""
        return self._transaction(self.engine)

    def write(self) -> AbstractContextManager[Connection]:
        """Yield the one writing transaction; durable at the end of the block."""
        return self._writing(ALONE)

    def write_rows(self) -> AbstractContextManager[Connection]:
        """Yield a writing transaction that waits only for writers of the same rows.

        It must record no event, and count no rows that others add.
        """
        return self._writing(ROWS)

    @property
    def is_shared(self) -> bool:
        """Return whether workers on several machines may use it."""
        return self.engine.dialect.name == "postgresql"

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

    @contextmanager
    def _writing(self, how: str) -> Generator[Connection]:
        with self._transaction(self.engine.execution_options(**{WRITES: how})) as connection:
            if self.is_migrated:
                _require_head(connection.execute(VERSION).scalar(), self.name)
            if not self.is_in_place():
                raise UnavailableError(
                    f"{self.name} was moved or deleted while Mulligan used it; put it back, or "
                    "restart Mulligan."
                )
            yield connection

    @contextmanager
    def _transaction(self, engine: Engine) -> Generator[Connection]:
        try:
            transaction = self._begun(engine)
            with transaction.connection, transaction, self._known(transaction.connection):
                yield transaction.connection
        except DatabaseError as error:
            translated = self.translate_error(self.name, error)
            if translated is None:
                raise
            raise translated from error
        except PoolTimeoutError as error:
            raise UnavailableError(
                f"All connections of this process to {self.name} are in use; try again."
            ) from error

    @contextmanager
    def _known(self, connection: Connection) -> Generator[None]:
        token = _OPEN.set((self.engine, connection))
        try:
            yield
        finally:
            _OPEN.reset(token)

    @contextmanager
    def read_within(self) -> Generator[Connection]:
        """Yield the connection of the transaction that this thread is in, or a new snapshot."""
        found = _OPEN.get()
        if found and found[0] is self.engine:
            yield found[1]
            return
        with self.read() as connection:
            yield connection

    def _begun(self, engine: Engine) -> RootTransaction:
        """Begin a transaction; wait for a server that is away, since nothing is lost yet."""

        def is_waited_for(error: BaseException) -> bool:
            return isinstance(error, DatabaseError) and self.is_away(error) and not _NO_WAIT.get()

        if self.is_away is _never:
            return _begin(engine)
        retrying = Retrying(
            retry=retry_if_exception(is_waited_for),
            wait=wait_fixed(SERVER_RETRY_SECONDS),
            stop=stop_after_delay(SERVER_WAIT_SECONDS),
            sleep=sleep_until_cancelled,
            reraise=True,
        )
        return retrying(_begin, engine)


def _begin(engine: Engine) -> RootTransaction:
    """Begin a transaction; on a new connection if the pool's one was lost since its last use."""
    try:
        return _begin_once(engine)
    except DatabaseError as error:
        if not error.connection_invalidated:
            raise
    return _begin_once(engine)


def _begin_once(engine: Engine) -> RootTransaction:
    connection = engine.connect()
    try:
        return connection.begin()
    except BaseException:
        connection.close()
        raise


@contextmanager
def without_waiting() -> Generator[None]:
    """Do not wait in this block for a server that is away: a user waits for the answer."""
    token = _NO_WAIT.set(True)
    try:
        yield
    finally:
        _NO_WAIT.reset(token)


# Opening and migrating.

POSTGRES = frozenset({"postgresql", "postgresql+psycopg"})


CONNECTIONS = 3
"""The most connections of a worker to PostgreSQL, whose default limit is 100 for all."""


def open_database(url: str, connections: int = CONNECTIONS) -> Database:
    """Open the database of an SQLAlchemy URL; create and migrate it if needed.

    Raises ConfigError if it cannot be used as it is, UnavailableError if it cannot be reached. Only
    an open database waits for a server that is away.
    """
    parsed = _parsed(url)
    database, is_away = _connected(parsed, connections)
    try:
        _bring_up_to_date(database)
    except BaseException:
        database.close()
        raise
    in_place = _always if database.is_shared else sqlite.watched(sqlite.path_of(parsed))
    return replace(database, is_away=is_away, is_migrated=True, is_in_place=in_place)


def state_directory(url: str) -> Path | None:
    """Return the directory of the state, if there is one: `lock.locked` locks it."""
    parsed = _parsed(url)
    return None if parsed.drivername in POSTGRES else sqlite.path_of(parsed).parent


def _parsed(url: str) -> URL:
    try:
        parsed = make_url(url)
    except ArgumentError:
        # The URL itself may contain a password.
        raise ConfigError(
            "state.url is not a database URL; write it like sqlite:////PATH/mulligan.db."
        ) from None
    if parsed.drivername not in POSTGRES | sqlite.NAMES:
        ways = "sqlite:////PATH or postgresql://USER@HOST/NAME"
        raise ConfigError(f"Mulligan cannot keep its state in {parsed.drivername}; write {ways}.")
    return parsed


def _connected(url: URL, connections: int) -> tuple[Database, Callable[[DatabaseError], bool]]:
    if url.drivername not in POSTGRES:
        path = sqlite.path_of(url)
        return Database(sqlite.set_up(path), str(path), sqlite.translate_error), _never
    # Imported here: it takes 270 ms of CPU, and its driver is an optional extra.
    try:
        from mulligan.storage import postgres  # noqa: PLC0415
    except ImportError as error:
        raise ConfigError(
            "PostgreSQL needs its driver; install it with: pip install 'mulligan[fleet]'."
        ) from error
    where = postgres.name_of(url)
    engine = postgres.set_up(url, connections)
    return Database(engine, where, postgres.translate_error), postgres.is_away


MIGRATIONS = Path(__file__).with_name("migrations")

VERSION = select(column("version_num", String)).select_from(table(VERSION_TABLE))


def _bring_up_to_date(database: Database) -> None:
    with database.read() as connection:
        found = _revision(connection, database.name)
    if found == HEAD:
        return
    with database.write() as connection:
        # Another process may have migrated since; then Alembic does nothing.
        _migrate(connection)
        reproject(connection)


def _revision(connection: Connection, where: str) -> str | None:
    """Read the revision of the schema, None for an empty database; refuse a foreign database."""
    tables = inspect(connection).get_table_names()
    if VERSION_TABLE in tables:
        found = connection.execute(VERSION).scalar()
        _require_head(found, where)
        if found not in {None, OLDEST, HEAD}:
            raise ConfigError(
                f"{where} was written by a version that was never released; name another database "
                "in state.url, and Mulligan restores the issues from GitHub."
            )
        return found
    if tables:
        raise ConfigError(
            f"{where} is the database of another program; name another one in state.url."
        )
    return None


def _require_head(found: str | None, where: str) -> None:
    if found is not None and found > HEAD:
        raise OutdatedError(
            f"{where} was written by a newer Mulligan; use that version or a later one."
        )


def _migrate(connection: Connection) -> None:
    # Imported here, since it takes 230 ms of CPU.
    from alembic import command  # noqa: PLC0415
    from alembic.config import Config  # noqa: PLC0415

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    command.upgrade(config, "head")


ROWS_PER_STATEMENT = 1000
"""Limit of rows per statement; PostgreSQL ends a transaction that is idle for too long."""


def reproject(connection: Connection) -> None:
    """Delete the stored statuses, and fold them again from the events.

    A later version may read more from the same events.
    """
    wanted = select(EVENTS_TABLE).order_by(EVENTS_TABLE.c.seq)
    rows = connection.execute(wanted.execution_options(yield_per=ROWS_PER_STATEMENT))
    recorded = (recorded_of(Row._make(row)) for row in rows)
    statuses, cursors = replay(recorded)
    found = map(projection_of, statuses.values())
    connection.execute(delete(ISSUES_TABLE))
    connection.execute(delete(REPOSITORIES_TABLE))
    while some := [*islice(found, ROWS_PER_STATEMENT)]:
        connection.execute(insert(ISSUES_TABLE), some)
    for repository, read_to in cursors.items():
        raise_cursor(connection, repository, read_to)


def stored_cursor(connection: Connection, repository: str) -> int | None:
    """Read the id up to which a repository's comments were read; None if there is none."""
    wanted = select(REPOSITORY.comments_read_to).where(REPOSITORY.repository == repository)
    return connection.execute(wanted).scalar()


def raise_cursor(connection: Connection, repository: str, read_to: int) -> None:
    """Store the id up to which a repository's comments were read, unless a higher one is stored."""
    if not read_to:
        return
    known = stored_cursor(connection, repository)
    if known is None:
        row = {"repository": repository, "comments_read_to": read_to}
        connection.execute(insert(REPOSITORIES_TABLE).values(row))
    elif known < read_to:
        writing = update(REPOSITORIES_TABLE).where(REPOSITORY.repository == repository)
        connection.execute(writing.values(comments_read_to=read_to))


# The clock of all who use a database

SERVER_TIME = select(func.clock_timestamp(type_=DateTime(timezone=True)))


@dataclass(frozen=True, slots=True)
class ServerClock:
    """The port Clock on the server: leases expire at the same time for all machines."""

    database: Database
    own: Clock

    def now(self) -> datetime:
        """Return the server's time, in UTC; UnavailableError if it cannot be reached."""
        with self.database.read_within() as connection:
            return connection.execute(SERVER_TIME).scalar_one().astimezone(UTC)

    def backoff(self, step: int) -> timedelta:
        return self.own.backoff(step)


def clock_of(database: Database, own: Clock) -> Clock:
    """Return the clock that all users of the database share."""
    return ServerClock(database, own) if database.is_shared else own
