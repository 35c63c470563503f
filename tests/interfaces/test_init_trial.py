"""`mulligan init` runs what it proposes once, and writes only what verifies a change."""

import os
import sys
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from mulligan.config.load import load_policy
from mulligan.interfaces.bootstrap.trial import NO_TIME
from mulligan.interfaces.cli.trial import try_plan
from mulligan.interfaces.onboarding.plans import Plan
from mulligan.interfaces.onboarding.proposal import Proposal, suite
from world.confined import sandbox
from world.pseudo_terminal import on_a_terminal
from world.repositories import git
from world.starts import run_mulligan

WHO = ("-c", "user.name=ada", "-c", "user.email=ada@localhost")
CODE = "def double(n):\n    return 2 * n\n"
TESTS = (
    "import calc, unittest\nclass T(unittest.TestCase):\n"
    "    def test(self): self.assertEqual(calc.double(2), 4)\n"
)
WORKFLOW = "on: push\njobs:\n  all:\n    runs-on: ubuntu\n    steps:\n"

pytestmark = pytest.mark.usefixtures("confined")


@pytest.fixture(scope="module")
def confined() -> None:
    sandbox()


def repository(directory: Path, *runs: str, **files: str) -> Path:
    """Make a clone whose workflow runs some commands."""
    steps = "".join(f"      - run: {run}\n" for run in runs)
    texts = {
        "calc.py": CODE,
        "test_calc.py": TESTS,
        ".github/workflows/ci.yml": f"{WORKFLOW}{steps}",
        **{name.replace("__", "."): text for name, text in files.items()},
    }
    for name, text in texts.items():
        file = directory / "clone" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    git(directory / "clone", "init", "--quiet", "--initial-branch", "main")
    git(directory / "clone", "add", ".")
    git(directory / "clone", *WHO, "commit", "--quiet", "--message", "One")
    return directory / "clone"


def written(clone: Path) -> str:
    return (clone / ".github" / "mulligan.yml").read_text()


def test_what_passes_is_written_and_what_fails_is_a_comment(tmp_path: Path) -> None:
    here = repository(
        tmp_path,
        "python3 -m unittest -v",
        "make lint",
        "make types",
        Makefile="lint:\n\techo 'calc.py:1:1: E1 bad' && false\ntypes:\n\techo '# x' >> calc.py\n",
    )
    done = run_mulligan(here, "init", "--yes", "--no-workflow")
    assert done.returncode == 0, done.stderr
    assert "These commands run once in the sandbox now" in done.stdout
    assert "✓ tests: it passes here" in done.stdout
    assert "– lint: it fails here: calc.py:1:1: E1 bad" in done.stdout
    assert "– types: it changes 1 tracked file, such as calc.py" in done.stdout
    assert "The checks that did not pass are comments in the file" in done.stdout
    policy = load_policy(written(here).encode(), {}, "written")
    assert [check.run for check in policy.checks] == ["python3 -m unittest -v"]
    assert "  # Left out, since it fails here: calc.py:1:1: E1 bad:\n  # - name: lint\n" in written(
        here
    )
    assert git(here, "status", "--porcelain", "--", "calc.py") == ""


def test_a_check_that_no_broken_code_fails_tests_nothing(tmp_path: Path) -> None:
    here = repository(tmp_path, "make test", Makefile="test:\n\techo 5 tests passed\n")
    done = run_mulligan(here, "init", "--yes", "--no-workflow")
    assert "– tests: it tests nothing: it passes with all source files broken" in done.stdout
    assert "What the repository's manifests say is tried instead:" in done.stdout
    policy = load_policy(written(here).encode(), {}, "written")
    assert [check.run for check in policy.checks] == ["python3 -m unittest"]


def test_a_setup_command_that_fails_costs_only_its_own_check(tmp_path: Path) -> None:
    here = repository(
        tmp_path,
        "python3 -m unittest",
        "tox -e lint",
        "npm ci",
        tox__ini="",
        package__json="{}",
    )
    (here / "bin").mkdir()
    npm = here / "bin" / "npm"
    npm.write_text("#!/bin/sh\nexit 0\n")
    npm.chmod(0o755)
    git(here, "add", ".")
    git(here, *WHO, "commit", "--quiet", "--message", "Two")
    done = run_mulligan(here, "init", "--yes", "--no-workflow", PATH=f"{here}/bin:/usr/bin:/bin")
    assert "– lint: the setup commands failed" in done.stdout
    assert "✓ tests: it passes here" in done.stdout
    assert "tox -e lint --notest" not in written(here).split("checks:")[0]


@pytest.mark.parametrize(
    ("printed", "reason"),
    [
        (
            "-- Unhandled Errors --\n\nCaught 1 unhandled error.\nError: the browser is absent\n",
            "Error: the browser is absent",
        ),
        (
            "[AttributeError]: no such name\nnox > Command pdm install failed with exit code 1\n",
            "[AttributeError]: no such name",
        ),
        ("calc.py:3: error: wrong\nfatal: more\n", "calc.py:3: error: wrong"),
        ("nothing works\n", "nothing works"),
    ],
)
def test_the_reason_is_the_error_and_not_what_stands_around_it(
    tmp_path: Path, printed: str, reason: str
) -> None:
    here = repository(tmp_path, "./types", types="#!/bin/sh\ncat log\nexit 1\n", log=printed)
    (here / "types").chmod(0o755)
    git(here, *WHO, "commit", "--quiet", "--all", "--message", "Two")
    done = run_mulligan(here, "init", "--yes", "--no-workflow")
    assert f"– types: it fails here: {reason}, " in done.stdout


def test_all_failed_checks_are_said(tmp_path: Path) -> None:
    here = repository(tmp_path, "make test", Makefile="test:\n\tfalse\n")
    (here / "test_calc.py").write_text("import unittest\n")
    git(here, *WHO, "commit", "--quiet", "--all", "--message", "Two")
    done = run_mulligan(here, "init", "--yes", "--no-workflow")
    assert "No check passes here, so nothing would verify a change." in done.stdout
    assert done.stdout.count("`python3 -m unittest`") == 1
    assert load_policy(written(here).encode(), {}, "written").checks == ()


def test_old_failures_are_ignored_and_a_missing_program_is_named(tmp_path: Path) -> None:
    both = TESTS + "    def test_old(self): self.fail('an old failure')\n"
    here = repository(tmp_path, "python3 -m unittest", "no-such-linter lint", test_calc__py=both)
    done = run_mulligan(here, "init", "--yes", "--no-workflow")
    assert "no-such-linter" not in written(here)
    assert "tests: it has 1 failure here without any change, which attempts ignore" in done.stdout
    assert len(load_policy(written(here).encode(), {}, "written").checks) == 1


def test_without_a_trial_or_a_commit_the_proposal_is_written(tmp_path: Path) -> None:
    here = repository(tmp_path, "make test", Makefile="test:\n\tfalse\n")
    done = run_mulligan(here, "init", "--yes", "--no-workflow", "--no-try")
    assert "in the sandbox now" not in done.stdout
    assert [check.run for check in load_policy(written(here).encode(), {}, "").checks] == [
        "make test"
    ]
    (here / ".github" / "mulligan.yml").unlink()
    git(here, "checkout", "--quiet", "--orphan", "new")
    done = run_mulligan(here, "init", "--yes", "--no-workflow")
    assert "Nothing was tried: . has no commit on new yet." in done.stdout.replace(str(here), ".")
    assert [check.run for check in load_policy(written(here).encode(), {}, "").checks] == [
        "make test"
    ]


def test_after_its_time_a_check_is_proposed_without_a_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = repository(tmp_path, "make test", Makefile="test:\n\ttouch begun\n\tfalse\n")
    monkeypatch.setattr("mulligan.interfaces.cli.trial.TRIAL_LIMIT", timedelta(seconds=-1))
    monkeypatch.setattr("mulligan.interfaces.cli.trial.start_logs", lambda: None)
    check, said = suite("make test", "Makefile"), StringIO()
    plan = Plan(Proposal("make", checks=(check,)), Proposal(""))
    proposal = try_plan(Console(file=said, width=100), plan, here, here / "none.yml")
    assert [(each.run, each.is_kept) for each in proposal.checks] == [("make test", True)]
    assert f"– tests: {NO_TIME}" in said.getvalue()


def test_ctrl_c_ends_the_trial_and_writes_nothing(tmp_path: Path) -> None:
    here = repository(tmp_path, "make test", Makefile="test:\n\techo started; sleep 60\n")
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    argv = (sys.executable, "-m", "mulligan", "init", "--no-workflow")
    with on_a_terminal(argv, here, environment) as terminal:
        terminal.wait_for("started")
        terminal.press("\x03")
        assert terminal.end() == 130
    assert not (here / ".github" / "mulligan.yml").exists()
