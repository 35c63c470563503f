"""One Mulligan at a time works on a state directory."""

import fcntl
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mulligan.domain.errors import UnavailableError, UsageError
from mulligan.storage.database import open_database
from mulligan.storage.state_directory import LOCK_FILE, holder, locked, make_private

SINCE = datetime(2025, 3, 1, 12, 0, tzinfo=UTC)
HOLD = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from mulligan.storage.state_directory import locked
with locked(Path(sys.argv[1]), what="run", since=datetime(2025, 3, 1, 9, 30, tzinfo=UTC)):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def held_elsewhere(directory: Path) -> Generator[subprocess.Popen[str]]:
    """Have another process hold the lock; it is killed at the end, if it has not ended by then."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(directory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def test_the_second_is_refused_and_told_of_the_first(tmp_path: Path) -> None:
    with held_elsewhere(tmp_path) as first:
        expected = (
            f"`mulligan run` (process {first.pid}, since 2025-03-01 09:30:00 UTC) already uses"
            f" {tmp_path}; wait for it or stop it."
        )
        with pytest.raises(UsageError) as refused, locked(tmp_path, what="once", since=SINCE):
            pass
        assert str(refused.value) == expected


def test_a_process_that_is_killed_holds_nothing(tmp_path: Path) -> None:
    with held_elsewhere(tmp_path) as first:
        first.kill()
        first.wait()
        with locked(tmp_path, what="once", since=SINCE):
            written = (tmp_path / LOCK_FILE).read_text()
        assert f'"pid": {os.getpid()}' in written
        assert str(first.pid) not in written


def test_the_lock_is_free_again_afterwards_and_names_nobody(tmp_path: Path) -> None:
    with locked(tmp_path, what="once", since=SINCE):
        pass
    assert (tmp_path / LOCK_FILE).read_text() == ""
    with locked(tmp_path, what="work", since=SINCE):
        assert '"command": "work"' in (tmp_path / LOCK_FILE).read_text()


def test_it_is_freed_when_the_work_fails(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), locked(tmp_path, what="once", since=SINCE):
        raise RuntimeError
    with locked(tmp_path, what="once", since=SINCE):
        pass


def test_a_program_that_is_left_running_does_not_keep_it(tmp_path: Path) -> None:
    with locked(tmp_path, what="once", since=SINCE):
        orphan = subprocess.Popen(["sleep", "60"], close_fds=False)
    try:
        with locked(tmp_path, what="once", since=SINCE):
            assert orphan.poll() is None
    finally:
        orphan.kill()
        orphan.wait()


def test_two_directories_do_not_get_in_each_others_way(tmp_path: Path) -> None:
    with (
        locked(tmp_path / "a", what="once", since=SINCE),
        locked(tmp_path / "b", what="once", since=SINCE),
    ):
        assert (tmp_path / "b" / LOCK_FILE).exists()


@pytest.mark.parametrize("said", ["", "not JSON", "[]", '{"command": "run"}'])
def test_a_holder_that_has_not_said_who_it_is_still_holds_it(tmp_path: Path, said: str) -> None:
    with locked(tmp_path, what="run", since=SINCE):
        (tmp_path / LOCK_FILE).write_text(said)
        with (
            pytest.raises(UsageError, match=r"^Another Mulligan already uses"),
            locked(tmp_path, what="once", since=SINCE),
        ):
            pass


def test_a_place_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file")
    with (
        pytest.raises(UnavailableError, match=r"mulligan\.lock cannot be used"),
        locked(tmp_path / "state", what="once", since=SINCE),
    ):
        pass


def test_whoever_is_at_work_can_be_asked_for(tmp_path: Path) -> None:
    assert holder(tmp_path) is None
    with held_elsewhere(tmp_path) as first:
        named = f"`mulligan run` (process {first.pid}, since 2025-03-01 09:30:00 UTC)"
        assert holder(tmp_path) == named
        first.kill()
        first.wait()
        assert (tmp_path / LOCK_FILE).read_text() != ""
        assert holder(tmp_path) is None
    with locked(tmp_path, what="once", since=SINCE):
        assert "`mulligan once`" in (holder(tmp_path) or "")
    assert holder(tmp_path) is None


def test_asking_makes_nothing_and_says_what_is_in_its_way(tmp_path: Path) -> None:
    assert holder(tmp_path / "new") is None
    assert list(tmp_path.iterdir()) == []
    (tmp_path / LOCK_FILE).mkdir()
    with pytest.raises(UnavailableError, match="check its permissions"):
        holder(tmp_path)


def test_a_glance_at_the_lock_keeps_nobody_from_it(tmp_path: Path) -> None:
    place = tmp_path / LOCK_FILE
    place.write_text("left by one that was killed")
    with place.open() as glance:
        fcntl.flock(glance, fcntl.LOCK_SH)
        threading.Timer(0.01, fcntl.flock, (glance, fcntl.LOCK_UN)).start()
        with locked(tmp_path, what="once", since=SINCE):
            pass


def test_a_directory_and_a_ledger_are_for_their_owner_alone(tmp_path: Path) -> None:
    made, there = tmp_path / "new" / "work", tmp_path / "there"
    there.mkdir(mode=0o755)
    make_private(made)
    make_private(there)
    assert [stat.S_IMODE(each.stat().st_mode) for each in (made, there)] == [0o700, 0o700]
    ledger = there / "mulligan.db"
    ledger.touch(mode=0o644)
    with open_database(f"sqlite:///{ledger}") as database, database.write():
        files = sorted(there.iterdir())
        assert [stat.S_IMODE(file.stat().st_mode) for file in files] == [0o600] * len(files)
        assert len(files) > 1
