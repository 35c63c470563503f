"""Required tests run without the change until one of them proves it (PROOF-1, PROOF-2)."""

from collections.abc import Generator
from pathlib import Path

import pytest
from pydantic import JsonValue

from mulligan.daemon.worker import Worker
from mulligan.domain.events import CheckFinished, ProofFinished
from mulligan.domain.outcome import Outcome
from mulligan.domain.result import Proof, ProofState, WorkerResultMeta
from world.behaviours import AgentInput, Behaviour
from world.scripted_verifier import Verdict
from world.workers import WorkerEnvironment, fix_the_bug, worker_environment

TEST = "tests/test_tool.py"


@pytest.fixture
def here(tmp_path: Path) -> Generator[WorkerEnvironment]:
    with worker_environment(tmp_path) as made:
        made.policy |= {"flaky_reruns": 0, "max_issue_attempts": 1, "baseline": False}
        yield made


def fix_and_test(given: AgentInput) -> None:
    fix_the_bug(given)
    given.write(TEST, "def test_tool(): ...\n")


def is_fixed(tree: Path) -> bool:
    return (tree / "src/tool.py").read_text() == "X = 2\n"


def passes(_: Path) -> None:
    """Pass."""


def is_red(_: Path) -> str:
    return "red"


def proves(tree: Path) -> str | None:
    """Fail with the test of the change alone."""
    return "test_tool" if (tree / TEST).exists() and not is_fixed(tree) else None


def attempt(
    here: WorkerEnvironment, agent: Behaviour = fix_and_test, **kinds: str
) -> WorkerResultMeta:
    """Make an attempt with a check of each kind; its name is its command, too."""
    checks: list[JsonValue] = [
        {"name": name, "run": name, "kind": kind} for name, kind in kinds.items()
    ]
    here.policy["checks"] = checks
    ref = here.desk.ready()
    assert not Worker(here.context(agent), 1).visit(ref).problem
    return here.ledger.history(ref)[-1]


def ran_on(here: WorkerEnvironment, name: str, verdict: Verdict = passes) -> list[bool]:
    """Note for each run of a check whether its tree was fixed."""
    runs = list[bool]()

    def check(tree: Path) -> str | None:
        runs.append(is_fixed(tree))
        return verdict(tree)

    here.lines[name] = check
    return runs


def test_the_first_check_that_proves_the_change_is_the_last_to_run(
    here: WorkerEnvironment,
) -> None:
    lint, quick, late = (ran_on(here, name) for name in ("lint", "quick", "late"))
    unit = ran_on(here, "unit", proves)
    meta = attempt(here, lint="lint", quick="test", unit="test", late="test")
    assert meta.proof == Proof(state=ProofState.PROVED, tests=("test_tool",), count=1, check="unit")
    assert (lint, quick, unit, late) == ([True], [True, False], [True, False], [True])
    kinds = [type(each.event) for each in here.ledger.events()]
    assert kinds.count(ProofFinished) == 1
    assert kinds.index(ProofFinished) > max(
        at for at, kind in enumerate(kinds) if kind is CheckFinished
    )


def test_what_could_not_be_tried_counts_more_than_what_proves_nothing(
    here: WorkerEnvironment,
) -> None:
    def cannot_be_built(tree: Path) -> str | None:
        return None if is_fixed(tree) else "tool (package)"

    ran_on(here, "quick")
    ran_on(here, "unit", cannot_be_built)
    meta = attempt(here, quick="test", unit="test")
    assert meta.proof == Proof(state=ProofState.NOT_TRIED, check="unit")


def test_a_test_that_fails_only_once_proves_nothing(here: WorkerEnvironment) -> None:
    def fails_once(tree: Path) -> str | None:
        return "test_other" if runs.count(False) == 1 and not is_fixed(tree) else None

    runs = ran_on(here, "unit", fails_once)
    meta = attempt(here, unit="test")
    assert meta.proof == Proof(state=ProofState.NOT_PROVED, check="unit")
    assert runs == [True, False, False]


def test_a_failed_change_is_not_to_be_proved(here: WorkerEnvironment) -> None:
    runs = ran_on(here, "unit", is_red)
    meta = attempt(here, unit="test")
    assert (meta.outcome, meta.proof, runs) == (Outcome.CHECKS_FAILED, None, [True])


def test_without_a_check_of_tests_there_is_no_proof(here: WorkerEnvironment) -> None:
    runs = ran_on(here, "build")
    assert attempt(here, build="build").proof is None
    assert runs == [True]


def test_without_a_test_file_nothing_runs_again(here: WorkerEnvironment) -> None:
    runs = ran_on(here, "unit")
    assert attempt(here, fix_the_bug, unit="test").proof == Proof(state=ProofState.NO_TEST)
    assert runs == [True]


def test_a_program_that_only_the_change_has_proves_nothing(here: WorkerEnvironment) -> None:
    def removes_itself(_: Path) -> None:
        del here.lines["unit"]

    ran_on(here, "unit", removes_itself)
    meta = attempt(here, unit="test")
    assert meta.proof == Proof(state=ProofState.NOT_TRIED, check="unit")
    assert meta.outcome is Outcome.SUCCEEDED


def test_the_files_of_tests_are_the_policys(here: WorkerEnvironment) -> None:
    here.policy["test_files"] = ["checks/"]
    ran_on(here, "unit", proves)
    assert attempt(here, unit="test").proof == Proof(state=ProofState.NOT_TRIED, check="unit")


@pytest.mark.parametrize(
    ("agent", "outcome"),
    [(fix_and_test, Outcome.SUCCEEDED), (fix_the_bug, Outcome.CHECKS_FAILED)],
)
def test_a_wanted_proof_that_is_missing_is_a_failed_check(
    here: WorkerEnvironment, agent: Behaviour, outcome: Outcome
) -> None:
    here.policy["reproduce"] = "required"
    ran_on(here, "unit", proves)
    meta = attempt(here, agent, unit="test")
    assert meta.outcome is outcome
    missing = [check.name for check in meta.checks if check.is_proof]
    assert missing == ([] if outcome is Outcome.SUCCEEDED else ["proof"])
