"""Faults that can be asked for: what is answered instead, and what was done all the same."""

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
import requests

from github_simulator.app import running
from github_simulator.world import STALE, Fault, Faults
from world.in_process import in_process
from world.simulated import NAME, SimulatedGitHub

pytestmark = pytest.mark.parametrize(
    "reach", [in_process, running], ids=["in process", "over HTTP"], indirect=True
)


def once(fault: Fault, method: str = "POST") -> Faults:
    """Spoil the first request of a method only."""
    left = [fault]

    def faults(asked: str, _: str) -> Fault | None:
        return left.pop() if asked == method and left else None

    return faults


def test_a_failed_request_has_done_nothing(github: SimulatedGitHub) -> None:
    ref = github.issue()
    github.world.faults = once(Fault(502))
    assert github.post("issues/1/comments", {"body": "x"}).status_code == 502
    assert github.world.comments_of(ref) == []
    assert github.post("issues/1/comments", {"body": "x"}).status_code == 201


def test_a_request_can_be_applied_and_fail_all_the_same(github: SimulatedGitHub) -> None:
    ref = github.issue()
    github.world.faults = once(Fault(502, apply=True))
    answer = github.post("issues/1/comments", {"body": "x"})
    assert (answer.status_code, answer.json()["status"]) == (502, "502")
    assert [comment.body for comment in github.world.comments_of(ref)] == ["x"]
    last = github.world.requests[-1]
    assert (last.method, last.status) == ("POST", 502)


def test_headers_are_added_and_win(github: SimulatedGitHub) -> None:
    headers = {"Retry-After": "60", "X-RateLimit-Remaining": "0"}
    body = '{"message": "You have exceeded a secondary rate limit."}'
    github.world.faults = once(Fault(403, body, headers), "GET")
    answer = github.get("issues")
    assert answer.status_code == 403
    assert answer.headers["retry-after"] == "60"
    assert answer.headers["x-ratelimit-remaining"] == "0"
    assert answer.headers["x-ratelimit-limit"] == "5000"
    assert "secondary" in answer.json()["message"]


def test_a_fault_meets_strangers_as_well(github: SimulatedGitHub) -> None:
    github.world.faults = lambda _, __: Fault(503)
    answers = [github.get("issues", by=login) for login in ("wes", "nobody", None)]
    assert [answer.status_code for answer in answers] == [503] * 3
    assert [answer.headers["x-ratelimit-limit"] for answer in answers] == ["5000", "60", "60"]


def test_a_page_comes_where_json_is_expected(github: SimulatedGitHub) -> None:
    page = Fault(200, "<html>Unicorn</html>", content_type="text/html")
    github.world.faults = once(page, "GET")
    answer = github.get("issues")
    assert (answer.status_code, answer.text) == (200, "<html>Unicorn</html>")
    assert answer.headers["content-type"] == "text/html"
    assert "etag" not in answer.headers


def test_a_redirect_can_be_answered(github: SimulatedGitHub) -> None:
    github.world.faults = once(Fault(307, headers={"location": f"{github.url}/elsewhere"}))
    answer = github.post("issues", {"title": "x"})
    assert (answer.status_code, answer.headers["location"]) == (307, f"{github.url}/elsewhere")


def test_an_answer_can_be_late(github: SimulatedGitHub) -> None:
    github.world.faults = once(Fault(delay=0.2), "GET")
    started = time.monotonic()
    assert github.get("issues").status_code == 200
    assert time.monotonic() - started >= 0.2


@pytest.mark.parametrize("apply", [False, True])
def test_a_connection_can_be_cut(github: SimulatedGitHub, *, apply: bool) -> None:
    ref = github.issue()
    github.world.faults = once(Fault(cut=True, apply=apply))
    with pytest.raises(requests.exceptions.RequestException):
        github.post("issues/1/comments", {"body": "x"})
    assert len(github.world.comments_of(ref)) == apply


def test_faults_are_told_the_repositorys_own_path(github: SimulatedGitHub) -> None:
    github.issue()
    seen = list[tuple[str, str]]()

    def watch(method: str, path: str) -> None:
        seen.append((method, path))

    github.world.faults = watch
    number = github.get("").json()["id"]
    github.get(f"/repositories/{number}/issues/1?page=1")
    github.ask("DELETE", "issues/1/labels/a%3Ab")
    assert seen == [
        ("GET", f"/repos/{NAME}"),
        ("GET", f"/repos/{NAME}/issues/1"),
        ("DELETE", f"/repos/{NAME}/issues/1/labels/a:b"),
    ]


def test_a_read_can_be_out_of_date(github: SimulatedGitHub) -> None:
    ref, now = github.issue(), [datetime(2025, 3, 4, 12, 0, tzinfo=UTC)]
    github.world.stamps = replace(github.world.stamps, clock=lambda: now[0])
    github.world.faults = lambda _method, _path: None
    github.get("issues/1")
    github.world.close(ref, "wes")
    github.world.faults = lambda _method, _path: Fault(is_stale=True)
    assert github.get("issues/1").json()["state"] == "open"
    assert github.get("issues/1/comments").json() == []
    github.world.reopen(ref, "wes")
    now[0] += STALE + timedelta(seconds=1)
    assert github.get("issues/1").json()["state"] == "open"
    github.world.close(ref, "wes")
    now[0] += STALE + timedelta(seconds=1)
    assert github.get("issues/1").json()["state"] == "closed"
