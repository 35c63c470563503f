"""A red base branch and a flaky test: what counts against an attempt, and what does not."""

from collections.abc import Generator
from pathlib import Path

import pytest
from pydantic import JsonValue

from mulligan.domain.outcome import Outcome
from world.place import NAME, MulliganInstallation, mulligan_installation

TEST = """
import unittest
from shop import {name}


class {title}Test(unittest.TestCase):
    def test_{name}(self):
        self.assertEqual({name}(10), {wanted}, 'the {name} of ten')
"""
FILES = {
    "shop.py": (
        "def price(n):\n    return n * 2\n\n\n"
        "def tax(n):\n    return n + 1\n\n\n"
        "def total(n):\n    return n * 3\n"
    ),
    "test_price.py": TEST.format(name="price", title="Price", wanted=99),
    "test_tax.py": TEST.format(name="tax", title="Tax", wanted=98),
    "test_total.py": TEST.format(name="total", title="Total", wanted=30),
    ".gitignore": "__pycache__/\n",
}
RUN = "echo run >> {log}; python3 -B -m unittest -v"
ADD = "pathlib.Path('notes.py').write_text('NOTES = 1\\n')\n"
BREAK = """
shop = pathlib.Path('shop.py')
shop.write_text(shop.read_text().replace('n * 3', 'n * 4'))
"""


READS = (
    ("inspect", f"{NAME}#1"),
    ("debug", "events", "--issue", f"{NAME}#1"),
    ("explain", f"{NAME}#1"),
)


@pytest.fixture
def here(tmp_path: Path) -> Generator[MulliganInstallation]:
    tests = {"name": "tests", "run": RUN.format(log=tmp_path / "runs"), "kind": "test"}
    with mulligan_installation(tmp_path, FILES, [tests]) as made:
        # The check counts its runs where no sandbox lets it write.
        made.configure(sandbox="off")
        yield made


def runs(here: MulliganInstallation) -> int:
    return len((here.directory / "runs").read_text().splitlines())


def test_a_change_that_breaks_nothing_succeeds_on_a_red_base(here: MulliganInstallation) -> None:
    here.agent(ADD)
    ref = here.issue()
    done = here.run("once")
    assert done.returncode == 0
    (meta,) = here.attempts(ref)
    assert meta.outcome is Outcome.SUCCEEDED
    (check,) = meta.checks
    assert (check.passed, check.preexisting, check.findings) == (False, True, ())
    (pull,) = here.world.pulls_of(NAME)
    for told in (pull.body or "", here.comments(ref)[0]):
        for word in ("test_price", "test_tax", "fails on the base branch"):
            assert word in told
        assert "test_total" not in told
    assert "pre-existing" in (pull.body or "")
    printed = [here.run(*command).stdout for command in READS]
    for told in (pull.body or "", here.comments(ref)[0], done.stdout, *printed):
        assert "no test verified the change" in " ".join(told.split())
        assert "The change is verified" not in told
    # Once, once more since it may be flaky, and twice on the start tree.
    assert runs(here) == 4


def test_a_change_that_breaks_a_third_test_is_told_of_that_one_only(
    here: MulliganInstallation,
) -> None:
    here.agent(f"if 'Retry context' in prompt:\n    {ADD}else:\n    exec({BREAK!r})")
    ref, other = here.issue(), here.issue("Another one")
    assert here.run("once").returncode == 0
    first, second = here.attempts(ref)
    assert (first.outcome, second.outcome) == (Outcome.CHECKS_FAILED, Outcome.SUCCEEDED)
    told = here.prompt(ref, 2).partition("# Retry context")[2]
    assert "test_total" in told
    assert "the total of ten" in told
    assert "n * 4" in told
    assert "test_price" not in told
    assert "test_tax" not in told
    assert "2 more failed without this change too" in told
    # What the start tree says was asked for once, for both issues and all four attempts.
    assert [meta.outcome for meta in here.attempts(other)] == [
        Outcome.CHECKS_FAILED,
        Outcome.SUCCEEDED,
    ]
    assert runs(here) == 4 * 2 + 2


@pytest.mark.deep
def test_baseline_off_lets_every_failure_count(tmp_path: Path) -> None:
    tests = {"name": "tests", "run": "python3 -B -m unittest -v", "kind": "other"}
    with mulligan_installation(
        tmp_path, FILES, [tests], baseline=False, max_issue_attempts=1
    ) as here:
        here.configure(sandbox="off")
        here.agent(ADD)
        ref = here.issue()
        assert here.run("once").returncode == 3
        (meta,) = here.attempts(ref)
        assert meta.outcome is Outcome.CHECKS_FAILED
        assert len(meta.checks[0].findings) == 2


@pytest.mark.deep
def test_a_green_path_runs_every_check_once(tmp_path: Path) -> None:
    run = RUN.format(log=tmp_path / "runs") + " test_total"
    with mulligan_installation(
        tmp_path, FILES, [{"name": "tests", "run": run, "kind": "test"}]
    ) as here:
        here.configure(sandbox="off")
        here.agent(ADD)
        here.issue()
        assert here.run("once").returncode == 0
        assert runs(here) == 1


def test_a_test_that_fails_one_time_in_two_costs_no_attempt(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    flaky = (
        f"import os, unittest\n\nFLAG = {str(flag)!r}\n\n\nclass FlakyTest(unittest.TestCase):\n"
        "    def test_network(self):\n        if os.path.exists(FLAG):\n"
        "            return os.remove(FLAG)\n        open(FLAG, 'w').close()\n"
        "        self.fail('connection reset')\n"
    )
    tests = {"name": "tests", "run": "python3 -B -m unittest test_flaky", "kind": "test"}
    with mulligan_installation(tmp_path, {"test_flaky.py": flaky}, [tests]) as here:
        here.configure(sandbox="off")
        here.agent(ADD)
        ref = here.issue()
        assert here.run("once").returncode == 0
        (meta,) = here.attempts(ref)
        assert meta.outcome is Outcome.SUCCEEDED
        assert (meta.checks[0].passed, meta.checks[0].flaky) == (True, True)
        (pull,) = here.world.pulls_of(NAME)
        assert "test_network" in (pull.body or "")
        assert "flaky" in (pull.body or "")


@pytest.mark.deep
def test_a_check_does_not_see_what_the_one_before_it_dropped(tmp_path: Path) -> None:
    checks = [
        {"name": "drop", "run": "echo x > dropped; echo y >> shop.py; mkdir -p a/b; touch a/b/c"},
        {"name": "look", "run": "test ! -e dropped && test ! -e a && python3 -B shop.py"},
    ]
    with mulligan_installation(tmp_path, FILES, checks) as here:
        here.configure(sandbox="off")
        here.agent(ADD)
        ref = here.issue()
        assert here.run("once").returncode == 0
        assert here.attempts(ref)[0].outcome is Outcome.SUCCEEDED
        assert here.branch_files(ref) == {*FILES, "notes.py"}


RIGHT = "pathlib.Path('notes.py').write_text('NOTES = 1\\n')"
WRONG = "pathlib.Path('notes.py').write_text('NOTES = (\\n')"
SYNTAX = {"name": "syntax", "run": "python3 -m py_compile *.py", "kind": "lint"}
HANGS = {"name": "tests", "run": "sleep 60", "kind": "other", "timeout": "1s"}
ABSENT = {"name": "tests", "run": "sh ./test.sh", "kind": "test"}
SCRIPT = {"test.sh": "no-such-runner --all\n", "notes.py": "NOTES = 0\n"}


@pytest.mark.parametrize(
    ("check", "says"),
    [
        (HANGS, "The check 'tests' does not finish on the base branch either: it timed out after"),
        (ABSENT, "The check 'tests' cannot start on the base branch either (exit code 127)."),
        (
            {**ABSENT, "run": "no-such-runner"},
            "The check 'tests' cannot start on the base branch either (exit code 127).",
        ),
    ],
)
def test_a_check_that_cannot_run_on_the_base_either_ends_the_attempts_at_no_cost(
    tmp_path: Path, check: dict[str, JsonValue], says: str
) -> None:
    with mulligan_installation(tmp_path, SCRIPT, [check, SYNTAX]) as here:
        here.configure(sandbox="off")
        here.agent(RIGHT)
        ref = here.issue()
        done = here.run("once")
        assert done.returncode == 3
        (meta,) = here.attempts(ref)
        assert meta.outcome is Outcome.MISCONFIGURED
        assert meta.error.startswith(says)
        (_, plea) = here.comments(ref)
        summary = plea.partition("### Failure summary")[2].strip()
        assert summary.startswith(f"**Cause:** {says}")
        assert "Attempts used: 0 of 3" in summary
        assert "| tests |" not in summary
        assert "✓ syntax" in done.stdout


def test_what_the_agent_breaks_counts_beside_a_check_that_cannot_run(tmp_path: Path) -> None:
    with mulligan_installation(tmp_path, SCRIPT, [ABSENT, SYNTAX]) as here:
        here.configure(sandbox="off")
        here.agent(f"if 'Retry context' in prompt:\n    {RIGHT}\nelse:\n    {WRONG}")
        ref = here.issue()
        assert here.run("once").returncode == 3
        first, second = here.attempts(ref)
        assert (first.outcome, second.outcome) == (Outcome.CHECKS_FAILED, Outcome.MISCONFIGURED)
        assert first.failure_reason == (
            "The check 'tests' cannot start on the base branch either (exit code 127). "
            "Check 'syntax' failed with exit code 1."
        )
        assert "no-such-runner" not in here.prompt(ref, 2)
        assert "Attempts used: 1 of 3" in here.comments(ref)[1]


@pytest.mark.deep
def test_a_check_whose_program_the_agent_removed_is_the_agents_failure(tmp_path: Path) -> None:
    files = {"run.py": "#!/usr/bin/env python3\n", "notes.py": "NOTES = 0\n"}
    check = {"name": "tests", "run": "./run.py", "kind": "other"}
    with mulligan_installation(tmp_path, files, [check], max_issue_attempts=1) as here:
        here.configure(sandbox="off")
        here.agent("pathlib.Path('run.py').unlink()")
        ref = here.issue()
        assert here.run("once").returncode == 3
        (meta,) = here.attempts(ref)
        assert meta.outcome is Outcome.CHECKS_FAILED
        assert "'./run.py' not found" in meta.checks[0].digest


def test_a_check_that_changes_tracked_files_is_named(tmp_path: Path) -> None:
    lint: dict[str, JsonValue] = {
        "name": "lint",
        "run": "for n in 1 2; do echo >> shop.py; echo >> test_tax.py; done",
        "kind": "lint",
    }
    with mulligan_installation(tmp_path, FILES, [lint]) as here:
        here.agent(ADD)
        ref = here.issue()
        assert here.run("once").returncode == 0
        assert here.attempts(ref)[0].checks[0].changed == ("shop.py", "test_tax.py")
        (pull,) = here.world.pulls_of(NAME)
        assert (
            "`lint` changed tracked files while it ran: `shop.py`, `test_tax.py`. Its verdict is"
            " about these changes too."
        ) in (pull.body or "")
