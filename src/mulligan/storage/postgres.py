"""PostgreSQL: one writer at a time, time limits for frozen workers, and its errors in words.

Only database.py imports it, for such a database: psycopg is an optional dependency (`fleet`).
"""

import re

from psycopg import Connection as Connected
from psycopg import Error, OperationalError
from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL
from sqlalchemy.exc import DatabaseError
from sqlalchemy.pool import ConnectionPoolEntry

from mulligan.domain.errors import ConfigError, MulliganError, UnavailableError
from mulligan.storage.schema import ALONE, WRITES

MIN_SERVER_VERSION = 15
"""The oldest major version that is tested."""

WRITER_LOCK = 0x6D756C6C
"""The advisory lock of the writer; the number is "mull"."""

CONNECT_SECONDS = 10

PREPARE = (
    # A worker that freezes in a transaction would block all others without limit.
    "SET idle_in_transaction_session_timeout = '15s'",
    "SET lock_timeout = '20s'",
)

KEEPALIVES = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
"""Detect an unreachable machine (libpq); in seconds, except for the count. The last one is in
milliseconds, for data without acknowledgement: TCP alone repeats it for 15 minutes.
"""

UNREACHABLE_CODES = re.compile(r"08|57P0|53300|25P03")
"""Prefixes of SQLSTATE codes for errors that pass once the server is back."""

TRANSIENT_CODES = re.compile(r"5[378]|40|XX|F0")
"""Prefixes of SQLSTATE codes for failures of the server, not of the statement."""

REFUSED = re.compile(
    r"authentication failed|no password supplied|does not exist|no pg_hba\.conf entry"
)
"""Messages of a server that refuses the login; libpq gives no code for these."""


def name_of(url: URL) -> str:
    """Return a database's name for messages, without its user and password."""
    host = url.host or url.query.get("host") or "this machine"
    return f"The PostgreSQL database {url.database or url.username!r} on {host}"


def set_up(url: URL, connections: int) -> Engine:
    """Return an engine with at most this many connections; `_begin` begins its transactions.

    ConfigError if Mulligan cannot use the server.
    """
    own = {"connect_timeout": CONNECT_SECONDS, "application_name": "mulligan", **KEEPALIVES}
    arguments = {name: value for name, value in own.items() if name not in url.query}
    engine = create_engine(
        url.set(drivername="postgresql+psycopg"),
        connect_args=arguments,
        isolation_level="AUTOCOMMIT",
        pool_size=connections,
        max_overflow=0,
    )
    event.listen(engine, "connect", _prepare)
    event.listen(engine, "begin", _begin)
    return engine


def is_away(error: DatabaseError) -> bool:
    """Return whether the server is unreachable, stopping or starting."""
    code = _code(error)
    if code is None:
        return isinstance(error.orig, OperationalError) and not REFUSED.search(str(error.orig))
    return bool(UNREACHABLE_CODES.match(code))


def translate_error(where: str, error: DatabaseError) -> MulliganError | None:
    """Return the error for a SQLSTATE code (postgresql.org/docs/current/errcodes-appendix.html)."""
    code, text = _code(error), _first_line(str(error.orig))
    if is_away(error):
        return UnavailableError(f"{where} cannot be reached ({text}); check that it is running.")
    match code:
        case None if REFUSED.search(text):
            return ConfigError(f"{where} refuses the login ({text}); fix state.url.")
        case "55P03":
            return UnavailableError(f"{where} is locked by another worker; try again.")
        case "53100":
            return UnavailableError(f"{where} has a full disk; free some space on it.")
        case "25006":
            message = f"{where} is a read-only replica; name the primary server in state.url."
            return ConfigError(message)
        case "42P01":
            return ConfigError(f"{where} lacks a table ({text}); restore a backup of it.")
        case "42501":
            advice = "make the user of state.url its owner"
            return ConfigError(f"{where} is not writable ({text}); {advice}.")
        case _:
            known = TRANSIENT_CODES.match(code or "")
            return UnavailableError(f"{where} cannot be used: {text}.") if known else None


def unsupported_reason(version: int, encoding: str) -> str:
    """Return why a server's version, in libpq's format, or an encoding is unsupported, or ""."""
    major = version // 10_000
    if major < MIN_SERVER_VERSION:
        return f"PostgreSQL {major} is too old for Mulligan; use {MIN_SERVER_VERSION} or newer."
    if encoding != "utf-8":
        return f"The database of state.url is in {encoding}; make one with ENCODING 'UTF8'."
    return ""


def _prepare(connection: Connected, _entry: ConnectionPoolEntry) -> None:
    if unfit := unsupported_reason(connection.info.server_version, connection.info.encoding):
        raise ConfigError(unfit)
    for setting in PREPARE:
        connection.execute(setting)
    connection.commit()


def _begin(connection: Connection) -> None:
    """Begin in one round trip to the server; the driver alone needs three."""
    match connection.get_execution_options().get(WRITES):
        case None:
            begin = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"
        case how:
            # Each statement sees the data at its start, so it must start after the lock is taken.
            begin = "BEGIN ISOLATION LEVEL READ COMMITTED"
            begin += f"; SELECT pg_advisory_xact_lock({WRITER_LOCK})" if how == ALONE else ""
    connection.exec_driver_sql(begin)


def _code(error: DatabaseError) -> str | None:
    """Return the SQLSTATE code; None if the server sent none."""
    return error.orig.sqlstate if isinstance(error.orig, Error) else None


def _first_line(message: str) -> str:
    """Return the relevant line of a message of libpq."""
    lines = [line.strip() for line in message.splitlines() if " failed: " in line] or [
        message.strip()
    ]
    last = lines[-1].splitlines()[0] if lines[-1] else "nothing was said"
    return last.rpartition(" failed: ")[2].removeprefix("FATAL:").strip().rstrip(".")
