"""Opening the database: made where it is missing, brought up to date, refused in one sentence."""

import contextlib
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from stat import S_IMODE
from tempfile import TemporaryDirectory
from threading import Barrier

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import column, table, text, update
from sqlalchemy.exc import IntegrityError, OperationalError

from mulligan.domain.errors import ConfigError, MulliganError, OutdatedError, UnavailableError
from mulligan.domain.events import IssueSeen
from mulligan.storage import HEAD, VERSION_TABLE
from mulligan.storage.database import MIGRATIONS, open_database, state_directory
from mulligan.storage.schema import METADATA
from world.ledgers import ISSUES, open_ledger_at, open_ledger_url, url_of

REF = ISSUES[0]


def kept(path: Path) -> Path:
    """Make a ledger that holds one event."""
    with open_ledger_url(url_of(path)) as ledger:
        ledger.append(REF, IssueSeen(title="kept"))
    return path


def refusal(url: str) -> MulliganError:
    with pytest.raises(MulliganError) as refused:
        open_database(url)
    assert "\n" not in str(refused.value)
    assert str(refused.value).endswith(".")
    return refused.value


def test_the_directory_and_the_database_are_made_for_the_owner_alone(tmp_path: Path) -> None:
    path = kept(tmp_path / "a" / "b" / "ledger.db")
    assert S_IMODE(path.parent.stat().st_mode) == 0o700


def test_what_was_kept_is_there_when_it_is_opened_again(tmp_path: Path) -> None:
    with open_ledger_at(kept(tmp_path / "ledger.db")) as ledger:
        assert ledger.status(REF).text.title == "kept"


def test_the_settings_are_those_that_lose_nothing(tmp_path: Path) -> None:
    with open_database(url_of(tmp_path / "ledger.db")) as database, database.read() as connection:
        for pragma, value in [("journal_mode", "wal"), ("synchronous", 2), ("foreign_keys", 1)]:
            assert connection.execute(text(f"PRAGMA {pragma}")).scalar() == value
        assert connection.execute(text("PRAGMA busy_timeout")).scalar_one() >= 10_000


def migrations() -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    return config


def test_the_head_in_the_code_is_the_newest_migration() -> None:
    assert ScriptDirectory.from_config(migrations()).get_heads() == [HEAD]


def test_the_migrations_lead_to_the_tables_in_the_code(tmp_path: Path) -> None:
    with open_database(url_of(tmp_path / "ledger.db")) as database, database.read() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        assert compare_metadata(context, METADATA) == []


def test_only_what_is_needed_is_loaded_for_a_database_that_is_up_to_date(tmp_path: Path) -> None:
    code = (
        "import sys; from mulligan.storage.database import open_database as o;"
        "o(sys.argv[1]).close(); "
        "print([each for each in sys.argv[2:] if each in sys.modules])"
    )
    slow = ["alembic", "psycopg", "sqlalchemy.dialects.postgresql"]
    for expected in ("['alembic', 'sqlalchemy.dialects.postgresql']", "[]"):
        argv = [sys.executable, "-c", code, url_of(tmp_path / "ledger.db"), *slow]
        said = subprocess.run(argv, capture_output=True, text=True, check=True)
        assert said.stdout.strip() == expected


def test_what_has_happened_cannot_be_changed_but_forgotten(tmp_path: Path) -> None:
    with open_ledger_at(kept(tmp_path / "ledger.db")) as ledger:
        with (
            pytest.raises(IntegrityError, match="events are append-only"),
            ledger.database.write() as connection,
        ):
            connection.execute(text("UPDATE events SET body = '{}'"))
        assert ledger.events()[0].event == IssueSeen(title="kept")
        with ledger.database.write() as connection:
            connection.execute(text("DELETE FROM events"))
        ledger.append(REF, IssueSeen(title="later"))
        assert [each.seq for each in ledger.events()] == [2]


def test_a_block_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    with open_ledger_at(kept(tmp_path / "ledger.db")) as ledger:
        with contextlib.suppress(RuntimeError), ledger.database.write() as connection:
            connection.execute(text("DELETE FROM issues"))
            raise RuntimeError
        assert ledger.status(REF).text.title == "kept"


def test_a_wrong_statement_is_a_bug_and_not_the_worlds_fault(tmp_path: Path) -> None:
    with (
        open_ledger_at(tmp_path / "ledger.db") as ledger,
        pytest.raises(OperationalError, match="no such table"),
        ledger.database.read() as connection,
    ):
        connection.execute(text("SELECT * FROM nowhere"))


def test_a_reader_sees_one_moment_and_does_not_wait_for_a_writer(tmp_path: Path) -> None:
    with open_ledger_at(kept(tmp_path / "ledger.db")) as ledger, ledger.database.write() as writing:
        writing.execute(text("DELETE FROM issues"))
        assert ledger.status(REF).text.title == "kept"


def test_writers_take_turns_from_their_first_statement(tmp_path: Path) -> None:
    with open_ledger_at(tmp_path / "ledger.db") as ledger, ledger.database.write() as connection:
        connection.execute(text("CREATE TABLE tally (n INTEGER)"))
        connection.execute(text("INSERT INTO tally VALUES (0)"))
        connection.commit()
        together = Barrier(4)

        def add(_: int) -> None:
            together.wait()
            for _turn in range(10):
                with ledger.database.write() as own:
                    seen = own.execute(text("SELECT n FROM tally")).scalar_one()
                    own.execute(text("UPDATE tally SET n = :n"), {"n": seen + 1})

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(add, range(4)))
        with ledger.database.read() as own:
            assert own.execute(text("SELECT n FROM tally")).scalar() == 40


def test_a_database_of_a_newer_version_is_refused_also_while_it_is_open(tmp_path: Path) -> None:
    path = kept(tmp_path / "ledger.db")
    with open_ledger_at(path) as ledger:
        with ledger.database.write() as connection:
            connection.execute(update(table(VERSION_TABLE, column("version_num"))).values(["9999"]))
        with pytest.raises(OutdatedError) as refused:
            ledger.append(REF, IssueSeen(title="lost"))
        assert ledger.status(REF).text.title == "kept"
    error = refusal(url_of(path))
    assert isinstance(error, ConfigError)
    assert str(error) == f"{path} was written by a newer Mulligan; use that version or a later one."
    assert str(error) == str(refused.value)


def test_the_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "browser.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE bookmarks (url TEXT)")
    connection.close()
    error = refusal(url_of(path))
    assert isinstance(error, ConfigError)
    assert "is the database of another program" in str(error)
    connection = sqlite3.connect(path)
    names = connection.execute("SELECT name FROM sqlite_master").fetchall()
    connection.close()
    assert names == [("bookmarks",)]


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    path.write_bytes(b"something else entirely, and long enough to be looked at. " * 40)
    error = refusal(url_of(path))
    assert isinstance(error, ConfigError)
    assert str(error) == f"{path} is not a database; name another file in state.url."
    assert path.read_bytes().startswith(b"something else")


def test_a_damaged_database_is_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with open_ledger_at(path) as ledger:
        for number in range(60):
            ledger.append(REF, IssueSeen(title=f"{number}" * 200))
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\x5a" * (len(whole) - 4096))
    with (
        pytest.raises(ConfigError, match="is damaged; restore a backup"),
        open_ledger_at(path) as ledger,
    ):
        ledger.events()


def test_a_directory_in_the_place_of_the_database_is_a_sentence(tmp_path: Path) -> None:
    error = refusal(url_of(tmp_path))
    assert isinstance(error, UnavailableError)
    assert "cannot be opened for writing (unable to open database file)" in str(error)


def test_a_parent_that_is_a_file_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file")
    error = refusal(url_of(tmp_path / "state" / "ledger.db"))
    assert isinstance(error, UnavailableError)
    assert "fix state.url" in str(error)


def test_a_full_disk_is_a_sentence_and_loses_nothing(tmp_path: Path) -> None:
    with open_ledger_at(kept(tmp_path / "ledger.db")) as ledger:
        with ledger.database.read() as connection:
            # As many pages as there are, which is how SQLite lets a full disk be tried.
            connection.execute(text("PRAGMA max_page_count = 1"))
        with pytest.raises(UnavailableError, match="The disk is full"):
            ledger.append(REF, IssueSeen(title="too long " * 10_000))
        assert ledger.status(REF).text.title == "kept"


def test_a_ledger_held_up_for_too_long_is_a_sentence(tmp_path: Path) -> None:
    with open_ledger_at(kept(tmp_path / "ledger.db")) as ledger, ledger.database.write():
        with ledger.database.read() as impatient:
            impatient.execute(text("PRAGMA busy_timeout = 0"))
        with pytest.raises(UnavailableError, match="is locked by another process"):
            ledger.append(REF, IssueSeen(title="never"))


WITHOUT_RIGHTS = """
import os, sys
import sqlalchemy.dialects.sqlite
from mulligan.domain.errors import UnavailableError
from mulligan.storage.database import open_database
if os.getuid() == 0:
    # Root may write anywhere, so be nobody from here on.
    os.setgroups([])
    os.setegid(65534)
    os.seteuid(65534)
try:
    open_database(sys.argv[1])
except UnavailableError as error:
    print(error)
"""


@pytest.mark.parametrize("existing", [True, False])
def test_a_directory_without_the_right_to_write_is_a_sentence(*, existing: bool) -> None:
    # Not below tmp_path, which only its owner may enter.
    with TemporaryDirectory() as directory:
        path = Path(directory) / "ledger.db"
        if existing:
            kept(path).chmod(0o444)
        path.parent.chmod(0o555)
        argv = [sys.executable, "-c", WITHOUT_RIGHTS, url_of(path)]
        said = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
        path.parent.chmod(0o755)
    assert f"{path} cannot be opened for writing" in said
    assert "give Mulligan write access to it and its directory." in said


@pytest.mark.parametrize(
    "url",
    [
        "sqlite://",
        "sqlite:///:memory:",
        "sqlite:///file:x?mode=memory&uri=true",
        "sqlite:////tmp/x.db?timeout=1",
        "sqlite+aiosqlite:////tmp/x.db",
        "mysql://bot:hunter2@db/mulligan",
        "postgresql+asyncpg://bot:hunter2@db/mulligan",
        "bot:hunter2@db",
        "",
    ],
)
def test_a_url_that_cannot_be_used_is_refused_without_repeating_it(url: str) -> None:
    error = refusal(url)
    assert isinstance(error, ConfigError)
    assert "hunter2" not in str(error)
    assert "sqlite:////PATH" in str(error)


@pytest.mark.parametrize(
    ("url", "directory"),
    [
        ("sqlite:////var/lib/mulligan/mulligan.db", Path("/var/lib/mulligan")),
        ("sqlite:///~/state/mulligan.db", Path.home() / "state"),
        ("sqlite:///state/mulligan.db", Path.cwd() / "state"),
    ],
)
def test_the_state_directory_is_where_the_database_is(url: str, directory: Path) -> None:
    assert state_directory(url) == directory


def test_a_ledger_that_was_moved_away_takes_no_more_records(tmp_path: Path) -> None:
    """They would be lost with the file that only this process still knows."""
    path, elsewhere = tmp_path / "mulligan.db", tmp_path / "kept.db"
    with open_database(f"sqlite:///{path}") as database:
        with database.write():
            pass
        path.rename(elsewhere)
        for _ in range(2):
            with pytest.raises(UnavailableError, match="was moved or deleted"), database.write():
                pass
            path.touch()  # another program's
        elsewhere.replace(path)
        with database.write():
            pass
