"""Checks and set-up lines as real processes."""

import os
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from mulligan.checks.runner import CommandVerifier
from mulligan.config.policy import Check
from mulligan.domain.errors import MisconfiguredError, ShutdownError
from mulligan.domain.result import CheckResult
from mulligan.implement.prompt.outcome_text import verdict
from mulligan.sandbox.cancellation import SHUTDOWN
from mulligan.sandbox.version_managers import VARIABLES
from world.processes import processes_in
from world.trees import PlainWorktree, plain_worktree

VERIFIER = CommandVerifier({"PATH": os.environ["PATH"], "GITHUB_TOKEN": "hidden"})


@pytest.fixture
def tree(tmp_path: Path) -> PlainWorktree:
    return plain_worktree(tmp_path / "work")


def checked(
    tree: PlainWorktree, line: str, seconds: float = 20, verifier: CommandVerifier = VERIFIER
) -> CheckResult:
    check = Check(name="it", run=line, timeout=timedelta(seconds=seconds))
    return verifier.check(check, tree, tree.private / "check.log")


def log_of(tree: PlainWorktree) -> str:
    return (tree.private / "check.log").read_text()


def test_a_check_sees_a_small_environment_and_the_tree(tree: PlainWorktree) -> None:
    assert checked(tree, "env; pwd").passed
    said = dict(line.split("=", 1) for line in log_of(tree).splitlines() if "=" in line)
    own = {"PATH", "HOME", "LANG", "TERM", "CI", "PWD", "OLDPWD", "SHLVL", "_"}
    asking = {"PYTEST_ADDOPTS", "TOX_OVERRIDE"}
    assert set(said) <= own | asking | set(VARIABLES)
    assert said["HOME"] == str(tree.private / "home")
    assert (said["LANG"], said["TERM"], said["CI"]) == ("C.UTF-8", "dumb", "true")
    assert log_of(tree).splitlines()[-1] == str(tree.path)
    assert "hidden" not in log_of(tree)


def test_the_home_of_a_check_is_its_own_and_there(tree: PlainWorktree) -> None:
    line = 'stat -c %a "$HOME"; ls -A "$HOME"; echo x > "$HOME/file"'
    for _ in range(2):
        assert checked(tree, line).passed
        assert log_of(tree) == "700\n"
    assert not (tree.private / "home").exists()


def test_every_check_finds_the_home_that_set_up_left(tree: PlainWorktree) -> None:
    log = tree.private / "setup.log"
    VERIFIER.set_up(("echo $HOME > ~/made", "echo more >> ~/made; exit 0"), tree, log)
    ready = tree.keep_set_up()
    for _ in range(2):
        assert checked(ready, "ls ~; cat ~/made; rm ~/made; touch ~/left").passed
        assert log_of(tree) == f"made\n{tree.private}/home\nmore\n"


def test_what_a_set_up_that_failed_left_is_in_no_home(tree: PlainWorktree) -> None:
    log = tree.private / "setup.log"
    assert not VERIFIER.set_up(("touch ~/half; exit 1",), tree, log).passed
    assert checked(tree, "ls ~").passed
    assert log_of(tree) == ""


def test_both_outputs_are_in_the_log_and_the_duration_is_told(tree: PlainWorktree) -> None:
    result = checked(tree, "echo out; echo err >&2; sleep 0.5; exit 3")
    assert log_of(tree) == "out\nerr\n"
    assert result.exit_code == 3
    # A busy machine may let the command begin before it is timed.
    assert 100 <= result.duration_ms < 10_000


def test_a_pattern_that_finds_nothing_stops_neither_the_others_nor_the_check(
    tree: PlainWorktree,
) -> None:
    lookahead, good = "(?=zork)", "^zork (?P<test_id>.*)"
    check = Check(name="it", run="echo zork lamp; exit 1", patterns=(lookahead, good))
    with capture_logs() as logs:
        result = VERIFIER.check(check, tree, tree.private / "check.log")
    assert [found.test_id for found in result.findings] == ["lamp"]
    (entry,) = logs
    assert entry["event"] == "pattern_ignored"
    assert (entry["check"], entry["pattern"]) == ("it", lookahead)
    assert "RE2 has no look-around" in entry["reason"]


def test_a_time_out_is_a_failure_that_says_so(tree: PlainWorktree) -> None:
    result = checked(tree, "echo tests/test_slow.py::test_x; sleep 20", seconds=1.5)
    assert not result.passed
    assert result.timed_out
    assert result.digest.startswith("Timed out after 1s500ms.\n")
    assert "tests/test_slow.py::test_x" in result.digest
    assert len(result.digest) <= 2000
    assert processes_in(tree.path) == []


def test_a_check_that_is_told_to_end_and_says_success_has_timed_out(tree: PlainWorktree) -> None:
    result = checked(tree, "trap 'exit 0' TERM; sleep 20 & wait", seconds=1.5)
    assert (result.passed, result.timed_out) == (False, True)


def test_a_check_that_kills_itself_is_named(tree: PlainWorktree) -> None:
    result = checked(tree, "echo last words; kill -SEGV $$")
    assert result.exit_code == -11
    assert result.digest.startswith("Ended by SIGSEGV.")
    assert "last words" in result.digest


def test_a_check_without_any_output_has_a_digest(tree: PlainWorktree) -> None:
    result = checked(tree, "exit 3")
    assert result.digest == "No output."
    assert result.fingerprint


def test_every_finding_is_told_so_that_trees_can_be_compared(tree: PlainWorktree) -> None:
    line = 'i=0; while [ $i -lt 90 ]; do i=$((i+1)); echo "a$i.c:$i:1: error: no"; done; exit 1'
    result = checked(tree, line)
    assert (len(result.findings), result.count) == (90, 90)


def test_a_failure_is_known_by_its_path_wherever_the_tree_lies(tmp_path: Path) -> None:
    line = 'echo "$PWD/{0}/index.js:3:1: error: no"; exit 1'
    one, other = plain_worktree(tmp_path / "one"), plain_worktree(tmp_path / "other")
    before, same = checked(one, line.format("a")), checked(other, line.format("a"))
    assert [found.file for found in before.findings] == ["a/index.js"]
    assert same.fingerprint == before.fingerprint
    assert VERIFIER.subtract_baseline(same, before, ()).preexisting
    # Another package has a file of that name.
    beside = checked(other, line.format("b"))
    assert beside.fingerprint != before.fingerprint
    assert VERIFIER.subtract_baseline(beside, before, ()).findings == beside.findings
    assert str(other.path) not in beside.digest
    assert str(other.path) in log_of(other)


@pytest.mark.parametrize(
    ("line", "program"),
    [
        ("no-such-program", "no-such-program"),
        ("MODE=fast LEVEL='a b' no-such-program --all", "no-such-program"),
        ("no-such-program && echo done", "no-such-program"),
        ("no-such-program; exit 127", "no-such-program"),
        ("./no/such/script.sh", "./no/such/script.sh"),
        ("/no/such/program -v", "/no/such/program"),
    ],
)
def test_a_program_that_is_not_there_is_named(tree: PlainWorktree, line: str, program: str) -> None:
    with pytest.raises(
        MisconfiguredError, match=f"^'{program}' not found. It is the program of the check 'it'"
    ):
        checked(tree, line)


@pytest.mark.parametrize(
    "line",
    [
        "cd . && no-such-program",
        "true; no-such-program",
        "exit 127",
        "(no-such-program)",
        "$RUNNER no-such-program",
        '"$(echo no-such-program)"',
        "if true; then no-such-program; fi",
        "sh ./script.sh",
        "./script.sh",
        "script.sh",
        "! true || no-such-program",
        "'no end",
        "ls 'x' && exit 127 # it's",
    ],
)
def test_what_fails_later_in_the_line_is_an_ordinary_failure(
    tree: PlainWorktree, line: str
) -> None:
    script = tree.path / "script.sh"
    script.write_text("#!/bin/sh\nno-such-program\n")
    script.chmod(0o755)
    (tree.path / "x").touch()
    result = checked(tree, line)
    assert not result.passed
    assert result.exit_code in {2, 127}


def test_output_beyond_what_a_log_holds_keeps_its_end(tree: PlainWorktree) -> None:
    small = replace(VERIFIER, max_log_bytes=100_000)
    line = (
        "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); "
        "echo 'a line of the output that says nothing at all, number' $i; done; "
        "echo 'src/a.c:3:5: error: at the very end'; exit 1"
    )
    result = checked(tree, line, verifier=small)
    assert "src/a.c:3:5: error: at the very end" in result.digest
    assert "bytes omitted]\n" in log_of(tree)
    assert log_of(tree).endswith("at the very end\n")
    line = "head -c 120000 /dev/zero | tr '\\0' x; echo; echo the end; exit 1"
    short = checked(tree, line, verifier=small)
    assert "bytes omitted" not in log_of(tree)
    assert len(log_of(tree)) == 120_009
    assert "the end" in short.digest


def test_set_up_lines_share_one_log(tree: PlainWorktree) -> None:
    log = tree.private / "setup.log"
    VERIFIER.set_up(("echo one", "echo two >&2; echo x > made"), tree, log)
    assert log.read_text() == "$ echo one\none\n$ echo two >&2; echo x > made\ntwo\n"
    assert (tree.path / "made").exists()
    assert [place.name for place in tree.private.iterdir() if "setup" in place.name] == [
        "setup.log"
    ]


PIP = """\
printf 'Collecting x\\r  12%%\\r\\033[32m 100%%\\033[0m\\n\\n'
for n in $(seq 30); do echo "  line $n"; done
printf '  \\342\\225\\260\\342\\224\\200> See above for output.\\n' >&2
exit 1"""


@pytest.mark.parametrize(
    ("line", "code", "end"),
    [
        ("echo 'E: no package x' >&2; exit 100", 100, "E: no package x"),
        ("printf 'one\\rtwo\\033[1m!\\033[0m\\n\\n'; exit 2", 2, "two!"),
        ("exit 3", 3, "It printed nothing."),
        ("no-such-program", 127, "/bin/sh: 1: no-such-program: not found"),
        (
            PIP,
            1,
            "\n".join([*(f"  line {n}" for n in range(17, 31)), "  See above for output."]),
        ),
    ],
)
def test_a_set_up_line_that_fails_is_named_with_its_last_lines(
    tree: PlainWorktree, line: str, code: int, end: str
) -> None:
    log = tree.private / "setup.log"
    result = VERIFIER.set_up(("true", line, "touch never"), tree, log)
    assert (result.passed, result.command, result.exit_code) == (False, line, code)
    assert result.digest.replace("/bin/sh: line 1:", "/bin/sh: 1:") == end
    assert log.read_text().startswith(f"$ true\n$ {line}\n")
    assert not (tree.path / "never").exists()


def test_a_set_up_line_that_never_ends_is_named(tree: PlainWorktree) -> None:
    verifier = replace(VERIFIER, set_up_timeout=timedelta(milliseconds=500))
    result = verifier.set_up(("sleep 20",), tree, tree.private / "setup.log")
    assert (result.passed, result.timed_out, result.exit_code) == (False, True, 124)
    assert verdict(result).startswith("The setup command 'sleep 20' timed out after ")


def test_a_set_up_that_is_stopped_leaves_what_it_said(tree: PlainWorktree) -> None:
    log = tree.private / "setup.log"
    SHUTDOWN.set()
    try:
        with pytest.raises(ShutdownError):
            VERIFIER.set_up(("echo one",), tree, log)
    finally:
        SHUTDOWN.clear()
    assert log.read_text() == "$ echo one\n"
