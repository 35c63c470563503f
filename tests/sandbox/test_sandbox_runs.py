"""Commands really run in a sandbox: what they find there, and how their end is told."""

import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

import pytest

from mulligan.domain.attempt import TimeLimit
from mulligan.domain.errors import MisconfiguredError, UnavailableError
from mulligan.domain.host import Network
from mulligan.sandbox.client_configuration import client_configuration
from mulligan.sandbox.process import Command, Finished
from mulligan.sandbox.sandbox import CommandAccess
from world.confined import sandbox
from world.processes import end_launcher, processes_in, wait_until

MULLIGAN = """
import os, sys
from datetime import timedelta
from pathlib import Path
from mulligan.config.operator import SandboxSettings
from mulligan.sandbox.process import Command
from mulligan.sandbox.probe import probe_sandbox
from mulligan.sandbox.sandbox import CommandAccess
here = Path(sys.argv[1])
line = "echo > up; setsid sleep 30 & sleep 30"
run = Command(("/bin/sh", "-c", line), here, {"PATH": os.defpath}, timedelta(minutes=1))
probe_sandbox(SandboxSettings(), os.environ).sandbox.run(run, CommandAccess(write=(here,)))
"""


def command(line: str, here: Path, stall: float | None = None) -> Command:
    return Command(
        argv=("/bin/sh", "-c", line),
        directory=here,
        environment={"PATH": os.environ["PATH"], "HOME": str(here)},
        timeout=timedelta(seconds=20),
        stall=None if stall is None else timedelta(seconds=stall),
    )


def run_in(
    line: str, here: Path, network: Network = Network.NONE, stall: float | None = None
) -> Finished:
    return sandbox().run(command(line, here, stall), CommandAccess(write=(here,), network=network))


def test_worktree_and_home_are_at_the_same_paths_for_all(tmp_path: Path) -> None:
    for name in ("one", "two"):
        tree, home, git = (tmp_path / name / each for each in ("tree", "home", "tree/.git"))
        tree.mkdir(parents=True)
        home.mkdir()
        git.write_text("gitdir: there\n")
        access = CommandAccess(read=(git,), worktree=tree, home=home)
        line = f"pwd; echo $HOME; cat .git; echo {name} > made; echo x > ~/made; echo no > .git"
        said = sandbox().run(command(line, tree), access).text.splitlines()
        assert said[:3] == ["/mulligan/worktree", "/mulligan/home", "gitdir: there"]
        assert (tree / "made").read_text() == f"{name}\n"
        assert (home / "made").exists()
        assert git.read_text() == "gitdir: there\n"


def test_it_may_write_where_it_works_and_nowhere_else(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    line = "for d in . /tmp /dev/shm / /usr /dev /run /etc; do (: > $d/new) 2>&- && echo $d; done"
    assert run_in(line, tmp_path / "here").text == ".\n/tmp\n/dev/shm\n"
    assert (tmp_path / "here" / "new").exists()
    assert [each.name for each in tmp_path.iterdir()] == ["here"]


def test_it_has_a_tmp_of_its_own_that_is_empty() -> None:
    with TemporaryDirectory(dir="/tmp") as place:
        run_in("echo > /tmp/left; echo > /var/tmp/too", Path(place))
        # The interpreter is shown too, and may be below /tmp.
        shown = [Path(each) for each in (place, sys.prefix, sys.base_prefix)]
        own = {each.parts[2] for each in shown if each.parts[1] == "tmp"}
        assert {*run_in("ls /tmp", Path(place)).text.split()} <= own


def test_it_sees_its_own_processes_only(tmp_path: Path) -> None:
    assert run_in("ls /proc | grep -c '^[0-9]*$'", tmp_path).text.strip() in {"3", "4"}


def test_it_has_no_descriptor_but_the_usual_three(tmp_path: Path) -> None:
    assert run_in("ls /proc/$$/fd", tmp_path).text.split() == ["0", "1", "2"]


@pytest.mark.parametrize(("network", "count"), [(Network.NONE, 1), (Network.OPEN, None)])
def test_its_network_is_empty_unless_it_is_open(
    network: Network, count: int | None, tmp_path: Path
) -> None:
    found = run_in("cat /proc/net/dev", tmp_path, network).text.count(":")
    expected = Path("/proc/net/dev").read_text().count(":")
    assert found == (count or expected)


@pytest.mark.parametrize(("line", "code"), [("exit 7", 7), ("kill -9 $$", 137), ("exit 1", 1)])
def test_it_ends_as_a_shell_would_say(line: str, code: int, tmp_path: Path) -> None:
    assert run_in(line, tmp_path).exit_code == code


def test_it_hears_that_it_is_to_end(tmp_path: Path) -> None:
    line = "trap 'echo bye; exit 5' TERM; echo hi; sleep 9 & wait"
    ended = run_in(line, tmp_path, stall=0.5)
    assert (ended.stopped_by, ended.exit_code, ended.text) == (
        TimeLimit.STALL_TIMEOUT,
        5,
        "hi\nbye\n",
    )


def test_who_does_not_listen_is_killed(tmp_path: Path) -> None:
    line = "trap '' TERM; setsid sh -c 'trap \"\" TERM; sleep 30' & sleep 30"
    ended = sandbox().run(
        Command(
            argv=("/bin/sh", "-c", line),
            directory=tmp_path,
            environment={"PATH": os.defpath},
            timeout=timedelta(seconds=0.5),
            grace=timedelta(seconds=0.5),
        ),
        CommandAccess(write=(tmp_path,)),
    )
    assert ended.exit_code in {-9, 137}
    assert processes_in(tmp_path) == []


def test_a_program_that_is_not_in_there_is_named(tmp_path: Path) -> None:
    missing = Command(("no-such-agent",), tmp_path, {"PATH": os.defpath}, timedelta(seconds=9))
    with pytest.raises(MisconfiguredError, match="The program 'no-such-agent' cannot be started"):
        sandbox().run(missing, CommandAccess(write=(tmp_path,)))


def test_what_is_not_there_is_left_out(tmp_path: Path) -> None:
    gone = tmp_path.with_name("gone")
    ended = sandbox().run(
        command("ls ..", tmp_path), CommandAccess(read=(gone,), write=(tmp_path, gone))
    )
    assert ended.text == f"{tmp_path.name}\n"


def test_a_sandbox_that_cannot_be_set_up_says_why(tmp_path: Path) -> None:
    walls = sandbox()
    broken = replace(walls, filter=b"no filter")
    with pytest.raises(UnavailableError, match=r"for /bin/sh cannot be set up: Invalid seccomp"):
        broken.run(command("true", tmp_path), CommandAccess(write=(tmp_path,)))


def test_what_is_mulligans_is_hidden_once_it_is_there(tmp_path: Path) -> None:
    state, token = tmp_path / "state", tmp_path / "token"
    walls = replace(sandbox(), hidden_paths=(state, token))
    state.mkdir()
    for file in (state / "mulligan.db", token):
        file.write_text("secret")
    line = "ls state; cat token; git config --file token --list && echo empty; rm token"
    line = f"{line}; : > state/new; true"
    said = walls.run(command(line, tmp_path), CommandAccess(write=(tmp_path,))).text
    assert "secret" not in said
    assert said.count("Read-only file system") == 1
    # A program that reads its configuration there must not stop.
    assert "empty" in said
    assert (token.read_text(), [each.name for each in state.iterdir()]) == (
        "secret",
        ["mulligan.db"],
    )


def test_a_client_configuration_with_a_secret_is_hidden_and_another_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, secret = tmp_path / "pip.conf", tmp_path / "npmrc"
    plain.write_text("timeout = 60")
    secret.write_text("_authToken=abcdef")
    found = client_configuration((plain, secret))
    monkeypatch.setattr("mulligan.sandbox.sandbox.client_configuration", lambda: found)
    said = run_in("cat pip.conf npmrc", tmp_path).text
    assert ("timeout = 60" in said, "abcdef" in said) == (True, False)


def test_who_prints_what_a_sandbox_would_is_still_believed(tmp_path: Path) -> None:
    assert run_in("echo 'bwrap: execvp x: gone'; exit 1", tmp_path).exit_code == 1


def test_programs_and_their_arguments_are_there_without_being_named(tmp_path: Path) -> None:
    work, tools = tmp_path / "work", tmp_path / "tools"
    for each in (work, tools):
        each.mkdir()
    (tools / "say.py").write_text("import sys; print(sys.prefix)")
    run = Command(
        argv=(sys.executable, str(tools / "say.py")),
        directory=work,
        environment={"PATH": os.environ["PATH"]},
        timeout=timedelta(seconds=20),
    )
    assert sandbox().run(run, CommandAccess(write=(work,))).text.strip() == sys.prefix


ROOT = pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")


def ids_of(seconds: str) -> set[str]:
    """Tell as whom the kernel runs a `sleep` of so many seconds, as this machine sees it."""
    found = set[str]()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (process / "cmdline").read_bytes().split(b"\0")[:2] == [b"sleep", seconds.encode()]:
                lines = (process / "status").read_text().splitlines()
                found |= {line for line in lines if line.startswith(("Uid", "Gid", "Groups"))}
    return found


@ROOT
@pytest.mark.parametrize("network", [Network.NONE, Network.OPEN])
def test_to_the_kernel_it_is_another_user_than_mulligan(network: Network, tmp_path: Path) -> None:
    sandbox()
    mark = f"1.{abs(hash(tmp_path)) % 10**9}"
    running = Thread(target=run_in, args=(f"sleep {mark}", tmp_path, network))
    before = os.getgroups()
    # Where root has no other groups, none could be kept. A launcher has those of its start.
    os.setgroups([*before, 4])
    end_launcher(tmp_path)
    try:
        running.start()
        wait_until(lambda: ids_of(mark) != set())
        seen = ids_of(mark)
        running.join()
    finally:
        os.setgroups(before)
        end_launcher(tmp_path)
    number = "\t65530" * 4
    assert seen == {f"Uid:{number}", f"Gid:{number}", "Groups:\t "}


@ROOT
def test_the_other_user_owns_what_it_works_on_and_has_a_name(tmp_path: Path) -> None:
    here = tmp_path / "closed" / "here"
    (here / "below").mkdir(parents=True)
    (here / "below" / "file").write_text("before\n")
    (here / "below" / "link").symlink_to("/etc/passwd")
    for directory in (here / "below", here, here.parent):
        directory.chmod(0o700)
    line = "echo after >> below/file; cat below/file; whoami; id -gn; echo said > /dev/stdout"
    said = run_in(line, here).text.split()
    assert said == ["before", "after", "mulligan-sandbox", "mulligan-sandbox", "said"]
    assert (here / "below" / "file").stat().st_uid == (here / "below" / "link").lstat().st_uid
    assert (here.parent.stat().st_uid, Path("/etc/passwd").stat().st_uid) == (0, 0)


@ROOT
def test_what_it_only_reads_stays_roots_and_is_open_to_it_alone(tmp_path: Path) -> None:
    here, shown, mine = (tmp_path / name for name in ("here", "shown", "mine"))
    for directory in (here, shown, mine):
        directory.mkdir(mode=0o700)
        (directory / "file").write_text("seen\n")
        (directory / "file").chmod(0o600)
    walls = sandbox()
    walls = replace(walls, common=replace(walls.common, read=(mine,)))
    line = "cat ../shown/file; cat ../mine/file; echo > ../shown/file"
    said = walls.run(command(line, here), CommandAccess(read=(shown,), write=(here,))).text
    assert said.count("seen") == 1
    assert said.count("Permission denied") == 1
    assert "Read-only file system" in said
    file = (shown / "file").stat()
    assert (file.st_uid, file.st_mode & 0o777) == (0, 0o640)


@ROOT
def test_a_program_with_the_rights_of_its_owner_has_none_of_roots(tmp_path: Path) -> None:
    run_in("cp /bin/sh sh && chmod 6755 sh", tmp_path)
    left = (tmp_path / "sh").stat()
    assert 0 not in {left.st_uid, left.st_gid}


def test_a_command_dies_with_mulligan(tmp_path: Path) -> None:
    sandbox()
    place = tmp_path / "place"
    place.mkdir()
    mulligan = subprocess.Popen([sys.executable, "-c", MULLIGAN, str(place)])
    wait_until((place / "up").exists, 20)
    mulligan.kill()
    mulligan.wait()
    wait_until(lambda: processes_in(place) == [])
