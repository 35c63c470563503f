"""Fix rounds and the reviewer command: what happens within one attempt before it is judged."""

import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from pydantic import JsonValue

from mulligan.domain.outcome import Outcome
from mulligan.domain.result import VerifierOutcome
from world.place import NAME, MulliganInstallation, mulligan_installation

FILES = {
    "add.py": "def add(a, b):\n    return 0\n",
    "test_add.py": (
        "import unittest\nfrom add import add\n\n\nclass AddTest(unittest.TestCase):\n"
        "    def test_sum(self):\n        self.assertEqual(add(2, 3), 5, 'two and three')\n"
    ),
    ".gitignore": "__pycache__/\n",
}
TESTS = {"name": "tests", "run": "touch dropped; python3 -B -m unittest -v"}
AGENT = """
fix = int(os.environ['MULLIGAN_FIX_ROUND'])
log = pathlib.Path({log!r})
log.write_text((log.read_text() if log.exists() else '') + str(fix))
right = fix == {right} and 'two and three' in prompt and '|     def test_sum(self):' in prompt
with pathlib.Path('trail.txt').open('a') as trail:
    trail.write(str(fix))
pathlib.Path('add.py').write_text(f'def add(a, b):\\n    return a {{"+" if right else "*"}} b\\n')
"""


def agent_of(here: MulliganInstallation, right: int) -> None:
    here.agent(AGENT.format(log=str(here.directory / "rounds"), right=right))


def rounds(here: MulliganInstallation) -> str:
    return (here.directory / "rounds").read_text()


def test_a_fix_round_mends_the_change_within_one_attempt(tmp_path: Path) -> None:
    with mulligan_installation(tmp_path, FILES, [TESTS], max_fix_rounds=2) as here:
        here.configure(sandbox="off")
        agent_of(here, right=1)
        ref = here.issue()
        done = here.run("once")
        assert done.returncode == 0, done.stdout
        assert "fix round 1 of 2" in done.stdout
        (meta,) = here.attempts(ref)
        assert (meta.outcome, rounds(here)) == (Outcome.SUCCEEDED, "01")
        (fix,) = meta.fix_rounds
        assert fix.number == 1
        assert [check.passed for check in fix.checks] == [True]
        assert fix.usage
        # The second session found the work of the first, without what its checks dropped.
        assert here.branch_files(ref) == {*FILES, "trail.txt"}
        assert {file.path for file in meta.files_modified} == {"add.py", "trail.txt"}
        (pull,) = here.world.pulls_of(NAME)
        assert "after 1 fix round" in (pull.body or "")


@pytest.mark.deep
def test_when_no_fix_round_helps_the_next_attempt_is_told_of_them(tmp_path: Path) -> None:
    with mulligan_installation(
        tmp_path, FILES, [TESTS], max_fix_rounds=1, max_issue_attempts=2
    ) as here:
        here.configure(sandbox="off")
        agent_of(here, right=9)
        ref = here.issue()
        assert here.run("once").returncode == 3
        assert rounds(here) == "0101"
        first, _ = here.attempts(ref)
        assert (first.outcome, len(first.fix_rounds)) == (Outcome.CHECKS_FAILED, 1)
        assert "After fix round 1: Check 'tests' failed with exit code 1." in here.prompt(ref, 2)


REVIEWER = """
import json, sys
asked = json.load(sys.stdin)
assert asked["title"] and "+" in asked["diff"] and asked["checks"], asked
print("thinking ...")
print(json.dumps({"verdict": %r, "feedback": "Please add a note, @zoe."}))
"""


def reviewed(directory: Path, verdict: str) -> dict[str, JsonValue]:
    script = directory / "reviewer.py"
    script.write_text(REVIEWER % verdict)
    return {"run": f"{sys.executable} {script}"}


CHECK = {"name": "look", "run": "true"}
WORK = "pathlib.Path('notes.txt').write_text('1')"


@pytest.fixture
def strict(tmp_path: Path) -> Generator[MulliganInstallation]:
    with mulligan_installation(
        tmp_path, FILES, [CHECK], reviewer=reviewed(tmp_path, "HARD_FAIL")
    ) as here:
        here.configure(sandbox="off")
        here.agent(WORK)
        yield here


def test_a_reviewer_may_reject_one_attempt_of_an_epoch(strict: MulliganInstallation) -> None:
    ref = strict.issue()
    assert strict.run("once").returncode == 0
    first, second = strict.attempts(ref)
    assert (first.outcome, second.outcome) == (Outcome.REJECTED, Outcome.SUCCEEDED)
    assert second.verifier_outcome is VerifierOutcome.HARD_FAIL
    told = strict.prompt(ref, 2)
    assert "Please add a note, @zoe." in told.partition("## Advisory")[2]
    (pull,) = strict.world.pulls_of(NAME)
    assert "Please add a note" in (pull.body or "")
    assert " @zoe" not in (pull.body or "")


def test_without_a_verdict_a_person_gets_the_change(tmp_path: Path) -> None:
    with mulligan_installation(
        tmp_path,
        FILES,
        [CHECK],
        reviewer={"run": "echo no idea; exit 3"},
        escalation={"push_work": True},
    ) as here:
        here.configure(sandbox="off")
        here.agent(WORK)
        ref = here.issue()
        done = here.run("once")
        assert done.returncode == 3
        why = "The reviewer command ended with exit code 3. Its last line: no idea"
        assert why in done.stdout
        (meta,) = here.attempts(ref)
        assert (meta.outcome, meta.verifier_outcome) == (Outcome.MISCONFIGURED, None)
        assert (meta.unreviewed, meta.error) == (why, why)
        assert here.world.pulls_of(NAME) == []
        comment = here.comments(ref)[-1]
        assert "nobody has reviewed the change" in comment
        assert f"refs/mulligan/attempts/{ref.number}-1" in comment
