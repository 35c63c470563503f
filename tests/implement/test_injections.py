"""Whatever an issue says stays inside its fence, and what nobody sees stays outside the prompt."""

import re
from dataclasses import replace

import pytest

from mulligan.config.policy import Check, ContextLimits, Policy
from mulligan.domain.issue import Comment, Issue
from mulligan.implement.prompt.context_sections import assemble
from mulligan.implement.prompt.prompt import PromptRequest, is_blank, render_prompt, visible_issue
from world.attempts import ISSUE, NINE, case, failing_test, red
from world.injections import EVIL, INJECTIONS, TAGGED, UNSEEN

pytestmark = pytest.mark.pure

POLICY = Policy(checks=(Check(name="tests", run="make test"),))
FENCED = re.compile(
    r"<untrusted-([0-9a-f]{12}) from=\"[^\"\n]*\">\n.*?\n</untrusted-\1>", re.DOTALL
)
PLAIN = replace(ISSUE, title="Mend it", body="Please.", comments=(Comment("ada", "Yes.", NINE),))
PLACES = ("title", "body", "comment")


def prompt_of(issue: Issue) -> str:
    """Write the prompt as write_prompt.py does."""
    return render_prompt(PromptRequest(visible_issue(issue).issue, POLICY, (1, 3), None))


CRITERIA = "What the issue says under *Acceptance criteria* holds."


def own_words(prompt: str) -> list[str]:
    """Give what Mulligan itself says: all outside the fences, but that there is a heading."""
    return FENCED.sub("", prompt).replace(CRITERIA, "").split()


def with_text(place: str, text: str) -> Issue:
    match place:
        case "title":
            return replace(PLAIN, title=text)
        case "body":
            return replace(PLAIN, body=text)
        case _:
            return replace(PLAIN, comments=(Comment("ada", text, NINE),))


def test_there_are_at_least_forty_of_them() -> None:
    assert len(INJECTIONS) >= 40
    assert len({*INJECTIONS.values()}) == len(INJECTIONS)


@pytest.mark.parametrize("name", INJECTIONS)
@pytest.mark.parametrize("place", PLACES)
def test_no_text_leaves_its_fence(place: str, name: str) -> None:
    prompt = prompt_of(with_text(place, INJECTIONS[name]))
    assert own_words(prompt) == own_words(prompt_of(PLAIN))
    assert EVIL not in FENCED.sub("", prompt)
    assert len(prompt.encode()) < 80_000


@pytest.mark.parametrize("name", INJECTIONS)
@pytest.mark.parametrize("place", ["body", "comment"])
def test_the_agent_reads_what_a_person_sees_and_nothing_else(place: str, name: str) -> None:
    seen = visible_issue(with_text(place, INJECTIONS[name]))
    prompt = prompt_of(with_text(place, INJECTIONS[name]))
    assert (EVIL in prompt) == (name not in UNSEEN)
    assert TAGGED[0] not in prompt
    assert bool(seen.counts) or name not in UNSEEN


@pytest.mark.parametrize("name", INJECTIONS)
def test_what_a_check_prints_does_not_leave_its_fence_either(name: str) -> None:
    def told(digest: str) -> str:
        found = case(red(1, failing_test(digest=digest)))
        return assemble(found, ContextLimits(), b"").text

    assert own_words(told(INJECTIONS[name])) == own_words(told("It failed."))


def test_an_issue_that_shows_nothing_is_blank() -> None:
    assert is_blank(replace(PLAIN, title="\u200b", body="<!-- Mend it. -->"))
    assert not is_blank(replace(PLAIN, title="", body="Mend it."))
    assert not is_blank(replace(PLAIN, title="Mend it", body=""))


def test_what_was_taken_out_is_counted_over_all_texts() -> None:
    body, comment = "a <!-- bad --> c", Comment("ada", "d <!-- die -->\u200b![e](f)", NINE)
    issue = replace(PLAIN, title="Mend\u202e it", body=body, comments=(comment,))
    assert visible_issue(issue).counts == {
        "bidirectional_controls": 1,
        "images": 1,
        "words_not_shown": 2,
        "zero_width": 1,
    }
    assert visible_issue(PLAIN).counts == {}
    assert visible_issue(PLAIN).issue == PLAIN
