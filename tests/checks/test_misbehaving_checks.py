"""Checks that misbehave: silent, endless, flooding, with children, killing, with broken reports."""

import os
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from mulligan.checks.runner import MAX_LOG_BYTES, CommandVerifier
from mulligan.config.policy import Check
from mulligan.domain.result import CheckResult
from world.processes import processes_in
from world.trees import PlainWorktree, plain_worktree

VERIFIER = CommandVerifier({"PATH": os.environ["PATH"]})
JUNIT = (
    '<testsuite tests="2" failures="1"><testcase classname="cart" name="test_total">'
    '<failure message="assert 35 == 36">no tax</failure></testcase></testsuite>'
)


@pytest.fixture
def tree(tmp_path: Path) -> PlainWorktree:
    return plain_worktree(tmp_path / "work")


def checked(
    tree: PlainWorktree,
    line: str,
    seconds: float = 120,
    report: str | None = None,
    verifier: CommandVerifier = VERIFIER,
) -> CheckResult:
    check = Check(name="it", run=line, timeout=timedelta(seconds=seconds), report=report)
    return verifier.check(check, tree, tree.private / "check.log")


def test_one_that_prints_nothing_is_judged_by_its_exit_code(tree: PlainWorktree) -> None:
    assert checked(tree, "true").passed
    silent = checked(tree, "false")
    assert (silent.passed, silent.exit_code, silent.digest) == (False, 1, "No output.")


def test_one_that_prints_without_end_keeps_a_bounded_log(tree: PlainWorktree) -> None:
    small = replace(VERIFIER, max_log_bytes=1_000_000)
    line = "head -c 50M /dev/zero; echo; echo 'cart.py:3:1: error: at the end'; exit 1"
    result = checked(tree, line, verifier=small)
    assert "cart.py:3:1: error: at the end" in result.digest
    assert (tree.private / "check.log").stat().st_size < 1_100_000


def test_what_is_kept_of_a_log_is_a_quarter_of_a_gigabyte() -> None:
    assert VERIFIER.max_log_bytes == MAX_LOG_BYTES == 256 * 1024**2


def test_one_that_never_ends_is_stopped_with_all_it_started(tree: PlainWorktree) -> None:
    result = checked(tree, "setsid sleep 60 & while :; do sleep 1; done", seconds=0.5)
    assert (result.passed, result.timed_out) == (False, True)
    assert processes_in(tree.path) == []


@pytest.mark.parametrize(
    "line", ["sleep 60 & true", "setsid sleep 60 & true", "(setsid sh -c 'sleep 60 &') & true"]
)
def test_one_that_leaves_children_leaves_none(tree: PlainWorktree, line: str) -> None:
    result = checked(tree, line)
    assert result.passed
    assert result.duration_ms < 10_000
    assert processes_in(tree.path) == []


@pytest.mark.parametrize("line", ["kill -9 0", "kill -TERM 0; sleep 60"])
def test_one_that_kills_its_own_group_has_failed(tree: PlainWorktree, line: str) -> None:
    result = checked(tree, f"echo 'cart.py:3:1: error: before it'; {line}")
    assert not result.passed
    assert "cart.py:3:1: error: before it" in result.digest
    assert processes_in(tree.path) == []


@pytest.mark.parametrize(
    "write",
    [
        "echo '<testsuite><testcase name=' > out/report.xml",
        "head -c 100000 /dev/urandom > out/report.xml",
        ": > out/report.xml",
        "mkfifo out/report.xml",
        "mkdir out/report.xml",
        "ln -s /dev/zero out/report.xml",
        "rm -rf out && ln -s /proc/self out",
        "truncate -s 5G out/report.xml",
        "printf '[' > out/report.xml; yes '[' | head -c 200000 >> out/report.xml",
    ],
)
def test_a_broken_report_changes_nothing(tree: PlainWorktree, write: str) -> None:
    line = f"mkdir -p out; echo 'cart.py:3:1: error: as it was said'; {write}; exit 1"
    result = checked(tree, line, report="out/report.xml")
    assert not result.passed
    assert "as it was said" in result.digest


def test_a_report_that_lay_there_before_is_not_the_checks(tree: PlainWorktree) -> None:
    (tree.path / "report.xml").write_text(JUNIT)
    result = checked(tree, "test ! -e report.xml", report="report.xml")
    assert result.passed


def test_a_report_is_not_removed_through_a_link(tree: PlainWorktree, tmp_path: Path) -> None:
    (tmp_path / "report.xml").write_text("precious")
    (tree.path / "out").symlink_to(tmp_path)
    (tree.path / "link.xml").symlink_to(tmp_path / "report.xml")
    assert checked(tree, "true", report="out/report.xml").passed
    assert checked(tree, "test ! -L link.xml", report="link.xml").passed
    assert (tmp_path / "report.xml").read_text() == "precious"


def test_code_is_taken_as_it_was_when_the_check_ran(tree: PlainWorktree) -> None:
    (tree.path / "cart.py").write_text("def total(lines):\n    tax = 0\n    return sum(lines)\n")
    said = "print('cart.py:3:1: error: no tax'); raise SystemExit(1)"
    result = checked(tree, f'{sys.executable} -c "{said}"')
    (shown,) = result.source
    assert (shown.file, shown.line) == ("cart.py", 3)
    assert shown.text == "  1 | def total(lines):\n  2 |     tax = 0\n> 3 |     return sum(lines)"
