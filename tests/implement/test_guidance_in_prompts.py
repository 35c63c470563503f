"""What a person decided stands first, whole, in every attempt of the epoch (CONTEXT-12)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.config.policy import ContextLimits, Policy
from mulligan.implement.prompt.context_sections import assemble, failing_checks, fix_sections
from mulligan.implement.prompt.manifest import inputs_of
from mulligan.implement.prompt.prompt import PromptRequest, render_prompt
from mulligan.implement.prompt.retry_context import AssembledContext
from mulligan.text.commands import MAX_GUIDANCE, guidance_block
from world.attempts import DIFF, ISSUE, case, failing_test, red

pytestmark = pytest.mark.pure

WORDS = "Use the `dates` package.\nDo not touch the parser."
SMALLEST = ContextLimits(max_context_tokens=500)


def told(guidance: str, limits: ContextLimits = SMALLEST) -> AssembledContext:
    return assemble(case(red(1), red(2), guidance=guidance), limits, DIFF * 50)


def first(guidance: str) -> str:
    return render_prompt(PromptRequest(ISSUE, Policy(), (1, 3), None, guidance))


def test_guidance_comes_first_in_the_retry_context() -> None:
    found = told(WORDS)
    assert found.text.startswith(f"## Human guidance\n\n{guidance_block(WORDS)}\n\n## What went")
    assert found.context.guidance == WORDS
    assert found.sources[0] == "guidance"


def test_without_guidance_nothing_is_said_of_it() -> None:
    found = told("")
    assert found.text.startswith("## What went wrong")
    assert found.context.guidance is None
    assert "guidance" not in found.sources


def test_a_first_attempt_is_told_before_its_instructions() -> None:
    section = f"# Human guidance\n\n{guidance_block(WORDS)}\n\n"
    assert first(WORDS).replace(section, "") == first("")
    assert f"{section}# Instructions" in first(WORDS)


def test_a_retry_is_told_once() -> None:
    prompt = render_prompt(PromptRequest(ISSUE, Policy(), (2, 3), told(WORDS).text, WORDS))
    assert prompt.count(guidance_block(WORDS)) == prompt.count("Human guidance") == 1


def test_a_fix_round_is_told_too() -> None:
    told = failing_checks([failing_test()], ContextLimits())
    sections = fix_sections(first(WORDS), (1, 2), told)
    assert guidance_block(WORDS) in sections["first_prompt"]


@given(st.text(min_size=1, max_size=80), st.integers(1, MAX_GUIDANCE), st.integers(500, 5000))
def test_whatever_is_cut_guidance_and_the_failure_are_told(
    words: str, length: int, tokens: int
) -> None:
    guidance = (words * length)[:length]
    found = told(guidance, ContextLimits(max_context_tokens=tokens))
    assert guidance_block(guidance) in found.text
    assert "### Check 'pytest'" in found.text
    assert found.text.count("Check 'pytest' failed with exit code 1.") == 1
    assert len(found.text.encode()) <= found.budget
    assert found.budget == max(tokens * 4, len(guidance_block(guidance).encode()) + 2000)


def test_what_is_cut_for_guidance_is_the_diff_first() -> None:
    limits = ContextLimits(max_context_tokens=1500)
    short, long = (
        assemble(case(red(1), guidance=words), limits, DIFF * 4) for words in ("x", "x" * 4000)
    )
    over = [{cut.section for cut in each.cuts if "budget" in cut.reason} for each in (short, long)]
    assert over == [set(), {"previous_changes"}]


def test_guidance_is_among_the_inputs() -> None:
    assert inputs_of(case(guidance=WORDS), Policy(), "c0ffee")["guidance"] == WORDS
