"""Check runs, statuses and logs of the simulated GitHub."""

import pytest

from github_simulator.records import Annotation, CheckOutput
from world.openapi import exchanges_of, schema_violations
from world.simulated import NAME, SimulatedGitHub, push


@pytest.fixture
def head(github: SimulatedGitHub) -> str:
    return push(github.bare, "topic", {"a": "a\n"})


def test_only_the_latest_check_run_of_a_name_is_listed(github: SimulatedGitHub, head: str) -> None:
    runs = github.world.runs
    first, again = (runs.check((NAME, head), "tests", done) for done in ("failure", None))
    shown = github.get(f"commits/{head}/check-runs").json()
    (run,) = shown["check_runs"]
    assert (shown["total_count"], run["id"], run["status"]) == (1, again, "in_progress")
    assert (run["conclusion"], run["app"]["slug"]) == (None, "github-actions")
    every = github.get("commits/topic/check-runs?filter=all").json()["check_runs"]
    assert [one["id"] for one in every] == [again, first]
    assert github.get(f"check-runs/{first}").json()["conclusion"] == "failure"
    assert github.get("check-runs/1").status_code == 404
    assert github.get("commits/nowhere/check-runs").status_code == 422


def test_a_check_run_has_annotations(github: SimulatedGitHub, head: str) -> None:
    said = CheckOutput(title="1 finding", annotations=(Annotation("a", 3, "No."),))
    run = github.world.runs.check((NAME, head), "scan", "failure", said, app="scanner")
    (note,) = github.get(f"check-runs/{run}/annotations").json()
    assert (note["path"], note["start_line"], note["message"]) == ("a", 3, "No.")
    assert github.get(f"actions/jobs/{run}/logs").status_code == 404


def test_a_log_is_kept_at_an_address_that_takes_no_token(
    github: SimulatedGitHub, head: str
) -> None:
    run = github.world.runs.check((NAME, head), "tests", "failure", CheckOutput("1 failed\n"))
    assert github.get(f"actions/jobs/{run}/logs", by=None).status_code == 403
    sent = github.get(f"actions/jobs/{run}/logs")
    assert sent.status_code == 302
    path = sent.headers["location"].removeprefix(github.url)
    assert github.get(path, by=None).text == "1 failed\n"
    assert github.get(path).status_code == 400
    assert github.get(f"{path}x", by=None).status_code == 403


def test_statuses_come_to_one_state(github: SimulatedGitHub, head: str) -> None:
    def state() -> str:
        return github.get(f"commits/{head}/status").json()["state"]

    runs = github.world.runs
    assert state() == "pending"
    runs.status((NAME, head), "deploy", "success")
    assert state() == "success"
    runs.status((NAME, head), "scan", "error", "It broke")
    assert state() == "failure"
    runs.status((NAME, head), "scan", "pending")
    found = github.get(f"commits/{head}/status").json()
    assert (found["state"], found["total_count"]) == ("pending", 2)
    assert {one["context"]: one["state"] for one in found["statuses"]} == {
        "deploy": "success",
        "scan": "pending",
    }


def test_answers_about_runs_are_as_github_describes_them(
    github: SimulatedGitHub, head: str
) -> None:
    runs, notes = github.world.runs, (Annotation("a", 3, "No."),)
    done = runs.check((NAME, head), "tests", "failure", CheckOutput("1 failed\n", "T", "S", notes))
    runs.check((NAME, head), "lint")
    runs.status((NAME, head), "deploy", "error", "It broke")
    github.world.exchanges = []
    for path in (
        f"commits/{head}/check-runs?per_page=100",
        f"commits/{head}/status?per_page=100",
        f"check-runs/{done}",
        f"check-runs/{done}/annotations?per_page=100",
        f"actions/jobs/{done}/logs",
    ):
        assert github.get(path).status_code in {200, 302}
    found = [wrong for each in exchanges_of(github.world) for wrong in schema_violations(each)]
    assert found == [], "\n".join(found)
