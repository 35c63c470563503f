"""What goes to GitHub is redacted, and known again there as what was sent."""

from dataclasses import replace
from pathlib import Path

from mulligan.config.operator import Trust
from mulligan.config.policy import Escalation, PullRequestSettings
from mulligan.domain.issue import IssueRef
from mulligan.domain.issue_context import IssueContext
from mulligan.domain.outcome import Outcome
from mulligan.github.client import Client, RetrySettings
from mulligan.github.comments import StatusComments
from mulligan.github.labels import LabelStyle
from mulligan.github.tracker import GitHubTracker
from mulligan.github.writer import GitHubWriter
from mulligan.text.redact import Redactor
from world.simulated import NAME
from world.stories import attempt, escalated, published
from world.trackers import TOKEN, TrackerEnvironment, case_for, tracker_environment

SECRET = "word-of-the-operator"


def writer_of(office: TrackerEnvironment) -> tuple[GitHubWriter, Client]:
    timeout = RetrySettings(attempts=1, timeout=120)
    client = Client(office.hub.url, lambda _: TOKEN, timeout, redactor=Redactor((SECRET,)))
    own_login = GitHubTracker(client, Trust(), office.clock).own_login
    return GitHubWriter(client, own_login, StatusComments(office.clock)), client


def titled(case: IssueContext, ref: IssueRef, title: str) -> IssueContext:
    found = case_for(case, ref)
    return replace(found, issue=replace(found.issue, title=title))


def test_comments_and_pull_requests_hold_no_secret_and_are_written_once(tmp_path: Path) -> None:
    with tracker_environment(tmp_path) as office:
        writer, client = writer_of(office)
        ref = office.ready()
        office.branch(ref)
        lost = case_for(escalated(attempt(1), reason=f"It said {SECRET}."), ref)
        won = titled(published(attempt(1, Outcome.SUCCEEDED)), ref, f"Mend {SECRET}")
        for _ in range(2):
            writer.update_status(lost)
            writer.post_escalation(lost, Escalation())
            writer.open_pull_request(won, "main", PullRequestSettings())
        client.close()
        comments = [comment.body for comment in office.hub.world.comments_of(ref)]
        (pull,) = office.hub.world.pulls_of(NAME)
        writes = [asked for asked in office.requests() if not asked.startswith("GET")]
    assert len(comments) == 2
    assert "It said [redacted]." in comments[1]
    assert not any(SECRET in comment for comment in comments)
    assert pull.title == "Mend [redacted]"
    assert not [asked for asked in writes if asked.startswith("PATCH")]


def test_whatever_is_written_holds_no_secret(tmp_path: Path) -> None:
    with tracker_environment(tmp_path) as office:
        writer, client = writer_of(office)
        writer.create_label(NAME, LabelStyle(SECRET, "ffffff", "Set by a person."))
        names = office.tracker.label_names(NAME)
        client.close()
    assert SECRET not in names
    assert "[redacted]" in names
