"""Drafts of the simulated GitHub, and branches that have to be up to date."""

import pytest

from github_simulator.records import IssueName
from github_simulator.reply import Json
from mulligan.github.graphql import READY_MUTATION
from world.simulated import NAME, SimulatedGitHub, push

TOPIC = {"title": "Topic", "head": "topic", "base": "main", "body": "Closes #1"}


def opened(github: SimulatedGitHub, **more: Json) -> int:
    push(github.bare, "topic", {"src/new.py": "Y = 2\n"})
    answer = github.post("pulls", {**TOPIC, **more})
    assert answer.status_code == 201, answer.text
    return answer.json()["number"]


def test_a_plan_may_have_no_drafts(github: SimulatedGitHub) -> None:
    github.world.repository(NAME).drafts = False
    push(github.bare, "topic", {"src/new.py": "Y = 2\n"})
    answer = github.post("pulls", TOPIC | {"draft": True})
    assert answer.status_code == 422
    assert answer.json()["message"].startswith("Draft pull requests are not supported")


def test_a_draft_is_ended_by_graphql_and_not_by_a_change(github: SimulatedGitHub) -> None:
    number = opened(github, draft=True)
    name = github.get(f"pulls/{number}").json()["node_id"]
    assert github.ask("PATCH", f"pulls/{number}", body={"draft": False}).json()["draft"] is True
    for by, kind in (("zoe", "FORBIDDEN"), ("wes", None)):
        body = {"query": READY_MUTATION, "variables": {"pull": name}}
        answer = github.ask("POST", "/graphql", by=by, body=body).json()
        assert [each["type"] for each in answer.get("errors", [])] == [kind] * bool(kind)
    assert github.get(f"pulls/{number}").json()["draft"] is False
    assert github.world.events_of(IssueName(NAME, number))[-1].kind == "ready_for_review"
    body = {"query": READY_MUTATION, "variables": {"pull": "PR_0"}}
    assert github.ask("POST", "/graphql", body=body).json()["errors"][0]["type"] == "NOT_FOUND"


@pytest.mark.parametrize(("draft", "word"), [(False, "behind"), (True, "draft")])
def test_a_base_may_want_branches_up_to_date(
    github: SimulatedGitHub,
    draft: bool,  # noqa: FBT001
    word: str,
) -> None:
    github.world.repository(NAME).strict = True
    number = opened(github, draft=draft)
    states = [github.get(f"pulls/{number}").json()["mergeable_state"] for _ in range(2)]
    assert states[1] == ("draft" if draft else "clean")
    push(github.bare, "main", {"docs.md": "other\n"})
    states = [github.get(f"pulls/{number}").json()["mergeable_state"] for _ in range(2)]
    assert states == ["unknown", word]
