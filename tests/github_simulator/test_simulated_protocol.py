"""What every answer of the simulated GitHub has in common: pages, ETags, errors, limits."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import requests

from github_simulator.app import running
from world.in_process import in_process
from world.simulated import NAME, Reach, SimulatedGitHub, simulated_github

pytestmark = pytest.mark.parametrize(
    "reach", [in_process, running], ids=["in process", "over HTTP"], indirect=True
)


def pages(answer: requests.Response) -> dict[str, str]:
    """Read which page each relation of the Link header leads to."""
    found = re.findall(r'[?&]page=(\d+)[^>]*>; rel="(\w+)"', answer.headers.get("link", ""))
    return {relation: page for page, relation in found}


def test_lists_come_thirty_at_a_time(github: SimulatedGitHub) -> None:
    for _ in range(31):
        github.issue()
    first = github.get("issues")
    assert [issue["number"] for issue in first.json()] == list(range(31, 1, -1))
    assert pages(first) == {"next": "2", "last": "2"}
    second = requests.get(first.links["next"]["url"], timeout=120)
    assert [issue["number"] for issue in second.json()] == [1]
    assert pages(second) == {"prev": "1", "first": "1"}


def test_pages_keep_the_query_and_name_the_repository_by_its_id(github: SimulatedGitHub) -> None:
    for _ in range(5):
        github.issue()
    answer = github.get("issues?per_page=2&page=2&direction=asc")
    assert [issue["number"] for issue in answer.json()] == [3, 4]
    assert pages(answer) == {"prev": "1", "next": "3", "last": "3", "first": "1"}
    following = answer.links["next"]["url"]
    number = github.get("").json()["id"]
    assert following.startswith(f"{github.url}/repositories/{number}/issues?")
    assert "direction=asc" in following
    last = requests.get(following, timeout=120)
    assert [issue["number"] for issue in last.json()] == [5]
    assert github.world.requests[-1].path == f"/repos/{NAME}/issues"


@pytest.mark.parametrize(
    ("asked", "given"), [("200", 100), ("100", 100), ("0", 30), ("none", 30), ("-1", 30)]
)
def test_a_page_holds_a_hundred_at_most(github: SimulatedGitHub, asked: str, given: int) -> None:
    for _ in range(101):
        github.issue()
    assert len(github.get(f"issues?per_page={asked}").json()) == given


def test_a_page_after_the_last_is_empty(github: SimulatedGitHub) -> None:
    github.issue()
    answer = github.get("issues?page=9")
    assert answer.json() == []
    assert pages(answer) == {"prev": "1", "first": "1"}


def test_one_page_needs_no_links(github: SimulatedGitHub) -> None:
    github.issue()
    assert "link" not in github.get("issues").headers


def test_what_has_not_changed_costs_nothing(github: SimulatedGitHub) -> None:
    ref = github.issue()
    first = github.get("issues")
    assert first.headers["etag"].startswith('W/"')
    again = github.get("issues", if_none_match=first.headers["etag"])
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    assert again.headers["x-ratelimit-used"] == first.headers["x-ratelimit-used"] == "1"
    assert [tuple(request) for request in github.world.requests] == [
        ("GET", f"/repos/{NAME}/issues", 200, True),
        ("GET", f"/repos/{NAME}/issues", 304, False),
    ]
    github.world.label(ref, "mulligan", "ada")
    changed = github.get("issues", if_none_match=first.headers["etag"])
    assert changed.status_code == 200
    assert changed.headers["x-ratelimit-used"] == "2"


def test_etags_belong_to_a_token_and_a_page(github: SimulatedGitHub) -> None:
    github.issue()
    etag = github.get("issues").headers["etag"]
    assert github.get("issues", by="ada", if_none_match=etag).status_code == 200
    assert github.get("issues?state=closed", if_none_match=etag).status_code == 200
    assert github.get("issues", if_none_match=f'"other", {etag}').status_code == 304
    strong = etag.removeprefix("W/")
    assert github.get("issues", if_none_match=strong).status_code == 304


def test_without_a_token_even_an_unchanged_answer_costs(github: SimulatedGitHub) -> None:
    etag = github.get("issues", by=None).headers["etag"]
    again = github.get("issues", by=None, if_none_match=etag)
    assert again.status_code == 304
    assert (again.headers["x-ratelimit-limit"], again.headers["x-ratelimit-used"]) == ("60", "2")


def test_every_answer_says_what_is_left(github: SimulatedGitHub) -> None:
    answer = github.get("issues/99")
    assert answer.status_code == 404
    assert answer.headers["x-ratelimit-limit"] == "5000"
    assert answer.headers["x-ratelimit-remaining"] == "4999"
    assert answer.headers["x-ratelimit-used"] == "1"
    assert answer.headers["x-ratelimit-resource"] == "core"
    resets_in = int(answer.headers["x-ratelimit-reset"]) - datetime.now(UTC).timestamp()
    assert 3500 < resets_in <= 3601
    assert answer.headers["x-github-request-id"]
    assert answer.headers["content-type"] == "application/json; charset=utf-8"


def test_asking_for_the_limit_is_free(github: SimulatedGitHub) -> None:
    github.get("issues")
    answer = github.get("/rate_limit")
    assert answer.json()["rate"]["used"] == answer.json()["resources"]["core"]["used"] == 1
    assert github.get("/rate_limit").json()["rate"]["remaining"] == 4999


def test_a_used_up_limit_refuses_until_the_hour_is_over(github: SimulatedGitHub) -> None:
    github.world.meter.limit = 2
    assert [github.get("issues").status_code for _ in range(3)] == [200, 200, 403]
    refused = github.get("issues")
    assert refused.json()["message"].startswith("API rate limit exceeded for user ID")
    assert refused.headers["x-ratelimit-remaining"] == "0"
    assert github.get("issues", by="ada").status_code == 200
    assert github.get("/rate_limit").status_code == 200
    later = datetime.now(UTC) + timedelta(hours=1, seconds=1)
    github.world.meter.clock = lambda: later
    assert github.get("issues").headers["x-ratelimit-remaining"] == "1"


def test_an_unknown_token_is_refused_even_for_reading(github: SimulatedGitHub) -> None:
    answer = github.get("issues", by="nobody")
    assert answer.status_code == 401
    assert answer.json() == {
        "message": "Bad credentials",
        "documentation_url": "https://docs.github.com/rest",
        "status": "401",
    }


@pytest.mark.parametrize("header", ["token token-wes", "bearer token-wes", "Bearer token-wes"])
def test_tokens_are_written_in_either_way(github: SimulatedGitHub, header: str) -> None:
    answer = requests.get(f"{github.url}/user", headers={"authorization": header}, timeout=120)
    assert (answer.json()["login"], answer.json()["type"]) == ("wes", "User")


def test_a_token_may_be_the_password(github: SimulatedGitHub) -> None:
    answer = requests.get(f"{github.url}/user", auth=("x-access-token", "token-wes"), timeout=120)
    assert answer.json()["login"] == "wes"


def test_what_is_public_is_read_without_a_token(github: SimulatedGitHub) -> None:
    ref = github.issue()
    assert github.get(f"issues/{ref.number}", by=None).status_code == 200
    for answer in (github.get("/user", by=None), github.post("issues", {"title": "x"}, by=None)):
        assert (answer.status_code, answer.json()["message"]) == (401, "Requires authentication")


def test_a_private_repository_is_not_there_for_strangers(tmp_path: Path, reach: Reach) -> None:
    with simulated_github(tmp_path, reach, private=True) as github:
        assert github.get("", by="rea").json()["private"] is True
        for stranger in ("zoe", None):
            answer = github.get("", by=stranger)
            assert (answer.status_code, answer.json()["message"]) == (404, "Not Found")


def test_addresses_carry_the_host_that_was_asked(github: SimulatedGitHub) -> None:
    ref = github.issue()
    answer = github.get(f"issues/{ref.number}").json()
    assert answer["url"] == f"{github.url}/repos/{NAME}/issues/1"
    assert answer["repository_url"] == f"{github.url}/repos/{NAME}"
    assert answer["user"]["url"] == f"{github.url}/users/zoe"


@pytest.mark.parametrize("path", ["/nowhere", "/repos/acme/other", "/repositories/1", "wiki"])
def test_what_is_not_there_is_a_404_in_json(github: SimulatedGitHub, path: str) -> None:
    answer = github.get(path)
    assert (answer.status_code, answer.json()["message"]) == (404, "Not Found")


def test_a_method_that_is_not_there_is_a_404(github: SimulatedGitHub) -> None:
    assert github.ask("PUT", "issues").status_code == 404


def test_a_body_that_is_not_json_is_refused(github: SimulatedGitHub) -> None:
    where = f"{github.url}/repos/{NAME}/issues"
    headers = {"authorization": "Bearer token-wes"}
    broken = requests.post(where, data=b'{"title": ', headers=headers, timeout=120)
    assert (broken.status_code, broken.json()["message"]) == (400, "Problems parsing JSON")
    listed = requests.post(where, data=b'["title"]', headers=headers, timeout=120)
    assert (listed.status_code, listed.json()["message"]) == (400, "Body should be a JSON object")


def test_fields_of_the_wrong_type_are_refused(github: SimulatedGitHub) -> None:
    for body in ({"title": 1}, {"title": "x", "labels": "bug"}, {"title": "x", "labels": [1]}, {}):
        answer = github.post("issues", body)
        assert answer.status_code == 422, body
        assert answer.json()["message"].startswith("Invalid request.")


def test_a_time_that_is_none_is_refused(github: SimulatedGitHub) -> None:
    assert github.get("issues?since=yesterday").status_code == 422


def test_names_of_repositories_have_no_case(github: SimulatedGitHub) -> None:
    assert github.get("/repos/ACME/Tools").json()["full_name"] == NAME


def test_a_renamed_repository_redirects_reading_and_writing(github: SimulatedGitHub) -> None:
    ref = github.issue()
    number = github.get("").json()["id"]
    github.world.rename_repository(NAME, "toolbox")
    read = github.get(f"issues/{ref.number}")
    assert read.status_code == 301
    assert read.headers["location"] == f"{github.url}/repositories/{number}/issues/1"
    assert read.json()["message"] == "Moved Permanently"
    there = requests.get(read.headers["location"], timeout=120).json()
    assert there["repository_url"].endswith("/repos/acme/toolbox")
    written = github.post(f"issues/{ref.number}/comments", {"body": "x"})
    assert written.status_code == 307
    assert written.headers["location"].endswith(f"/repositories/{number}/issues/1/comments")
    assert github.get("").headers["location"] == f"{github.url}/repositories/{number}"
    assert github.get("/repos/acme/toolbox").json()["id"] == number


def test_an_archived_repository_is_read_only(github: SimulatedGitHub) -> None:
    ref = github.issue()
    github.world.archive(NAME)
    assert github.get("").json()["archived"] is True
    assert github.get(f"issues/{ref.number}").status_code == 200
    answer = github.post(f"issues/{ref.number}/comments", {"body": "x"})
    assert answer.status_code == 403
    assert answer.json()["message"] == "Repository was archived so is read-only."
