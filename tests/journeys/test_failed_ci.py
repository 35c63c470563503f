"""A workflow of the repository is red on a pull request, until it is green."""

from pathlib import Path

from github_simulator.records import CheckOutput
from mulligan.domain.outcome import Outcome
from world.place import NAME, mulligan_installation
from world.repositories import branch_head, read_branch

LOG = """\
2025-11-21T09:00:00.1234567Z ##[group]Run python -m pytest
2025-11-21T09:00:01.1234567Z ============================= FAILURES =============================
2025-11-21T09:00:01.1234567Z _____________________________ test_answer _____________________________
2025-11-21T09:00:01.1234567Z E       AssertionError: 41 is not 42
2025-11-21T09:00:01.1234567Z tests/test_answer.py:7: AssertionError
2025-11-21T09:00:01.1234567Z FAILED tests/test_answer.py::test_answer - AssertionError: 41 is not 42
2025-11-21T09:00:02.1234567Z ##[error]Process completed with exit code 1.
"""
AGENT = """
wanted = '42' if '41 is not 42' in prompt else '41'
pathlib.Path('answer.txt').write_text(wanted)
print(f'Wrote {wanted}')
"""


def test_red_on_github_is_mended_and_green_is_told(tmp_path: Path) -> None:
    check = {"name": "there", "run": "test -s answer.txt"}
    with mulligan_installation(
        tmp_path, {"answer.txt": "40"}, [check], watch_ci={"max_attempts": 1}
    ) as here:
        here.agent(AGENT)
        ref, runs = here.issue(), here.world.runs
        assert here.run("once").returncode == 0
        first = branch_head(here.bare, ref.branch) or ""
        runs.check((NAME, first), "lint", "success")
        runs.check((NAME, first), "tests (3.12)", "failure", CheckOutput(LOG))
        done = here.run("once")
        assert (done.returncode, done.stderr) == (0, "")
        assert [meta.outcome for meta in here.attempts(ref)] == [Outcome.SUCCEEDED] * 2
        told = here.prompt(ref, 2)
        assert "tests (3.12) failed." in told
        assert "tests/test_answer.py::test_answer" in told
        assert "lint" not in told
        assert read_branch(here.bare, ref.branch, "answer.txt") == "42"
        assert len(here.world.pulls_of(NAME)) == 1
        second = branch_head(here.bare, ref.branch) or ""
        for name in ("lint", "tests (3.12)"):
            runs.check((NAME, second), name, "success")
        assert here.run("once").returncode == 0
        assert "On GitHub, 2 checks passed and none failed." in here.comments(ref)[0]
        assert len(here.attempts(ref)) == 2
