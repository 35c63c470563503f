"""What the kernel counts for all commands together: one command leaves the others a part."""

import json
import os
import resource
import sys
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import pytest

from mulligan.sandbox.home import create_layer, layer_in
from mulligan.sandbox.process import Command
from mulligan.sandbox.sandbox import CommandAccess, place_in
from mulligan.sandbox.shared_counters import MACHINE_LIMIT, share_of, shares
from world.confined import sandbox

TAKE = """
import ctypes, json, os, resource
libc = ctypes.CDLL(None, use_errno=True)
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))

def taken(take):
    count = 0
    while count < 200_000 and take(count) >= 0:
        count += 1
    return count

class Queue(ctypes.Structure):
    _fields_ = [(name, ctypes.c_long) for name in ("flags", "messages", "size", "held")]
    _fields_ += [("padding", ctypes.c_long * 4)]

def make_queue(number):
    flags = os.O_CREAT | os.O_RDWR
    return libc.mq_open(b"/q%d" % number, flags, 0o600, ctypes.byref(queue))

queue, timer = Queue(0, 10, 8192, 0, (ctypes.c_long * 4)()), ctypes.c_void_p()
print(json.dumps({
    "instances": taken(lambda _: libc.inotify_init1(0)),
    "queues": taken(make_queue),
    "timers": taken(lambda _: libc.timer_create(0, None, ctypes.byref(timer))),
    "limits": [resource.getrlimit(number)[1] for number in (resource.RLIMIT_SIGPENDING, 12)],
}))
"""


def taken_inside(tmp_path: Path) -> Mapping[str, int]:
    """Take as much as a command on layers can have, and count it."""
    lower, tree = tmp_path / "lower", tmp_path / "tree"
    for directory in (lower, tree):
        directory.mkdir()
    (tree / "take.py").write_text(TAKE)
    layer = layer_in(tmp_path / "layer", (lower,), tmp_path / "layer" / "merged")
    layer = layer._replace(upper=str(tree))
    create_layer(layer, {"PATH": os.environ["PATH"]})
    place = place_in(tree, layer)
    argv = (sys.executable, "-I", "-S", "take.py")
    command = Command(argv, place, {"PATH": os.environ["PATH"]}, timedelta(seconds=25))
    ended = sandbox().run(command, CommandAccess(worktree=place, layers=(layer,)))
    assert ended.exit_code == 0, ended.text
    return json.loads(ended.text)


def test_a_command_leaves_others_a_part_of_what_the_kernel_counts(tmp_path: Path) -> None:
    most = int(Path(MACHINE_LIMIT.format("inotify", "instances")).read_text())
    signals, queues = (resource.getrlimit(number)[1] for number in (resource.RLIMIT_SIGPENDING, 12))
    found = taken_inside(tmp_path)
    # Where bubblewrap mounts the layers of an ordinary user, Mulligan makes no namespace.
    most_inside = most if os.getuid() and sandbox().mounts_layers else share_of(most)
    assert 0 < found["instances"] <= most_inside
    assert found["limits"] == [share_of(signals), share_of(queues)]
    assert found["timers"] <= share_of(signals)
    assert found["queues"] * 10 * 8192 <= share_of(queues)


def test_the_share_is_one_of_every_counter_that_this_kernel_has() -> None:
    if not Path("/proc/sys/user/max_fanotify_marks").exists():
        pytest.skip("the kernel has not all of these counters")
    found = shares()
    assert [*found] == [
        "inotify_instances",
        "inotify_watches",
        "fanotify_groups",
        "fanotify_marks",
    ]
    assert all(found.values())
