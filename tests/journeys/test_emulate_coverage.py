"""What `emulate` has of GitHub's API, and what the stories that run on it have to do without.

Each row that says 404 is a thing that Mulligan does on GitHub and cannot do there. Once one fails,
the server has learnt it, and a story can be told of it.
"""

from collections.abc import Generator

import pytest
from pydantic import JsonValue

from mulligan.github.shapes import ANYTHING
from world.emulated import Emulate, emulating
from world.people import REFERENCE

WHERE = "/repos/ada/lacking"


@pytest.fixture(scope="module")
def emulate(tmp_path_factory: pytest.TempPathFactory) -> Generator[Emulate]:
    with emulating(tmp_path_factory.mktemp("emulate")) as running:
        made: JsonValue = {"name": "lacking", "auto_init": True}
        running.ask(ANYTHING, "POST", "/user/repos", made)
        ref = running.issue("ada/lacking", "Mend it")
        running.comment(ref, "Please.")
        start = running.ask(REFERENCE, "GET", f"{WHERE}/git/ref/heads/main").target.sha
        branch: JsonValue = {"ref": "refs/heads/topic", "sha": start}
        running.ask(ANYTHING, "POST", f"{WHERE}/git/refs", branch)
        pull: JsonValue = {"title": "Mended", "head": "topic", "base": "main"}
        running.ask(ANYTHING, "POST", f"{WHERE}/pulls", pull)
        note: JsonValue = {"body": "Why?", "path": "README.md", "line": 1, "commit_id": start}
        running.ask(ANYTHING, "POST", f"{WHERE}/pulls/2/comments", note, "wes")
        yield running


@pytest.mark.deep
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/issues/comments", None),
        ("POST", "/issues/comments/1/reactions", {"content": "eyes"}),
        ("POST", "/pulls/2/comments/1/replies", {"body": "Done."}),
        ("GET", "/issues/2", None),
        ("GET", "/issues/2/events", None),
        ("GET", "/commits/main/status", None),
    ],
)
def test_it_still_lacks(emulate: Emulate, method: str, path: str, body: JsonValue) -> None:
    assert emulate.send(method, WHERE + path, body).status_code == 404


@pytest.mark.deep
def test_it_still_lacks_graphql(emulate: Emulate) -> None:
    query: JsonValue = {"query": "query { viewer { login } }"}
    assert emulate.send("POST", "/graphql", query).status_code == 404


@pytest.mark.deep
@pytest.mark.parametrize(("named", "status"), [("line", 422), ("position", 201)])
def test_it_still_knows_lines_by_their_position_only(
    emulate: Emulate, named: str, status: int
) -> None:
    note: JsonValue = {"path": "README.md", named: 1, "body": "Why?"}
    said: JsonValue = {"event": "REQUEST_CHANGES", "body": "No.", "comments": [note]}
    assert emulate.send("POST", f"{WHERE}/pulls/2/reviews", said, "wes").status_code == status


@pytest.mark.deep
def test_it_still_gives_no_etag(emulate: Emulate) -> None:
    assert "etag" not in emulate.send("GET", f"{WHERE}/issues/1").headers


@pytest.mark.deep
@pytest.mark.parametrize(
    "path",
    ["/issues/1/comments", "/issues/2/comments", "/issues/1/events", "/pulls/2/reviews"],
)
def test_the_stories_stand_on(emulate: Emulate, path: str) -> None:
    assert emulate.send("GET", WHERE + path).status_code == 200
