"""PyGithub takes the simulated GitHub for the real one."""

import json

import pytest

import github as pygithub
from world.simulated import NAME, SimulatedGitHub, push


def test_a_whole_life_of_an_issue_through_pygithub(github: SimulatedGitHub) -> None:
    github.issue()
    with github.client("wes") as client:
        assert client.get_user().login == "wes"
        repository = client.get_repo(NAME)
        assert (repository.default_branch, repository.permissions.push) == ("main", True)
        issue = repository.get_issue(1)
        issue.add_to_labels("mulligan", "mulligan:running")
        issue.remove_from_labels("mulligan:running")
        assert [label.name for label in repository.get_issue(1).labels] == ["mulligan"]
        # Not its UnknownObjectException: that is for the words "Not Found" alone.
        with pytest.raises(pygithub.GithubException, match="Label does not exist"):
            issue.remove_from_labels("mulligan:running")
        events = [(one.event, one.label.name if one.label else "") for one in issue.get_events()]
        assert events[0] == ("labeled", "mulligan")
        assert events[-1] == ("unlabeled", "mulligan:running")
        comment = issue.create_comment("Hello")
        comment.edit("Hello again")
        comment.create_reaction("eyes")
        assert [one.body for one in issue.get_comments()] == ["Hello again"]
        assert repository.get_collaborator_role_name("mia") == "maintain"
        assert repository.get_collaborator_permission("mia") == "write"
        issue.add_to_assignees("wes")
        issue.edit(state="closed", state_reason="not_planned")
        assert repository.get_issue(1).state_reason == "not_planned"
        assert list(repository.get_issues(state="open")) == []


def test_a_whole_life_of_a_pull_request_through_pygithub(github: SimulatedGitHub) -> None:
    github.issue()
    push(github.bare, "topic", {"a": "a"})
    with github.client("wes") as client:
        repository = client.get_repo(NAME)
        pull = repository.create_pull("main", "topic", title="Topic", body="Fixes #1")
        assert (pull.mergeable, pull.commits, pull.head.ref) == (None, 1, "topic")
        with pytest.raises(pygithub.GithubException) as refused:
            repository.create_pull("main", "topic", title="Topic", body="Fixes #1")
        assert refused.value.status == 422
        assert "already exists for acme:topic" in json.dumps(refused.value.data)
        pull.create_review_request(["ada"])
        found = list(repository.get_pulls(state="all", head="acme:topic", base="main"))
        assert [one.number for one in found] == [pull.number]
        assert [user.login for user in found[0].requested_reviewers] == ["ada"]
        pull.edit(title="Other", body="Fixes #1\n\nMore.")
        assert pull.merge().merged
        assert repository.get_issue(1).state == "closed"


def test_pygithub_reads_page_after_page(github: SimulatedGitHub) -> None:
    for _ in range(65):
        github.issue()
    with github.client("rea") as client:
        issues = client.get_repo(NAME).get_issues(direction="asc")
        assert [issue.number for issue in issues] == list(range(1, 66))
        assert issues.totalCount == 65


def test_pygithub_asks_conditionally(github: SimulatedGitHub) -> None:
    ref = github.issue()
    with github.client("wes") as client:
        issue = client.get_repo(NAME).get_issue(1)
        assert issue.update() is False
        github.world.label(ref, "bug", "ada")
        assert issue.update() is True
        where, query = f"/repos/{NAME}/issues", {"labels": "bug"}
        _, headers, body = client.requester.requestJson("GET", where, query)
        assert len(json.loads(body)) == 1
        known = {"If-None-Match": headers["etag"]}
        status, _, body = client.requester.requestJson("GET", where, query, headers=known)
        assert (status, body) == (304, "")
        assert client.get_rate_limit().rate.used == 4


def test_pygithub_meets_the_refusals_it_knows(github: SimulatedGitHub) -> None:
    github.issue()
    with github.client("rea") as client:
        with pytest.raises(pygithub.GithubException) as refused:
            client.get_repo(NAME).get_issue(1).add_to_labels("bug")
        assert refused.value.status == 403
        with pytest.raises(pygithub.UnknownObjectException):
            client.get_repo("acme/other")
    with github.client("nobody") as client, pytest.raises(pygithub.BadCredentialsException):
        client.get_repo(NAME)


def test_labels_and_comments_of_a_repository_through_pygithub(
    github: SimulatedGitHub,
) -> None:
    ref = github.issue()
    github.world.comment(ref, "Hello", "zoe")
    with github.client("wes") as client:
        repository = client.get_repo(NAME)
        repository.create_label("mulligan", "0e8a16", "Work on this")
        assert [label.color for label in repository.get_labels()] == ["0e8a16"]
        assert [one.body for one in repository.get_issues_comments()] == ["Hello"]
