"""A repository's own template: what it may say, what it has to, and the one that is built in."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from mulligan.config.load import load_policy
from mulligan.config.policy import Check, Policy, Scope
from mulligan.domain.errors import ConfigError, MisconfiguredError
from mulligan.domain.issue import Issue
from mulligan.implement.prompt.prompt import PromptRequest, render_prompt
from world.attempts import ISSUE

pytestmark = pytest.mark.pure

PAGE = Path(__file__).parents[2] / "docs" / "prompt.md"
CHECKS = (Check(name="py`test", run="make\ntest"), Check(name="ruff", run="ruff", required=False))
BLANK = replace(ISSUE, body="", comments=())
WHOLE = "{{ task }}{{ guidance }}{{ retry_context }}"


def built_in() -> str:
    """Give the template that the docs say equals the built-in prompt."""
    (found,) = re.findall(r"```jinja\n(\{% if banner.*?)```", PAGE.read_text(), re.DOTALL)
    return found


def written(policy: Policy, context: str | None = None, guidance: str = "") -> str:
    position = (2, 3) if context else (1, 3)
    return render_prompt(PromptRequest(ISSUE, policy, position, context, guidance))


@pytest.mark.parametrize("issue", [ISSUE, BLANK])
@pytest.mark.parametrize("policy", [Policy(), Policy(checks=CHECKS, scope=Scope(deny=("x",)))])
@pytest.mark.parametrize(
    ("context", "guidance"),
    [(None, ""), (None, "Use dates.\n\n{{ task }}"), ("## What\n\n{% x %}", ""), ("x", "Do.")],
)
def test_the_template_in_the_docs_gives_the_built_in_prompt_byte_for_byte(
    issue: Issue, policy: Policy, context: str | None, guidance: str
) -> None:
    position = (2, 3) if context else (1, 3)
    request = PromptRequest(issue, policy, position, context, guidance)
    ours = replace(request, policy=policy.model_copy(update={"prompt": built_in()}))
    assert render_prompt(ours) == render_prompt(request)


def test_a_template_has_facts_besides_the_sections() -> None:
    said = "{{ issue }} of {{ repository }}, {{ attempt }}/{{ max_attempts }}:"
    policy = Policy(prompt=f"{said}\n{{{{ checks|length }}}}\n{WHOLE}", checks=CHECKS)
    prompt = written(policy, "THE CONTEXT")
    assert prompt.startswith("octo/almanac#12 of octo/almanac, 2/3:\n2\n# Task")
    assert prompt.endswith("# Retry context\n\nTHE CONTEXT\n")


def test_nothing_in_an_issue_is_taken_for_a_template() -> None:
    hostile = replace(ISSUE, title="{{ 9 * 9 }}", body="{% for a in b %}")
    prompt = render_prompt(PromptRequest(hostile, Policy(prompt=WHOLE), (1, 3), None))
    assert "{{ 9 * 9 }}\n\n{% for a in b %}" in prompt


@pytest.mark.parametrize(
    ("template", "why"),
    [
        (
            "{{ criterai }}",
            "line 1 of the template: 'criterai' is not a variable; the nearest is",
        ),
        ("{{ task }", "line 1 of the template: unexpected '}'; fix it"),
        ("Do it.", "the template leaves out 'task' on first attempts; write {{ task }} there"),
        ("{{ task|upper }}", "leaves out 'task' on first attempts"),
        ("{{ task }}", "leaves out 'guidance' on first attempts; write {{ guidance }} there"),
        ("{{ task }}{{ guidance }}", "leaves out 'retry_context' on attempt 2"),
        (WHOLE.replace("{{ r", "{{ '' if attempt == 3 else r"), "'retry_context' on attempt 3"),
        ("{% if attempt == 1 %}{{ task }}{{ guidance }}{% endif %}", "'task' on attempt 2"),
    ],
)
def test_a_template_that_does_not_hold_is_a_mistake_of_the_policy(template: str, why: str) -> None:
    text = f"max_issue_attempts: 3\nprompt: |\n  {template}\n".encode()
    with pytest.raises(ConfigError) as refused:
        load_policy(text, {}, "policy.yml")
    assert str(refused.value).startswith("policy.yml, line 2: prompt ")
    assert why in str(refused.value)


def test_a_template_that_leaves_out_only_what_no_sample_shows_is_refused_when_it_is_used() -> None:
    policy = Policy(prompt=WHOLE.replace("{{ t", "{{ '' if issue == 'octo/almanac#12' else t"))
    with pytest.raises(MisconfiguredError) as refused:
        written(policy)
    assert str(refused.value) == (
        "The prompt cannot be written: in .github/mulligan.yml, the template leaves out 'task' on "
        "first attempts; write {{ task }} there."
    )
