"""Issues of the simulated GitHub: lists, changes, rights, events."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from github_simulator.records import Event
from world.simulated import NAME, SimulatedGitHub, push, simulated_github


def numbers(github: SimulatedGitHub, query: str) -> list[int]:
    return [issue["number"] for issue in github.get(f"issues?{query}").json()]


def test_issues_are_filtered_by_state_and_labels(github: SimulatedGitHub) -> None:
    first, second, third = (github.issue() for _ in range(3))
    for ref in (first, second):
        github.world.label(ref, "Mulligan", "ada")
    github.world.label(second, "bug", "ada")
    github.world.close(third, "ada")
    assert numbers(github, "") == [2, 1]
    assert numbers(github, "state=closed") == [3]
    assert numbers(github, "state=all&direction=asc") == [1, 2, 3]
    assert numbers(github, "labels=mulligan") == [2, 1]
    assert numbers(github, "labels=mulligan,BUG") == [2]
    assert numbers(github, "labels=other") == []


def test_issues_are_filtered_by_time(github: SimulatedGitHub) -> None:
    github.issue()
    github.issue()
    assert numbers(github, "since=2000-01-01T00:00:00Z") == [2, 1]
    assert numbers(github, "since=2000-01-01") == [2, 1]
    assert numbers(github, "since=2100-01-01T00:00:00Z") == []


def test_issues_are_sorted_as_asked(tmp_path: Path) -> None:
    with simulated_github(tmp_path) as github:
        now = datetime(2026, 1, 1, tzinfo=UTC)
        clock = iter(now + timedelta(minutes=n) for n in range(1000))
        object.__setattr__(github.world.stamps, "clock", lambda: next(clock))
        one, two, three = (github.issue() for _ in range(3))
        github.world.comment(two, "a", "zoe")
        github.world.comment(two, "b", "zoe")
        github.world.comment(one, "c", "zoe")
        assert numbers(github, "") == [3, 2, 1]
        assert numbers(github, "sort=updated") == [1, 2, 3]
        assert numbers(github, "sort=comments&direction=asc") == [3, 1, 2]
        assert three.number == 3


def test_pull_requests_are_among_the_issues(github: SimulatedGitHub) -> None:
    github.issue()
    push(github.bare, "topic", {"a": "a"})
    body = {"title": "Topic", "head": "topic", "base": "main", "draft": True}
    assert github.post("pulls", body).status_code == 201
    pull, issue = github.get("issues").json()
    assert "pull_request" not in issue
    assert pull["pull_request"]["url"] == f"{github.url}/repos/{NAME}/pulls/2"
    assert pull["html_url"].endswith("/pull/2")
    assert pull["draft"] is True
    assert github.get("issues/2").json()["pull_request"]["merged_at"] is None


def test_an_opened_issue_is_shown_as_github_shows_it(github: SimulatedGitHub) -> None:
    answer = github.post("issues", {"title": "New", "body": "Text"}, by="zoe")
    assert answer.status_code == 201
    issue = answer.json()
    assert answer.headers["location"] == issue["url"]
    assert (issue["number"], issue["state"], issue["body"]) == (1, "open", "Text")
    assert (issue["user"]["login"], issue["author_association"]) == ("zoe", "NONE")
    assert datetime.strptime(issue["created_at"], "%Y-%m-%dT%H:%M:%SZ")  # noqa: DTZ007
    for missing in ("closed_at", "closed_by", "assignee", "milestone", "state_reason"):
        assert issue[missing] is None
    assert issue["assignees"] == issue["labels"] == []
    assert issue["locked"] is False
    assert issue["comments"] == issue["reactions"]["total_count"] == 0
    assert github.get("issues/1").json() == issue


def test_a_missing_body_is_null(github: SimulatedGitHub) -> None:
    assert github.post("issues", {"title": "New"}).json()["body"] is None


@pytest.mark.parametrize(
    ("body", "entry"),
    [
        ({"title": " "}, {"resource": "Issue", "field": "title", "code": "missing_field"}),
        (
            {"title": "x", "body": "y" * 65537},
            {
                "resource": "Issue",
                "code": "custom",
                "message": "body is too long (maximum is 65536 characters)",
            },
        ),
    ],
)
def test_an_issue_that_cannot_be_is_refused(
    github: SimulatedGitHub, body: dict[str, str], entry: dict[str, str]
) -> None:
    answer = github.post("issues", body)
    assert answer.status_code == 422
    assert answer.json()["message"] == "Validation Failed"
    assert answer.json()["errors"] == [entry]


def test_labels_of_one_who_may_not_label_are_dropped_silently(github: SimulatedGitHub) -> None:
    body = {"title": "x", "labels": ["mulligan"], "assignees": ["wes"]}
    stranger = github.post("issues", body, by="zoe").json()
    assert (stranger["labels"], stranger["assignees"]) == ([], [])
    writer = github.post("issues", body).json()
    assert [label["name"] for label in writer["labels"]] == ["mulligan"]
    assert [user["login"] for user in writer["assignees"]] == ["wes"]


def test_an_issue_form_labels_in_the_authors_name(github: SimulatedGitHub) -> None:
    ref = github.world.open_issue(NAME, "Form", None, "zoe", ["mulligan"])
    (event,) = github.get(f"issues/{ref.number}/events").json()
    assert (event["event"], event["actor"]["login"]) == ("labeled", "zoe")


def test_what_happens_to_an_issue_is_on_record(github: SimulatedGitHub) -> None:
    ref = github.issue("Old")
    github.world.label(ref, "bug", "ada")
    github.patch("issues/1", {"title": "New", "body": "Other"}, by="zoe")
    github.post("issues/1/assignees", {"assignees": ["wes"]}, by="tri")
    github.ask("DELETE", "issues/1/labels/bug", by="tri")
    github.patch("issues/1", {"state": "closed", "state_reason": "not_planned"}, by="tri")
    github.patch("issues/1", {"state": "open"}, by="zoe")
    events = github.get("issues/1/events").json()
    assert [(event["event"], event["actor"]["login"]) for event in events] == [
        ("labeled", "ada"),
        ("renamed", "zoe"),
        ("assigned", "tri"),
        ("unlabeled", "tri"),
        ("closed", "tri"),
        ("reopened", "zoe"),
    ]
    labeled, renamed, assigned = events[:3]
    assert labeled["label"] == {"name": "bug", "color": "ededed"}
    assert renamed["rename"] == {"from": "Old", "to": "New"}
    assert assigned["assignee"]["login"] == "wes"
    assert {"label", "rename", "assignee"} & set(events[-1]) == set()
    ids = [event["id"] for event in events]
    assert ids == sorted(set(ids))
    assert [event.id for event in github.world.events_of(ref)] == ids


def test_closing_says_who_when_and_why(github: SimulatedGitHub) -> None:
    github.issue()
    closed = github.patch("issues/1", {"state": "closed"}).json()
    assert (closed["state"], closed["state_reason"]) == ("closed", "completed")
    assert closed["closed_by"]["login"] == "wes"
    assert closed["closed_at"]
    again = github.patch("issues/1", {"state": "closed"}).json()
    assert again == closed
    reopened = github.patch("issues/1", {"state": "open"}).json()
    assert (reopened["state_reason"], reopened["closed_at"]) == ("reopened", None)
    assert github.patch("issues/1", {"state": "shut"}).status_code == 422


def test_a_stranger_changes_nothing_but_their_own_words(github: SimulatedGitHub) -> None:
    github.issue(author="zoe")
    refused = github.patch("issues/1", {"title": "Mine"}, by="rea")
    assert refused.status_code == 403
    assert refused.json()["message"] == "Must have admin rights to Repository."
    assert github.patch("issues/1", {"title": "Mine"}, by="zoe").json()["title"] == "Mine"
    assert github.patch("issues/1", {"title": "Theirs"}, by="tri").json()["title"] == "Mine"


def test_a_title_cannot_become_empty(github: SimulatedGitHub) -> None:
    github.issue()
    assert github.patch("issues/1", {"title": " "}).status_code == 422


def test_assignees_who_cannot_be_assigned_are_left_out(github: SimulatedGitHub) -> None:
    github.issue()
    body = {"assignees": ["wes", "zoe", "nobody"]}
    answer = github.post("issues/1/assignees", body, by="tri")
    assert answer.status_code == 201
    assert [user["login"] for user in answer.json()["assignees"]] == ["wes"]
    assert answer.json()["assignee"]["login"] == "wes"
    assert github.post("issues/1/assignees", body, by="zoe").status_code == 403


def test_an_assignee_is_removed_once(github: SimulatedGitHub) -> None:
    github.issue()
    github.post("issues/1/assignees", {"assignees": ["wes", "mia"]}, by="tri")
    for _ in range(2):
        answer = github.ask("DELETE", "issues/1/assignees", body={"assignees": ["wes"]}, by="tri")
        assert [user["login"] for user in answer.json()["assignees"]] == ["mia"]
    events = github.get("issues/1/events").json()
    assert [event["event"] for event in events] == ["assigned", "assigned", "unassigned"]


def test_a_locked_issue_takes_comments_from_writers_only(github: SimulatedGitHub) -> None:
    ref = github.issue()
    github.world.set_lock(ref, "tri", locked=True)
    refused = github.post("issues/1/comments", {"body": "x"}, by="zoe")
    assert refused.status_code == 403
    assert refused.json()["message"] == "Unable to create comment because issue is locked."
    assert github.post("issues/1/comments", {"body": "x"}).status_code == 201
    assert github.get("issues/1").json()["locked"] is True
    github.world.set_lock(ref, "tri", locked=False)
    assert github.post("issues/1/comments", {"body": "x"}, by="zoe").status_code == 201
    events = [event["event"] for event in github.get("issues/1/events").json()]
    assert events == ["locked", "unlocked"]


def test_a_deleted_issue_is_gone(github: SimulatedGitHub) -> None:
    ref = github.issue()
    github.world.delete(ref)
    answer = github.get("issues/1")
    assert (answer.status_code, answer.json()["message"]) == (410, "This issue was deleted")
    assert github.get("issues").json() == []
    assert github.get("issues/2").status_code == 404
    assert github.get("issues/one").status_code == 404


def test_a_transferred_issue_redirects_to_its_new_place(github: SimulatedGitHub) -> None:
    ref = github.issue()
    github.world.add_repository("acme/other", github.bare)
    there = github.world.transfer(ref, "acme/other", "ada")
    answer = github.get("issues/1")
    assert answer.status_code == 301
    assert answer.headers["location"] == f"{github.url}/repos/acme/other/issues/1"
    assert github.get(f"/repos/acme/other/issues/{there.number}").json()["title"] == "It is broken"


def test_what_is_read_from_the_world_is_a_copy(github: SimulatedGitHub) -> None:
    ref = github.issue()
    github.world.comment(ref, "First", "zoe")
    before, issue = github.world.comments_of(ref), github.world.issue_of(ref)
    comment = github.get("issues/1/comments").json()[0]["id"]
    github.patch(f"issues/comments/{comment}", {"body": "Second"})
    github.world.edit(ref, "zoe", title="Other")
    github.world.set_lock(ref, "ada", locked=True)
    assert [one.body for one in before] == ["First"]
    assert (issue.title, issue.locked) == ("It is broken", False)
    assert [one.body for one in github.world.comments_of(ref)] == ["Second"]
    events: list[Event] = github.world.events_of(ref)
    assert [event.kind for event in events] == ["renamed", "locked"]
