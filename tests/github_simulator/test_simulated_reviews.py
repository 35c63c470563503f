"""Comments on lines come with a review, or the review does not come at all."""

import pytest

from github_simulator.reply import Json
from world.simulated import SimulatedGitHub, push

ON_LINE: dict[str, Json] = {"path": "src/new.py", "line": 2, "body": "Why?", "side": "RIGHT"}


def opened(github: SimulatedGitHub) -> str:
    push(github.bare, "topic", {"src/new.py": "Y = 2\nZ = 3\n"})
    body: Json = {"title": "Topic", "head": "topic", "base": "main"}
    return f"pulls/{github.post('pulls', body).json()['number']}"


def submit(github: SimulatedGitHub, pull: str, comments: Json, body: str = "") -> Json:
    said: Json = {"event": "REQUEST_CHANGES", "body": body, "comments": comments}
    return github.post(f"{pull}/reviews", said, by="ada").json()


def test_comments_on_lines_are_written_with_their_review(github: SimulatedGitHub) -> None:
    pull = opened(github)
    done = submit(github, pull, [ON_LINE])
    assert isinstance(done, dict)
    assert (done["state"], done["body"]) == ("CHANGES_REQUESTED", "")
    (note,) = github.get(f"{pull}/comments").json()
    assert (note["pull_request_review_id"], note["user"]["login"]) == (done["id"], "ada")
    assert (note["path"], note["line"], note["body"]) == ("src/new.py", 2, "Why?")
    assert note["diff_hunk"].endswith(" Y = 2\n Z = 3")


@pytest.mark.parametrize(
    ("comments", "words"),
    [
        ([ON_LINE | {"path": "src/old.py"}], "Path could not be resolved"),
        ([ON_LINE | {"path": "src"}], "Path could not be resolved"),
        ([ON_LINE | {"line": 3}], "Line could not be resolved"),
        ([ON_LINE | {"line": "2"}], "not an integer"),
        ([{"path": "src/new.py", "line": 2}], "body"),
        (["Why?"], "not an object"),
        ("Why?", "not an array"),
    ],
)
def test_a_comment_on_no_line_refuses_the_whole_review(
    github: SimulatedGitHub, comments: Json, words: str
) -> None:
    pull = opened(github)
    assert words in str(submit(github, pull, comments, "No."))
    assert github.get(f"{pull}/reviews").json() == github.get(f"{pull}/comments").json() == []
