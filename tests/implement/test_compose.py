"""What an attempt is told is put together in one place, with what is left out of it."""

import pytest

from mulligan.config.policy import ContextLimits, Policy
from mulligan.domain.issue_context import IssueContext
from mulligan.domain.outcome import Outcome
from mulligan.implement.prompt.compose import ComposedPrompt, Previous, compose
from mulligan.implement.prompt.prompt import WorktreeBase
from mulligan.text.redact import REDACTED, Redactor
from world.attempts import DIFF, attempt, case, red

pytestmark = pytest.mark.pure

SECRET = "hunter2-hunter2"


PREVIOUS = Previous(f"+password = {SECRET!r}\n".encode() + DIFF * 40)


def composed(found: IssueContext, limits: ContextLimits | None = None) -> ComposedPrompt:
    policy = Policy(context=limits or ContextLimits())
    previous = PREVIOUS if found.history else None
    return compose(found, policy, previous, WorktreeBase.BASE, Redactor((SECRET,)))


def test_a_first_attempt_is_told_of_no_other() -> None:
    told = composed(case())
    assert (told.context, told.assembled, told.cut) == (None, None, {})
    assert told.prompt == "\n\n".join(told.sections.values()) + "\n"
    assert list(told.sections) == ["task", "criteria", "discussion", "instructions"]
    assert told.position == (1, 3)


def test_a_retry_is_told_of_the_attempt_that_ended_by_the_agents_doing() -> None:
    interrupted = attempt(3, Outcome.INTERRUPTED, "Mulligan crashed during the attempt.")
    told = composed(case(red(1), red(2), interrupted))
    assert told.context
    assert told.context in told.prompt
    assert SECRET not in told.prompt
    assert REDACTED.decode() in told.context


def test_what_is_cut_is_counted_by_section_and_unit() -> None:
    told = composed(case(red(1), red(2)), ContextLimits(max_prior_attempts=0, max_diff_lines=50))
    assert set(told.cut) == {"prior_attempts (attempts)", "previous_changes (bytes)"}
    assert told.cut["prior_attempts (attempts)"] == 1
    assert told.cut["previous_changes (bytes)"] > len(DIFF)
