"""A command in an image finds the image's system, and nothing of an image leads out (IMAGE-1)."""

import os
import socket
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from mulligan.config.operator import SandboxLimits
from mulligan.domain.errors import MisconfiguredError
from mulligan.domain.image import Image
from mulligan.sandbox.client_configuration import ClientConfiguration
from mulligan.sandbox.image_root import MAX_ENTRIES, SHARED_TMP, Kind, read_plain, view_of
from mulligan.sandbox.process import Command, Finished
from mulligan.sandbox.sandbox import CommandAccess, Unconfined
from world.confined import sandbox
from world.images import PATH, PYTHON, assemble, assembled_image


def command(line: str, tree: Path, **variables: str) -> Command:
    environment = {"PATH": PATH, "HOME": "/nowhere", **variables}
    return Command(("/bin/sh", "-c", line), tree, environment, timedelta(seconds=20))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    made = tmp_path / "tree"
    made.mkdir()
    return made


def run(line: str, tree: Path, image: Image, access: CommandAccess | None = None) -> Finished:
    access = access or CommandAccess()
    return sandbox().run(command(line, tree), replace(access, worktree=tree, image=image))


def test_a_command_finds_the_system_of_the_image_and_not_that_of_the_machine(tree: Path) -> None:
    lines = (
        "pwd; cat /etc/os-release; ls /; tar --version; cat /etc/resolv.conf; id -un;"
        " ls -d /usr/share /srv /etc/ssl /home"
    )
    said = run(lines, tree, assembled_image()).text
    assert said.startswith("/mulligan/worktree\nID=assembled\n")
    assert "tar: not found" in said
    for path in ("/usr/share", "/srv", "/etc/ssl", "/home"):
        assert f"'{path}': No such file" in said
    assert Path("/etc/resolv.conf").read_text() in said
    assert "mulligan-sandbox\n" in said


def test_a_command_gets_the_variables_it_was_given_and_no_others(tree: Path) -> None:
    said = sandbox().run(
        command("env", tree, GREETING="a b\nc", EMPTY=""),
        CommandAccess(worktree=tree, image=assembled_image()),
    )
    assert sorted(said.text.split("\n")) == sorted(
        [
            "",
            "EMPTY=",
            "GREETING=a b",
            "c",
            "HOME=/nowhere",
            f"PATH={PATH}",
            "PWD=/mulligan/worktree",
        ]
    )


def test_a_command_writes_to_its_own_places_only(tree: Path) -> None:
    line = (
        "for d in . /tmp /var/tmp /dev/shm / /bin /image /dev /run /etc /var /mulligan /proc/sys;"
        " do (: > $d/new) 2>&- && echo $d; done; echo x > /tmp/shared; cat /var/tmp/shared"
    )
    said = run(line, tree, assembled_image())
    assert said.text == ".\n/tmp\n/var/tmp\n/dev/shm\nx\n"
    assert [each.name for each in tree.iterdir()] == ["new"]


def test_a_command_has_no_capability_and_cannot_change_its_root_again(tree: Path) -> None:
    tried = "import os\ntry: os.chroot('/tmp')\nexcept OSError as error: print(error.strerror)"
    lines = f'cat /proc/self/status /proc/1/status; {PYTHON} -I -S -c "{tried}"'
    said = run(lines, tree, assembled_image()).text
    for kind in ("CapPrm", "CapEff", "CapAmb"):
        held = [line for line in said.splitlines() if line.startswith(kind)]
        assert held == [f"{kind}:\t0000000000000000"] * 2
    assert said.endswith("Operation not permitted\n")
    # The second filter refuses a change of the root to processes that have the capability, too.
    assert "\nSeccomp_filters:\t2\n" in said or sandbox().filter is None


def test_root_of_a_container_without_a_second_user_has_no_capability_either(tree: Path) -> None:
    line = "cat /proc/self/status"
    alone = replace(sandbox(), user=None)
    said = alone.run(command(line, tree), CommandAccess(worktree=tree, image=assembled_image()))
    held = [line.split()[1] for line in said.text.splitlines() if line.startswith("Cap")]
    assert {int(each, 16) for each in held} == {0}


def test_paths_of_this_machine_appear_between_those_of_the_image(tree: Path) -> None:
    image = assembled_image()
    (fixtures := tree.parent / "fixtures").mkdir()
    (fixtures / "data").write_text("given\n")
    access = CommandAccess(shown=(fixtures, fixtures / "gone"), write=(tree.parent / "report",))
    (tree.parent / "report").mkdir()
    line = f"cat {fixtures}/data; echo x > {tree.parent}/report/made; test -x {PATH}/ls && echo ls"
    assert run(line, tree, image, access).text == "given\nls\n"
    assert (tree.parent / "report" / "made").exists()


def test_what_is_hidden_stays_hidden_in_a_path_that_an_image_shows(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shown := tmp_path / "shown").mkdir()
    (shown / "state").mkdir()
    for name, text in {"pip.conf": "plain", "npmrc": "token", "state/ledger": "ledger"}.items():
        (shown / name).write_text(text)
    found = ClientConfiguration((shown / "pip.conf",), (shown / "npmrc",))
    monkeypatch.setattr("mulligan.sandbox.sandbox.client_configuration", lambda: found)
    line = f"cd {shown}; cat pip.conf npmrc state/ledger"
    access = CommandAccess(shown=(shown,), worktree=tree, image=assembled_image())
    said = sandbox((shown / "state",)).run(command(line, tree), access).text
    assert said.startswith("plain")
    assert "token" not in said
    assert "state/ledger: No such file" in said


def test_a_path_within_a_directory_of_the_image_hides_nothing_beside_it(
    tree: Path, tmp_path: Path
) -> None:
    (root := tmp_path / "root").mkdir()
    (root / "opt" / "tool").mkdir(parents=True)
    (root / "opt" / "tool" / "file").touch()
    (root / "opt" / "link").symlink_to("tool/file")
    view = view_of(
        root, {Path("/opt/tool/given"): Kind.DIRECTORY, Path("/opt/tool/file"): Kind.FILE}
    )
    assert view.directories == (Path("/opt"), Path("/opt/tool"), Path("/var"))
    assert view.links == (("tool/file", Path("/opt/link")), ("../tmp", SHARED_TMP))
    assert view.shown == ()
    whole = view_of(root, {Path("/opt/tool/file"): Kind.FILE})
    assert whole.shown == ((root / "opt", Path("/opt")),)
    (root / "var").mkdir()
    (root / "var" / "log").mkdir()
    replaced_by_host = view_of(root, {Path("/var"): Kind.DIRECTORY})
    assert [*replaced_by_host.ways] == [Path("/opt")]


# Variables


def test_no_variable_of_an_image_reaches_a_program_outside_it(tree: Path) -> None:
    """The loader of each program that gets LD_PRELOAD complains; only the command's own does."""
    given = command("exit 0", tree, LD_PRELOAD="/mulligan/worktree/evil.so", PYTHONHOME="/gone")
    said = sandbox().run(given, CommandAccess(worktree=tree, image=assembled_image()))
    assert said.exit_code == 0
    assert said.text.count("evil.so") == 1


def test_the_path_of_an_image_does_not_choose_a_program_outside_it(tree: Path) -> None:
    for name in ("find", "chown", "bwrap"):
        (tree / name).write_text(f"#!/bin/sh\necho > {tree}/was-here\n")
        (tree / name).chmod(0o755)
    given = command("exit 0", tree, PATH=f"{tree}:{PATH}")
    os.chown(tree, -1, os.getgid())
    sandbox().run(given, CommandAccess(worktree=tree, image=assembled_image()))
    assert not (tree / "was-here").exists()


def test_a_missing_program_is_reported_with_the_image(tree: Path) -> None:
    missing = Command(("no-such",), tree, {"PATH": PATH}, timedelta(seconds=9))
    access = CommandAccess(worktree=tree, image=assembled_image())
    with pytest.raises(MisconfiguredError, match=r"in the image localhost/assembled:1: No such"):
        sandbox().run(missing, access)


def test_without_a_sandbox_an_image_is_refused(tree: Path) -> None:
    with pytest.raises(MisconfiguredError, match="needs the sandbox"):
        Unconfined().run(command("true", tree), CommandAccess(image=assembled_image()))


# Hostile images


def plain(root: Path) -> None:
    """Change nothing."""


def etc_is_the_host(root: Path) -> None:
    replaced(root / "etc", "/proc/1/root/etc")


def etc_is_a_link(root: Path) -> None:
    replaced(root / "etc", "/etc")


def etc_is_outside(root: Path) -> None:
    # bubblewrap has the machine's root there while it mounts.
    replaced(root / "etc", f"/oldroot{root.parent}/victim")


def files_of_etc_are_outside(root: Path) -> None:
    for name in ("hosts", "resolv.conf", "passwd", "group"):
        (root / "etc" / name).symlink_to(f"/oldroot{root.parent}/victim/{name}")


def tmp_is_above(root: Path) -> None:
    (root / "tmp").symlink_to("../..")
    (root / "var").symlink_to("/mulligan/worktree")


def own_entries_are_files(root: Path) -> None:
    for name in ("proc", "dev", "run", "sys", "tmp", "mulligan"):
        (root / name).write_text("evil\n")


def has_a_mulligan_of_its_own(root: Path) -> None:
    (root / "mulligan" / "worktree").mkdir(parents=True)
    (root / "mulligan" / "worktree" / "evil").touch()
    (root / "mulligan" / "root").symlink_to("/")


def has_special_files(root: Path) -> None:
    os.mkfifo(root / "fifo")
    with socket.socket(socket.AF_UNIX) as line:
        line.bind(str(root / "socket"))


def replaced(path: Path, target: str) -> None:
    (path / "os-release").unlink()
    path.rmdir()
    path.symlink_to(target)


HOSTILE = (
    plain,
    etc_is_the_host,
    etc_is_a_link,
    etc_is_outside,
    files_of_etc_are_outside,
    tmp_is_above,
    own_entries_are_files,
    has_a_mulligan_of_its_own,
    has_special_files,
)


@pytest.mark.parametrize("spoil", HOSTILE)
def test_a_hostile_image_changes_and_shows_nothing_outside(
    spoil: Callable[[Path], None], tree: Path, tmp_path: Path
) -> None:
    image = assemble(tmp_path / "root")
    (victim := tmp_path / "victim").mkdir()
    (victim / "passwd").write_text("victim:x:0:0::/:/bin/sh\n")
    spoil(image.root)
    line = (
        "ls; cat /etc/passwd /etc/hosts; ls /etc; echo x > /tmp/x && echo y > made;"
        " test -d /proc/self && echo proc; test -c /dev/null && echo null;"
        " for f in /fifo /socket; do test -e $f && echo special; done"
    )
    ended = run(line, tree, image)
    assert ended.exit_code in {0, 1}, ended.text
    assert "victim" not in ended.text
    assert "evil" not in ended.text
    assert "special" not in ended.text
    assert not {"nsswitch.conf", "ssl", "skel"} & {*ended.text.split()}
    assert "proc\nnull\n" in ended.text
    assert Path("/etc/hosts").read_text() in ended.text
    assert [each.name for each in victim.iterdir()] == ["passwd"]
    assert [each.name for each in tree.iterdir()] == ["made"]


def test_an_image_with_too_many_entries_is_refused(tmp_path: Path) -> None:
    for number in range(MAX_ENTRIES + 1):
        (tmp_path / f"{number}").touch()
    with pytest.raises(MisconfiguredError, match=f"more than {MAX_ENTRIES} entries in /"):
        view_of(tmp_path, {})


def test_a_file_behind_a_link_of_the_image_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "passwd").symlink_to("/etc/passwd")
    assert read_plain(tmp_path, "/etc/passwd") == b""
    (tmp_path / "link").symlink_to("/etc")
    assert read_plain(tmp_path, "/link/passwd") == b""
    (tmp_path / "etc" / "shadow").mkdir()
    assert read_plain(tmp_path, "/etc/shadow") == read_plain(tmp_path, "/etc/gone") == b""
    (tmp_path / "etc" / "group").write_text("a\n")
    assert read_plain(tmp_path, "/etc/group") == b"a\n"


# The proxy, and limits


def test_a_command_in_an_image_reaches_the_proxy(tree: Path) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    line = (
        f'{PYTHON} -I -S -c \'import socket; s = socket.create_connection(("127.0.0.1", 3128));'
        ' s.sendall(b"x")\''
    )
    with ours, theirs:
        access = CommandAccess(worktree=tree, image=assembled_image(), proxy=theirs.fileno())
        assert sandbox().run(command(line, tree), access).exit_code == 0
        _, received, *_ = socket.recv_fds(ours, 8, 1)
        with socket.socket(fileno=received[0]) as listener, listener.accept()[0] as accepted:
            assert accepted.recv(1) == b"x"


def test_a_limit_ends_a_command_in_an_image(tree: Path) -> None:
    small = sandbox(limits=SandboxLimits(processes=20))
    line = f"for i in {' '.join(map(str, range(22)))}; do sleep 9 & done; wait"
    access = CommandAccess(worktree=tree, image=assembled_image())
    assert "exceeded 20 processes" in small.run(command(line, tree), access).text
