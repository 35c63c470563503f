"""A command works on layers as on a copy, and nothing below them changes."""

import errno
import os
import stat
import subprocess
from collections.abc import Callable, Generator, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from mulligan.checks.runner import CommandVerifier
from mulligan.config.operator import SandboxLimits
from mulligan.config.policy import Check, CommitSettings, SetUp
from mulligan.domain.layer import Layer
from mulligan.git.worktrees.attempt_worktree import Checkout
from mulligan.sandbox.home import HOME, TREE, create_layer, layer_in
from mulligan.sandbox.layers import remove_notes
from mulligan.sandbox.probe import layer_problem
from mulligan.sandbox.process import Command, Finished
from mulligan.sandbox.sandbox import Bubblewrap, CommandAccess
from world.checkouts import REF, TEXT, calc_remote, worktrees_of
from world.confined import overlaying, sandbox
from world.trees import plain_worktree

ENVIRONMENT = {"PATH": os.environ["PATH"]}
TOOL = "build/tools/deep/tool"
SET_UP = (
    "mkdir -p build/tools/deep ~/cache made; touch made/not-ignored; echo old > build/old;"
    f" echo tool > {TOOL}; chmod 750 {TOOL}; ln -s deep/tool build/tools/link;"
    " echo cached > ~/cache/it"
)


@pytest.fixture(params=("supervisor", "bubblewrap"))
def checkout(tmp_path: Path, request: pytest.FixtureRequest) -> Generator[Checkout]:
    """Give a worktree with layers, in which the setup commands have run; both can mount them."""
    mounter = overlaying().program if request.param == "bubblewrap" else ""
    remote = calc_remote(tmp_path / "remote.git")
    worktrees = worktrees_of(tmp_path / "work", remote)
    with replace(worktrees, is_layered=True, bubblewrap=mounter).open(REF) as tree:
        verifier = CommandVerifier(ENVIRONMENT, sandbox_for(tree))
        assert verifier.set_up((SET_UP,), tree, tmp_path / "setup.log").passed
        made = tree.keep_set_up()
        made.check_out(made.start_sha)
        yield made


def sandbox_for(tree: Checkout) -> Bubblewrap:
    return overlaying() if tree.bubblewrap else sandbox()


def test_what_git_does_not_ignore_is_not_kept(checkout: Checkout) -> None:
    said(checkout, "test ! -e made")


def said(tree: Checkout, line: str) -> str:
    """Run a check, and give its output."""
    verifier, log = (
        CommandVerifier(ENVIRONMENT, sandbox_for(tree)),
        tree.private.parent / "check.log",
    )
    result = verifier.check(Check(name="it", run=line), tree, log)
    assert result.exit_code == 0, log.read_text()
    return log.read_text()


SEEN = f"cat {TOOL} build/tools/link ~/cache/it; stat -c %a {TOOL}; ls src"


def test_a_check_sees_the_commit_and_what_set_up_left(checkout: Checkout) -> None:
    assert said(checkout, SEEN).split()[:4] == ["tool", "tool", "cached", "750"]
    assert not (checkout.path / "build/tools").exists()


def test_the_directories_have_the_modes_that_they_have_without_layers(checkout: Checkout) -> None:
    tree, home = checkout.path, checkout.set_up_files
    assert home
    modes = [f"{path.stat().st_mode & 0o777:o}" for path in (tree, home / HOME)]
    assert said(checkout, "stat -c %a . ~").split() == modes


DESTROY = (
    "rm -rf build ~/cache src && mkdir build && echo new > build/new && echo x > ~/new"
    " && test ! -e build/old && ls -A ~"
)


def test_what_one_command_does_to_the_layers_the_next_one_does_not_see(
    checkout: Checkout,
) -> None:
    before = said(checkout, SEEN)
    assert said(checkout, DESTROY).split() == ["new"]
    checkout.check_out(checkout.start_sha)
    assert said(checkout, SEEN) == before
    assert checkout.copies.took == timedelta()
    assert said(checkout, "ls -A build ~").split() == [
        *("/mulligan/home:", "cache", "build:", "old", "tools")
    ]


def test_a_directory_of_set_up_is_moved_by_copying_only(checkout: Checkout) -> None:
    """Overlayfs cannot rename it without privileges; docs/verification.md says so."""
    moved = "mv build elsewhere && cat elsewhere/tools/deep/tool && test ! -e build"
    assert said(checkout, moved).split() == ["tool"]
    checkout.check_out(checkout.start_sha)
    rename = (
        "import errno, os\ntry: os.rename('build', 'other')\nexcept OSError as e: print(e.errno)"
    )
    assert said(checkout, f'python3 -c "{rename}"').split() == [str(errno.EXDEV)]


def files_below(directory: Path) -> Mapping[str, tuple[int, int, bytes]]:
    """Map each path to its mode, its time and its content."""
    found = dict[str, tuple[int, int, bytes]]()
    for path in sorted(directory.rglob("*")):
        state = path.lstat()
        content = os.fsencode(path.readlink()) if path.is_symlink() else b""
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else content
        found[str(path.relative_to(directory))] = (state.st_mode, state.st_mtime_ns, content)
    return found


ATTACKS = {
    "overwrite": "echo bad > build/tools/deep/tool; echo bad > ~/cache/it",
    "in place": "printf bad | dd of=build/tools/deep/tool conv=notrunc 2>&1",
    "mode": "chmod 777 build/tools/deep/tool build/tools ~/cache",
    "times": "touch -d 2001-01-01 build/tools/deep/tool build/tools",
    "remove": "rm -rf build/tools ~/cache",
    "replace": "rm -rf build/tools; ln -s / build/tools",
    "rename": "mv build/tools/deep/tool build/tools/other; mv ~/cache/it ~/it",
    "hard link": "ln build/tools/deep/tool here; echo bad > here",
    "attribute": "setfattr -n user.overlay.opaque -v y build/tools; true",
    "whiteout": "mknod build/tools/deep/none c 0 0; mknod none c 0 0; true",
    "truncate": ": > build/tools/link",
    "mount": "mount --bind / build/tools; unshare -Urm true; true",
    "append": "echo more >> build/tools/deep/tool",
    "through the parent": "echo bad > /mulligan/worktree/build/tools/link",
}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS.keys())
def test_nothing_that_a_command_tries_changes_a_lower_directory(
    attack: str, checkout: Checkout
) -> None:
    assert checkout.set_up_files
    before, tree = files_below(checkout.set_up_files), files_below(checkout.path / "src")
    said(checkout, f"{attack}\n:")
    assert files_below(checkout.set_up_files) == before
    assert files_below(checkout.path / "src") == tree
    checkout.check_out(checkout.start_sha)
    assert said(checkout, "cat build/tools/deep/tool build/tools/link ~/cache/it").split() == [
        *("tool", "tool", "cached")
    ]


def test_the_agents_writes_are_its_change_and_nobody_elses(checkout: Checkout) -> None:
    layer = checkout.agent_layer
    assert layer
    line = (
        f"cat {TOOL} && echo bad > {TOOL} && rm -rf build/old && echo 1 > new.txt"
        " && echo changed >> src/calc.py && rm -rf .git/hooks; git status --short"
    )
    ended = run_as_agent(checkout, layer, line)
    assert ended.exit_code == 0, ended.text
    assert "new.txt" in ended.text
    change = checkout.capture(TEXT, CommitSettings())
    assert {file.path for file in change.files} == {"new.txt", "src/calc.py"}
    assert change.head_sha
    checkout.check_out(change.head_sha)
    assert said(checkout, "cat build/tools/deep/tool new.txt build/old").split() == [
        "tool",
        "1",
        "old",
    ]


def test_a_file_of_set_up_that_a_change_stops_ignoring_is_no_part_of_it(
    checkout: Checkout,
) -> None:
    layer = checkout.agent_layer
    assert layer
    line = "echo '*.log' > .gitignore && git status --short"
    ended = run_as_agent(checkout, layer, line)
    assert "build/" in ended.text
    change = checkout.capture(TEXT, CommitSettings())
    assert [file.path for file in change.files] == [".gitignore"]


def run_as_agent(checkout: Checkout, layer: Layer, line: str) -> Finished:
    place = Path(layer.target)
    access = CommandAccess(
        read=(place / ".git", *checkout.readable[1:]),
        write=checkout.writable,
        worktree=place,
        layers=(layer,),
    )
    command = Command(("/bin/sh", "-c", line), place, ENVIRONMENT, timedelta(minutes=1))
    return sandbox_for(checkout).run(command, access)


def test_a_directory_that_an_agent_replaced_hides_nothing_from_the_checks(
    checkout: Checkout,
) -> None:
    """Overlayfs marks such a directory, and the mark would hide what lies below it."""
    assert checkout.agent_layer
    line = "rm -rf build/tools && mkdir build/tools && echo own > build/tools/own"
    assert run_as_agent(checkout, checkout.agent_layer, line).exit_code == 0
    checkout.check_out(checkout.start_sha)
    assert said(checkout, "cat build/tools/deep/tool; ls build/tools").split() == [
        "tool",
        "deep",
        "link",
    ]


def test_notes_of_overlayfs_are_removed_from_a_tree(tmp_path: Path) -> None:
    marked = tmp_path / "tree" / "marked"
    marked.mkdir(parents=True)
    os.setxattr(marked, "user.overlay.opaque", b"y")
    os.setxattr(marked, "user.mine", b"y")
    remove_notes(tmp_path / "tree")
    assert os.listxattr(marked) == ["user.mine"]


@pytest.mark.parametrize(("report", "named"), [("build/report.xml", ""), ("*/*.xml", "[build] ")])
def test_a_report_is_read_as_the_check_left_it_and_never_through_a_link(
    checkout: Checkout, report: str, named: str
) -> None:
    verifier, log = (
        CommandVerifier(ENVIRONMENT, sandbox_for(checkout)),
        checkout.private.parent / "log",
    )
    junit = '<testsuite tests="1" failures="1"><testcase name="t" classname="c"><failure/>'
    write = f"echo '{junit}</testcase></testsuite>' > build/report.xml; exit 1"
    check = Check(name="it", run=write, report=report)
    found = verifier.check(check, checkout, log)
    assert [each.test_id for each in found.findings] == [f"{named}c t"]
    checkout.check_out(checkout.start_sha)
    linked = "ln -sf /etc/passwd build/report.xml; exit 1"
    check = Check(name="it", run=linked, report=report)
    assert "root:" not in verifier.check(check, checkout, log).digest


def test_a_report_that_was_asked_for_or_left_by_a_tool_is_read(checkout: Checkout) -> None:
    verifier, log = (
        CommandVerifier(ENVIRONMENT, sandbox_for(checkout)),
        checkout.private.parent / "log",
    )
    failed = '<testsuite><testcase name="{}" classname="c"><failure/></testcase></testsuite>'
    left = "build/target/surefire-reports"
    write = (
        f"mkdir -p {left}; echo '{failed.format('left')}' > {left}/TEST-c.xml;"
        f" echo '{failed.format('asked')}' > \"${{PYTEST_ADDOPTS##*=}}\"; exit 1"
    )
    for _ in range(2):
        checkout.check_out(checkout.start_sha)
        found = verifier.check(Check(name="it", run=write), checkout, log)
        assert [each.test_id for each in found.findings] == ["c asked", "c left"]
        assert not (checkout.path / left).exists()
        assert not (checkout.private / "reports").exists()


def test_a_report_of_set_up_does_not_count_for_a_check(checkout: Checkout) -> None:
    verifier, log = (
        CommandVerifier(ENVIRONMENT, sandbox_for(checkout)),
        checkout.private.parent / "log",
    )
    check = Check(name="it", run="test ! -e build/old", report="build/old")
    assert verifier.check(check, checkout, log).passed


def test_the_files_that_a_check_changed_are_named_by_git(checkout: Checkout) -> None:
    said(checkout, "echo x >> src/calc.py; rm -f README.md; echo y > untracked; rm -rf build/tools")
    assert set(checkout.changed_files(checkout.start_sha)) == {"README.md", "src/calc.py"}
    assert (checkout.path / "README.md").exists()


def test_set_up_that_runs_again_keeps_what_it_made(checkout: Checkout, tmp_path: Path) -> None:
    verifier, copied = CommandVerifier(ENVIRONMENT, sandbox_for(checkout)), checkout.with_copies()
    copied.check_out(copied.start_sha)
    assert (copied.path / "build/tools" / "deep" / "tool").exists()
    again = SetUp(
        run=("echo newer > build/tools/deep/tool; rm ~/cache/it; echo more > ~/cache/more",)
    )
    assert verifier.set_up_again(again, copied, tmp_path / "again.log", "Why.").passed
    kept = copied.keep_set_up()
    kept.check_out(kept.start_sha)
    assert said(kept, "cat build/tools/deep/tool; ls ~/cache").split() == ["newer", "more"]
    checkout.check_out(checkout.start_sha)
    assert said(checkout, "cat build/tools/deep/tool; ls ~/cache").split() == ["tool", "it"]


@pytest.mark.parametrize("mounter", [sandbox, overlaying])
def test_paths_with_signs_of_the_options_are_mounted(
    mounter: Callable[[], Bubblewrap], tmp_path: Path
) -> None:
    place = tmp_path / "a:b,c\\d e"
    assert layer_problem(mounter(), place, ENVIRONMENT) == ""


def test_an_agent_cannot_change_its_git_file(checkout: Checkout) -> None:
    """It is a file of the upper directory, bound again over the layer."""
    assert checkout.agent_layer
    before = (checkout.path / ".git").read_text()
    tried = "echo bad > .git; rm -f .git; mv .git other; ln -sf /etc .git"
    ended = run_as_agent(checkout, checkout.agent_layer, f"({tried}) 2>&1; cat .git")
    assert ended.text.endswith(before)
    assert (checkout.path / ".git").read_text() == before


@pytest.mark.skipif(os.getuid() != 0, reason="only root can plant a device and a program of root")
def test_a_device_or_a_program_of_root_in_a_layer_gives_nothing(checkout: Checkout) -> None:
    """The upper directory is the agent's worktree."""
    layer = checkout.agent_layer
    assert layer
    device, program = checkout.path / "device", checkout.path / "program"
    os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    device.chmod(0o666)
    program.write_bytes(Path("/usr/bin/id").read_bytes())
    line = "cat device; ./program -u; grep NoNewPrivs /proc/self/status"
    program.chmod(0o4755)
    ended = run_as_agent(checkout, layer, line)
    said = ended.text.splitlines()
    assert said[0].endswith("Permission denied")
    assert said[1:] == [str(sandbox().user or 0), "NoNewPrivs:\t1"]


def test_copies_give_the_same_where_there_are_no_layers(tmp_path: Path) -> None:
    remote = calc_remote(tmp_path / "remote.git")
    verifier = CommandVerifier(ENVIRONMENT, sandbox())
    with worktrees_of(tmp_path / "work", remote).open(REF) as tree:
        assert verifier.set_up((SET_UP,), tree, tmp_path / "setup.log").passed
        made = tree.keep_set_up()
        made.check_out(made.start_sha)
        assert (made.layer, made.agent_layer) == (None, None)
        of_trees = made.copies.took
        assert of_trees > timedelta()
        assert said(made, SEEN).split()[:4] == ["tool", "tool", "cached", "750"]
        assert made.copies.took > of_trees


def test_the_memory_of_a_command_is_limited_in_layers_too(tmp_path: Path) -> None:
    """The layers are mounted inside the command's groups and limits."""
    tree = plain_worktree(tmp_path / "work")
    (tree.private / "left" / TREE).mkdir(parents=True)
    (tree.private / "left" / HOME).mkdir()
    lower = tree.private / "left" / TREE
    place = tree.private / "layer"
    layer = layer_in(place, (tree.path, lower), place / "merged")
    create_layer(layer, ENVIRONMENT)
    limited = sandbox(limits=SandboxLimits(file_mib=1))
    command = Command(
        ("/bin/sh", "-c", "head -c 2000000 /dev/zero > big"),
        Path(layer.target),
        ENVIRONMENT,
        timedelta(minutes=1),
    )
    access = CommandAccess(worktree=Path(layer.target), layers=(layer,), owned=(tree.path,))
    assert limited.run(command, access).exit_code != 0


def test_nothing_is_mounted_after_the_command(checkout: Checkout) -> None:
    said(checkout, "true")
    mounts = subprocess.run(["cat", "/proc/self/mounts"], capture_output=True, check=True).stdout
    assert str(checkout.private).encode() not in mounts
