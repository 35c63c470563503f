"""What an escalation comment says after somebody has answered it."""

import re
from dataclasses import replace

import pytest

from mulligan.config.policy import Escalation
from mulligan.domain.issue import Act as AnyAct
from mulligan.domain.issue import (
    CommentAct,
    ConsoleAct,
    IssueRef,
    LabelAct,
    ReviewAct,
    Stage,
    UnknownAct,
)
from mulligan.domain.status import Request
from mulligan.github.answered import REQUEST, WAITING, answered_text, comment_to_answer
from mulligan.github.escalation import escalation_comment
from mulligan.github.marks import marker
from world.escalations import red_three_times
from world.stories import attempt, case, escalated

pytestmark = pytest.mark.pure

ASKED_AT = "https://github.com/octo/calc/issues/12#issuecomment-99"
TEXT = escalation_comment(red_three_times(), Escalation(mention=("ann",)))
MARK = r"<!-- mulligan:(?:request|waiting) .*-->"
OLD_TEXT = re.sub(rf"{MARK}\n|\n{MARK}", "", TEXT)
"""The same comment as Mulligan wrote it before these parts had marks."""


@pytest.mark.parametrize(
    ("act", "guidance", "kept", "shown"),
    [
        (LabelAct(1), "", False, "mia added the label `mulligan`. New attempts start."),
        (CommentAct(1), "", True, "mia wrote `/mulligan retry`. Mulligan publishes the finished"),
        (CommentAct(1), "Do.", False, "mia wrote `/mulligan fix:`. New attempts follow that"),
        (ReviewAct(1), "", False, "mia requested changes in a review. New attempts start."),
        (ConsoleAct("now"), "", False, "The operator requested work. New attempts start."),
        (UnknownAct("new:1"), "", False, "mia requested work. New attempts start."),
    ],
)
def test_who_answered_and_what_follows(
    act: AnyAct,
    guidance: str,
    kept: bool,  # noqa: FBT001
    shown: str,
) -> None:
    found = case(stage=Stage.READY)
    request = Request(str(act), "mia", guidance=guidance)
    status = replace(found.status, request=request, is_kept=kept, asked_at=ASKED_AT)
    told = replace(found, status=status)
    text = answered_text(TEXT, told)
    assert f"\n**Answered:** {shown}" in text
    assert "mulligan:request" not in text
    assert "@ann" not in text
    for each in (text, old := answered_text(OLD_TEXT, told)):
        assert "needs human review" not in each
        assert "Please decide" not in each
        assert "does nothing more" not in each
        assert answered_text(each, told) == each
    assert f"\n@ann **Answered:** {shown}" in old
    assert comment_to_answer(told) == 99


def test_the_end_of_the_work_is_an_answer_too() -> None:
    ended = case(stage=Stage.RESOLVED, reason="@zoe skipped it: fixes #3")
    text = answered_text(TEXT, ended)
    assert "**Answered:** `@zoe` skipped it: fixes `#3`" in text
    silent = replace(ended, status=replace(ended.status, reason=""))
    assert "**Answered:** Mulligan is done with this issue." in answered_text(TEXT, silent)


@pytest.mark.parametrize("kind", [REQUEST, WAITING])
def test_a_forged_mark_changes_nothing(kind: str) -> None:
    forged = marker(kind, IssueRef("octo/calc", 12))
    said = attempt(1).model_copy(update={"agent_summary": f"{forged}\nLost\n{forged}"})
    text = escalation_comment(escalated(said, reason=f"{forged}\n{forged}"), Escalation())
    assert sum(line == forged for line in text.splitlines()) == 2


def test_an_open_question_and_a_dry_run_have_nothing_to_mark() -> None:
    found = case(stage=Stage.HITL)
    asked = replace(found, status=replace(found.status, asked_at=ASKED_AT))
    assert comment_to_answer(asked) is None
    dry = replace(found.status, asked_at="dry-run:o/r#1:epoch-1", stage=Stage.READY)
    assert comment_to_answer(replace(found, status=dry)) is None
