"""What setup commands left is kept for all issues, whole or not at all (SETUP-2)."""

import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest

from mulligan.sandbox.set_up_cache import SIZE, SetUpCache

PATH = {"PATH": os.environ["PATH"]}
KIB = 1024


def cache_of(tmp_path: Path, kib: int = 1000) -> SetUpCache:
    return SetUpCache(tmp_path / "cache", kib * KIB, PATH)


def left(tmp_path: Path, name: str, kib: int = 100) -> Path:
    """Make what setup commands left, of about that size."""
    made = tmp_path / name
    (made / "tree").mkdir(parents=True)
    (made / "tree" / "file").write_bytes(name.encode() * (kib * KIB // len(name)))
    return made


def add(cache: SetUpCache, key: str, made: Path) -> Path:
    """Add an entry that nobody uses afterwards."""
    with ExitStack() as uses:
        return cache.add(key, made, uses)


def is_there(cache: SetUpCache, key: str) -> bool:
    with ExitStack() as uses:
        return cache.find(key, uses) is not None


def test_an_entry_is_what_was_left(tmp_path: Path) -> None:
    cache = cache_of(tmp_path)
    assert not is_there(cache, "20260101-a")
    made = left(tmp_path, "made")
    entry = add(cache, "20260101-a", made)
    assert not made.exists()
    assert (entry / "tree" / "file").read_bytes().startswith(b"made")
    with ExitStack() as uses:
        assert cache.find("20260101-a", uses) == entry


def test_what_was_left_on_another_disk_is_copied(tmp_path: Path) -> None:
    disks = [path for path in map(Path, ("/dev/shm", "/var/tmp")) if path.is_dir()]  # noqa: S108
    other = [path for path in disks if path.stat().st_dev != tmp_path.stat().st_dev]
    if not other:
        pytest.skip("This machine has one disk.")
    cache = cache_of(tmp_path)
    with tempfile.TemporaryDirectory(dir=other[0]) as directory:
        entry = add(cache, "20260101-a", left(Path(directory), "made"))
    assert (entry / "tree" / "file").read_bytes().startswith(b"made")
    assert is_there(cache, "20260101-a")


def test_of_two_that_make_one_entry_each_has_what_it_made_or_the_others(tmp_path: Path) -> None:
    cache = cache_of(tmp_path)
    first = add(cache, "20260101-a", left(tmp_path, "one"))
    late = left(tmp_path, "two")
    assert add(cache, "20260101-a", late) == late
    assert (first / "tree" / "file").read_bytes().startswith(b"one")


def test_what_is_larger_than_the_cache_is_used_once(tmp_path: Path) -> None:
    cache = cache_of(tmp_path, kib=50)
    made = left(tmp_path, "made")
    assert add(cache, "20260101-a", made) == made
    assert not is_there(cache, "20260101-a")


def test_what_was_not_used_for_the_longest_time_goes_first(tmp_path: Path) -> None:
    cache = cache_of(tmp_path, kib=380)
    for key in "abc":
        add(cache, f"20260101-{key}", left(tmp_path, key))
    assert is_there(cache, "20260101-a")
    add(cache, "20260101-d", left(tmp_path, "d"))
    assert [is_there(cache, f"20260101-{key}") for key in "abcd"] == [True, False, True, True]


def test_entries_of_another_day_go_with_the_next_one(tmp_path: Path) -> None:
    cache = cache_of(tmp_path)
    add(cache, "20260101-a", left(tmp_path, "a"))
    add(cache, "20260102-a", left(tmp_path, "b"))
    assert [path.name for path in cache.root.glob("2*")] == ["20260102-a"]


def test_an_entry_in_use_stays(tmp_path: Path) -> None:
    cache = cache_of(tmp_path, kib=150)
    with ExitStack() as uses:
        entry = cache.add("20260101-a", left(tmp_path, "a"), uses)
        add(cache, "20260102-b", left(tmp_path, "b"))
        assert (entry / "tree" / "file").exists()
    add(cache, "20260102-c", left(tmp_path, "c"))
    assert not entry.exists()


@pytest.mark.parametrize("program", ["du", "sync", "rm"])
def test_a_kill_leaves_no_half_entry(tmp_path: Path, program: str) -> None:
    add(cache_of(tmp_path), "20260101-old", left(tmp_path, "old"))
    (tmp_path / "bin").mkdir()
    killer = tmp_path / "bin" / program
    killer.write_text('#!/bin/sh\nkill -9 "$(cat "$0.pid")"; sleep 5\n')
    killer.chmod(0o755)
    line = (
        "import os, sys, pathlib\nfrom contextlib import ExitStack\n"
        "from mulligan.sandbox.set_up_cache import SetUpCache\n"
        "root, path = pathlib.Path(sys.argv[1]), {'PATH': sys.argv[2]}\n"
        "pathlib.Path(sys.argv[3]).write_text(str(os.getpid()))\n"
        "SetUpCache(root / 'cache', 10**6, path).add('20260102-a', root / 'new', ExitStack())\n"
    )
    new = left(tmp_path, "new")
    path = f"{killer.parent}:{os.environ['PATH']}"
    argv = [sys.executable, "-c", line, str(tmp_path), path, f"{killer}.pid"]
    done = subprocess.run(argv, env={"PATH": os.environ["PATH"]}, timeout=20, check=False)
    assert done.returncode == -9
    for entry in cache_of(tmp_path).root.glob("2*"):
        assert (entry / SIZE).exists()
        assert (entry / "tree" / "file").stat().st_size > 0
    if new.exists():
        add(cache_of(tmp_path), "20260102-a", new)
    assert sorted(each.name for each in cache_of(tmp_path).root.iterdir()) == ["20260102-a", "lock"]
