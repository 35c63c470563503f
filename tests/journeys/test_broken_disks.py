"""A full or read-only disk, a newer or damaged ledger: one sentence each, and nothing is lost."""

import os
import shutil
import subprocess
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import pytest

from mulligan.domain.host import AS_ROOT
from mulligan.domain.issue import IssueRef
from mulligan.domain.outcome import Outcome
from mulligan.storage.database import open_database
from mulligan.storage.ledger import SqlLedger
from world.ledgers import TickingClock, url_of
from world.place import BIN, MulliganInstallation, mulligan_installation

UNSHARE = ("unshare", "-m") if os.geteuid() == 0 else ("unshare", "-Urm")
CAN_MOUNT = (
    shutil.which("unshare") is not None
    and not subprocess.run(
        [*UNSHARE, "mount", "-t", "tmpfs", "tmpfs", "/mnt"], check=False, capture_output=True
    ).returncode
)
pytestmark = pytest.mark.skipif(not CAN_MOUNT, reason="no disk can be mounted here")

SMALL_DISK = 'mount -t tmpfs -o size=3m tmpfs "$0" && cp -a "$1"/. "$0"\n'
FULL = SMALL_DISK + 'dd if=/dev/zero of="$0/fill" bs=4k 2>/dev/null\n'
NEW_AND_FULL = """mount -t tmpfs -o size=64k tmpfs "$0"
dd if=/dev/zero of="$0/fill" bs=4k 2>/dev/null
"""
READ_ONLY = SMALL_DISK + 'mount -o remount,ro "$0"\n'
NEWER = """python3 -c "import sqlite3; \
    sqlite3.connect('$0/mulligan.db').executescript('UPDATE mulligan_version SET version_num=9999')"
"""
DAMAGED = """rm -f "$0"/mulligan.db-*
dd if=/dev/urandom of="$0/mulligan.db" bs=4k seek=1 count=60 conv=notrunc 2>/dev/null
"""
NO_LEDGER = 'rm -f "$0"/mulligan.db-*; echo "This is a note, not a ledger." > "$0/mulligan.db"\n'

FAULTS = {
    "full": (FULL, 1, "free some space"),
    "new and full": (NEW_AND_FULL, 1, "free some space"),
    "read-only": (READ_ONLY, 1, "Read-only file system|write access"),
    "newer": (NEWER, 2, "a newer Mulligan"),
    "damaged": (DAMAGED, 2, "damaged"),
    "no ledger": (NO_LEDGER, 2, "not a database"),
}
COMMANDS = ("once", "run", "work {ref}", "status", "retry {ref}", "state check")


@dataclass
class Disk:
    """An installation with one issue in review, whose state directory lies on a disk of its own."""

    here: MulliganInstallation
    ref: IssueRef
    directory: Path
    kept: Path

    def run(self, fault: str, command: str) -> subprocess.CompletedProcess[str]:
        """Run a command on the broken disk; the disk is as before when it has ended."""
        shutil.rmtree(self.directory)
        shutil.copytree(self.kept, self.directory)
        mulligan = f"exec mulligan {command} --config mulligan.yml"
        variables = {
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "HOME": str(self.here.directory),
            **self.here.environment,
        }
        return subprocess.run(
            [*UNSHARE, "sh", "-c", f"{fault}{mulligan}", self.directory, self.kept],
            check=False,
            capture_output=True,
            text=True,
            env=variables,
            cwd=self.here.directory,
        )


@pytest.fixture
def disk(tmp_path: Path) -> Generator[Disk]:
    directory, kept = tmp_path / "state", tmp_path / "kept"
    directory.mkdir()
    with mulligan_installation(tmp_path, {"notes.txt": "one\n"}) as here:
        here.configure(state={"url": url_of(directory / "mulligan.db")})
        here.agent("pathlib.Path('notes.txt').write_text('two')")
        ref = here.issue()
        assert here.run("once").returncode == 0
        shutil.copytree(directory, kept)
        yield Disk(here, ref, directory, kept)


def test_a_full_disk_is_one_sentence_and_changes_nothing(disk: Disk) -> None:
    assert_one_sentence(disk, "full", "once")


@pytest.mark.deep
@pytest.mark.timeout(600)
@pytest.mark.parametrize("fault", FAULTS)
def test_every_command_says_that_a_disk_is_broken(disk: Disk, fault: str) -> None:
    there_is_one = fault != "new and full"
    for command in COMMANDS if there_is_one else COMMANDS[:-1]:
        assert_one_sentence(disk, fault, command)


def assert_one_sentence(disk: Disk, fault: str, command: str) -> None:
    break_it, code, sentence = FAULTS[fault]
    written = len(disk.here.world.requests)
    done = disk.run(break_it, command.format(ref=disk.ref))
    said = [line for line in done.stderr.splitlines() if AS_ROOT not in line]
    assert (done.returncode, len(said)) == (code, 1), f"{fault}, {command}: {done.stderr}"
    assert any(each in said[0] for each in sentence.split("|")), said
    changes = [one for one in disk.here.world.requests[written:] if one.method != "GET"]
    assert changes == []
    # The disk is whole again: nothing was lost.
    shutil.rmtree(disk.directory)
    shutil.copytree(disk.kept, disk.directory)
    with open_database(url_of(disk.directory / "mulligan.db")) as database:
        (attempt,) = SqlLedger(database, TickingClock()).history(disk.ref)
    assert attempt.outcome is Outcome.SUCCEEDED
