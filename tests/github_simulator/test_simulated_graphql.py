"""The simulated GraphQL: the two questions that are asked, and a plain no to all others."""

from dataclasses import replace
from datetime import timedelta

import pytest
from pydantic import JsonValue, TypeAdapter

from github_simulator.records import IssueLike
from mulligan.github.graphql import EDITS_QUERY, VIEWER_QUERY
from world.simulated import NAME, SimulatedGitHub

ANSWER: TypeAdapter[dict[str, JsonValue]] = TypeAdapter(dict[str, JsonValue])
HISTORY: TypeAdapter[dict[str, JsonValue]] = TypeAdapter(dict[str, JsonValue])
EDITS: TypeAdapter[list[dict[str, JsonValue]]] = TypeAdapter(list[dict[str, JsonValue]])


Given = dict[str, JsonValue]


def ask(
    github: SimulatedGitHub, query: str, variables: Given | None = None, by: str = "wes"
) -> Given:
    body: Given = {"query": query, "variables": variables or {}}
    answer = github.ask("POST", "/graphql", by=by, body=body)
    assert answer.status_code == 200
    assert answer.headers["x-ratelimit-resource"] == "graphql"
    return ANSWER.validate_json(answer.text)


def history(
    github: SimulatedGitHub, ref: IssueLike, after: str | None = None
) -> dict[str, JsonValue]:
    owner, _, name = NAME.partition("/")
    found = ask(
        github,
        EDITS_QUERY,
        {"owner": owner, "name": name, "number": ref.number, "after": after},
    )
    data = HISTORY.validate_python(found["data"])
    repository = HISTORY.validate_python(data["repository"])
    assert repository["nameWithOwner"] == NAME
    return HISTORY.validate_python(repository["issue"])


def editors(found: dict[str, JsonValue]) -> list[JsonValue]:
    changes = HISTORY.validate_python(found["userContentEdits"])
    nodes = EDITS.validate_python(changes["nodes"])
    return [node["editor"] and HISTORY.validate_python(node["editor"])["login"] for node in nodes]


def pass_a_minute(github: SimulatedGitHub) -> None:
    world, before = github.world, github.world.stamps.clock
    world.stamps = replace(world.stamps, clock=lambda: before() + timedelta(minutes=1))


def test_a_text_that_nobody_changed_has_no_edits(github: SimulatedGitHub) -> None:
    found = history(github, github.issue())
    assert (found["lastEditedAt"], found["editor"], found["includesCreatedEdit"]) == (
        None,
        None,
        False,
    )
    assert editors(found) == []


def test_the_first_change_brings_the_creation_with_it_newest_first(github: SimulatedGitHub) -> None:
    ref = github.issue(author="zoe")
    pass_a_minute(github)
    github.world.edit(ref, "wes", body="Better.")
    github.world.edit(ref, "wes", title="The title is an event.")
    github.world.edit(ref, "ada", body="Best.")
    found = history(github, ref)
    assert editors(found) == ["ada", "wes", "zoe"]
    assert found["includesCreatedEdit"] is True
    assert found["lastEditedAt"] == github.ask("GET", f"issues/{ref.number}").json()["updated_at"]


def test_a_text_that_stays_the_same_was_not_changed(github: SimulatedGitHub) -> None:
    ref = github.issue()
    github.world.edit(ref, "wes", body="Please mend it.")
    assert editors(history(github, ref)) == []


def test_long_histories_come_page_by_page(github: SimulatedGitHub) -> None:
    ref = github.issue()
    for number in range(120):
        github.world.edit(ref, "wes", body=f"Version {number}")
    first = history(github, ref)
    changes = HISTORY.validate_python(first["userContentEdits"])
    page = HISTORY.validate_python(changes["pageInfo"])
    assert (len(editors(first)), page["hasNextPage"]) == (100, True)
    last = history(github, ref, str(page["endCursor"]))
    assert editors(last) == [*["wes"] * 20, "zoe"]


def test_bots_have_no_suffix_and_who_is_gone_is_nobody(github: SimulatedGitHub) -> None:
    ref = github.issue()
    github.world.add_user("robot[bot]", "Bot")
    github.world.edit(ref, "robot[bot]", body="Beep.")
    github.world.edit(ref, "rea", body="Read.")
    github.world.delete_user("rea")
    assert editors(history(github, ref)) == [None, "robot", "zoe"]


def test_a_token_is_told_whose_it_is(github: SimulatedGitHub) -> None:
    viewer = {"__typename": "User", "login": "tri"}
    found = ask(github, VIEWER_QUERY, by="tri")["data"]
    assert isinstance(found, dict)
    assert isinstance(found["viewer"], dict)
    assert viewer.items() <= found["viewer"].items()


NOT_THERE = [{"name": "nothing"}, {"owner": "nobody"}, {"number": 99}, {"number": "1"}]


@pytest.mark.parametrize("other", NOT_THERE, ids=str)
def test_what_is_not_there_is_an_error_with_status_200(
    other: Given, github: SimulatedGitHub
) -> None:
    github.issue()
    owner, _, name = NAME.partition("/")
    given: Given = {"owner": owner, "name": name, "number": 1, "after": None}
    found = ask(github, EDITS_QUERY, given | other)
    (problem,) = EDITS.validate_python(found["errors"])
    assert problem["type"] == "NOT_FOUND"


def test_any_other_query_is_an_error(github: SimulatedGitHub) -> None:
    found = ask(github, "query { everything }")
    (problem,) = EDITS.validate_python(found["errors"])
    assert "does not know" in str(problem["message"])


def test_it_needs_a_token_and_may_not_be_there_at_all(github: SimulatedGitHub) -> None:
    assert github.ask("POST", "/graphql", by=None, body={}).status_code == 401
    github.world.graphql = False
    assert github.ask("POST", "/graphql", body={}).status_code == 404


def test_its_rate_limit_is_counted_apart_and_refused_with_status_200(
    github: SimulatedGitHub,
) -> None:
    github.world.meter.limit = 2
    for _ in range(2):
        ask(github, VIEWER_QUERY)
    (problem,) = EDITS.validate_python(ask(github, VIEWER_QUERY)["errors"])
    assert problem["type"] == "RATE_LIMITED"
    assert github.get("issues").status_code == 200


def test_an_app_may_not_ask_rest_whose_token_it_has(github: SimulatedGitHub) -> None:
    github.world.add_user("robot[bot]", "Bot", "token-robot")
    assert github.get("/user", by="robot").status_code == 403


def test_roles_may_have_names_of_their_own(github: SimulatedGitHub) -> None:
    github.world.set_role(NAME, "zoe", "triage", "issue-sorter")
    found = github.get("collaborators/zoe/permission").json()
    assert (found["permission"], found["role_name"]) == ("read", "issue-sorter")
    github.world.set_role(NAME, "zoe", "maintain")
    found = github.get("collaborators/zoe/permission").json()
    assert (found["permission"], found["role_name"]) == ("write", "maintain")


def test_who_is_gone_is_nobody_in_events_and_a_ghost_elsewhere(github: SimulatedGitHub) -> None:
    ref = github.issue()
    github.world.label(ref, "mulligan", "zoe")
    github.world.delete_user("zoe")
    (event,) = github.get(f"issues/{ref.number}/events").json()
    assert event["actor"] is None
    assert github.get(f"issues/{ref.number}").json()["user"]["login"] == "ghost"
    assert github.get("collaborators/zoe/permission").status_code == 404


def test_a_new_login_is_the_same_account(github: SimulatedGitHub) -> None:
    before = github.get("collaborators/wes/permission", by="ada").json()
    github.world.rename_user("wes", "wesley")
    after = github.get("collaborators/wesley/permission", by="ada").json()
    assert after["user"]["id"] == before["user"]["id"]
    assert after["role_name"] == "write"
