"""A test that fails without the change proves it, and may be wanted (PROOF-1, PROOF-2)."""

import shutil
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from pydantic import JsonValue

from mulligan.domain.outcome import Outcome
from mulligan.domain.result import ProofState
from world.confined import sandbox
from world.place import MAINTAINER, NAME, MulliganInstallation, mulligan_installation

FILES = {
    "shop.py": "def price(n):\n    return n * 2\n",
    "test_shop.py": "from shop import price\n\ndef test_price():\n    assert price(2) == 4\n",
    ".gitignore": "__pycache__/\n",
}
FIX = "pathlib.Path('shop.py').write_text('def price(n):\\n    return max(n, 0) * 2\\n')\n"
TEST = """
tests = pathlib.Path('test_shop.py')
tests.write_text(tests.read_text() + {!r})
"""
PROVING = TEST.format("\ndef test_below_zero():\n    assert price(-1) == 0\n")
IDLE = TEST.format("\ndef test_one():\n    assert price(1) == 2\n")
TESTS = "test_shop.py::"


@pytest.fixture(params=[True, False], ids=["confined", "unconfined"])
def here(tmp_path: Path, request: pytest.FixtureRequest) -> Generator[MulliganInstallation]:
    if request.param:
        sandbox()
    run = f"{shutil.which(sys.executable)} -B -m pytest -q -p no:cacheprovider"
    check = {"name": "tests", "run": run, "kind": "test"}
    with mulligan_installation(tmp_path, FILES, [check]) as made:
        if not request.param:
            made.configure(sandbox="off")
        yield made


def set_policy(here: MulliganInstallation, **policy: JsonValue) -> None:
    (repository,) = here.operator().repositories
    merged: dict[str, JsonValue] = repository.policy | policy
    here.configure(repositories=[{"name": NAME, "clone_url": str(here.bare), "policy": merged}])


def body_of(here: MulliganInstallation) -> str:
    (pull,) = here.world.pulls_of(NAME)
    return pull.body or ""


def test_reviewers_and_operators_are_told_which_test_proves_the_fix(
    here: MulliganInstallation,
) -> None:
    here.agent(FIX + PROVING)
    ref = here.issue()
    shown = here.run("once")
    assert shown.returncode == 0
    told = "it fails without the change."
    assert f"Proved by `{TESTS}test_below_zero`: {told}" in body_of(here)
    plain = f"Proved by '{TESTS}test_below_zero': {told}"
    assert plain in " ".join(shown.stdout.split())
    assert plain in " ".join(here.run("inspect", str(ref)).stdout.split())
    (attempt,) = here.attempts(ref)
    assert attempt.proof is not None
    assert (attempt.proof.state, attempt.proof.check) == (ProofState.PROVED, "tests")


def test_a_change_whose_tests_pass_without_it_is_told_of_as_it_is(
    here: MulliganInstallation,
) -> None:
    here.agent(FIX + IDLE)
    here.issue()
    assert here.run("once").returncode == 0
    assert f"No test of the change fails without it (`{TESTS}test_one` passed)." in body_of(here)


def test_the_next_attempt_is_told_that_a_test_is_wanted(here: MulliganInstallation) -> None:
    set_policy(here, reproduce="required")
    here.agent(f"exec({FIX + PROVING!r} if 'Retry context' in prompt else {FIX + IDLE!r})")
    ref = here.issue()
    assert here.run("once").returncode == 0
    first, second = here.attempts(ref)
    assert (first.outcome, second.outcome) == (Outcome.CHECKS_FAILED, Outcome.SUCCEEDED)
    assert first.error.startswith("No test of the change fails without it, and this issue needs")
    assert "This issue needs a test that shows what you repair" in here.prompt(ref, 1)
    told = here.prompt(ref, 2).partition("# Retry context")[2]
    assert "it fails on the code of the base branch, and passes with the change." in told
    assert f"- {TESTS}test_one passes without the change too" in told
    assert f"Proved by `{TESTS}test_below_zero`" in body_of(here)


def test_a_label_wants_a_test_of_its_issues_only(here: MulliganInstallation) -> None:
    set_policy(here, labels={"reproduce": ["bug"]}, max_issue_attempts=1)
    here.agent(FIX)
    bug, other = here.issue(), here.issue()
    here.world.label(bug, "bug", MAINTAINER)
    here.run("once")
    (failed,), (passed,) = here.attempts(bug), here.attempts(other)
    assert (failed.outcome, passed.outcome) == (Outcome.CHECKS_FAILED, Outcome.SUCCEEDED)
    assert failed.error.startswith("The change adds and alters no test, and")


def test_without_proof_the_tests_run_once(here: MulliganInstallation) -> None:
    set_policy(here, proof=False)
    here.agent(FIX + PROVING)
    ref = here.issue()
    here.run("once")
    (attempt,) = here.attempts(ref)
    assert attempt.proof is None
    assert "Proved by" not in body_of(here)
