"""The code around a failure, and the rounds within one attempt, as an agent is told of them."""

from dataclasses import replace
from datetime import timedelta

import pytest

from mulligan.config.policy import ContextLimits
from mulligan.domain.attempt import (
    AgentRun,
    AttemptState,
    Change,
    Fault,
    ReviewerResult,
    next_round,
)
from mulligan.domain.outcome import Outcome
from mulligan.domain.result import (
    AgentFacts,
    CheckResult,
    FixRound,
    SourceExcerpt,
    VerifierOutcome,
    WorkerResultMeta,
)
from mulligan.implement.prompt.context_sections import assemble, failing_checks, fix_sections
from mulligan.implement.prompt.retry_context import AssembledContext
from mulligan.implement.result import attempt_record
from world.attempts import DIFF, NINE, attempt, case, check, failing_test, red

pytestmark = pytest.mark.pure

LIMITS = ContextLimits()
CODE = "  1 | def total(lines):\n> 2 |     return 35"
MORE = "\n".join(f"  {number} | x" for number in range(10, 90))


def with_code(*texts: str) -> CheckResult:
    source = tuple(SourceExcerpt(file="cart.py", line=2, text=text) for text in texts)
    return failing_test().model_copy(update={"source": source})


def told(*history: WorkerResultMeta, limits: ContextLimits = LIMITS) -> AssembledContext:
    return assemble(case(*history), limits, DIFF)


def test_the_code_around_a_place_stands_below_what_the_check_said() -> None:
    text = told(red(1, with_code(CODE))).text
    said, _, code = text.partition("The code around these places")
    assert "### Check 'pytest'\n" in said
    assert f"cart.py:2\n{CODE}\n" in code
    assert "The code around" not in told(red(1)).text


def test_code_has_a_limit_of_its_own() -> None:
    found = told(red(1, with_code(CODE, MORE)), limits=ContextLimits(max_code_lines=10))
    assert "  13 | x\n  14 | x\n[... 75 lines omitted]" in found.text
    assert any(
        cut.section == "code of check 'pytest'" and "max_code_lines (10)" in cut.reason
        for cut in found.cuts
    )
    none = told(red(1, with_code(CODE)), limits=ContextLimits(max_code_lines=0))
    assert "def total" not in none.text.partition("## Previous changes")[0]
    off = ContextLimits(include_check_output=False)
    assert "| def total" not in told(red(1, with_code(CODE)), limits=off).text


def test_code_is_cut_after_the_diff_and_before_what_the_check_said() -> None:
    long = with_code(CODE, MORE.replace("x", "x" * 30))
    limits = ContextLimits(max_context_tokens=500, max_code_lines=200)
    found = told(red(1, long), limits=limits)
    sections = [cut.section for cut in found.cuts if "budget" in cut.reason]
    assert sections == ["previous_changes", "code_around"]
    assert "| def total" in found.text


def test_what_was_there_before_is_told_by_the_checks_name_only() -> None:
    before = check("lint").model_copy(update={"preexisting": True, "digest": "E501 cart.py"})
    text = told(red(1, before, failing_test()), red(2, failing_test(), before)).text
    assert "Attempt 1: CHECKS_FAILED" in text
    assert "Changed a.py. Same first failure." in text
    assert "Fails without your change as well, and does not count: lint." in text
    assert "E501" not in text


def test_the_fix_rounds_of_an_attempt_are_told_with_their_checks() -> None:
    rounds = (
        FixRound(number=1, checks=(check("tests"), check("lint", passed=True))),
        FixRound(number=2, checks=(check("tests", passed=True),)),
    )
    text = told(red(1).model_copy(update={"fix_rounds": rounds})).text
    assert "\nAfter fix round 1: Check 'tests' failed with exit code 1.\n" in text
    assert "\nAfter fix round 2: no check failed.\n" in text


def test_a_fix_round_is_given_the_first_prompt_and_what_fails_now() -> None:
    told = failing_checks([with_code(CODE)], LIMITS)
    banner, first, failing = fix_sections("# Task\n\nMend it.\n", (1, 2), told).values()
    assert banner == "Fix round 1 of 2: read *Failing checks* before you start."
    assert first == "# Task\n\nMend it."
    assert failing.startswith("# Failing checks\n\nThe worktree holds your change so far")
    assert "### Check 'pytest' failed with exit code 1." in failing
    assert CODE in failing


FACTS = AgentFacts(kind="command", turns=3)
RUN = AgentRun(0, timedelta(seconds=2), FACTS, summary="First.")
AGAIN = AgentRun(0, timedelta(seconds=3), AgentFacts(kind="command", turns=1), summary="Again.")
CHANGE, BETTER = Change("start", "one", 2), Change("start", "two", 1)
RED = check("tests").model_copy(update={"duration_ms": 500})
FIRST = AttemptState(run=RUN, change=CHANGE, checks=(RED,))


def record(known: AttemptState) -> WorkerResultMeta:
    return attempt_record(case(attempt(1, Outcome.CHECKS_FAILED)), known, {}, "w", NINE)


def test_the_rounds_of_an_attempt_are_in_its_record() -> None:
    known = replace(next_round(FIRST), run=AGAIN, change=BETTER, checks=(RED,))
    meta = record(known)
    assert (meta.agent, meta.agent_summary, meta.head_sha) == (FACTS, "Again.", "two")
    assert (meta.commits, meta.checks) == (3, (RED,))
    (fix,) = meta.fix_rounds
    assert fix == FixRound(number=1, checks=(RED,), duration_ms=3500, usage=AGAIN.facts)


def test_a_round_that_was_cut_off_keeps_the_change_before_it() -> None:
    fault = Fault(Outcome.INFRASTRUCTURE, "The disk is full.")
    meta = record(replace(next_round(FIRST), fault=fault))
    assert (meta.outcome, meta.head_sha, meta.commits) == (Outcome.INFRASTRUCTURE, "one", 2)
    assert meta.fix_rounds == (FixRound(number=1),)
    assert meta.agent == FACTS


@pytest.mark.parametrize(
    ("vetoes", "outcome"), [(True, Outcome.REJECTED), (False, Outcome.SUCCEEDED)]
)
def test_the_reviewers_words_are_in_the_record(vetoes: bool, outcome: Outcome) -> None:  # noqa: FBT001 - a parameter of the table
    review = ReviewerResult(VerifierOutcome.HARD_FAIL, "Not asked for.", vetoes=vetoes)
    meta = record(AttemptState(run=RUN, change=CHANGE, review=review))
    assert meta.outcome is outcome
    assert meta.verifier_outcome is VerifierOutcome.HARD_FAIL
    assert meta.verifier_feedback == "Not asked for."
