"""A lock holds between threads and processes, gives up in time, and heeds a shutdown."""

import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest

from mulligan.domain.errors import ShutdownError, UnavailableError
from mulligan.git.worktrees.files import locked
from mulligan.sandbox.cancellation import SHUTDOWN

HOLD = """
import sys, time
from datetime import timedelta
from pathlib import Path
from mulligan.git.worktrees.files import locked
with locked(Path(sys.argv[1]), timedelta(), "it"):
    print("held", flush=True)
    time.sleep(60)
"""
SHORT = timedelta(milliseconds=50)


def test_another_process_is_waited_for_until_it_dies(tmp_path: Path) -> None:
    place = tmp_path / "deep" / "lock"
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(place)], stdout=subprocess.PIPE
    ) as holder:
        try:
            assert holder.stdout
            assert holder.stdout.readline() == b"held\n"
            with pytest.raises(UnavailableError, match="busy with it"), locked(place, SHORT, "it"):
                pass
        finally:
            holder.kill()
    with locked(place, timedelta(seconds=5), "it"):
        pass


def test_a_lock_is_free_again_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), locked(tmp_path / "lock", SHORT, "it"):
        raise ZeroDivisionError
    with locked(tmp_path / "lock", SHORT, "it"):
        pass


def test_nobody_waits_for_a_lock_during_a_shutdown(tmp_path: Path) -> None:
    started = time.monotonic()
    with locked(tmp_path / "lock", SHORT, "it"):
        SHUTDOWN.set()
        try:
            with pytest.raises(ShutdownError), locked(tmp_path / "lock", timedelta(hours=1), "it"):
                pass
        finally:
            SHUTDOWN.clear()
    assert time.monotonic() - started < 60
