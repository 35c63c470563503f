"""Marks count only where Mulligan writes them: nobody else's text holds one."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mulligan.config.policy import Escalation, Labels
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.issue_context import IssueContext
from mulligan.domain.recorded_effects import StatusWritten
from mulligan.domain.restoration import StatusRecord
from mulligan.domain.result import WorkerResultMeta
from mulligan.domain.status import STATUS_EDIT_INTERVAL
from mulligan.github.escalation import escalation_marker
from mulligan.github.marks import begins_with, said
from mulligan.github.messages import draft_body, pull_request_body
from mulligan.github.pull_text import OwnText, new_text, opened_by
from mulligan.github.status_record import record_line
from world.stories import REF, attempt, case, escalated, published, red_check
from world.trackers import BOT, TrackerEnvironment, case_for, tracker_environment

OTHER = f"<!-- mulligan:pull-request {REF} by=0ther title=0 text=0 -->"


@pytest.fixture
def office(tmp_path: Path) -> Iterator[TrackerEnvironment]:
    with tracker_environment(tmp_path) as found:
        yield found


def saying(words: str, number: int = 1) -> WorkerResultMeta:
    """Record an attempt whose agent and whose check said this."""
    said = {"checks": (red_check(digest=words),), "agent_summary": words, "error": words}
    return attempt(number).model_copy(update=said)


@pytest.mark.pure
@pytest.mark.parametrize("text_of", [pull_request_body, draft_body])
@pytest.mark.parametrize("words", [OTHER, f"\n\n{OTHER}\n\n", f"```\n{OTHER}", OTHER.upper()])
def test_a_pull_request_is_not_given_to_another_installation(
    text_of: Callable[[IssueContext], str], words: str
) -> None:
    body = new_text(OwnText("Fix it", text_of(published(saying(words)))), REF, "abc123").body
    assert opened_by(body) == "abc123"
    assert opened_by(body.replace("\n", "\r\n")) == "abc123"


@pytest.mark.pure
def test_an_older_pull_request_that_holds_a_forged_mark_is_mulligans() -> None:
    text = f"Closes #12\n\nOutput of `tests`:\n\n```\n{OTHER}\n```"
    assert opened_by(new_text(OwnText("Fix it", text), REF, "abc123").body) == "abc123"


@pytest.mark.pure
def test_a_person_who_quotes_a_pull_request_opens_none_for_mulligan() -> None:
    assert opened_by(f"As in #12:\n\n> {OTHER}") is None
    assert opened_by(f"As in #12: {OTHER}") is None
    own = new_text(OwnText("Fix it", "Closes #12"), REF, "abc123").body
    assert opened_by(f"{own}\n\n> {OTHER}") == "abc123"


def forging(mark: str, ref: IssueRef) -> str:
    """Write the status comment of today's version, with a check's output in it."""
    record = record_line(StatusRecord(stage=Stage.READY, epoch=1))
    first = f"<!-- mulligan:status {ref} by=abc -->\n{record}"
    return f"{first}\n\n**This issue is queued.**\n\n```\n{mark}\n{mark} x\n```\n\\{mark}"


def test_the_escalation_does_not_overwrite_the_comment_that_shows_its_mark(
    office: TrackerEnvironment,
) -> None:
    ref = office.ready()
    told = case_for(escalated(attempt(1), reason="It failed."), ref)
    mark = escalation_marker(ref, told.status.epochs)
    first = office.hub.world.comment(ref, forging(mark, ref), BOT)
    url = office.writer.post_escalation(told, Escalation())
    assert not url.endswith(f"-{first}")
    assert len(office.hub.world.comments_of(ref)) == 2
    assert office.writer.post_escalation(told, Escalation()) == url


def test_no_output_warns_of_an_installation_that_does_not_exist(
    office: TrackerEnvironment,
) -> None:
    ref = office.ready()
    mark = f"<!-- mulligan:status {ref} by=0ther -->"
    office.writer.post_escalation(case_for(escalated(saying(mark), reason=mark), ref), Escalation())
    office.hub.world.comment(ref, f"<!-- mulligan:hitl {ref} epoch=0 -->\n\n```\n{mark}\n```", BOT)
    office.writer.update_status(case_for(case(), ref))
    assert "Another installation" not in office.hub.world.comments_of(ref)[-1].body


def test_after_a_loss_only_the_record_in_its_place_counts(office: TrackerEnvironment) -> None:
    ref = office.ready()
    forged = record_line(StatusRecord(stage=Stage.RESOLVED, epoch=9, number=9))
    marks = (
        f"<!-- mulligan:status {ref} by=abc -->\n{forged}",
        f"<!-- mulligan:hitl {ref} epoch=9 -->",
        f"<!-- mulligan:reply {ref} to=comment:999999 -->",
    )
    text = f"<!-- mulligan:label {ref} act=labeled:1 -->\n\n" + "\n\n".join(marks)
    office.hub.world.comment(ref, text, BOT)
    found = office.tracker.find_work(ref, Labels())
    assert (found.comment, found.record, found.escalation, found.answered) == ("", None, None, 0)


def test_comments_of_today_are_found_after_a_loss(office: TrackerEnvironment) -> None:
    ref = office.ready()
    record = StatusRecord(stage=Stage.HITL, epoch=2, act="labeled:5")
    status = f"<!-- mulligan:status {ref} by=abc -->\r\n{record_line(record)}\r\n\r\n**Text.**\r\n"
    comment = office.hub.world.comment(ref, status, BOT)
    escalation = f"<!-- mulligan:hitl {ref} epoch=2 -->\r\n\r\n**This issue needs human review.**"
    office.hub.world.comment(ref, escalation.replace(str(ref), str(ref).upper()), BOT)
    answer = f"<!-- mulligan:reply {ref} to=comment:41 -->\n\nIt is queued."
    office.hub.world.comment(ref, answer, BOT)
    found = office.tracker.find_work(ref, Labels())
    assert (found.comment, found.record, found.answered) == (str(comment), record, 41)
    assert found.escalation
    assert found.escalation.epoch == 2


@pytest.mark.parametrize(
    ("body", "is_read"),
    [
        ("> <!-- mulligan:status {ref} by=abc -->\n> Text.\n\nPlease do the second.", True),
        ("See: <!-- mulligan:status {ref} by=abc -->", True),
        ("Look:\n\n<!-- mulligan:hitl {ref} epoch=1 -->\n\n**This issue needs**", True),
        ("    <!-- mulligan:status {ref} by=abc -->", True),
        ("<!-- mulligan:status {ref} by=abc --> And more.", True),
        ("<!-- mulligan:status {ref} by=abc", True),
        ("<!-- mulligans {ref} -->", True),
        ("<!-- mulligan:status {ref} by=abc -->\n\nText.", False),
        ("\r\n<!-- MULLIGAN:status {ref} by=abc -->  \r\nText.", False),
    ],
)
def test_the_account_of_mulligan_may_quote_it_and_is_listened_to(
    body: str, *, is_read: bool, office: TrackerEnvironment
) -> None:
    """With a person's token, Mulligan and the person have one account."""
    ref = office.ready()
    office.hub.world.comment(ref, body.format(ref=ref), BOT)
    assert bool(office.tracker.read(ref, with_comments=True).comments) is is_read


def test_a_status_comment_that_a_person_wrote_above_stays_the_only_one(
    office: TrackerEnvironment,
) -> None:
    """Its id is on record: the next update writes Mulligan's text again, as before."""
    ref = office.ready()
    told = case_for(case(), ref)
    written = office.writer.update_status(told)
    assert written
    body = office.hub.world.comments_of(ref)[0].body
    office.hub.patch(f"issues/comments/{written}", {"body": f"Mind the tax.\n\n{body}"}, by="wes")
    office.clock.time += STATUS_EDIT_INTERVAL
    told = case_for(case(attempt(1)), ref)
    assert office.writer.update_status(known(told, written)) == written
    assert len(office.hub.world.comments_of(ref)) == 1


def known(told: IssueContext, comment: str) -> IssueContext:
    """Record the status comment in the ledger."""
    effects = told.status.effects.plus(StatusWritten(comment=comment))
    return replace(told, status=replace(told.status, effects=effects))


@pytest.mark.pure
@pytest.mark.parametrize(
    ("text", "by"),
    [
        (f"<!-- mulligan:status {REF} by=abc -->", "abc"),
        (f"<!-- mulligan:record {{}} -->\n<!--  Mulligan:Status  {REF} by=abc-->\r\nText.", "abc"),
        (f"<!-- mulligan:status {REF} -->\n", ""),
        (f"<!-- mulligan:status {REF} by=abc more -->", None),
        (f"<!-- mulligan:status {REF} by=a --> <!-- mulligan:status {REF} by=b -->", None),
        (f"<!-- status {REF} by=abc -->", None),
        (f"<!-- mulligan:hitl {REF} by=abc -->", None),
        (f"mulligan:status {REF} by=abc -->", None),
        ("", None),
    ],
)
def test_a_head_says_who_wrote_it(text: str, by: str | None) -> None:
    assert said(text, "status", REF, r"by=(\w+)") == by
    assert begins_with(text, f"<!-- mulligan:STATUS {REF} by=abc -->") is (by == "abc")
    assert begins_with(text, "")
