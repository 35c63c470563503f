"""`mulligan debug digest` and `mulligan check`, as they are typed."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from mulligan.config.load import load_policy
from mulligan.config.policy import Baseline
from mulligan.domain.errors import ConfigError
from world.fork_server import run_forked
from world.samples import is_as_documented

LOG = "== 1 of 900 ==\n" * 900 + "src/cart.py:3:5: error: the total is wrong\n" + "ok\n" * 900
POLICY = """
checks:
  - {name: types, run: 'true', kind: type}
  - {name: tests, run: "echo 'cart.py:2:1: error: no tax'; exit 1", kind: test}
  - {name: style, run: 'exit 3', required: false}
"""


def mulligan(*words: str, where: Path, said: str = "") -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "COLUMNS": "100"}
    return run_forked(words, where, environment, said=said)


def test_a_digest_names_the_one_failure_of_a_long_log(tmp_path: Path) -> None:
    done = mulligan("debug", "digest", "--command", "make", where=tmp_path, said=LOG)
    assert (done.returncode, done.stderr) == (0, "")
    assert "src/cart.py:3:5: error: the total is wrong\n" in done.stdout
    assert len(done.stdout) <= 2001
    found = json.loads(mulligan("debug", "digest", "--json", where=tmp_path, said=LOG).stdout)
    assert (found["passed"], found["count"]) == (False, 1)
    assert found["findings"][0]["file"] == "src/cart.py"
    passed = mulligan("debug", "digest", "--exit-code", "0", where=tmp_path, said="all well")
    assert passed.stdout == "Passed.\n"


def test_samples_of_the_page_are_what_is_printed(tmp_path: Path) -> None:
    log = "FAILED tests/test_add.py::test_add - assert 3 == 4\n"
    digest = mulligan("debug", "digest", "--command", "pytest -q", where=tmp_path, said=log)
    assert is_as_documented("digest", digest.stdout)
    assert is_as_documented("action", mulligan("action", where=tmp_path).stderr)


def test_a_report_that_is_not_there_is_named(tmp_path: Path) -> None:
    done = mulligan("debug", "digest", "--report", "gone.xml", where=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(
        "mulligan: gone.xml could not be read (No such file or directory)"
    )


def test_check_here_runs_every_check_and_shows_what_an_agent_would_be_told(tmp_path: Path) -> None:
    (tmp_path / ".github").mkdir()
    (tmp_path / ".github" / "mulligan.yml").write_text(POLICY)
    (tmp_path / "cart.py").write_text("def total(lines):\n    return sum(lines)\n")
    done = mulligan("check", "--here", where=tmp_path)
    assert done.returncode == 1
    lines = [line.rpartition("  ")[0] or line for line in done.stdout.splitlines()]
    assert lines[0] == "✓ Check 'types' passed."
    assert "✗ Check 'tests' failed with exit code 1." in lines
    assert "✗ Check 'style' failed with exit code 3. It is not required." in lines
    assert "  cart.py:2:1: error: no tax" in done.stdout
    assert done.stdout.splitlines()[-1] == "1 of 3 checks would fail an attempt."
    found = json.loads(mulligan("check", "--here", "--json", where=tmp_path).stdout)
    assert [each["passed"] for each in found] == [True, False, False]
    assert found[1]["source"][0]["text"].startswith("  1 | def total(lines):\n> 2 |")
    assert sorted(place.name for place in tmp_path.iterdir()) == [".github", "cart.py"]


def test_check_runs_the_setup_commands_here_if_it_is_told_to(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yml"
    policy.write_text("setup: [touch made]\nchecks: [{name: a, run: test -f made}]\n")
    assert mulligan("check", "--here", "--policy", "policy.yml", where=tmp_path).returncode == 1
    done = mulligan("check", "--here", "--policy", "policy.yml", "--setup", where=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("✓ 1 setup command finished.  ")
    policy.write_text("setup: ['exit 3']\nchecks: [{name: a, run: 'true'}]\n")
    failed = mulligan("check", "--here", "--policy", "policy.yml", "--setup", where=tmp_path)
    assert failed.returncode == 1
    assert "The setup command 'exit 3' failed" in failed.stderr


def test_check_names_the_option_where_a_program_is_missing(tmp_path: Path) -> None:
    policy = "setup: [make]\nchecks: [{name: a, run: no-such-program}]"
    (tmp_path / "policy.yml").write_text(policy)
    done = mulligan("check", "--here", "--policy", "policy.yml", where=tmp_path)
    assert (done.returncode, done.stdout.splitlines()[0]) == (2, "1 check could not run.")
    assert "To run them here first: `mulligan check --here --setup`." in done.stderr


def test_check_says_that_a_policy_without_checks_verifies_nothing(tmp_path: Path) -> None:
    (tmp_path / "policy.yml").write_text("checks: []")
    done = mulligan("check", "--here", "--policy", "policy.yml", where=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "would publish every change without verification" in done.stdout


@pytest.mark.parametrize(
    ("policy", "code", "said"),
    [
        (None, 2, "policy.yml could not be read (No such file or directory). Name the policy"),
        ("checks: [{name: a}]", 2, "policy.yml, line 1: checks.0.run is missing; write text"),
        ("checks: [{name: a, run: no-such-program}]", 2, "'no-such-program' not found"),
        ("checks: [{name: a, run: 'true'}]", 0, ""),
    ],
)
def test_check_ends_as_its_policy_deserves(
    tmp_path: Path, policy: str | None, code: int, said: str
) -> None:
    if policy:
        (tmp_path / "policy.yml").write_text(policy)
    done = mulligan("check", "--here", "--policy", "policy.yml", where=tmp_path)
    assert done.returncode == code
    assert done.stderr.startswith(f"mulligan: {said}" if said else "")


@pytest.mark.parametrize(
    ("check", "mistake"),
    [
        (
            "report: /tmp/report.xml",
            "report is '/tmp/report.xml'; write a relative path inside the worktree",
        ),
        (
            "report: ../report.xml",
            "report is '../report.xml'; write a relative path inside the worktree",
        ),
        ("report: .", "report is '.'; write a relative path inside the worktree"),
        (f"patterns: {['x'] * 101}", "write at most 100 patterns for a check"),
    ],
)
def test_a_check_that_cannot_be_kept_is_refused(check: str, mistake: str) -> None:
    text = f"checks: [{{name: a, run: b, {check}}}]"
    with pytest.raises(ConfigError, match=r"^policy, line 1: checks.0") as caught:
        load_policy(text.encode(), {}, "policy")
    assert mistake in str(caught.value)


def test_baseline_may_be_written_off() -> None:
    assert load_policy(None, {}, "policy").baseline is Baseline.ON
    assert load_policy(b"baseline: off", {}, "policy").baseline is Baseline.OFF
    text = b"checks: [{name: a, run: b, report: out/junit.xml, patterns: ['(?P<file>x)']}]"
    (check,) = load_policy(text, {}, "policy").checks
    assert check.report == "out/junit.xml"


def test_a_check_whose_program_is_missing_does_not_stop_the_others(tmp_path: Path) -> None:
    checks = "[{name: a, run: 'false'}, {name: b, run: no-such-program}, {name: c, run: 'true'}]"
    (tmp_path / "policy.yml").write_text(f"checks: {checks}\n")
    done = mulligan("check", "--here", "--policy", "policy.yml", where=tmp_path)
    assert (done.returncode, "Check 'c' passed." in done.stdout) == (2, True)
    assert "'no-such-program' not found. It is the program of the check 'b'" in done.stderr
