"""What a tracker reads, and what any writer does: labels, comments, pull requests, each once."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from github_simulator.world import Fault
from mulligan.config.policy import Escalation, Labels, PullRequestSettings
from mulligan.domain.errors import GoneError, UnconfirmedError
from mulligan.domain.issue import IssueRef, LabelAct, OperatorAct, Stage
from mulligan.domain.issue_context import IssueContext
from mulligan.domain.outcome import Outcome
from mulligan.domain.recorded_effects import Effects, StatusWritten
from mulligan.domain.status import IssueStatus, PullStatus, Request, SeenText
from mulligan.github.tracker import FACTS_TTL
from mulligan.implement.ports import Tracker, TrackerWriter
from world.simulated import NAME
from world.stories import attempt, case, escalated, published
from world.trackers import BOT, TrackerEnvironment, case_for, tracker_environment

LABELS = Labels()
SETTINGS = PullRequestSettings()


@pytest.fixture
def office(tmp_path: Path) -> Iterator[TrackerEnvironment]:
    with tracker_environment(tmp_path) as found:
        yield found


@pytest.fixture
def tracker(office: TrackerEnvironment) -> Tracker:
    return office.tracker


@pytest.fixture(params=["github", "dry run"])
def writer(request: pytest.FixtureRequest, office: TrackerEnvironment) -> TrackerWriter:
    return office.writer if request.param == "github" else office.dry_run()


def stage_labels(tracker: Tracker, ref: IssueRef) -> set[str]:
    return {name for name in tracker.read(ref).labels if name.startswith("mulligan")}


def test_a_repository_is_known_by_its_facts(office: TrackerEnvironment, tracker: Tracker) -> None:
    facts = tracker.recent_repository(NAME)
    assert (facts.name, facts.default_branch, facts.archived) == (NAME, "main", False)
    assert facts.clone_url
    office.hub.world.archive(NAME)
    assert not tracker.recent_repository(NAME).archived
    assert tracker.repository(NAME).archived


def test_the_facts_of_a_moment_ago_are_read_again(
    office: TrackerEnvironment, tracker: Tracker
) -> None:
    assert not tracker.recent_repository(NAME).archived
    office.hub.world.archive(NAME)
    office.clock.time += FACTS_TTL
    assert tracker.recent_repository(NAME).archived


def test_a_repository_that_cannot_be_seen_is_asked_for_again(tracker: Tracker) -> None:
    with pytest.raises(UnconfirmedError, match="check the name"):
        tracker.repository("acme/nowhere")


def test_labelled_issues_come_oldest_first(office: TrackerEnvironment, tracker: Tracker) -> None:
    first, second = office.hub.issue(), office.ready()
    office.hub.world.label(first, "mulligan", "wes")
    other, closed = office.hub.issue(), office.ready()
    office.hub.world.label(other, "bug", "wes")
    office.hub.world.close(closed, "wes")
    assert tracker.list_labelled(NAME, "mulligan") == [first, second]
    assert tracker.list_labelled(NAME, "nothing") == []


def test_priority_labels_come_before_age(office: TrackerEnvironment, tracker: Tracker) -> None:
    old, middle, new = office.ready(), office.ready(), office.ready()
    office.hub.world.label(middle, "soon", "wes")
    office.hub.world.label(new, "Now", "wes")
    assert tracker.list_labelled(NAME, "mulligan", ("now", "soon")) == [new, middle, old]


def test_a_pull_request_is_not_an_issue(office: TrackerEnvironment, tracker: Tracker) -> None:
    ref = office.ready()
    office.branch(ref)
    office.writer.open_pull_request(case_for(published(attempt(1)), ref), "main", SETTINGS)
    pull = IssueRef(NAME, office.hub.world.pulls_of(NAME)[0].number)
    office.hub.world.label(pull, "mulligan", "wes")
    assert tracker.list_labelled(NAME, "mulligan") == [ref]
    assert tracker.read(pull).is_pull_request


def test_an_issue_is_read_as_it_stands_now(office: TrackerEnvironment, tracker: Tracker) -> None:
    ref = office.ready("First title")
    office.hub.world.edit(ref, "wes", title="Second title", body="New words.")
    issue = tracker.read(ref)
    assert (issue.ref, issue.title, issue.body) == (ref, "Second title", "New words.")
    assert (issue.author, issue.is_open, issue.is_pull_request) == ("zoe", True, False)
    assert issue.labels == {"mulligan"}
    assert issue.url
    office.hub.world.close(ref, "wes")
    assert not tracker.read(ref).is_open


def test_texts_come_as_github_renders_them(office: TrackerEnvironment, tracker: Tracker) -> None:
    ref, world = office.ready(), office.hub.world
    world.edit(ref, "wes", body="A *b* <!-- c -->")
    world.comment(ref, "**d**", "wes")
    world.comment(ref, "e", "zoe")
    issue = tracker.read(ref, with_comments=True)
    shown = tracker.with_renderings(issue)
    assert shown == issue
    assert shown.html.strip() == "<p>A <em>b</em> </p>"
    assert [each.html.strip() for each in shown.comments] == ["<p><strong>d</strong></p>"]
    # A text that has changed meanwhile is not rendered as another one.
    world.edit(ref, "wes", body="A new text")
    assert tracker.with_renderings(issue).html == ""
    assert tracker.with_renderings(tracker.read(ref)).comments == ()


def test_without_renderings_the_texts_stay(office: TrackerEnvironment, tracker: Tracker) -> None:
    ref, world = office.ready(), office.hub.world
    issue = tracker.read(ref)
    world.faults = lambda method, _path: Fault(500) if method == "GET" else None
    assert tracker.with_renderings(issue) is issue


def test_only_an_issue_that_was_deleted_is_gone(
    office: TrackerEnvironment, tracker: Tracker
) -> None:
    with pytest.raises(UnconfirmedError):
        tracker.read(IssueRef(NAME, 999))
    ref = office.ready()
    office.hub.world.delete(ref)
    with pytest.raises(GoneError):
        tracker.read(ref)


def test_only_trusted_people_are_heard_in_order(
    office: TrackerEnvironment, tracker: Tracker
) -> None:
    ref = office.ready()
    for author in ("zoe", "wes", "tri", "ada", "rea", "mia"):
        office.hub.world.comment(ref, f"{author} says", author)
    assert [comment.author for comment in tracker.read(ref, with_comments=True).comments] == [
        "wes",
        "ada",
        "mia",
    ]
    assert tracker.read(ref, with_comments=True).comments[0].body == "wes says"


def test_the_last_labelling_counts(office: TrackerEnvironment, tracker: Tracker) -> None:
    ref = office.ready(by="tri")
    assert tracker.authorising_act(ref, "bug") is None
    first = tracker.authorising_act(ref, "mulligan")
    assert first
    assert (first.actor, first.trusted) == ("tri", False)
    assert "triage" in first.reason
    office.hub.world.unlabel(ref, "mulligan", "wes")
    office.hub.world.label(ref, "mulligan", "wes")
    last = tracker.authorising_act(ref, "mulligan")
    assert last
    assert (last.actor, last.trusted, last.reason) == ("wes", True, "")
    assert last.by_label
    assert last.act != first.act


def test_an_issue_nobody_labelled_has_no_act(office: TrackerEnvironment, tracker: Tracker) -> None:
    assert tracker.authorising_act(office.hub.issue(), "mulligan") is None


def test_labels_follow_the_stages_of_a_life(office: TrackerEnvironment, tracker: Tracker) -> None:
    ref = office.ready()
    office.hub.world.label(ref, "bug", "wes")
    seen: list[set[str]] = []
    for stage in (Stage.RUNNING, Stage.READY, Stage.RUNNING, Stage.HITL, Stage.REVIEW):
        office.writer.set_stage_labels(ref, stage, LABELS)
        office.writer.set_stage_labels(ref, stage, LABELS)
        seen.append(stage_labels(tracker, ref))
    assert seen == [
        {"mulligan", "mulligan:running"},
        {"mulligan"},
        {"mulligan", "mulligan:running"},
        {"mulligan:hitl"},
        {"mulligan:review"},
    ]
    assert tracker.list_labelled(NAME, "mulligan") == []
    assert tracker.list_labelled(NAME, "mulligan:review") == [ref]
    office.writer.set_stage_labels(ref, Stage.RESOLVED, LABELS)
    assert tracker.read(ref).labels == {"bug"}


def test_the_ready_label_is_never_put_on(office: TrackerEnvironment, tracker: Tracker) -> None:
    ref = office.hub.issue()
    for stage in Stage:
        office.writer.set_stage_labels(ref, stage, LABELS)
        assert "mulligan" not in tracker.read(ref).labels


def test_there_is_one_status_comment(
    office: TrackerEnvironment, tracker: Tracker, writer: TrackerWriter
) -> None:
    ref = office.ready()
    first = writer.update_status(case_for(case(), ref))
    assert writer.update_status(case_for(case(), ref)) == first
    assert writer.update_status(case_for(case(attempt(1)), ref)) == first
    assert tracker.read(ref, with_comments=True).comments == ()


def test_a_status_comment_on_record_is_the_one(
    office: TrackerEnvironment, writer: TrackerWriter
) -> None:
    ref = office.ready()
    known = office.writer.update_status(case_for(case(), ref))
    told = case_for(case(attempt(1), stage=Stage.HITL), ref)
    effects = Effects().plus(StatusWritten(comment=known or ""))
    recorded = replace(told, status=replace(told.status, effects=effects))
    assert writer.update_status(recorded) == known


def hopeless(ref: IssueRef, epoch: int = 1) -> IssueContext:
    found = case_for(escalated(attempt(1), reason="It did not work out."), ref)
    return replace(found, status=replace(found.status, epoch=epoch))


def test_help_is_asked_for_once_in_an_epoch(
    office: TrackerEnvironment, writer: TrackerWriter
) -> None:
    ref = office.ready()
    first = writer.post_escalation(hopeless(ref), Escalation())
    assert writer.post_escalation(hopeless(ref), Escalation()) == first
    assert writer.post_escalation(hopeless(ref, epoch=2), Escalation()) != first
    assert writer.post_escalation(hopeless(ref), Escalation()) == first


def test_an_answered_escalation_is_marked_once(
    office: TrackerEnvironment, writer: TrackerWriter
) -> None:
    ref = office.ready()
    url = writer.post_escalation(hopeless(ref), Escalation())
    told = hopeless(ref)
    answered = replace(told, status=replace(told.status, asked_at=url))
    for _ in range(2):
        writer.answer_escalation(answered)
    texts = [comment.body for comment in office.hub.world.comments_of(ref)]
    assert not any("**This issue needs human review.**" in text for text in texts)
    assert len(texts) <= 1


def test_there_is_one_pull_request(office: TrackerEnvironment, writer: TrackerWriter) -> None:
    ref = office.ready()
    office.branch(ref)
    verified = case_for(published(attempt(1, Outcome.SUCCEEDED)), ref)
    first = writer.open_pull_request(verified, "main", SETTINGS)
    assert first.url
    assert writer.open_pull_request(verified, "main", SETTINGS) == first
    again = case_for(published(attempt(1), attempt(2, Outcome.SUCCEEDED)), ref)
    assert writer.open_pull_request(again, "main", SETTINGS) == first


def test_a_draft_becomes_the_pull_request(
    office: TrackerEnvironment, writer: TrackerWriter
) -> None:
    ref = office.ready()
    office.branch(ref)
    red = case_for(escalated(attempt(1), reason="It is hard."), ref)
    first = writer.open_draft(red, "main")
    assert writer.open_draft(red, "main") == first
    verified = case_for(published(attempt(1), attempt(2, Outcome.SUCCEEDED)), ref)
    verified = replace(verified, status=replace(verified.status, pull=PullStatus(draft_of=1)))
    assert writer.open_pull_request(verified, "main", SETTINGS) == first


def test_mulligan_does_not_listen_to_itself(office: TrackerEnvironment, tracker: Tracker) -> None:
    ref = office.ready()
    office.writer.update_status(case_for(case(), ref))
    office.hub.world.comment(ref, "By hand, with the same account.", BOT)
    assert [comment.author for comment in tracker.read(ref, with_comments=True).comments] == [BOT]


def asked(tracker: Tracker, ref: IssueRef) -> IssueStatus:
    """Give the status of an epoch that the last labelling opened."""
    act = tracker.authorising_act(ref, "mulligan")
    assert act
    status = case_for(case(), ref).status
    return replace(status, request=Request(str(act.act), act.actor, at=act.at))


def recorded(tracker: Tracker, ref: IssueRef) -> IssueStatus:
    """Give the same with the text that was asked for."""
    return replace(asked(tracker, ref), text=SeenText(sha256=tracker.read(ref).text_sha256))


def test_nothing_stands_against_work_whose_text_and_trust_are_as_they_were(
    office: TrackerEnvironment, tracker: Tracker
) -> None:
    ref = office.ready()
    status = recorded(tracker, ref)
    office.hub.world.edit(ref, "ada", title="Said better")
    assert tracker.objection(ref, status) is None


def test_a_text_that_a_stranger_changed_stands_against_it(
    office: TrackerEnvironment, tracker: Tracker
) -> None:
    ref = office.ready()
    status = recorded(tracker, ref)
    office.hub.world.edit(ref, "zoe", title="Said worse")
    found = tracker.objection(ref, status)
    assert found
    assert (found.by_edit, "zoe changed the title" in found.reason) == (True, True)
    act = tracker.authorising_act(ref, "mulligan")
    assert act
    assert [edit.actor for edit in act.edits.by_strangers] == ["zoe"]


def test_the_edits_by_anybody_since_the_request_are_listed_oldest_first(
    office: TrackerEnvironment, tracker: Tracker
) -> None:
    ref = office.hub.issue()
    office.hub.world.edit(ref, "ada", title="Said before the request")
    office.hub.world.label(ref, "mulligan", "wes")
    status = recorded(tracker, ref)
    assert list(tracker.edits(ref, status)) == []
    office.hub.world.edit(ref, "ada", title="Said better")
    office.hub.world.edit(ref, "wes", body="Said longer.")
    found = [(edit.actor, edit.what) for edit in tracker.edits(ref, status)]
    assert found == [("ada", "title"), ("wes", "text")]


def test_the_label_is_asked_for_once_for_each_act(
    office: TrackerEnvironment, writer: TrackerWriter
) -> None:
    told = case_for(case(), office.ready())
    first = writer.ask_for_label(told, LabelAct(7), "zoe changed the title")
    assert writer.ask_for_label(told, LabelAct(7), "zoe changed the title") == first
    writer.ask_for_label(told, LabelAct(8), "zoe changed the title")
    written = [*office.said, *(each.body for each in office.hub.world.comments_of(told.issue.ref))]
    assert len(written) == 2
    assert all(
        "remove the label `mulligan` if it is there, and add it again" in text for text in written
    )


def test_a_request_stands_while_nobody_takes_it_back(
    office: TrackerEnvironment, tracker: Tracker
) -> None:
    ref = office.ready()
    office.hub.world.unlabel(ref, "mulligan", "wes")
    office.hub.world.label(ref, "mulligan", "wes")
    status = asked(tracker, ref)
    office.hub.world.label(ref, "bug", "wes")
    office.hub.world.unlabel(ref, "bug", "wes")
    office.writer.set_stage_labels(ref, Stage.RUNNING, LABELS)
    office.writer.set_stage_labels(ref, Stage.READY, LABELS)
    assert not tracker.withdrawal(ref, status, LABELS)


@pytest.mark.parametrize("label", ["mulligan", "mulligan:running"])
def test_taking_a_label_off_takes_the_request_back(
    label: str, office: TrackerEnvironment, tracker: Tracker
) -> None:
    ref = office.ready()
    status = asked(tracker, ref)
    office.writer.set_stage_labels(ref, Stage.RUNNING, LABELS)
    office.hub.world.unlabel(ref, label, "tri")
    assert tracker.withdrawal(ref, status, LABELS) == "Its label was removed."


def test_a_command_is_taken_back_by_a_label_that_goes_later(
    office: TrackerEnvironment, tracker: Tracker
) -> None:
    ref = office.ready()
    office.hub.world.unlabel(ref, "mulligan", "wes")
    off = office.hub.world.events_of(ref)[-1].created_at
    status = replace(case_for(case(), ref).status, request=Request(str(OperatorAct("now")), at=off))
    assert not tracker.withdrawal(ref, status, LABELS)
    earlier = replace(
        status, request=Request(str(OperatorAct("now")), at=off - timedelta(seconds=1))
    )
    assert tracker.withdrawal(ref, earlier, LABELS)


def test_closing_the_issue_takes_the_request_back(
    office: TrackerEnvironment, tracker: Tracker
) -> None:
    ref = office.ready()
    status = asked(tracker, ref)
    office.hub.world.close(ref, "zoe")
    assert tracker.withdrawal(ref, status, LABELS) == "The issue was closed."


def test_an_issue_that_is_gone_is_wanted_no_more(
    office: TrackerEnvironment, tracker: Tracker
) -> None:
    deleted, transferred = office.ready(), office.ready()
    office.hub.world.add_repository("acme/other", office.hub.bare)
    statuses = {ref: asked(tracker, ref) for ref in (deleted, transferred)}
    office.hub.world.delete(deleted)
    office.hub.world.transfer(transferred, "acme/other", "ada")
    how = [tracker.withdrawal(ref, status, LABELS) for ref, status in statuses.items()]
    assert how == [
        f"{deleted} was deleted.",
        f"{transferred} was transferred to another repository.",
    ]


def test_an_issue_of_a_repository_that_was_renamed_is_wanted_under_its_new_name(
    office: TrackerEnvironment, tracker: Tracker
) -> None:
    ref = office.ready()
    status = asked(tracker, ref)
    office.hub.world.rename_repository(NAME, "gadgets")
    reason = tracker.withdrawal(ref, status, LABELS)
    assert reason == f"{NAME} was renamed or transferred; write its new name in the configuration."


def test_a_repository_that_is_out_of_sight_takes_nothing_back(
    office: TrackerEnvironment, tracker: Tracker
) -> None:
    ref = office.ready()
    status = asked(tracker, ref)
    office.hub.world.repositories[NAME].private = True
    office.hub.world.set_role(NAME, BOT, "none")
    with pytest.raises(UnconfirmedError, match="the token can read"):
        tracker.withdrawal(ref, status, LABELS)


def test_nothing_is_wanted_of_an_archived_repository(
    office: TrackerEnvironment, tracker: Tracker
) -> None:
    ref = office.ready()
    status = asked(tracker, ref)
    office.hub.world.archive(NAME)
    assert "archived" in tracker.withdrawal(ref, status, LABELS)


def test_a_discussion_is_no_issue(office: TrackerEnvironment, tracker: Tracker) -> None:
    ref = office.ready()
    status = asked(tracker, ref)
    office.hub.world.convert(ref, "wes")
    assert tracker.withdrawal(ref, status, LABELS) == "It was converted to a discussion."


def test_a_label_that_was_deleted_takes_its_requests_back(
    office: TrackerEnvironment, tracker: Tracker
) -> None:
    ref = office.ready()
    status = asked(tracker, ref)
    office.hub.world.delete_label(NAME, "mulligan")
    reason = tracker.withdrawal(ref, status, LABELS)
    assert reason == "The label 'mulligan' is no longer on it; the label was deleted or renamed."
