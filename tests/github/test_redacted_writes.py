"""What goes to GitHub is redacted, and known again there as what was sent."""

from dataclasses import replace
from pathlib import Path

from mulligan.config.operator import Trust
from mulligan.config.policy import Escalation, PullRequestSettings
from mulligan.domain.issue import IssueRef
from mulligan.domain.issue_context import IssueContext
from mulligan.domain.outcome import Outcome
from mulligan.github.client import Client, RetrySettings
from mulligan.github.tracker import GitHubTracker
from mulligan.text.redact import Redactor
from world.simulated import NAME
from world.stories import attempt, escalated, published
from world.trackers import TOKEN, TrackerEnvironment, case_for, tracker_environment

SECRET = "word-of-the-operator"


def tracker_of(office: TrackerEnvironment) -> tuple[GitHubTracker, Client]:
    patience = RetrySettings(attempts=1, timeout=5)
    client = Client(office.hub.url, lambda _: TOKEN, patience, redactor=Redactor((SECRET,)))
    return GitHubTracker(client, Trust(), office.clock), client


def titled(case: IssueContext, ref: IssueRef, title: str) -> IssueContext:
    found = case_for(case, ref)
    return replace(found, issue=replace(found.issue, title=title))


def test_comments_and_pull_requests_hold_no_secret_and_are_written_once(tmp_path: Path) -> None:
    with tracker_environment(tmp_path) as office:
        tracker, client = tracker_of(office)
        ref = office.ready()
        office.branch(ref)
        lost = case_for(escalated(attempt(1), reason=f"It said {SECRET}."), ref)
        won = titled(published(attempt(1, Outcome.SUCCEEDED)), ref, f"Mend {SECRET}")
        for _ in range(2):
            tracker.update_status(lost)
            tracker.post_escalation(lost, Escalation())
            tracker.open_pull_request(won, "main", PullRequestSettings())
        client.close()
        comments = [comment.body for comment in office.hub.world.comments_of(ref)]
        (pull,) = office.hub.world.pulls_of(NAME)
        writes = [asked for asked in office.requests() if not asked.startswith("GET")]
    assert len(comments) == 2
    assert "It said [redacted]." in comments[1]
    assert not any(SECRET in comment for comment in comments)
    assert pull.title == "Mend [redacted]"
    assert not [asked for asked in writes if asked.startswith("PATCH")]
