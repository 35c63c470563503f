"""Pull requests of the simulated GitHub, on a real bare repository."""

import pytest

from github_simulator.bare_repository import BareRepository, git
from github_simulator.records import IssueName
from github_simulator.reply import ErrorReply, Json
from world.simulated import NAME, SimulatedGitHub, push

TOPIC = {"title": "Topic", "head": "topic", "base": "main", "body": "Closes #1"}


def opened(github: SimulatedGitHub, **more: Json) -> int:
    """Push a topic branch and open its pull request."""
    push(github.bare, "topic", {"src/new.py": "Y = 2\n"})
    answer = github.post("pulls", {**TOPIC, **more})
    assert answer.status_code == 201, answer.text
    return answer.json()["number"]


def remove_branch(github: SimulatedGitHub, name: str) -> None:
    git(github.bare, "update-ref", "-d", f"refs/heads/{name}")


def log_of_main(github: SimulatedGitHub, form: str, *options: str) -> str:
    """Give what git says of the last commit on the base branch."""
    said = git(github.bare, "log", "-1", f"--format={form}", *options, "main")
    return (said or b"").decode().strip()


def reason(github: SimulatedGitHub, body: Json) -> Json:
    answer = github.post("pulls", body)
    assert answer.status_code == 422, answer.text
    assert answer.json()["message"] == "Validation Failed"
    (entry,) = answer.json()["errors"]
    assert entry["resource"] == "PullRequest"
    return entry.get("message") or [entry["field"], entry["code"]]


def test_an_opened_pull_request_shows_what_git_has(github: SimulatedGitHub) -> None:
    github.issue()
    head = push(github.bare, "topic", {"src/new.py": "Y = 2\nZ = 3\n"})
    answer = github.post("pulls", TOPIC)
    pull = answer.json()
    assert (answer.status_code, answer.headers["location"]) == (201, pull["url"])
    assert (pull["number"], pull["state"], pull["draft"]) == (2, "open", False)
    assert (pull["head"]["ref"], pull["head"]["sha"]) == ("topic", head)
    assert pull["head"]["label"] == "acme:topic"
    assert pull["head"]["repo"]["full_name"] == pull["base"]["repo"]["full_name"] == NAME
    assert pull["base"]["sha"] == BareRepository(github.bare).branches()["main"]
    assert (pull["commits"], pull["changed_files"]) == (1, 1)
    assert (pull["additions"], pull["deletions"]) == (2, 0)
    assert (pull["merged"], pull["mergeable"], pull["mergeable_state"]) == (False, None, "unknown")
    assert pull["issue_url"].endswith("/issues/2")


def test_the_head_follows_what_is_pushed(github: SimulatedGitHub) -> None:
    number = opened(github)
    moved = push(github.bare, "topic", {"src/more.py": "Z = 3\n"}, start="refs/heads/topic")
    pull = github.get(f"pulls/{number}").json()
    assert (pull["head"]["sha"], pull["commits"]) == (moved, 2)
    assert github.get("pulls").json()[0]["head"]["sha"] == moved
    (seen,) = github.world.pulls_of(NAME)
    assert seen.pull
    assert seen.pull.head_sha == moved


def test_one_pull_request_for_each_head_and_base(github: SimulatedGitHub) -> None:
    number = opened(github)
    assert reason(github, TOPIC) == "A pull request already exists for acme:topic."
    github.patch(f"pulls/{number}", {"state": "closed"})
    assert github.post("pulls", {**TOPIC, "head": "acme:topic"}).status_code == 201


def test_there_must_be_something_to_merge(github: SimulatedGitHub) -> None:
    push(github.bare, "topic", {"a": "a"})
    push(github.bare, "same", {"b": "b"})
    remove_branch(github, "same")
    assert reason(github, {**TOPIC, "head": "same"}) == ["head", "invalid"]
    assert reason(github, {**TOPIC, "head": "stranger:topic"}) == ["head", "invalid"]
    assert reason(github, {**TOPIC, "base": "nowhere"}) == ["base", "invalid"]
    assert reason(github, {**TOPIC, "head": "main"}) == "No commits between main and main"
    behind = {**TOPIC, "head": "main", "base": "topic"}
    assert reason(github, behind) == "No commits between topic and main"
    missing = github.post("pulls", {"head": "topic", "base": "main"})
    assert (missing.status_code, "title" in missing.json()["message"]) == (422, True)


@pytest.mark.parametrize(("login", "status"), [("wes", 201), ("tri", 403), ("rea", 403)])
def test_pull_requests_are_for_writers(github: SimulatedGitHub, login: str, status: int) -> None:
    push(github.bare, "topic", {"a": "a"})
    answer = github.post("pulls", TOPIC, by=login)
    assert answer.status_code == status
    if status == 403:
        assert answer.json()["message"] == "Resource not accessible by personal access token"
        assert github.post("pulls", TOPIC, by=None).status_code == 401


def test_pull_requests_are_found_by_head_base_and_state(github: SimulatedGitHub) -> None:
    first = opened(github)
    push(github.bare, "other", {"b": "b"})
    second = github.post("pulls", {**TOPIC, "head": "other"}).json()["number"]
    github.patch(f"pulls/{first}", {"state": "closed"})

    def found(query: str) -> list[int]:
        return [pull["number"] for pull in github.get(f"pulls?{query}").json()]

    assert found("") == [second]
    assert found("state=all") == [second, first]
    assert found("state=closed") == [first]
    assert found("state=all&head=acme:topic") == [first]
    assert found("state=all&head=ACME:topic&base=main") == [first]
    assert found("state=all&head=acme:topic&base=other") == []
    assert found("state=all&head=stranger:topic") == []
    # GitHub takes no notice of a head without its owner.
    assert found("state=all&head=topic") == [second, first]
    assert found("state=all&sort=created&direction=asc") == [first, second]
    assert found("state=all&sort=updated&direction=asc")[0] in {first, second}


def test_title_body_and_state_can_be_changed(github: SimulatedGitHub) -> None:
    number = opened(github)
    changed = github.patch(f"pulls/{number}", {"title": "Other", "body": "Words"}).json()
    assert (changed["title"], changed["body"]) == ("Other", "Words")
    closed = github.patch(f"pulls/{number}", {"state": "closed"}).json()
    assert (closed["state"], closed["merged"]) == ("closed", False)
    for _ in range(2):
        assert github.patch(f"pulls/{number}", {"state": "open"}).json()["state"] == "open"
    assert github.patch(f"pulls/{number}", {"state": "half"}).status_code == 422
    assert github.patch(f"pulls/{number}", {"base": "nowhere"}).status_code == 422
    push(github.bare, "next", {"n": "n"})
    for _ in range(2):
        assert github.patch(f"pulls/{number}", {"base": "next"}).json()["base"]["ref"] == "next"
    events = github.get(f"issues/{number}/events").json()
    assert [event["event"] for event in events].count("base_ref_changed") == 1
    assert github.patch(f"pulls/{number}", {"title": "x"}, by="rea").status_code == 403


def test_a_closed_pull_request_cannot_always_be_opened_again(github: SimulatedGitHub) -> None:
    number = opened(github)
    github.patch(f"pulls/{number}", {"state": "closed"})
    again = github.post("pulls", TOPIC).json()["number"]
    refused = github.patch(f"pulls/{number}", {"state": "open"})
    assert "already an open pull request" in refused.json()["errors"][0]["message"]
    github.patch(f"pulls/{again}", {"state": "closed"})
    remove_branch(github, "topic")
    refused = github.patch(f"pulls/{number}", {"state": "open"})
    assert "branch has been deleted" in refused.json()["errors"][0]["message"]


def test_a_deleted_head_closes_its_pull_request(github: SimulatedGitHub) -> None:
    number = opened(github)
    remove_branch(github, "topic")
    assert github.get(f"issues/{number}").json()["state"] == "closed"
    assert github.get("pulls").json() == []


def test_a_deleted_base_closes_its_pull_request(github: SimulatedGitHub) -> None:
    push(github.bare, "release", {"c": "1\n"})
    push(github.bare, "later", {"c": "1\n", "d": "1\n"}, start="refs/heads/release")
    body: Json = {"title": "Later", "head": "later", "base": "release"}
    number = github.post("pulls", body).json()["number"]
    remove_branch(github, "release")
    assert github.get(f"issues/{number}").json()["state"] == "closed"


def test_an_issue_is_not_a_pull_request(github: SimulatedGitHub) -> None:
    ref = github.issue()
    assert github.get("pulls/1").status_code == 404
    assert github.get("pulls/9").status_code == 404
    with pytest.raises(ErrorReply, match="not a pull request"):
        github.world.merge(ref, "ada")


def test_labels_and_comments_work_on_pull_requests(github: SimulatedGitHub) -> None:
    number = opened(github)
    assert github.post(f"issues/{number}/labels", {"labels": ["bug"]}).status_code == 200
    comment = github.post(f"issues/{number}/comments", {"body": "x"}).json()
    assert f"/pull/{number}#issuecomment-" in comment["html_url"]
    assert [label["name"] for label in github.get("pulls").json()[0]["labels"]] == ["bug"]


def test_reviewers_are_asked_and_answer(github: SimulatedGitHub) -> None:
    number = opened(github)
    where = f"pulls/{number}/requested_reviewers"
    github.post(where, {"reviewers": ["ada"]})
    answer = github.post(where, {"reviewers": ["ada", "rea"]})
    assert answer.status_code == 201
    assert [user["login"] for user in answer.json()["requested_reviewers"]] == ["ada", "rea"]
    body = {"event": "REQUEST_CHANGES", "body": "No."}
    review = github.post(f"pulls/{number}/reviews", body, by="ada")
    assert (review.status_code, review.json()["state"]) == (200, "CHANGES_REQUESTED")
    left = github.get(f"pulls/{number}").json()["requested_reviewers"]
    assert [user["login"] for user in left] == ["rea"]
    github.world.review(IssueName(NAME, number), "mia", "APPROVE")
    states = [
        (one["user"]["login"], one["state"]) for one in github.get(f"pulls/{number}/reviews").json()
    ]
    assert states == [("ada", "CHANGES_REQUESTED"), ("mia", "APPROVED")]
    events = github.get(f"issues/{number}/events").json()
    assert [event["event"] for event in events] == ["review_requested"] * 2
    assert events[0]["requested_reviewer"]["login"] == "ada"


def test_a_review_is_dismissed_and_keeps_its_time(github: SimulatedGitHub) -> None:
    number = opened(github)
    body = {"event": "REQUEST_CHANGES", "body": "No."}
    review = github.post(f"pulls/{number}/reviews", body, by="ada").json()
    where = f"pulls/{number}/reviews/{review['id']}/dismissals"
    done = github.ask("PUT", where, body={"message": "Out of date."})
    assert (done.status_code, done.json()) == (200, {**review, "state": "DISMISSED"})
    assert github.get(f"pulls/{number}/reviews").json() == [done.json()]
    assert github.ask("PUT", where, body={"message": "Again."}).status_code == 422
    assert github.ask("PUT", where, body={"message": "No."}, by="rea").status_code == 403
    nobodys = f"pulls/{number}/reviews/x/dismissals"
    assert github.ask("PUT", nobodys, body={"message": "No."}).status_code == 404


def test_a_request_for_a_review_is_withdrawn_once(github: SimulatedGitHub) -> None:
    number = opened(github)
    where = f"pulls/{number}/requested_reviewers"
    github.post(where, {"reviewers": ["ada", "rea"]})
    for _ in range(2):
        answer = github.ask("DELETE", where, body={"reviewers": ["ada", "nobody"]})
        assert [user["login"] for user in answer.json()["requested_reviewers"]] == ["rea"]
    *_, last = github.get(f"issues/{number}/events").json()
    assert (last["event"], last["requested_reviewer"]["login"]) == ("review_request_removed", "ada")
    assert last["id"] == github.get(f"issues/{number}/events").json()[2]["id"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"reviewers": ["wes"]}, "Review cannot be requested from pull request author."),
        ({"reviewers": ["ada", "zoe"]}, "Reviews may only be requested from collaborators."),
        ({"reviewers": ["nobody"]}, "Reviews may only be requested from collaborators."),
        ({"team_reviewers": ["core"]}, "Reviews may only be requested from collaborators."),
    ],
)
def test_not_everybody_can_be_asked_for_a_review(
    github: SimulatedGitHub, body: Json, words: str
) -> None:
    number = opened(github)
    answer = github.post(f"pulls/{number}/requested_reviewers", body)
    assert answer.status_code == 422
    assert answer.json()["message"].startswith(words)
    assert github.get(f"pulls/{number}").json()["requested_reviewers"] == []


def test_a_review_of_ones_own_or_without_words_is_refused(github: SimulatedGitHub) -> None:
    where = f"pulls/{opened(github)}/reviews"
    own = github.post(where, {"event": "APPROVE"})
    assert own.json()["errors"] == ["Can not approve your own pull request"]
    assert github.post(where, {"event": "COMMENT", "body": "x"}).status_code == 200
    assert github.post(where, {"event": "REQUEST_CHANGES"}, by="ada").status_code == 422
    assert github.post(where, {"event": "SHRUG", "body": "x"}, by="ada").status_code == 422


def test_merging_moves_the_base_and_closes_what_the_body_closes(github: SimulatedGitHub) -> None:
    issue = github.issue()
    number = opened(github, body="Closes #1, fixes #2, resolves #99")
    assert github.get("issues/1").json()["state"] == "open"
    answer = github.ask("PUT", f"pulls/{number}/merge", body={})
    assert answer.status_code == 200
    sha = answer.json()["sha"]
    assert answer.json() == {
        "sha": sha,
        "merged": True,
        "message": "Pull Request successfully merged",
    }
    assert BareRepository(github.bare).branches()["main"] == sha
    assert git(github.bare, "cat-file", "-e", "main:src/new.py") is not None
    assert len(log_of_main(github, "%P").split()) == 2
    pull = github.get(f"pulls/{number}").json()
    assert (pull["state"], pull["merged"], pull["merge_commit_sha"]) == ("closed", True, sha)
    assert (pull["merged_by"]["login"], bool(pull["merged_at"])) == ("wes", True)
    events = [event["event"] for event in github.get(f"issues/{number}/events").json()]
    assert events == ["merged", "closed"]
    assert github.world.issue_of(issue).state == "closed"
    (closed,) = github.world.events_of(issue)
    assert (closed.kind, closed.commit_id) == ("closed", sha)
    reopened = github.patch(f"pulls/{number}", {"state": "open"})
    assert "is merged" in reopened.json()["errors"][0]["message"]


def test_merging_into_another_base_closes_nothing(github: SimulatedGitHub) -> None:
    github.issue()
    push(github.bare, "next", {"n": "n"})
    number = opened(github, base="next")
    assert github.world.merge(IssueName(NAME, number), "ada")
    assert github.get("issues/1").json()["state"] == "open"


def test_squashing_leaves_one_commit(github: SimulatedGitHub) -> None:
    number = opened(github, title="Make it new")
    push(github.bare, "topic", {"src/more.py": "Z = 3\n"}, start="refs/heads/topic")
    body = {"merge_method": "squash"}
    assert github.ask("PUT", f"pulls/{number}/merge", body=body).status_code == 200
    assert len(log_of_main(github, "%P").split()) == 1
    assert log_of_main(github, "%B").startswith(f"Make it new (#{number})")
    assert set(log_of_main(github, "", "--name-only").split()) == {"src/new.py", "src/more.py"}


def test_a_conflict_is_seen_and_not_merged(github: SimulatedGitHub) -> None:
    number = opened(github)
    push(github.bare, "main", {"src/new.py": "other\n"})
    before = BareRepository(github.bare).branches()["main"]
    assert github.get(f"pulls/{number}").json()["mergeable"] is None
    pull = github.get(f"pulls/{number}").json()
    assert (pull["mergeable"], pull["mergeable_state"]) == (False, "dirty")
    answer = github.ask("PUT", f"pulls/{number}/merge", body={})
    assert (answer.status_code, answer.json()["message"]) == (405, "Pull Request is not mergeable")
    assert BareRepository(github.bare).branches()["main"] == before


def test_a_base_that_moved_without_conflict_can_still_be_merged(github: SimulatedGitHub) -> None:
    number = opened(github)
    push(github.bare, "main", {"docs.md": "other\n"})
    seen = [github.get(f"pulls/{number}").json()["mergeable"] for _ in range(3)]
    assert seen == [None, True, True]
    assert github.ask("PUT", f"pulls/{number}/merge", body={}).status_code == 200
    assert git(github.bare, "cat-file", "-e", "main:docs.md") is not None


def test_merging_minds_the_head_that_was_seen(github: SimulatedGitHub) -> None:
    where = f"pulls/{opened(github)}/merge"
    assert github.ask("PUT", where, body={"sha": "0" * 40}).status_code == 409
    assert github.ask("PUT", where, body={"merge_method": "rebase"}).status_code == 405
    assert github.ask("PUT", where, body={}, by="rea").status_code == 403
    said = {"commit_title": "Title", "commit_message": "Words"}
    assert github.ask("PUT", where, body=said).status_code == 200
    assert log_of_main(github, "%B") == "Title\n\nWords"


def test_a_draft_is_not_merged(github: SimulatedGitHub) -> None:
    number = opened(github, draft=True)
    assert github.get(f"pulls/{number}").json()["draft"] is True
    assert github.ask("PUT", f"pulls/{number}/merge", body={}).status_code == 405
