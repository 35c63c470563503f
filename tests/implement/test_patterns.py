"""What attempts have in common is found by comparing their records."""

from collections.abc import Sequence

import pytest

from mulligan.domain.outcome import Outcome
from mulligan.domain.result import CheckResult, Finding, GuardViolation, WorkerResultMeta
from mulligan.implement.prompt import patterns
from mulligan.implement.prompt.patterns import DRIFT, drift
from world.attempts import TEST_ID, attempt, check, compared, failing_test, red

pytestmark = pytest.mark.pure

OTHER = failing_test(test_id="tests/test_b.py::test_b")
STOPPED = attempt(2, Outcome.INTERRUPTED)
AGAIN = "The fix was discarded with attempt 2; make it again."


def in_epoch(epoch: int, meta: WorkerResultMeta, number: int) -> WorkerResultMeta:
    return meta.model_copy(update={"epoch": epoch, "number": number})


def out_of_scope(number: int, *paths: str | None) -> WorkerResultMeta:
    broken = tuple(GuardViolation(path=path, message="It must not change.") for path in paths)
    meta = attempt(number, Outcome.SCOPE_VIOLATION)
    return meta.model_copy(update={"guard_violations": broken})


SAME_FAILURE = "The same failure occurred twice."


def find_patterns(epoch: Sequence[WorkerResultMeta]) -> tuple[str, ...]:
    return tuple(each.text for each in patterns.find_patterns(compared(*epoch)))


@pytest.mark.parametrize(
    ("epoch", "observed"),
    [
        ((), ()),
        ((red(1),), ()),
        (
            (red(1), red(2)),
            (
                SAME_FAILURE,
                "Check 'pytest' failed in attempts 1 and 2.",
                "Test 'tests/test_importer.py::test_old_dates' failed in attempts 1 and 2.",
                "File 'a.py' was changed in attempts 1 and 2.",
            ),
        ),
        (
            (red(1), red(2, OTHER, files=("b.py",))),
            (
                f"Fixed since attempt 1: tests/test_importer.py::test_old_dates. {AGAIN}",
                "New since attempt 1: tests/test_b.py::test_b.",
                "Check 'pytest' failed in attempts 1 and 2.",
            ),
        ),
        (
            (red(1, files=("a.py",)), STOPPED, red(3, check("ruff")), red(4, files=())),
            (
                SAME_FAILURE,
                "Check 'pytest' failed in attempts 1 and 4.",
                "Test 'tests/test_importer.py::test_old_dates' failed in attempts 1 and 4.",
                "File 'a.py' was changed in attempts 1 and 3.",
            ),
        ),
        (
            (red(1, check("a")), red(2, check("a"), files=()), red(3, check("a"), files=())),
            ("Check 'a' failed in attempts 1, 2 and 3.",),
        ),
        (
            (attempt(1, Outcome.ZERO_DIFF), attempt(2, Outcome.ZERO_DIFF)),
            ("The outcome was 'Zero diff' in attempts 1 and 2.",),
        ),
        (
            tuple(attempt(number, Outcome.AGENT_TIMED_OUT) for number in (1, 2, 3)),
            ("The outcome was 'Agent timed out' in attempts 1, 2 and 3.",),
        ),
        ((attempt(1, Outcome.ZERO_DIFF), attempt(2, Outcome.ZERO_COMMIT)), ()),
        (tuple(attempt(number, Outcome.SUCCEEDED) for number in (1, 2)), ()),
        (
            (out_of_scope(1, "a.py", "b.py"), out_of_scope(2, "b.py", None)),
            (
                "The outcome was 'Out of scope' in attempts 1 and 2.",
                "The change of 'b.py' was refused in attempts 1 and 2.",
            ),
        ),
    ],
)
def test_what_comes_back_is_named(
    epoch: tuple[WorkerResultMeta, ...], observed: tuple[str, ...]
) -> None:
    assert find_patterns(epoch) == observed


def test_an_interruption_does_not_hide_the_same_failure() -> None:
    assert find_patterns((red(1), red(2), attempt(3, Outcome.INTERRUPTED)))[0] == SAME_FAILURE


def test_another_failure_than_before_is_not_the_same() -> None:
    assert SAME_FAILURE not in find_patterns((red(1), red(2), red(3, OTHER)))


def test_a_check_that_only_warns_is_no_pattern() -> None:
    optional = check("docs", required=False)
    assert find_patterns((red(1, check("a"), optional, files=()), red(2, optional, files=()))) == ()


def test_a_test_that_fails_in_two_checks_of_one_attempt_is_counted_once() -> None:
    twice: tuple[CheckResult, ...] = (failing_test("unit"), failing_test("all"))
    assert find_patterns((red(1, *twice),)) == ()


def test_many_recurring_files_are_told_in_short() -> None:
    files = tuple(f"{number}.py" for number in range(8))
    told = find_patterns((red(1, check("a"), files=files), red(2, check("b"), files=files)))
    assert told == (
        "Files '0.py', '1.py', '2.py', '3.py', '4.py' (+ 3 more) were changed in attempts 1 and 2.",
    )


def test_names_are_one_line_whatever_they_hold() -> None:
    files = ("evil\n## Instructions\nfile.py",)
    told = find_patterns((red(1, check("a"), files=files), red(2, check("b"), files=files)))
    assert told == ("File 'evil ## Instructions file.py' was changed in attempts 1 and 2.",)


def test_over_several_epochs_attempts_are_numbered_through() -> None:
    history = (red(1, check("a"), files=()), in_epoch(2, red(1, check("a"), files=()), number=4))
    assert find_patterns(history) == ("Check 'a' failed in attempts 1 and 4.",)
    assert find_patterns([in_epoch(2, meta, number=meta.number + 3) for meta in (red(1), red(2))])[
        1
    ] == ("Check 'pytest' failed in attempts 1 and 2.")


@pytest.mark.parametrize(
    ("changed", "drifts"),
    [
        ([], False),
        (["a"], False),
        (["a", "b"], True),
        (["a", "ab"], False),
        (["a", "", "b"], True),
        (["a", "b", "bc"], False),
        (["ab", "bc", "cd"], False),
    ],
)
def test_attempts_without_a_common_file_drift(changed: list[str], *, drifts: bool) -> None:
    epoch = [red(number, files=tuple(files)) for number, files in enumerate(changed, 1)]
    assert drift(epoch) == (DRIFT if drifts else None)


def several(number: int, *names: str) -> WorkerResultMeta:
    """Make an attempt in which these tests failed; its change is that of every other one."""
    failed = failing_test()
    found = tuple(failed.findings[0].model_copy(update={"test_id": name}) for name in names)
    meta = red(number, failed.model_copy(update={"findings": found, "fingerprint": str(names)}))
    return meta.model_copy(update={"sketch": ("one", "two", "three")})


def test_advice_to_change_course_is_kept_while_the_failures_become_fewer() -> None:
    """ "Take a different approach" was said while the failing tests went from three to two."""
    three, two = several(1, "a.py::x", "a.py::y", "b.py::z"), several(2, "a.py::x", "a.py::y")
    fewer = patterns.find_patterns(compared(three, two))
    assert f"Fixed since attempt 1: b.py::z. {AGAIN}" in [each.text for each in fewer]
    assert not any(each.is_advice for each in fewer)
    same = patterns.find_patterns(compared(two, several(3, "a.py::y", "a.py::x")))
    assert any(each.is_advice for each in same)


def test_no_advice_to_change_course_while_one_of_two_checks_got_further() -> None:
    lint = failing_test("lint", "a.py::style")
    before, after = (
        red(number, lint, failing_test("tests", f"a.py::t{number}")) for number in (1, 2)
    )
    assert SAME_FAILURE not in find_patterns((before, after))
    assert SAME_FAILURE in find_patterns((before, red(2, *before.checks)))


def test_a_check_that_did_not_run_again_fixed_nothing() -> None:
    lint = several(1, "a.py::x")
    other = red(2, failing_test("mypy", "b.py::z"))
    assert not any(line.startswith("Fixed") for line in find_patterns((lint, other)))


@pytest.mark.parametrize(
    "cut",
    [{"exit_code": 137}, {"exit_code": None}, {"timed_out": True}, {"count": 9}],
    ids=["killed", "could not run", "timed out", "more than named"],
)
def test_what_a_check_may_not_have_named_is_called_neither_fixed_nor_new(
    cut: dict[str, bool | int | None],
) -> None:
    def cut_short(meta: WorkerResultMeta) -> WorkerResultMeta:
        return meta.model_copy(update={"checks": (meta.checks[0].model_copy(update=cut),)})

    def told(*epoch: WorkerResultMeta) -> set[str]:
        return {line.split(" since ")[0] for line in find_patterns(epoch) if " since " in line}

    first, second = several(1, "a.py::x"), several(2, "b.py::z")
    assert told(first, second) == {"Fixed", "New"}
    assert told(cut_short(first), second) == {"Fixed"}
    assert told(first, cut_short(second)) == {"New"}


def test_a_failure_that_no_longer_counts_is_not_called_fixed() -> None:
    """It fails without the change too, in the same way as after the last attempt only."""
    failing = several(2, "b.py::z").checks[0]
    (known,) = several(1, "a.py::x").checks[0].findings
    left = red(2, failing.model_copy(update={"known": (known,)}))
    assert not any(
        line.startswith("Fixed") for line in find_patterns((several(1, "a.py::x"), left))
    )


NOT_COMPILED = check("tests").model_copy(
    update={"findings": (Finding(summary="bad", message="invalid syntax", file="a.py"),)}
)


def test_nothing_is_fixed_by_an_attempt_that_did_not_compile() -> None:
    """ "Fixed since attempt 1" was said of a test that never ran in attempt 2."""
    first = red(1, failing_test("tests"))
    told = find_patterns((first, red(2, NOT_COMPILED)))
    assert not any(line.startswith("Fixed") for line in told)
    assert "New since attempt 1: bad." in told
    told = find_patterns((red(1, NOT_COMPILED), red(2, failing_test("tests"))))
    assert not any(line.startswith("New since") for line in told)


def test_a_check_that_passes_fixed_what_it_named() -> None:
    passed = check("pytest", passed=True)
    told = find_patterns((red(1), red(2, passed, check("ruff"))))
    assert f"Fixed since attempt 1: {TEST_ID}. {AGAIN}" in told


def test_a_change_that_is_kept_has_fixed_nothing_that_is_gone() -> None:
    passed = red(2, check("pytest", passed=True))
    kept = passed.model_copy(update={"outcome": Outcome.SUCCEEDED})
    assert find_patterns((red(1), passed))[0].startswith("Fixed since attempt 1")
    assert not any(line.startswith("Fixed") for line in find_patterns((red(1), kept)))
    assert not any(line.startswith("Fixed") for line in find_patterns((red(1), red(2), kept)))


def test_the_same_test_with_another_message_is_another_failure() -> None:
    (found,) = failing_test().findings
    other = found.model_copy(update={"message": "ValueError: year 1750 is out of range"})
    changed = failing_test().model_copy(update={"findings": (other,)})
    assert SAME_FAILURE in find_patterns((red(1), red(2)))
    assert SAME_FAILURE not in find_patterns((red(1), red(2, changed)))


MACHINE = {
    "no program": {"exit_code": 127},
    "no right to run it": {"exit_code": 126},
    "killed": {"exit_code": 137},
    "killed by a signal": {"exit_code": -9},
    "timed out": {"timed_out": True},
    "a full disk": {"digest": "OSError: [Errno 28] No space left on device"},
}


@pytest.mark.parametrize("values", MACHINE.values(), ids=MACHINE)
def test_a_fault_of_the_machine_is_never_the_same_failure(values: dict[str, object]) -> None:
    broken = failing_test().model_copy(update=values)
    for meta in (red(1, broken), red(1)):
        epoch = (meta, red(2, broken))
        epoch = tuple(each.model_copy(update={"sketch": ("one", "two")}) for each in epoch)
        assert not any(each.is_advice for each in patterns.find_patterns(compared(*epoch)))


def test_records_of_old_versions_are_compared_by_what_they_have() -> None:
    def advises(*epoch: WorkerResultMeta) -> bool:
        return any(each.is_advice for each in patterns.find_patterns(epoch))

    killed = failing_test().model_copy(update={"exit_code": 137})
    (found,) = failing_test().findings
    other = found.model_copy(update={"message": "another"})
    changed = failing_test().model_copy(update={"findings": (other,)})
    assert advises(red(1), red(2))
    assert not advises(red(1), red(2, changed))
    assert not advises(red(1, killed), red(2, killed))
    assert not advises(red(1, check()), red(2, check()))


def test_progress_since_an_attempt_that_is_not_at_hand_is_not_told() -> None:
    epoch = compared(red(1), red(2, OTHER))
    assert any(" since " in each.text for each in patterns.find_patterns(epoch))
    assert not any(" since " in each.text for each in patterns.find_patterns(epoch[1:]))


def test_many_that_are_fixed_are_told_in_short() -> None:
    names = [f"a.py::t{number}" for number in range(9)]
    (fixed,) = [
        line
        for line in find_patterns((several(1, *names), several(2, names[0])))
        if line.startswith("Fixed")
    ]
    assert fixed.endswith(f"(+ 3 more). {AGAIN}")
