"""What every command comes to, wherever the issue stands."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from mulligan.domain.command import Command as Typed
from mulligan.domain.command import CommentCommand, PendingCommand, Verb
from mulligan.domain.issue import CommentAct, ConsoleAct, IssueRef, LabelAct, Stage
from mulligan.domain.status import CommandTimes, IssueStatus, Request
from mulligan.implement.decide import CommandAction, decide_command

pytestmark = pytest.mark.pure

NOON = datetime(2025, 3, 1, 12, 0, tzinfo=UTC)
REF = IssueRef("octo/hello", 12)
STAGES = (*Stage,)


def order(verb: Verb, stage: Stage, text: str = "") -> PendingCommand:
    return PendingCommand(CommentAct(9), verb, text, "ada", NOON, stage)


def tried(stage: Stage) -> IssueStatus:
    """Give an issue of which one attempt was made."""
    asked = Request(str(LabelAct(1)))
    return IssueStatus(REF, stage, epoch=1, attempt=1, request=asked, reason="It is red.")


@pytest.mark.parametrize(
    ("verb", "deeds"),
    [
        # What becomes of it in: ready, running (as it was given), review, hitl, resolved.
        (
            Verb.RETRY,
            [CommandAction.OPEN_EPOCH, CommandAction.REPLY, *[CommandAction.OPEN_EPOCH] * 3],
        ),
        (Verb.FIX, [CommandAction.OPEN_EPOCH] * 5),
        (
            Verb.ABORT,
            [
                CommandAction.STAND_DOWN,
                CommandAction.REPLY,
                CommandAction.REPLY,
                CommandAction.REPLY,
                CommandAction.REPLY,
            ],
        ),
        (Verb.SKIP, [CommandAction.RESOLVE] * 5),
        (Verb.PAUSE, [CommandAction.SHOW] * 5),
        (Verb.RESUME, [CommandAction.SHOW] * 5),
        (Verb.STATUS, [CommandAction.REPLY] * 5),
        (Verb.MISTYPED, [CommandAction.REPLY] * 5),
    ],
)
def test_every_command_in_every_stage(verb: Verb, deeds: list[CommandAction]) -> None:
    # An attempt that runs is over by the time that a command is carried out.
    after = {Stage.RUNNING: Stage.REVIEW}
    found = [
        decide_command(order(verb, stage), tried(after.get(stage, stage)), is_open=True).action
        for stage in STAGES
    ]
    assert found == deeds


ABORTED = "ada stopped it."


@pytest.mark.parametrize(
    ("verb", "stage", "answer"),
    [
        (Verb.PAUSE, Stage.HITL, "This issue is paused. A running attempt finishes."),
        (Verb.RESUME, Stage.HITL, "Work continues."),
        (Verb.STATUS, Stage.HITL, "Replied with the status."),
        (Verb.MISTYPED, Stage.HITL, "There is no `rety`."),
        (Verb.RETRY, Stage.HITL, "New attempts start."),
        (
            Verb.RETRY,
            Stage.RUNNING,
            "An attempt is already running. To start again with an instruction, use `fix:`.",
        ),
        (Verb.ABORT, Stage.READY, ABORTED),
    ],
)
def test_a_command_is_answered_in_one_sentence(verb: Verb, stage: Stage, answer: str) -> None:
    given = order(verb, stage, "There is no `rety`.")
    assert decide_command(given, tried(stage), is_open=True).answer == answer


@pytest.mark.parametrize("verb", [Verb.RETRY, Verb.FIX])
def test_a_closed_issue_is_not_taken_up(verb: Verb) -> None:
    ruled = decide_command(order(verb, Stage.HITL), tried(Stage.HITL), is_open=False)
    answer = "This issue is closed. Reopen it, then write the command again."
    assert (ruled.action, ruled.answer) == (CommandAction.REPLY, answer)


def test_an_issue_that_nobody_asked_for_can_be_begun_by_a_command() -> None:
    assert decide_command(
        order(Verb.RETRY, Stage.READY), IssueStatus(REF), is_open=True
    ).action is (CommandAction.OPEN_EPOCH)


def test_one_that_is_queued_already_stays_as_it_is() -> None:
    queued = IssueStatus(REF, epoch=1, request=Request(str(LabelAct(1))))
    ruled = decide_command(order(Verb.RETRY, Stage.READY), queued, is_open=True)
    assert (ruled.action, ruled.answer) == (CommandAction.SHOW, "This issue is already queued.")


def test_an_abort_that_ended_the_attempt_is_done() -> None:
    given = order(Verb.ABORT, Stage.RUNNING)
    done = replace(given, is_done=True)
    ended = decide_command(done, tried(Stage.RESOLVED), is_open=True)
    assert (ended.action, ended.answer) == (CommandAction.NOTHING, ABORTED)
    assert decide_command(given, tried(Stage.RESOLVED), is_open=True).action is CommandAction.REPLY
    assert given.as_withdrawal.startswith("ada stopped it")


@pytest.mark.parametrize(
    ("stage", "said"),
    [
        (Stage.RUNNING, "The attempt ended before Mulligan could stop it."),
        (Stage.HITL, "No attempt is running or queued, so there is nothing to stop."),
    ],
)
def test_an_abort_with_nothing_to_stop_is_told_why(stage: Stage, said: str) -> None:
    ruled = decide_command(order(Verb.ABORT, stage), tried(Stage.HITL), is_open=True)
    assert (ruled.action, ruled.answer) == (CommandAction.REPLY, said)


def test_what_was_done_before_a_crash_is_not_done_again() -> None:
    retry, skip = order(Verb.RETRY, Stage.HITL), order(Verb.SKIP, Stage.HITL, "too old")
    opened = replace(tried(Stage.READY), request=Request(str(retry.act)))
    left, done = tried(Stage.RESOLVED), replace(skip, is_done=True)
    again = decide_command(retry, opened, is_open=True)
    assert (again.action, again.answer) == (CommandAction.SHOW, "New attempts start.")
    assert decide_command(done, left, is_open=True).action is CommandAction.SHOW
    assert decide_command(skip, left, is_open=True).action is CommandAction.RESOLVE
    assert decide_command(done, left, is_open=True).answer == "ada skipped it: too old"


def test_a_command_is_known_by_its_comment_or_by_its_moment() -> None:
    spoken = CommentCommand(12, 9, Typed(Verb.RETRY), "ada", NOON)
    typed = replace(order(Verb.FIX, Stage.HITL), act=ConsoleAct("2025-03-01T12:00"), actor="")
    assert (spoken.act, order(Verb.FIX, Stage.HITL).comment) == (CommentAct(9), 9)
    assert (typed.comment, typed.who) == (None, "An operator")
    assert typed.as_withdrawal == "An operator gave a new instruction; a new attempt starts."
    assert order(Verb.SKIP, Stage.READY).as_withdrawal == "ada skipped it."


LATER = NOON + timedelta(minutes=1)


@pytest.mark.parametrize(
    ("stage", "epoch", "action"),
    [
        (Stage.READY, 0, CommandAction.STAND_DOWN),
        (Stage.REVIEW, 1, CommandAction.SHOW),
        (Stage.HITL, 1, CommandAction.SHOW),
        (Stage.RESOLVED, 1, CommandAction.SHOW),
    ],
)
def test_an_abort_is_about_a_label_that_was_not_read_yet(
    stage: Stage, epoch: int, action: CommandAction
) -> None:
    status = IssueStatus(REF, stage, epoch=epoch)
    ruled = decide_command(order(Verb.ABORT, stage), status, is_open=True, is_labelled=True)
    assert (ruled.action, ruled.answer) == (action, ABORTED)


@pytest.mark.parametrize(
    ("verb", "request_at", "stopped", "is_overtaken"),
    [
        (Verb.SKIP, LATER, None, True),
        (Verb.ABORT, LATER, NOON, True),
        (Verb.ABORT, NOON, None, False),
        (Verb.SKIP, None, NOON, False),
        (Verb.RETRY, None, LATER, True),
        (Verb.FIX, LATER, LATER, True),
        (Verb.FIX, LATER, NOON, False),
        (Verb.FIX, LATER, None, False),
        (Verb.RETRY, NOON, NOON - timedelta(minutes=1), False),
        (Verb.PAUSE, LATER, LATER, False),
    ],
)
def test_what_was_given_later_replaces_a_command(
    verb: Verb, request_at: datetime | None, stopped: datetime | None, *, is_overtaken: bool
) -> None:
    asked = Request(str(LabelAct(1)), at=request_at)
    times = CommandTimes(stopped=stopped)
    status = IssueStatus(REF, Stage.READY, epoch=1, attempt=1, request=asked, commanded=times)
    given = order(verb, Stage.READY)
    assert status.is_overtaken(given) is is_overtaken
    ruled = decide_command(given, status, is_open=True)
    assert (ruled.action is CommandAction.REPLY and "after this command" in ruled.answer) is (
        is_overtaken
    )
    pending = replace(status, pending=(given,))
    stops = verb in {Verb.SKIP, Verb.ABORT, Verb.FIX}
    assert bool(pending.ending_reason) is (stops and not is_overtaken)
    assert pending.has_new_request is (verb in {Verb.RETRY, Verb.FIX} and not is_overtaken)
    is_next = verb is not Verb.PAUSE and not is_overtaken
    assert pending.next_order == (given if is_next else None)
    done = replace(given, is_done=True)
    assert replace(pending, pending=(done,)).next_order is None
