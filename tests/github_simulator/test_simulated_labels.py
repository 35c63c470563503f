"""Labels of the simulated GitHub, of repositories and on issues."""

import pytest

from world.simulated import NAME, SimulatedGitHub


def names(github: SimulatedGitHub, path: str) -> list[str]:
    return [label["name"] for label in github.get(path).json()]


def test_a_label_is_made_and_listed(github: SimulatedGitHub) -> None:
    body = {"name": "mulligan:running", "color": "fbca04", "description": "At work"}
    made = github.post("labels", body)
    assert made.status_code == 201
    assert made.headers["location"] == f"{github.url}/repos/{NAME}/labels/mulligan%3Arunning"
    (shown,) = github.get("labels").json()
    assert shown == made.json()
    assert {name: shown[name] for name in body} == body
    assert shown["default"] is False


@pytest.mark.parametrize(
    ("body", "field", "code"),
    [
        ({"name": "BUG"}, "name", "already_exists"),
        ({"color": "ffffff"}, "name", "missing_field"),
        ({"name": "x", "color": "red"}, "color", "invalid"),
    ],
)
def test_a_label_that_cannot_be_is_refused(
    github: SimulatedGitHub, body: dict[str, str], field: str, code: str
) -> None:
    assert github.post("labels", {"name": "bug"}).status_code == 201
    answer = github.post("labels", body)
    assert answer.status_code == 422
    assert answer.json()["errors"] == [{"resource": "Label", "field": field, "code": code}]


def test_a_label_that_does_not_exist_is_made_when_it_is_put_on(github: SimulatedGitHub) -> None:
    github.issue()
    answer = github.post("issues/1/labels", {"labels": ["new", "other"]})
    assert answer.status_code == 200
    assert [label["name"] for label in answer.json()] == ["new", "other"]
    assert names(github, "labels") == ["new", "other"]
    assert {label["color"] for label in answer.json()} == {"ededed"}


def test_labels_are_put_on_in_each_form_that_github_takes(github: SimulatedGitHub) -> None:
    ref = github.issue()
    github.post("issues/1/labels", ["one"])
    github.post("issues/1/labels", [{"name": "two"}])
    github.post("issues/1/labels", {"labels": [{"name": "three"}]})
    assert github.world.labels_of(ref) == ["one", "two", "three"]
    assert github.post("issues/1/labels", {}).status_code == 422


def test_putting_a_label_on_twice_is_one_event(github: SimulatedGitHub) -> None:
    ref = github.issue()
    for name in ("bug", "bug", "BUG"):
        assert github.post("issues/1/labels", {"labels": [name]}).status_code == 200
    assert github.world.labels_of(ref) == ["bug"]
    assert [event.kind for event in github.world.events_of(ref)] == ["labeled"]


def test_taking_off_a_label_that_is_not_on_is_a_404(github: SimulatedGitHub) -> None:
    github.issue()
    github.post("issues/1/labels", {"labels": ["mulligan:running", "bug"]})
    left = github.ask("DELETE", "issues/1/labels/mulligan%3Arunning")
    assert [label["name"] for label in left.json()] == ["bug"]
    for name in ("mulligan%3Arunning", "never"):
        answer = github.ask("DELETE", f"issues/1/labels/{name}")
        assert (answer.status_code, answer.json()["message"]) == (404, "Label does not exist")


def test_a_deleted_label_is_on_no_issue(github: SimulatedGitHub) -> None:
    ref = github.issue()
    github.issue()
    github.world.label(ref, "bug", "ada")
    assert github.ask("DELETE", "labels/bug", by="rea").status_code == 404
    assert github.ask("DELETE", "labels/bug").status_code == 204
    assert github.world.labels_of(ref) == []
    assert github.ask("DELETE", "labels/bug").status_code == 404


@pytest.mark.parametrize(
    ("login", "on_issue", "of_repository"),
    [
        ("ada", 200, 201),
        ("mia", 200, 201),
        ("wes", 200, 201),
        ("tri", 200, 404),
        ("rea", 403, 404),
        ("zoe", 403, 404),
    ],
)
def test_who_may_label_and_who_may_make_labels(
    github: SimulatedGitHub, login: str, on_issue: int, of_repository: int
) -> None:
    github.world.label(github.issue(), "bug", "ada")
    assert github.post("issues/1/labels", {"labels": ["bug"]}, by=login).status_code == on_issue
    assert github.ask("DELETE", "issues/1/labels/bug", by=login).status_code == on_issue
    assert github.post("labels", {"name": "x"}, by=login).status_code == of_repository
