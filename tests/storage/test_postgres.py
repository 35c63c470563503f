"""The ledger in PostgreSQL: refused in one sentence, waited for while it is away, never stuck."""

import subprocess
import sys
import threading
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from sqlalchemy import column, create_engine, insert, table, text, update
from sqlalchemy.engine import make_url
from sqlalchemy.exc import IntegrityError, ProgrammingError

from mulligan.domain.errors import ConfigError, MulliganError, UnavailableError
from mulligan.domain.events import IssueSeen
from mulligan.domain.status import IssueStatus
from mulligan.storage import OLDEST, VERSION_TABLE
from mulligan.storage.database import MIGRATIONS, clock_of, open_database, state_directory
from mulligan.storage.leases import SqlLeases
from mulligan.storage.ledger import SqlLedger
from mulligan.storage.postgres import unsupported_reason
from mulligan.storage.schema import EVENTS_TABLE, METADATA
from mulligan.storage.serialization import record_event, values_of
from world.ledgers import ISSUES, START, TickingClock, open_ledger_url, rebuild, url_of
from world.postgres import PASSWORD, Server, server

REF = ISSUES[0]
SEEN = IssueSeen(title="kept")


@pytest.fixture
def ledger(postgres_url: str) -> Generator[SqlLedger]:
    with open_ledger_url(postgres_url) as found:
        found.append(REF, SEEN)
        yield found


@pytest.fixture
def empty(postgres: Server) -> Generator[str]:
    """Give a database in which nothing is yet."""
    with postgres.fresh("template0") as url:
        yield url


def refusal(url: str) -> MulliganError:
    with pytest.raises(MulliganError) as refused:
        open_database(url)
    said = str(refused.value)
    assert "\n" not in said
    assert said.endswith(".")
    assert PASSWORD not in said
    return refused.value


def test_a_ledger_of_the_oldest_version_is_brought_up_to_date_with_all_it_holds(empty: str) -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    engine = create_engine(make_url(empty).set(drivername="postgresql+psycopg"))
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, OLDEST)
        stored = values_of(record_event(IssueStatus(REF), SEEN, START, 0))
        connection.execute(insert(EVENTS_TABLE).values(stored))
    engine.dispose()
    with open_ledger_url(empty) as ledger:
        assert ledger.status(REF).text.title == "kept"
        rebuild(ledger)
        assert ledger.append(REF, SEEN).text.title == "kept"


def test_the_migrations_lead_to_the_tables_in_the_code(empty: str) -> None:
    with open_ledger_url(empty) as ledger, ledger.database.read() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        assert compare_metadata(context, METADATA) == []


def test_what_has_happened_cannot_be_changed(ledger: SqlLedger) -> None:
    with (
        pytest.raises(IntegrityError, match="events are append-only"),
        ledger.database.write() as connection,
    ):
        connection.execute(text("UPDATE events SET body = '{}'"))
    assert ledger.events()[0].event == SEEN


def test_a_wrong_statement_is_a_bug_and_not_the_worlds_fault(ledger: SqlLedger) -> None:
    with (
        pytest.raises(ProgrammingError, match="does not exist"),
        ledger.database.read() as connection,
    ):
        connection.execute(text("SELECT nothing"))


def test_a_table_that_somebody_dropped_is_named(ledger: SqlLedger) -> None:
    with (
        pytest.raises(ConfigError, match=r"lacks a table \(relation \"nowhere\" does not exist"),
        ledger.database.read() as connection,
    ):
        connection.execute(text("SELECT * FROM nowhere"))


def test_a_reader_sees_one_moment_does_not_wait_and_cannot_write(ledger: SqlLedger) -> None:
    with ledger.database.read() as reading, ledger.database.write() as writing:
        count = text("SELECT count(*) FROM issues")
        assert reading.execute(count).scalar_one() == 1
        writing.execute(text("DELETE FROM issues"))
        assert ledger.status(REF).text.title == "kept"
        writing.commit()
        assert reading.execute(count).scalar_one() == 1
    with (
        pytest.raises(ConfigError, match="read-only replica"),
        ledger.database.read() as reading,
    ):
        reading.execute(text("DELETE FROM issues"))


def test_whoever_reads_by_number_misses_no_event_that_is_recorded_late(ledger: SqlLedger) -> None:
    """The number is given, and the row shown, in one turn: no lower one can come afterwards."""
    begun = threading.Event()

    def record_late() -> None:
        with ledger.database.write() as connection:
            stored = values_of(record_event(IssueStatus(REF), SEEN, START, 0))
            connection.execute(insert(EVENTS_TABLE).values(stored))
            begun.set()
            time.sleep(0.3)

    late = threading.Thread(target=record_late)
    late.start()
    begun.wait(120)
    ledger.append(ISSUES[1], SEEN)
    seen = [each.seq for each in ledger.events()]
    late.join()
    assert seen == [each.seq for each in ledger.events()] == [1, 2, 3]


def test_a_worker_that_freezes_in_its_turn_holds_up_nobody_for_long(ledger: SqlLedger) -> None:
    def freeze() -> None:
        with ledger.database.write() as connection:
            setting = "idle_in_transaction_session_timeout"
            assert connection.execute(text(f"SHOW {setting}")).scalar_one() == "15s"
            connection.execute(text(f"SET LOCAL {setting} = '200ms'"))
            ledger.append(REF, IssueSeen(title="by another"))
            connection.execute(text("DELETE FROM issues"))

    with pytest.raises(UnavailableError):
        freeze()
    assert ledger.status(REF).text.title == "by another"


def test_a_turn_that_does_not_come_is_a_sentence(ledger: SqlLedger, postgres_url: str) -> None:
    with open_ledger_url(postgres_url) as impatient, ledger.database.write():
        with impatient.database.read() as connection:
            assert connection.execute(text("SHOW lock_timeout")).scalar_one() == "20s"
            connection.execute(text("SET lock_timeout = '50ms'"))
        with pytest.raises(UnavailableError, match="is locked by another worker"):
            impatient.append(REF, SEEN)


def test_a_wrong_password_is_a_sentence_that_does_not_show_it(postgres: Server) -> None:
    error = refusal(postgres.loopback("ledger", "hunter2"))
    assert isinstance(error, ConfigError)
    assert "hunter2" not in str(error)
    assert 'password authentication failed for user "mulligan"' in str(error)
    open_database(postgres.loopback("ledger")).close()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"port": 1}, "cannot be reached"),
        ({"host": "nowhere.invalid"}, "cannot be reached"),
        ({"database": "nothing"}, "does not exist"),
        ({"username": "nobody-here"}, "refuses the login"),
    ],
)
def test_a_server_that_is_not_there_is_a_sentence(
    postgres: Server, change: dict[str, str | int], said: str
) -> None:
    url = make_url(postgres.loopback("ledger")).set(**change)  # pyright: ignore[reportArgumentType] - one of them
    assert said in str(refusal(url.render_as_string(hide_password=False)))


def test_a_database_of_a_newer_version_is_refused(postgres: Server) -> None:
    with postgres.fresh() as url:
        with open_database(url) as database, database.write() as connection:
            connection.execute(update(table(VERSION_TABLE, column("version_num"))).values(["9999"]))
        assert "was written by a newer Mulligan" in str(refusal(url))


def test_the_database_of_another_program_is_left_alone(postgres: Server, empty: str) -> None:
    engine = create_engine(make_url(empty).set(drivername="postgresql+psycopg"))
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE bookmarks (url TEXT)"))
    engine.dispose()
    assert "is the database of another program" in str(refusal(empty))


def test_a_database_that_cannot_hold_every_text_is_refused(postgres: Server) -> None:
    postgres.execute("CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1'")
    assert "make one with ENCODING 'UTF8'" in str(refusal(postgres.url("latin")))


TOO_OLD = "PostgreSQL 14 is too old for Mulligan; use 15 or newer."


@pytest.mark.parametrize(("version", "said"), [(140012, TOO_OLD), (150000, ""), (180004, "")])
def test_an_old_server_is_refused(version: int, said: str) -> None:
    assert unsupported_reason(version, "utf-8") == said


def test_issues_are_sorted_by_their_characters_whatever_the_language(ledger: SqlLedger) -> None:
    with ledger.database.read() as connection:
        found = "SELECT collation_name FROM information_schema.columns WHERE table_name = 'issues'"
        assert "C" in connection.execute(text(found)).scalars().all()


def test_all_go_by_the_clock_of_the_server(ledger: SqlLedger) -> None:
    behind = TickingClock()
    shared = clock_of(ledger.database, behind)
    first, second = shared.now(), shared.now()
    assert START < first < second
    assert first.tzinfo is not None
    assert behind.at == START
    assert shared.backoff(3) == behind.backoff(3)


def test_the_state_has_no_directory(postgres_url: str) -> None:
    assert state_directory(postgres_url) is None


def test_a_server_that_goes_away_is_waited_for_and_nothing_is_lost() -> None:
    with server() as own, own.fresh() as url, open_ledger_url(url) as ledger:
        ledger.append(REF, IssueSeen(title="before"))
        with ThreadPoolExecutor(1) as pool:
            own.stop()
            waiting = pool.submit(ledger.append, REF, IssueSeen(title="after"))
            time.sleep(0.7)
            assert not waiting.done()
            own.start()
            assert waiting.result(120).text.title == "after"
        assert [each.seq for each in ledger.events()] == [1, 2]


WITHOUT_DRIVER = """
import sys
sys.modules["psycopg"] = None
from mulligan.domain.errors import ConfigError
from mulligan.storage.database import open_database
open_database(sys.argv[1]).close()
try:
    open_database("postgresql://db/mulligan")
except ConfigError as error:
    print(error)
"""


def test_the_driver_is_needed_for_postgresql_alone(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", WITHOUT_DRIVER, url_of(tmp_path / "ledger.db")]
    said = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    assert said == "PostgreSQL needs its driver; install it with: pip install 'mulligan[fleet]'.\n"


def test_one_connection_is_enough_for_all_that_a_worker_writes(postgres_url: str) -> None:
    """Each asks the server for the time, and must not wait for a second connection meanwhile."""
    with open_database(postgres_url, connections=1) as database:
        clock = clock_of(database, TickingClock())
        leases = SqlLeases(database, clock)
        lease = leases.claim(REF, "one")
        assert lease
        SqlLedger(database, clock, lease).append(REF, SEEN)
        assert leases.renew(lease)
        leases.release(lease)
        assert not leases.renew(lease)
        assert leases.heartbeat("one") == ["one"]


def test_a_lease_does_not_wait_for_the_writer_whose_turn_it_is(postgres_url: str) -> None:
    with open_database(postgres_url) as database:
        leases = SqlLeases(database, TickingClock())
        with ThreadPoolExecutor(1) as other, database.write():
            lease = other.submit(leases.claim, REF, "one").result(5)
            assert lease
            assert other.submit(leases.renew, lease).result(5)
            other.submit(leases.release, lease).result(5)
            again = other.submit(leases.claim, REF, "two").result(5)
            assert again
            assert again.fence > lease.fence


def test_a_worker_has_no_more_connections_than_it_may(postgres_url: str) -> None:
    with open_database(postgres_url, connections=2) as database, ThreadPoolExecutor(1) as other:
        ledger = SqlLedger(database, TickingClock())
        with database.read(), database.read():
            third = other.submit(ledger.last_seq)
            with pytest.raises(TimeoutError):
                third.result(1)
        assert third.result(30) == 0


def test_a_worker_without_a_free_connection_says_so(postgres_url: str) -> None:
    with open_database(postgres_url, connections=1) as database:
        impatient = create_engine(
            database.engine.url, pool_size=1, max_overflow=0, pool_timeout=0.01
        )
        few = replace(database, engine=impatient)
        with (
            ThreadPoolExecutor(1) as other,
            few.read(),
            pytest.raises(UnavailableError, match="All connections of this process"),
        ):
            other.submit(SqlLedger(few, TickingClock()).last_seq).result(5)
        few.close()
