"""The HOME of a command: a copy of what set-up left, whatever that is, and nothing of another."""

import os
import socket
import stat
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from mulligan.domain.errors import UnavailableError
from mulligan.sandbox.cancellation import SHUTDOWN
from mulligan.sandbox.home import Homes, clear, keep

PATH = {"PATH": os.environ["PATH"]}


@pytest.fixture
def homes(tmp_path: Path) -> Homes:
    return Homes(tmp_path / "private", PATH)


def shell(line: str, home: Path) -> None:
    subprocess.run(["bash", "-ec", line], cwd=home, env=PATH, check=True, timeout=240)


def with_what_is_left(homes: Homes) -> Homes:
    (homes.private / "tree").mkdir()
    return replace(homes, left=keep(homes.private, homes.private / "tree", PATH))


def test_a_copy_is_what_set_up_left_down_to_rights_links_and_times(homes: Homes) -> None:
    with homes.for_set_up() as home:
        shell(f"mkdir -p cache/.go; echo x > cache/.go/mod; ln -s {home}/cache here", home)
        shell("ln -s /etc/passwd there; ln -s nowhere gone; chmod 555 cache/.go", home)
        shell("echo 'echo hi' > tool; chmod 750 tool; touch -d 2001-02-03 tool", home)
        told = home / "tool"
        time, mode = told.stat().st_mtime_ns, told.stat().st_mode
    homes = with_what_is_left(homes)
    for _ in range(2):
        with homes.for_command() as copy:
            assert copy == home
            assert (copy / "here" / ".go" / "mod").read_text() == "x\n"
            assert (copy / "there").readlink() == Path("/etc/passwd")
            assert (copy / "gone").is_symlink()
            assert stat.S_IMODE((copy / "cache" / ".go").stat().st_mode) == 0o555
            assert (told.stat().st_mtime_ns, told.stat().st_mode) == (time, mode)
            shell("chmod -R u+w .; echo y > cache/.go/mod; echo z >> tool; rm gone", copy)
        assert not copy.exists()


def test_pipes_and_sockets_are_copied_and_never_read(homes: Homes) -> None:
    with homes.for_set_up() as home, socket.socket(socket.AF_UNIX) as listening:
        os.mkfifo(home / "pipe")
        listening.bind(str(home / "s"))
    homes = with_what_is_left(homes)
    with homes.for_command() as copy:
        assert stat.S_ISFIFO((copy / "pipe").lstat().st_mode)
        assert stat.S_ISSOCK((copy / "s").lstat().st_mode)


def test_a_file_of_a_copy_is_the_same_file_as_none_of_another(homes: Homes) -> None:
    with homes.for_set_up() as home:
        shell("echo x > one; ln one two", home)
    homes = with_what_is_left(homes)
    with homes.for_command() as copy:
        assert (copy / "one").samefile(copy / "two")
        shell("echo y > one", copy)
    with homes.for_command() as copy:
        assert (copy / "two").read_text() == "x\n"


def test_what_set_up_closed_is_copied_all_the_same(homes: Homes) -> None:
    with homes.for_set_up() as home:
        shell("mkdir -p a/b; echo x > a/b/c; chmod 0 a/b/c; chmod 0 a/b; chmod 0 a", home)
    homes = with_what_is_left(homes)
    with homes.for_command() as copy:
        assert (copy / "a" / "b" / "c").read_text() == "x\n"


@pytest.mark.parametrize(
    "line",
    [
        "mkdir -p a/b; echo x > a/b/c; chmod 0 a/b a .",
        "chmod 500 .",
        "rm -rf $PWD; ln -s / $PWD",
        "rm -rf $PWD; echo x > $PWD",
        "rm -rf $PWD; mkfifo $PWD",
        "rm -rf $PWD",
        "for i in {1..10}; do d=$(printf 'dddddddddd/%.0s' {1..40}); mkdir -p $d; cd $d; done",
        "mkdir -- -rf; touch -- --help '*' $'a\\nb'",
    ],
)
def test_nothing_that_a_command_makes_of_its_home_is_there_for_the_next(
    homes: Homes, line: str
) -> None:
    with homes.for_set_up() as home:
        shell("echo x > made", home)
    homes = with_what_is_left(homes)
    for _ in range(2):
        with homes.for_command() as copy:
            assert [each.name for each in copy.iterdir()] == ["made"]
            shell(line, copy)
        assert not os.path.lexists(copy)


def test_a_link_in_place_of_a_home_changes_no_rights_of_what_it_leads_to(tmp_path: Path) -> None:
    """An agent can write to the directory that its HOME is in."""
    own, other = tmp_path / "own", tmp_path / "other"
    own.mkdir()
    other.mkdir()
    (other / "key").write_text("x")
    (other / "key").chmod(0o400)
    shell(f"ln -s {other} home; chmod 500 .", own)
    clear(own / "home", PATH)
    assert not os.path.lexists(own / "home")
    assert stat.S_IMODE((other / "key").stat().st_mode) == 0o400


def test_a_home_goes_when_mulligan_is_told_to_stop_as_well(homes: Homes) -> None:
    try:
        with homes.for_command() as copy:
            shell("echo x > left", copy)
            SHUTDOWN.set()
    finally:
        SHUTDOWN.clear()
    assert not copy.exists()


@pytest.mark.parametrize("program", ["cp", "rm"])
def test_no_command_begins_where_a_home_cannot_be_made_anew(
    tmp_path: Path, homes: Homes, program: str
) -> None:
    broken = tmp_path / "bin" / program
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\necho 'no room on the disk'; exit 1\n")
    broken.chmod(0o755)
    with homes.for_set_up() as home:
        shell("echo x > made", home)
    homes = with_what_is_left(homes)
    without = replace(homes, environment={"PATH": f"{broken.parent}:{os.environ['PATH']}"})
    if program == "rm":
        with without.for_command() as copy:
            shell("echo x > left", copy)
        assert (copy / "left").exists()
    with pytest.raises(UnavailableError, match="no room on the disk"), without.for_command():
        raise AssertionError
