"""From 200,000 lines of output to the prompt, through every cut at once: the failure is named."""

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.checks.digest import digest
from mulligan.config.policy import Check, ContextLimits, Policy
from mulligan.domain.result import CheckKind, CheckResult
from mulligan.implement.prompt.context_sections import assemble
from mulligan.implement.prompt.prompt import PromptRequest, render_prompt
from mulligan.implement.prompt.retry_context import BYTES_PER_TOKEN
from world.attempts import case, failing_test, red

pytestmark = pytest.mark.pure

LINES = 200_000
PASSES = [
    f"tests/test_numbers.py::test_{number} PASSED [ 50%]\n".encode() for number in range(1000)
]
TEST_ID = "tests/test_sums.py::test_decimals"
MESSAGE = "AssertionError: assert 0.30000000000000004 == 0.3"
PLACE = "tests/test_sums.py:41"
FAILED = f"""\
=================================== FAILURES ===================================
________________________________ test_decimals _________________________________

    def test_decimals():
>       assert add(0.1, 0.2) == 0.3
E       {MESSAGE}

{PLACE}: AssertionError
""".encode()
SUMMARY = f"""\
=========================== short test summary info ============================
FAILED {TEST_ID} - {MESSAGE}
1 failed, {LINES:,} passed in 61.20s
""".encode()
HUGE_DIFF = (
    b"diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1 +1,5000 @@\n" + b"+x = 1\n" * 5000
)
CHECK = Check(name="tests", run="pytest -q")

LIMITS = st.builds(
    ContextLimits,
    max_prior_attempts=st.integers(0, 5),
    max_diff_lines=st.integers(0, 2000),
    max_check_output_lines=st.integers(1, 200),
    max_digest_chars=st.integers(200, 5000),
    max_context_tokens=st.integers(500, 5000),
    include_prior_diffs=st.booleans(),
    include_check_output=st.booleans(),
)


def output(before: int) -> bytes:
    """Give what a test run prints, with the failure after so many of its lines."""
    lines = PASSES * (LINES // len(PASSES))
    return b"".join([*lines[:before], FAILED, *lines[before:], SUMMARY])


@cache
def result(before: int) -> CheckResult:
    found = digest(output(before), command=CHECK.run, exit_code=1)
    return CheckResult(
        name=CHECK.name,
        kind=CheckKind.TEST,
        command=CHECK.run,
        passed=False,
        exit_code=1,
        digest=found.text,
        findings=found.findings,
        fingerprint=found.fingerprint,
    )


@given(st.sampled_from([0, 77_777, LINES]), LIMITS)
def test_wherever_a_failure_is_and_whatever_is_cut_the_prompt_names_it(
    before: int, limits: ContextLimits
) -> None:
    check = result(before)
    others = [failing_test(f"other {number}") for number in range(3)]
    history = [red(number, check, *others) for number in (1, 2, 3, 4)]
    told = assemble(case(*history), limits, HUGE_DIFF)
    prompt = render_prompt(PromptRequest(case().issue, Policy(checks=(CHECK,)), (5, 9), told.text))
    assert told.text in prompt
    assert len(told.text.encode()) <= limits.max_context_tokens * BYTES_PER_TOKEN
    for name in (TEST_ID, MESSAGE, PLACE):
        assert name in told.text
