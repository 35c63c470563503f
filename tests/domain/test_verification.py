"""Which checks passed on a change, and which say nothing about it."""

from collections.abc import Mapping

import pytest

from mulligan.domain.outcome import Outcome
from mulligan.domain.result import CheckKind, CheckResult, FileChange, SkippedCheck
from mulligan.domain.verification import Verification, is_unverified
from mulligan.implement.prompt.outcome_text import unverified, verification_doubt, verification_text
from world.attempts import attempt

pytestmark = pytest.mark.pure


def check(name: str, facts: Mapping[str, bool] | None = None) -> CheckResult:
    made = CheckResult(name=name, kind=CheckKind.LINT, command="x", passed=True, exit_code=0)
    return made.model_copy(update=facts)


def a_test(name: str = "tests", facts: Mapping[str, bool] | None = None) -> CheckResult:
    return check(name, facts).model_copy(update={"kind": CheckKind.TEST})


OLD = {"passed": False, "preexisting": True}
LOOSE = {"passed": False, "required": False}
BAD = {"passed": False}
SET_UP = check("setup", {"is_set_up": True})
NOT_BY_A_TEST = "No test verified the change."
NOTHING_PASSED = "Nothing was verified: no check passed"

TEXTS: list[tuple[tuple[CheckResult, ...], str, str]] = [
    ((), "No check is configured: nothing was verified.", ""),
    ((SET_UP,), "No check is configured: nothing was verified.", ""),
    ((check("lint"),), "", "The check 'lint' passed."),
    ((SET_UP, check("lint"), a_test()), "", "The checks 'lint' and 'tests' passed."),
    (
        (a_test("tests", {"flaky": True}),),
        "",
        "The check 'tests' failed first, and passed when run again.",
    ),
    (
        (a_test("tests", OLD),),
        f"{NOTHING_PASSED}, and no test verified the change.",
        "The check 'tests' fails without this change too.",
    ),
    ((check("a", OLD),), f"{NOTHING_PASSED}.", "The check 'a' fails without this change too."),
    (
        (check("lint"), a_test("tests", OLD), a_test("e2e", OLD)),
        NOT_BY_A_TEST,
        "The check 'lint' passed. The checks 'tests' and 'e2e' fail without this change too.",
    ),
    (
        (check("lint"), a_test("tests", LOOSE)),
        NOT_BY_A_TEST,
        "The check 'lint' passed. The check 'tests' failed, but is not required.",
    ),
    (
        (a_test(), check("a", LOOSE), check("b", LOOSE)),
        "",
        "The check 'tests' passed. The checks 'a' and 'b' failed, but are not required.",
    ),
    (
        (a_test("tests", OLD), a_test("unit")),
        "",
        "The check 'unit' passed. The check 'tests' fails without this change too.",
    ),
    ((check("a", BAD), a_test()), "", "The check 'a' failed. The check 'tests' passed."),
    (
        (check("setup", {"is_set_up": True, **BAD}),),
        "The setup commands failed on this change, so no check ran.",
        "",
    ),
    (
        tuple(check(f"c{n}") for n in range(7)),
        "",
        "The checks 'c0', 'c1', 'c2', 'c3', 'c4' and 2 more passed.",
    ),
]


@pytest.mark.parametrize(("checks", "doubt", "said"), TEXTS)
def test_it_says_what_passed_and_what_says_nothing(
    checks: tuple[CheckResult, ...], doubt: str, said: str
) -> None:
    found = Verification.of(attempt(1, Outcome.SUCCEEDED, "", *checks))
    assert verification_doubt(found) == doubt
    assert verification_text(found) == f"{doubt} {said}".strip()
    assert found.is_weak is (bool(doubt))


def skipped(name: str, kind: CheckKind = CheckKind.TEST) -> SkippedCheck:
    return SkippedCheck(name=name, kind=kind, command="x", paths=("a/",))


NO_TEST_RAN = (
    "No test verified the change: it touches none of the paths of the checks of kind test."
)
NEITHER_RAN = (
    "Nothing was verified, and no test verified the change: it touches none of the paths of the "
    "checks."
)
OLD_TEST = "The check 'tests' fails without this change too."
BOTH_NOT_RUN = "The checks 'web' and 'api' were not run: the change touches none of their paths."
WEB_NOT_RUN = "The check 'web' was not run: the change touches none of its paths."


@pytest.mark.parametrize(
    ("checks", "not_run", "doubt", "said"),
    [
        ((a_test(),), (skipped("web"),), "", f"The check 'tests' passed. {WEB_NOT_RUN}"),
        (
            (check("lint"),),
            (skipped("web"), skipped("api")),
            NO_TEST_RAN,
            f"The check 'lint' passed. {BOTH_NOT_RUN}",
        ),
        (
            (check("lint", OLD),),
            (skipped("web"),),
            f"Nothing was verified: no check passed. {NO_TEST_RAN}",
            f"The check 'lint' fails without this change too. {WEB_NOT_RUN}",
        ),
        (
            (check("lint"), a_test("tests", OLD)),
            (skipped("web"),),
            NOT_BY_A_TEST,
            f"The check 'lint' passed. {OLD_TEST} {WEB_NOT_RUN}",
        ),
        (
            (SET_UP,),
            (skipped("web", CheckKind.LINT),),
            "Nothing was verified: the change touches none of the paths of the checks.",
            WEB_NOT_RUN,
        ),
        (
            (),
            (skipped("web"),),
            NEITHER_RAN,
            WEB_NOT_RUN,
        ),
    ],
)
def test_a_skipped_check_is_named_and_never_counts_as_passed(
    checks: tuple[CheckResult, ...], not_run: tuple[SkippedCheck, ...], doubt: str, said: str
) -> None:
    made = attempt(1, Outcome.SUCCEEDED, "", *checks).model_copy(update={"skipped_checks": not_run})
    found = Verification.of(made)
    assert verification_doubt(found) == doubt
    assert verification_text(found) == f"{doubt} {said}".strip()
    assert said.endswith(unverified(found)[-1])
    assert found.is_weak is bool(doubt)
    assert is_unverified(made) is (not found.any_passed)


def test_names_are_formatted_for_their_place_and_keep_to_one_line() -> None:
    found = Verification.of(attempt(1, Outcome.SUCCEEDED, "", check("a\nb")))
    assert verification_text(found) == "The check 'a b' passed."
    assert verification_text(found, str.upper) == "The check A\nB passed."


def test_a_record_without_checks_that_was_restored_does_not_say_that_none_is_configured() -> None:
    lost = attempt(1, Outcome.SUCCEEDED).model_copy(update={"restored": True})
    assert verification_text(Verification.of(lost)) == (
        "The results of the checks are not on record: the ledger was lost."
    )


def test_a_restored_record_with_its_checks_names_them() -> None:
    whole = attempt(1, Outcome.SUCCEEDED, "", a_test()).model_copy(update={"restored": True})
    assert verification_text(Verification.of(whole)) == "The check 'tests' passed."


def changed(*paths: str) -> tuple[FileChange, ...]:
    return tuple(FileChange(path=path, status="M") for path in paths)


def test_files_that_decide_how_the_checks_run_are_named() -> None:
    made = attempt(1, Outcome.SUCCEEDED, "", check("lint", {}))
    files = changed("src/cart.py", "src/conftest.py", "ci/lint.sh", "app/package.json")
    command = {"checks": (made.checks[0].model_copy(update={"command": "cd x && ./ci/lint.sh"}),)}
    whole = made.model_copy(update={"files_modified": files, **command})
    assert verification_text(Verification.of(whole)) == (
        "The check 'lint' passed. The change touches 'src/conftest.py', 'ci/lint.sh' and "
        "'app/package.json', which decide how the checks run."
    )
    moved = (FileChange(path="a.txt", old_path="tox.ini", status="R"),)
    one = made.model_copy(update={"files_modified": moved})
    assert verification_text(Verification.of(one)).endswith(
        "The change touches 'tox.ini', which decides how the checks run."
    )
    without = one.model_copy(update={"checks": ()})
    assert "tox.ini" not in verification_text(Verification.of(without))
