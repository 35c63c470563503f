"""In an image, a command sees the image's entries, and of this machine what it was given."""

from dataclasses import replace
from pathlib import Path

import pytest

from mulligan.sandbox.bubblewrap import (
    IMAGE_ROOT,
    Confinement,
    Descriptors,
    ImageView,
    arguments,
)

pytestmark = pytest.mark.pure

TREE = Path("/srv/work/tree")
OUTSIDE = Path("/srv/images/one")
VIEW = ImageView(
    shown=((OUTSIDE / "usr", Path("/usr")), (OUTSIDE / "etc/ssl", Path("/etc/ssl"))),
    links=(("usr/bin", Path("/bin")),),
    directories=(Path("/etc"),),
)
IN_IMAGE = Confinement(write=(TREE,), image=VIEW, starter=(Path("/opt/mulligan/lib"),))


def written(confined: Confinement) -> str:
    return " ".join(arguments(confined, TREE, ("true",), Descriptors()))


def test_the_entries_of_the_image_are_the_root_of_the_command() -> None:
    said = written(IN_IMAGE)
    for part in (
        f"--ro-bind {OUTSIDE}/usr {IMAGE_ROOT}/usr",
        f"--ro-bind {OUTSIDE}/etc/ssl {IMAGE_ROOT}/etc/ssl",
        f"--symlink usr/bin {IMAGE_ROOT}/bin",
        f"--perms 0755 --dir {IMAGE_ROOT}/etc",
        f"--bind-try {TREE} {IMAGE_ROOT}{TREE}",
        f"--proc {IMAGE_ROOT}/proc",
    ):
        assert f" {part} " in said
    # A directory comes before what lies in it.
    assert said.index(f"--dir {IMAGE_ROOT}/etc ") < said.index(f"{IMAGE_ROOT}/etc/ssl")


def test_of_this_machine_an_image_shows_its_network_and_no_programs() -> None:
    said = written(IN_IMAGE)
    assert f"--ro-bind-try /etc/hosts {IMAGE_ROOT}/etc/hosts" in said
    for path in ("/usr", "/bin", "/etc/passwd"):
        assert f" {path} {IMAGE_ROOT}{path} " not in said
    # Its view has a link from /var/tmp.
    assert "../tmp" not in said
    assert "--symlink ../tmp /var/tmp" in written(Confinement(write=(TREE,)))


def test_the_starter_lies_outside_the_image() -> None:
    said = written(IN_IMAGE)
    made = "--perms 0755 --dir /opt --perms 0755 --dir /opt/mulligan"
    for part in (
        "--ro-bind-try /usr /usr",
        f"{made} --ro-bind-try /opt/mulligan/lib /opt/mulligan/lib",
        f"--perms 0755 --dir {IMAGE_ROOT.parent} --perms 0755 --dir {IMAGE_ROOT}",
    ):
        assert f" {part} " in said
    assert f"{IMAGE_ROOT}/opt" not in said
    assert "/opt/mulligan/lib" not in written(replace(IN_IMAGE, image=None))


@pytest.mark.parametrize("changes_user", [False, True])
def test_only_a_command_in_an_image_may_change_its_root_and_then_drops_that(
    *, changes_user: bool
) -> None:
    said = written(replace(IN_IMAGE, changes_user=changes_user))
    assert "--cap-add CAP_SYS_CHROOT" in said
    # It drops that itself, unless the change of the user does.
    assert ("--cap-add CAP_SETPCAP" in said) is not changes_user
    plain = written(replace(IN_IMAGE, image=None, changes_user=changes_user))
    assert "CAP_SYS_CHROOT" not in plain


def test_paths_that_are_bound_are_told_so_that_the_image_gets_places_for_them() -> None:
    confined = replace(IN_IMAGE, moved=((TREE, Path("/mulligan/worktree")),))
    assert confined.targets == {
        Path("/etc/hosts"): Path("/etc/hosts"),
        Path("/etc/resolv.conf"): Path("/etc/resolv.conf"),
        Path("/mulligan/worktree"): TREE,
    }
    assert (confined.root, Confinement().root) == (IMAGE_ROOT, Path("/"))
