"""What a command may see and write is a matter of bubblewrap's arguments, and their order."""

from dataclasses import replace
from pathlib import Path

import pytest

from mulligan.domain.host import Network
from mulligan.domain.layer import Layer
from mulligan.sandbox.bubblewrap import Confinement, Descriptors, arguments, layered

pytestmark = pytest.mark.pure
WORK = Path("/var/lib/mulligan/work")
TREE = WORK / "o" / "r" / "issue-1"


def written(confined: Confinement, wires: Descriptors | None = None) -> str:
    return " ".join(arguments(confined, TREE, ("/bin/sh", "-c", "true"), wires or Descriptors()))


def places(confined: Confinement) -> list[str]:
    """List what is put into place below /var and /srv, in order."""
    words = written(confined).split("--symlink ../tmp")[1].split(" --remount-ro / ")[0].split(" --")
    return [word for word in words if "/var/lib" in word or "/srv" in word]


def test_the_command_comes_last_and_starts_in_its_directory() -> None:
    said = written(Confinement())
    assert said.endswith(f"--remount-ro / --chdir {TREE} -- /bin/sh -c true")


def test_walls_that_others_stand_behind_are_asked_for_as_well() -> None:
    said = written(Confinement())
    for wall in ("--unshare-pid", "--unshare-ipc", "--cap-drop ALL", "--die-with-parent"):
        assert wall in said
    # The supervisor has begun a session already.
    assert "--new-session" in said


@pytest.mark.parametrize("network", Network)
def test_the_network_is_cut_unless_it_is_open(network: Network) -> None:
    cut = "--unshare-net" in written(Confinement(network=network))
    assert cut is (network is not Network.OPEN)


def test_descriptors_are_named_where_there_are_any() -> None:
    assert "--seccomp" not in written(Confinement())
    wires = Descriptors(filter=7, status=8)
    assert "--seccomp 7 --json-status-fd 8" in written(Confinement(), wires)
    assert (wires.all, Descriptors().all) == ((7, 8), ())


def test_the_system_can_be_read_and_its_secrets_are_not_there() -> None:
    said = written(Confinement())
    assert "--ro-bind-try /usr /usr" in said
    for path in ("/etc/shadow", "/root", "/home", "/etc/gitconfig", "/run/"):
        assert path not in said


def test_a_path_in_a_place_that_can_be_written_may_stay_as_it_is() -> None:
    confined = Confinement(read=(TREE / ".git",), write=(TREE,))
    assert places(confined)[:2] == [
        f"bind-try {TREE} {TREE}",
        f"ro-bind-try {TREE}/.git {TREE}/.git",
    ]


LAYER = Layer(("/srv/tree", "/srv/left"), "/srv/up", "/srv/work", str(TREE))
OVERLAY = "--overlay-src /srv/left --overlay-src /srv/tree --overlay /srv/up /srv/work"


def test_a_layer_is_mounted_before_what_lies_in_it_and_from_the_lowest_directory() -> None:
    inside, file = Path("/mulligan/worktree"), TREE / ".git"
    confined = Confinement(
        read=(file,),
        moved=((TREE, inside),),
        layers=(LAYER,),
        unmerged=((file, Path("/srv/tree/.git")),),
    )
    bound = f"--ro-bind-try /srv/tree/.git {inside}/.git"
    assert f" {OVERLAY} {inside} {bound} " in written(confined)
    # With its target to be written, too, it is mounted once.
    both = written(replace(confined, write=(TREE,)))
    assert both == written(confined)


def test_a_program_outside_a_sandbox_can_have_layers() -> None:
    argv = layered("/usr/bin/bwrap", (LAYER,), ("git", "diff"))
    said = f"/usr/bin/bwrap --die-with-parent --dev-bind / / {OVERLAY} {TREE} -- git diff"
    assert " ".join(argv) == said


def test_who_may_write_may_read() -> None:
    assert places(Confinement(read=(TREE,), write=(TREE,)))[0] == f"bind-try {TREE} {TREE}"


def test_what_is_in_a_place_is_not_bound_again() -> None:
    confined = Confinement(read=(Path("/srv/a"), Path("/srv"), Path("/usr/share")))
    assert places(confined) == ["ro-bind-try /srv /srv"]
    assert "/usr/share" not in written(confined)


def test_mulligans_own_is_hidden_in_a_place_that_shows_it() -> None:
    state = Path("/var/lib/mulligan")
    confined = Confinement(
        read=(Path("/var/lib"), state), write=(TREE,), hide=(state, WORK, Path("/elsewhere"))
    )
    assert places(confined)[:4] == [
        "ro-bind-try /var/lib /var/lib",
        "tmpfs /var/lib/mulligan",
        f"bind-try {TREE} {TREE}",
        "remount-ro /var/lib/mulligan",
    ]
    assert "/elsewhere" not in written(confined)


def test_a_file_is_hidden_behind_an_empty_one() -> None:
    token = Path("/srv/keys/token")
    confined = Confinement(write=(Path("/srv"),), hide_files=(token, Path("/elsewhere")))
    assert places(confined) == ["bind-try /srv /srv", "dev-bind /dev/null /srv/keys/token"]


def test_what_lies_in_memory_has_a_size() -> None:
    said = written(Confinement(tmp_bytes=4096))
    assert said.count("--size 4096 --tmpfs /") == 2


def test_a_path_that_was_moved_is_bound_where_it_appears_inside() -> None:
    kept, shown = Path("/srv/kept"), TREE / ".venv"
    confined = Confinement(read=(kept / "lib", Path("/srv/other")), moved=((kept, shown),))
    assert confined.inside(kept / "lib") == shown / "lib"
    assert confined.inside(Path("/srv/other")) == Path("/srv/other")
    assert places(confined) == [
        "ro-bind-try /srv/other /srv/other",
        f"ro-bind-try /srv/kept/lib {shown}/lib",
    ]


def test_another_user_may_enter_the_directories_above_what_it_sees() -> None:
    confined = Confinement(read=(Path("/srv/a/b"), Path("/srv/a/c")), changes_user=True)
    assert places(confined) == [
        "dir /srv",
        "dir /srv/a",
        "ro-bind-try /srv/a/b /srv/a/b",
        "ro-bind-try /srv/a/c /srv/a/c",
    ]
    assert written(confined).count("--perms 0755 --dir /srv/a ") == 1
    assert "--dir /srv" not in written(replace(confined, changes_user=False))
