"""A backup is whole, a fault is found, and a restoration loses nothing of what it replaces."""

import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from stat import S_IMODE

import pytest
from sqlalchemy import column, table, update

from mulligan.domain.errors import ConfigError, MulliganError, UnavailableError, UsageError
from mulligan.domain.events import IssueSeen
from mulligan.storage import VERSION_TABLE
from mulligan.storage.backup import (
    check_ledger,
    file_of,
    forget_issues,
    opened_backup,
    restoring,
    write_backup,
)
from mulligan.storage.database import open_database
from mulligan.storage.ledger import SqlLedger
from mulligan.storage.sightings import installation_id
from world.ledgers import ISSUES, TickingClock, migrated, open_ledger_at, url_of

REF = ISSUES[0]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    migrated(tmp_path / "mulligan.db")
    return tmp_path / "mulligan.db"


def write(place: Path, *titles: str) -> None:
    with open_ledger_at(place) as ledger:
        for title in titles:
            ledger.append(REF, IssueSeen(title=title))


def titles(place: Path) -> list[str]:
    with open_ledger_at(place) as ledger:
        return [each.event.title for each in ledger.events() if isinstance(each.event, IssueSeen)]


def faults(place: Path) -> tuple[str, ...]:
    with opened_backup(place) as database:
        return check_ledger(database).faults


def test_a_backup_that_is_made_at_work_is_whole(place: Path, tmp_path: Path) -> None:
    written, done = list[str](), threading.Event()

    def work() -> None:
        with open_ledger_at(place) as ledger:
            while not done.is_set():
                ledger.append(REF, IssueSeen(title=f"Title {len(written)}"))
                written.append(f"Title {len(written)}")

    thread = threading.Thread(target=work)
    thread.start()
    backups = [tmp_path / f"backup-{number}.db" for number in range(5)]
    try:
        for each in backups:
            write_backup(place, each)
    finally:
        done.set()
        thread.join()
    for each in backups:
        assert faults(each) == ()
        found = titles(each)
        assert found == written[: len(found)]
        assert S_IMODE(each.stat().st_mode) == 0o600
    assert not [each.name for each in tmp_path.iterdir() if each.name.startswith(".")]


def test_what_the_journal_holds_is_in_the_backup(place: Path, tmp_path: Path) -> None:
    with open_database(url_of(place)) as database:
        SqlLedger(database, TickingClock()).append(REF, IssueSeen(title="In the journal"))
        write_backup(place, tmp_path / "backup.db")
    assert titles(tmp_path / "backup.db") == ["In the journal"]


def change(sql: str) -> Callable[[Path], None]:
    """Change a ledger behind the back of everything that protects it."""

    def work(place: Path) -> None:
        with closing(sqlite3.connect(place)) as connection:
            rules = "SELECT name FROM sqlite_master WHERE type = 'trigger'"
            for (name,) in connection.execute(rules).fetchall():
                connection.execute(f"DROP TRIGGER {name}")
            connection.execute(sql)
            connection.commit()

    return work


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        ("UPDATE events SET body = replace(body, 'One', 'Two')", "Event 1 of the ledger, of octo"),
        ("UPDATE events SET number = 2", "is damaged; restore a backup."),
        ("UPDATE events SET body = 'x', checksum = NULL", "cannot be read by this Mulligan"),
        ("DELETE FROM events", "The status of octo/one#1 does not follow from its events."),
        ("DELETE FROM issues", "The status of octo/one#1 does not follow from its events."),
        ("UPDATE issues SET status = replace(status, 'One', 'Two')", "does not follow"),
    ],
)
def test_a_change_that_mulligan_did_not_make_is_found(place: Path, harm: str, said: str) -> None:
    write(place, "One")
    assert faults(place) == ()
    change(harm)(place)
    found = faults(place)
    assert found
    assert said in found[0]


def test_a_damaged_event_is_a_sentence_for_who_reads_it(place: Path) -> None:
    write(place, "One")
    change("UPDATE events SET body = replace(body, 'One', 'Two')")(place)
    with pytest.raises(ConfigError, match="Event 1 of the ledger, of octo/one#1, is damaged; "):
        titles(place)


def test_events_of_earlier_versions_have_no_checksum_and_are_counted(place: Path) -> None:
    write(place, "One", "Two")
    change("UPDATE events SET checksum = NULL WHERE seq = 1")(place)
    with opened_backup(place) as database:
        found = check_ledger(database)
    assert (found.issues, found.events, found.unsummed, found.faults) == (1, 2, 1, ())


def newer(place: Path) -> None:
    with open_ledger_at(place) as ledger, ledger.database.write() as connection:
        connection.execute(update(table(VERSION_TABLE, column("version_num"))).values(["9999"]))


def cut(place: Path) -> None:
    text = place.read_bytes()
    place.write_bytes(text[: len(text) // 2])


def no_database(place: Path) -> None:
    place.write_text("no database " * 1000)


def foreign(place: Path) -> None:
    place.unlink()
    change("CREATE TABLE notes (text)")(place)


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (newer, "written by a newer Mulligan; use that version or a later one."),
        (cut, "is damaged; restore a backup."),
        (no_database, "is not a database"),
        (foreign, "is not a ledger of Mulligan; name another file."),
        (Path.unlink, "does not exist; name the file of a ledger."),
        (change("UPDATE events SET body = replace(body, 'Old', 'New')"), "Use another backup."),
    ],
)
def test_a_backup_that_cannot_be_used_changes_nothing(
    place: Path, tmp_path: Path, harm: Callable[[Path], None], said: str
) -> None:
    backup = tmp_path / "backup.db"
    write(place, "Old")
    write_backup(place, backup)
    write(place, "New")
    harm(backup)
    before = sorted(each.name for each in tmp_path.iterdir())
    with pytest.raises(MulliganError) as refused, restoring(backup, place, tmp_path / "aside"):
        pytest.fail("It was restored.")
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
    assert sorted(each.name for each in tmp_path.iterdir()) == before
    assert titles(place) == ["Old", "New"]


def test_a_restoration_keeps_what_it_replaces(place: Path, tmp_path: Path) -> None:
    backup, aside = tmp_path / "backup.db", tmp_path / "aside.db"
    write(place, "Old")
    with open_database(url_of(place)) as database:
        first = installation_id(database)
    write_backup(place, backup)
    write(place, "New")
    before = backup.read_bytes()
    with restoring(backup, place, aside) as (database, found):
        assert (found.issues, found.events) == (1, 1)
        assert SqlLedger(database, TickingClock()).status(REF).text.title == "Old"
    assert (titles(place), titles(aside)) == (["Old"], ["Old", "New"])
    assert backup.read_bytes() == before
    with open_database(url_of(place)) as database:
        assert installation_id(database) != first


def test_a_damaged_ledger_is_replaced_and_kept_as_it_was(place: Path, tmp_path: Path) -> None:
    backup, aside = tmp_path / "backup.db", tmp_path / "aside.db"
    write(place, "Old")
    write_backup(place, backup)
    no_database(place)
    damaged = place.read_bytes()
    with restoring(backup, place, aside):
        pass
    assert (titles(place), aside.read_bytes()) == (["Old"], damaged)


def test_an_error_before_the_end_restores_nothing(place: Path, tmp_path: Path) -> None:
    backup = tmp_path / "backup.db"
    write(place, "Old")
    write_backup(place, backup)
    write(place, "New")
    with pytest.raises(UnavailableError), restoring(backup, place, tmp_path / "aside"):
        raise UnavailableError
    assert titles(place) == ["Old", "New"]
    assert sorted(each.name for each in tmp_path.iterdir()) == ["backup.db", "mulligan.db"]


def test_what_is_forgotten_leaves_the_rest_and_reads_comments_again(place: Path) -> None:
    with open_ledger_at(place) as ledger:
        for ref in ISSUES:
            ledger.append(ref, IssueSeen(title=str(ref)))
        forget_issues(ledger.database, [REF])
        assert [each.issue for each in ledger.statuses()] == [*ISSUES[1:]]
        assert check_ledger(ledger.database).faults == ()


def test_a_backup_replaces_no_file_and_needs_a_file(place: Path, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(UsageError, match="taken exists"):
        write_backup(place, tmp_path / "taken")
    with pytest.raises(UnavailableError, match="no/backup could not be"):
        write_backup(place, tmp_path / "no" / "backup")
    with pytest.raises(UsageError, match="pg_dump"):
        file_of("postgresql://ada@localhost/mulligan")
