"""Comments and reactions of the simulated GitHub."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from world.simulated import NAME, SimulatedGitHub, simulated_github


def test_a_comment_is_written_changed_and_deleted(github: SimulatedGitHub) -> None:
    ref = github.issue()
    made = github.post("issues/1/comments", {"body": "Hello"}, by="zoe")
    assert made.status_code == 201
    comment = made.json()
    assert made.headers["location"] == comment["url"]
    assert comment["html_url"].endswith(f"/{NAME}/issues/1#issuecomment-{comment['id']}")
    assert comment["issue_url"].endswith(f"/repos/{NAME}/issues/1")
    assert (comment["user"]["login"], comment["author_association"]) == ("zoe", "NONE")
    where = f"issues/comments/{comment['id']}"
    assert github.get("issues/1/comments").json() == [comment]
    assert github.patch(where, {"body": "Bye"}, by="zoe").json()["body"] == "Bye"
    assert github.get("issues/1").json()["comments"] == 1
    assert github.ask("DELETE", where, by="zoe").status_code == 204
    assert github.world.comments_of(ref) == []


def test_a_comment_needs_words_but_not_too_many(github: SimulatedGitHub) -> None:
    ref = github.issue()
    for body in ({}, {"body": " "}):
        answer = github.post("issues/1/comments", body)
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["field"] == "body"
    long = github.post("issues/1/comments", {"body": "x" * 65537})
    assert "too long (maximum is 65536" in long.json()["errors"][0]["message"]
    assert github.post("issues/1/comments", {"body": "x" * 65536}).status_code == 201
    where = f"issues/comments/{github.world.comments_of(ref)[0].id}"
    assert github.patch(where, {"body": ""}).status_code == 422


def test_comments_of_others_are_for_writers(github: SimulatedGitHub) -> None:
    ref = github.issue()
    github.world.comment(ref, "Another", "ada")
    where = f"issues/comments/{github.world.comment(ref, 'Mine', 'zoe')}"
    for login in ("rea", "tri"):
        assert github.patch(where, {"body": "x"}, by=login).status_code == 403
        assert github.ask("DELETE", where, by=login).status_code == 403
    assert github.patch(where, {"body": "x"}, by="wes").status_code == 200


def test_comments_are_listed_oldest_first_and_since_a_time(tmp_path: Path) -> None:
    with simulated_github(tmp_path) as github:
        now = datetime(2026, 1, 1, tzinfo=UTC)
        clock = iter(now + timedelta(hours=n) for n in range(1000))
        one, two = github.issue(), github.issue()
        object.__setattr__(github.world.stamps, "clock", lambda: next(clock))
        first = github.world.comment(one, "first", "zoe")
        second = github.world.comment(two, "second", "zoe")
        third = github.world.comment(one, "third", "zoe")
        github.patch(f"issues/comments/{first}", {"body": "first, later"}, by="zoe")

        def ids(path: str) -> list[int]:
            return [comment["id"] for comment in github.get(path).json()]

        assert ids("issues/1/comments") == [first, third]
        assert ids("issues/1/comments?since=2026-01-01T03:00:00Z") == [first]
        assert ids("issues/comments") == [first, second, third]
        assert ids("issues/comments?direction=desc") == [first, second, third]
        assert ids("issues/comments?sort=created&direction=desc") == [third, second, first]
        assert ids("issues/comments?sort=updated") == [second, third, first]
        assert ids("issues/comments?sort=updated&since=2026-01-01T02:00:00Z") == [third, first]
        assert ids("issues/comments?per_page=1&page=2") == [second]


def test_each_person_has_one_reaction_of_a_kind(github: SimulatedGitHub) -> None:
    ref = github.issue()
    where = f"issues/comments/{github.world.comment(ref, 'Hi', 'zoe')}"
    first = github.post(f"{where}/reactions", {"content": "eyes"})
    again = github.post(f"{where}/reactions", {"content": "eyes"})
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    assert github.post(f"{where}/reactions", {"content": "+1"}, by="zoe").status_code == 201
    (comment,) = github.get("issues/1/comments").json()
    shown = comment["reactions"]
    assert (shown["total_count"], shown["eyes"], shown["+1"], shown["heart"]) == (2, 1, 1, 0)
    listed = github.get(f"{where}/reactions?content=eyes").json()
    assert [(one["content"], one["user"]["login"]) for one in listed] == [("eyes", "wes")]
    bad = github.post(f"{where}/reactions", {"content": "shrug"})
    assert (bad.status_code, bad.json()["errors"][0]["field"]) == (422, "content")
