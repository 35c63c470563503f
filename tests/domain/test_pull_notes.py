"""Notes about a pull request are kept by topic, and shown until the next attempt."""

from datetime import UTC, datetime

import pytest

from mulligan.domain.events import AttemptStarted, Authorised
from mulligan.domain.feedback import describe_other_base
from mulligan.domain.fold import advance
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.recorded_effects import (
    NO_EFFECTS,
    PullNote,
    StageShown,
    Topic,
)
from mulligan.domain.status import IssueStatus

pytestmark = pytest.mark.pure

NOW = datetime(2025, 3, 4, 12, 0, tzinfo=UTC)
SHOWN = IssueStatus(
    IssueRef("octo/calc", 12),
    stage=Stage.REVIEW,
    effects=NO_EFFECTS.plus(StageShown(stage=Stage.REVIEW)),
)


@pytest.mark.parametrize("base", ["", "main"])
def test_nothing_is_said_about_the_base_that_is_wanted(base: str) -> None:
    assert describe_other_base(base, "main") == ""


def test_another_base_is_named_with_what_to_do() -> None:
    assert describe_other_base("re`lease", "main") == (
        "The pull request's base is `re'lease`; Mulligan works on `main` only. Retarget it to "
        "`main`, or finish it by hand."
    )


def test_of_each_topic_the_last_note_counts() -> None:
    effects = NO_EFFECTS.plus(PullNote(topic=Topic.TEXT, text="One.")).plus(
        PullNote(topic=Topic.TEXT, text="Two.")
    )
    assert effects.pull_notes == ("Two.",)
    assert effects.plus(PullNote(topic=Topic.TEXT, text="")).pull_notes == ()


def test_a_new_note_has_the_stage_shown_again_and_an_equal_one_has_not() -> None:
    note = PullNote(topic=Topic.TEXT, text="One.")
    noted = advance(SHOWN, note, NOW)
    assert not noted.is_shown
    shown = advance(noted, StageShown(stage=Stage.REVIEW), NOW)
    assert advance(shown, note, NOW).is_shown


def test_a_new_request_ends_the_note_on_what_the_work_missed() -> None:
    noted = advance(SHOWN, PullNote(topic=Topic.MEANWHILE, text="One."), NOW)
    noted = advance(noted, PullNote(topic=Topic.BASE, text="Two."), NOW)
    request = Authorised(act="comment:7", actor="wes", act_at=NOW)
    assert advance(noted, request, NOW).effects.pull_notes == ("Two.",)


def test_an_attempt_ends_the_notes() -> None:
    noted = advance(SHOWN, PullNote(topic=Topic.TEXT, text="One."), NOW)
    started = AttemptStarted(attempt=1, number=1, worker="one", position=1, most=3)
    assert advance(noted, started, NOW).effects.pull_notes == ()
