"""The tracker of a rehearsal knows one issue; its writer hands over the question to a person."""

import pytest

from mulligan.config.policy import Escalation, Labels, PullRequestSettings
from mulligan.domain.errors import GoneError
from mulligan.domain.issue import Issue, IssueRef, RepositoryFacts, Stage
from mulligan.github.issue_file import LocalTracker
from mulligan.github.writer import NOT_OPENED, RehearsalWriter
from mulligan.implement.ports import Tracker, TrackerWriter
from world.stories import attempt, escalated
from world.trackers import case_for

REF = IssueRef("local/tools", 1)
FACTS = RepositoryFacts("local/tools", "", "main")


def test_one_issue_is_known_and_anything_else_is_gone() -> None:
    issue = Issue(REF, "Mend it", "", labels=frozenset({"bug"}))
    tracker: Tracker = LocalTracker(issue, FACTS)
    assert tracker.read(REF) == issue
    assert tracker.list_labelled("local/tools", "Bug") == [REF]
    assert tracker.list_labelled("local/tools", "mulligan") == []
    with pytest.raises(GoneError, match="on local/tools only"):
        tracker.repository("acme/tools")
    with pytest.raises(GoneError, match="on local/tools#1 only"):
        tracker.read(IssueRef("local/tools", 2))


def test_only_the_question_to_a_person_is_handed_over() -> None:
    asked = list[str]()
    tracker = LocalTracker(Issue(REF, "Mend it", ""), FACTS)
    writer: TrackerWriter = RehearsalWriter(tracker, asked.append)
    hopeless = case_for(escalated(attempt(1), reason="It is hard."), REF)
    writer.set_stage_labels(REF, Stage.RUNNING, Labels())
    writer.update_status(hopeless)
    assert writer.open_pull_request(hopeless, "main", PullRequestSettings()).url == NOT_OPENED
    assert writer.open_draft(hopeless, "main").url == NOT_OPENED
    assert asked == []
    writer.post_escalation(hopeless, Escalation())
    assert ["It is hard." in text for text in asked] == [True]
