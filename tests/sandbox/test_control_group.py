"""Where control groups can be made, of both versions, and what is written into them.

tests/attacks/test_containment.py has the limits of real groups of version 1. Groups of version 2
are directories of the test here.
"""

from pathlib import Path

import pytest

from mulligan.sandbox import control_group
from mulligan.sandbox.control_group import ControlGroup, Place, count, places

V1_GROUPS = "8:pids:/\n4:memory,hugetlb:/job/7\n1:cpu,cpuacct:/\n1:name=systemd:/x\n0::/\n"
MOUNT = "36 25 0:31 {root} {point} rw,nosuid shared:1 - {kind} cgroup {options}\n"


def mount(point: str, options: str = "rw", root: str = "/", kind: str = "cgroup") -> str:
    return MOUNT.format(point=point, options=options, root=root, kind=kind)


def test_a_group_is_made_below_that_of_each_controller() -> None:
    mounts = mount("/c/pids", "rw,pids") + mount("/c/mem", "rw,memory,hugetlb")
    mounts += mount("/c/cpu", "rw,cpu,cpuacct") + mount("/", kind="ext4")
    assert list(places(V1_GROUPS, mounts)) == [
        Place(Path("/c/pids"), ("pids",)),
        Place(Path("/c/mem/job/7"), ("memory",)),
    ]


@pytest.mark.parametrize(
    ("own", "root", "directory"),
    [
        ("/", "/", "/c"),
        ("/a.service", "/", "/c/a.service"),
        ("/a.service/mulligan", "/", "/c/a.service"),
        ("/docker/1/b", "/docker/1", "/c/b"),
        ("/../b", "/docker/1", None),
    ],
)
def test_in_version_2_it_is_made_in_the_delegated_group(
    own: str, root: str, directory: str | None
) -> None:
    found = list(places(f"0::{own}\n", mount("/c", root=root, kind="cgroup2")))
    wanted = [Place(Path(directory), ("pids", "memory"), is_v2=True)] if directory else []
    assert found == wanted


def test_version_2_gets_its_limits_and_tells_which_one_was_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def delegated(*_: str) -> list[Place]:
        missing = Place(tmp_path / "missing", ("pids",))
        return [missing, Place(tmp_path, ("pids", "memory"), is_v2=True)]

    monkeypatch.setattr(control_group, "places", delegated)
    monkeypatch.setattr(control_group, "REMOVE_SECONDS", 0)
    (tmp_path / "mulligan-0").mkdir()
    group = ControlGroup({"pids": 7, "memory": 4096})
    group.enter()
    (made,) = tmp_path.glob("mulligan-*")
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+pids +memory"
    assert {file.name: file.read_text() for file in made.iterdir()} == {
        "pids.max": "7",
        "memory.max": "4096",
        "memory.swap.max": "0",
        "cgroup.procs": "0",
    }
    assert group.exceeded() == ""
    (made / "pids.events").write_text("max 0\n")
    (made / "memory.events").write_text("low 0\nmax 3\noom 1\noom_kill 1\n")
    assert group.exceeded() == "memory"
    assert count(made / "memory.events", "oom_group_kill") == 0
    for file in made.iterdir():
        file.unlink()
    group.remove()
    group.remove()
    assert not made.exists()
