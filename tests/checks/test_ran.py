"""A test that ran before a change runs with it, or has a successor (CHECK-7)."""

import pytest

from mulligan.checks.ran import (
    SHOWN,
    Excuses,
    excuses_of,
    judge_tests,
    lost_tests,
    removed_names,
)
from mulligan.config.policy import Scope
from mulligan.domain.result import CheckKind, CheckResult, RanTests

pytestmark = pytest.mark.pure

CART = ("tests/test_cart.py::test_adds", "tests/test_cart.py::test_sums")
TABLE = tuple(f"tests/test_cart.py::test_row[{row}]" for row in ("a", "b", "c"))


def ran(*names: str, skipped: tuple[str, ...] = ()) -> RanTests:
    return RanTests(ran=names, skipped=skipped)


def removing(*names: str, may_delete: bool = False, may_skip: bool = False) -> Excuses:
    diff = "".join(f"-def {name}():\n" for name in names).encode()
    return Excuses(removed_names(diff), may_delete=may_delete, may_skip=may_skip)


NOTHING = removing()
RENAMED = {
    "nothing": (CART, CART, NOTHING),
    "a new test": (CART, (*CART, "tests/test_cart.py::test_new"), NOTHING),
    "another file": (CART, ("tests/unit/test_cart.py::test_adds", CART[1]), NOTHING),
    "another class": (("t.py::A::test_x",), ("t.py::B::test_x",), NOTHING),
    "another package of Go": (("m/a.TestX/one",), ("m/b.TestX/one",), NOTHING),
    "another suite": (("a.js › Cart › adds",), ("a.js › Basket › adds",), NOTHING),
    "another name": (CART, (CART[0], "tests/test_cart.py::test_total"), removing("test_sums")),
    "a title": (
        ("a.js › Cart › adds two",),
        ("a.js › Cart › adds three",),
        Excuses(removed_names(b"-  it('adds two', () => {\n+  it('adds three', () => {\n")),
    ),
    "parameters for a test": (CART, (CART[0], f"{CART[1]}[1]", f"{CART[1]}[2]"), NOTHING),
    "other parameters": (TABLE, tuple(name.replace("[", "[n-") for name in TABLE), NOTHING),
    "a table for tests": (
        CART,
        ("tests/test_cart.py::test_both[1]", "tests/test_cart.py::test_both[2]"),
        removing("test_adds", "test_sums"),
    ),
    "a changing name": (
        ("t.py::test_x[<A at 0x7f12ab34>]",),
        ("t.py::test_x[<A at 0x7f56cd78>]",),
        NOTHING,
    ),
    "deleted, which is allowed": (CART, CART[:1], removing("test_sums", may_delete=True)),
    "equal parameters only once": (
        tuple(f"t.py::test_x[{row}]" for row in ("a0", "a1", "b")),
        ("t.py::test_x[a]", "t.py::test_x[b]"),
        NOTHING,
    ),
    "the same test twice": (CART[:1] * 2, CART[:1] * 2, NOTHING),
}


@pytest.mark.parametrize("case", RENAMED)
def test_a_test_with_a_successor_is_not_lost(case: str) -> None:
    before, after, excuses = RENAMED[case]
    assert lost_tests(ran(*before), ran(*after), excuses) == ()


LOST = {
    "left out": (CART, CART[:1], NOTHING, CART[1:]),
    "all of them": (CART, (), NOTHING, CART),
    "a row": (TABLE, TABLE[:2], NOTHING, TABLE[2:]),
    "deleted": (CART, CART[:1], removing("test_sums"), CART[1:]),
    "one for two": (CART, ("t.py::test_all",), removing("test_adds", "test_sums"), CART[1:]),
    "left out beside a new one": (CART, (CART[0], "t.py::test_new"), NOTHING, CART[1:]),
    "left out, deleting is allowed": (CART, CART[:1], removing(may_delete=True), CART[1:]),
    "written again": (
        CART,
        (CART[0], "t.py::test_new"),
        Excuses(removed_names(b"-def test_sums():\n+def test_sums(cart):\n")),
        CART[1:],
    ),
    "in one of two environments": (CART[:1] * 2, CART[:1], NOTHING, CART[:1]),
}


@pytest.mark.parametrize("case", LOST)
def test_a_test_without_a_successor_is_lost(case: str) -> None:
    before, after, excuses, lost = LOST[case]
    assert lost_tests(ran(*before), ran(*after), excuses) == lost


def test_a_skipped_test_is_lost_unless_that_is_allowed() -> None:
    after = ran(CART[0], skipped=(CART[1],))
    assert lost_tests(ran(*CART), after, NOTHING) == CART[1:]
    assert lost_tests(ran(*CART), after, removing(may_skip=True)) == ()
    # One that was skipped before is none that ran.
    assert lost_tests(ran(CART[0], skipped=(CART[1],)), ran(CART[0]), NOTHING) == ()


def test_a_test_that_ends_with_an_error_is_not_lost() -> None:
    after = RanTests(ran=CART[:1], stopped=CART[1:])
    assert lost_tests(ran(*CART), after, NOTHING) == ()
    # An error on the start tree may have come before the test.
    assert lost_tests(RanTests(stopped=CART), ran(), NOTHING) == ()


@pytest.mark.parametrize(
    ("diff", "name", "gone"),
    [
        (b"-def test_sums():\n", "t.py::test_sums[3]", True),
        (b"--- a/test_sums\n", "t.py::test_sums", False),
        (b" def test_sums():\n", "t.py::test_sums", False),
        (b"+def test_sums():\n", "t.py::test_sums", False),
        (b"-def test_sums():\n+    def test_sums(self):\n", "t.py::test_sums", False),
        (b"-test_sums\n-test_sums\n+test_sums\n", "t.py::test_sums", True),
        (b"-it('adds up', () => {\n", "a.js › Cart adds up", True),
        (b"-x = 'up'\n", "Cart adds up", False),
        (b"-it(`${kind} / adds up / twice`)\n", "a.js › browser / adds up / twice", True),
        (b"-it(`adds %i and %i up`)\n", "a.js › adds 1 and 2 up", False),
        (b"-it(`adds numbers: %i`)\n", "a.js › adds numbers: 2", True),
    ],
)
def test_a_name_is_removed_if_the_diff_takes_it_away(diff: bytes, name: str, *, gone: bool) -> None:
    assert removed_names(diff)(name) == gone


# What a check says


def check(tests: RanTests | None, **parts: object) -> CheckResult:
    known = CheckResult(
        name="tests", kind=CheckKind.TEST, command="pytest", passed=True, exit_code=0, tests=tests
    )
    return known.model_copy(update=parts)


BEFORE = check(ran(*CART))


def test_a_check_that_runs_fewer_tests_fails_and_names_them() -> None:
    result = judge_tests([check(ran(CART[0], skipped=(CART[1],)))], BEFORE, NOTHING)
    assert (result.fails, result.count) == (True, 1)
    assert result.digest == (
        "1 test ran before this change and does not run now. Let every test run. If you rename "
        "one, keep what it tests.\n- tests/test_cart.py::test_sums (skipped)"
    )
    (found,) = result.findings
    assert (found.test_id, found.message) == (CART[1], "It is skipped now.")
    assert result.fingerprint


def test_a_check_that_runs_no_test_or_leaves_no_report_says_so() -> None:
    nothing = judge_tests([check(ran())], BEFORE, NOTHING)
    assert nothing.digest.startswith("No test runs with this change; 2 tests ran before it.")
    assert nothing.findings[0].message == "It does not run now."
    silent = judge_tests([check(None)], BEFORE, NOTHING)
    assert silent.digest.startswith("The tests of this check no longer report: 2 tests ran before")
    assert silent.fails


def test_a_test_that_runs_the_second_time_is_not_lost() -> None:
    once = check(ran(CART[0]))
    assert judge_tests([once, check(ran(CART[1]))], BEFORE, NOTHING) is once
    assert judge_tests([once, check(None)], BEFORE, NOTHING).count == 1


def test_the_scope_says_what_may_be_deleted_or_skipped() -> None:
    diff = b"-def test_sums():\n"
    gone, skipped = check(ran(CART[0])), check(ran(CART[0], skipped=(CART[1],)))
    assert judge_tests([gone], BEFORE, excuses_of(diff, Scope())).fails
    assert judge_tests([gone], BEFORE, excuses_of(diff, Scope(allow_deleted_tests=True))) is gone
    lenient = excuses_of(b"", Scope(allow_skipped_tests=True))
    assert judge_tests([skipped], BEFORE, lenient) is skipped


def test_many_lost_tests_are_counted() -> None:
    names = [f"t.py::test_{number}" for number in range(1500)]
    result = judge_tests([check(ran("t.py::test_0"))], check(ran(*names)), NOTHING)
    assert (result.count, len(result.findings)) == (1499, 1000)
    assert result.digest.startswith("1,499 tests ran before this change and do not run now.")
    assert result.digest.endswith(f"(+ {1499 - SHOWN} more)")


@pytest.mark.parametrize(
    ("result", "before"),
    [
        (check(ran(*CART)), BEFORE),
        (check(ran()), None),
        (check(ran()), check(None)),
        (check(ran()), check(ran(skipped=CART))),
        (check(ran(), passed=False), BEFORE),
    ],
)
def test_what_is_not_known_or_fails_anyway_is_not_judged(
    result: CheckResult, before: CheckResult | None
) -> None:
    assert judge_tests([result], before, NOTHING) is result


def test_an_old_failure_does_not_hide_tests_that_are_lost() -> None:
    old = check(ran(CART[0]), passed=False, preexisting=True)
    assert judge_tests([old], BEFORE, NOTHING).fails
