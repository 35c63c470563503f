"""Files that GitHub keeps elsewhere are fetched without a token, within bounds, once addressed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from github_simulator.records import CheckOutput
from github_simulator.world import Fault
from mulligan.domain.errors import UnavailableError
from mulligan.github.answers import DeletedError, MovedError
from mulligan.github.connection import MAX_DOWNLOAD_TAIL, fetch
from mulligan.github.pulls import failed_steps
from world.simulated import NAME
from world.trackers import TrackerEnvironment, tracker_environment

KEPT = "/signed-logs/"


@pytest.fixture
def office(tmp_path: Path) -> Iterator[TrackerEnvironment]:
    with tracker_environment(tmp_path) as found:
        yield found


def log(office: TrackerEnvironment, text: str) -> str:
    """Have a job print something; give the path of its log."""
    ref = office.ready()
    commit = (NAME, office.branch(ref))
    run = office.hub.world.runs.check(commit, "tests", "failure", CheckOutput(text))
    return f"/repos/{NAME}/actions/jobs/{run}/logs"


def fail_at(office: TrackerEnvironment, part: str, fault: Fault) -> None:
    office.hub.world.faults = lambda _, path: fault if part in path else None


@pytest.mark.parametrize(
    ("url", "api"),
    [
        ("file:///etc/passwd", "http://git.example/api"),
        ("ftp://git.example/log", "http://git.example/api"),
        ("http:///log", "http://git.example/api"),
        ("http://git.example/log", "https://git.example/api"),
    ],
)
def test_an_address_that_is_not_safe_is_not_asked(url: str, api: str) -> None:
    with pytest.raises(UnavailableError, match="an unsafe address"):
        fetch(url, api, 1)


def test_of_a_large_file_the_end_is_kept(office: TrackerEnvironment) -> None:
    path = log(office, "x" * (2 * MAX_DOWNLOAD_TAIL + 1_000_000) + "the end")
    found = office.client.download(path)
    assert len(found) == MAX_DOWNLOAD_TAIL
    assert found.endswith(b"xthe end")


def test_a_file_that_is_gone_is_not_there(office: TrackerEnvironment) -> None:
    path = log(office, "")
    fail_at(office, KEPT, Fault(404))
    with pytest.raises(DeletedError, match="no longer has a file"):
        office.client.download(path)


@pytest.mark.parametrize("fault", [Fault(500), Fault(302, headers={"location": "http://x.y/"})])
def test_a_second_redirect_or_a_failure_is_tried_again_later(
    office: TrackerEnvironment, fault: Fault
) -> None:
    path = log(office, "")
    fail_at(office, KEPT, fault)
    with pytest.raises(UnavailableError, match=f"answered {fault.status} for"):
        office.client.download(path)


def test_an_address_where_nobody_answers_is_tried_again_later(office: TrackerEnvironment) -> None:
    path = log(office, "")
    fail_at(office, "/logs", Fault(302, headers={"location": "http://127.0.0.1:1/log"}))
    with pytest.raises(UnavailableError, match="connection refused"):
        office.client.download(path)


def test_a_renamed_repository_is_no_file(office: TrackerEnvironment) -> None:
    path = log(office, "")
    there = f"{office.hub.url}/repositories/5/actions/jobs/6/logs"
    fail_at(office, "/logs", Fault(301, headers={"location": there}))
    with pytest.raises(MovedError):
        office.client.download(path)


def test_a_file_that_github_gives_itself_is_read(office: TrackerEnvironment) -> None:
    path = log(office, "")
    fail_at(office, "/logs", Fault(200, body="1 failed"))
    assert office.client.download(path) == b"1 failed"


def test_an_upload_is_read_at_its_storage_without_a_token(office: TrackerEnvironment) -> None:
    world, sent = office.hub.world, list[str]()
    world.uploads["1/a.log"] = b"a" * 5_000
    moved = {"location": "/user-attachments/files/1/a.log"}

    def watched(_method: str, path: str) -> Fault | None:
        sent.append(path)
        return Fault(302, headers=moved) if path.endswith("/b.log") else None

    world.faults, world.exchanges = watched, []
    at = f"{office.hub.url}/user-attachments/files/1"
    assert office.client.fetch_upload(f"{at}/b.log", 3_000) == b"a" * 3_000
    assert office.client.fetch_upload(f"{at}/a.log", 6_000) == b"a" * 5_000
    with pytest.raises(DeletedError):
        office.client.fetch_upload(f"{at}/c.log", 10)
    # Without a token, GitHub's limit for everybody counts them.
    assert world.meter.window("mulligan-bot").used == 0


def test_an_upload_without_end_or_at_an_unsafe_address_is_not_read(
    office: TrackerEnvironment,
) -> None:
    at = f"{office.hub.url}/user-attachments/files/1/a.log"
    fail_at(office, "/a.log", Fault(302, headers={"location": at}))
    with pytest.raises(UnavailableError, match="redirects the address of a file too often"):
        office.client.fetch_upload(at, 10)
    fail_at(office, "/a.log", Fault(302, headers={"location": "file:///etc/passwd"}))
    with pytest.raises(UnavailableError, match="an unsafe address"):
        office.client.fetch_upload(at, 10)


JOB = """\
\ufeffCurrent runner version: '2.321.0'
##[group]Run actions/checkout@v4
with:
  fetch-depth: 1
##[endgroup]
HEAD is now at c0ffee
##[group]Run make lint
make lint
##[endgroup]
##[error]a.py:3: line too long
##[group]Run make build
shell: /usr/bin/bash -e {0}
##[endgroup]
built
##[group]Run make test
shell: /usr/bin/bash -e {0}
##[endgroup]
FAILED test_add.py::test_add - no
##[error]Process completed with exit code 2.
Post job cleanup.
git version 2.47.1
"""


def test_of_the_log_of_a_job_the_failed_steps_are_read() -> None:
    stamped = "".join(f"2026-11-24T02:00:00.1234567Z {line}\n" for line in JOB.splitlines())
    assert failed_steps(stamped.encode()).decode().splitlines() == [
        "Run make lint",
        "##[error]a.py:3: line too long",
        "Run make test",
        "FAILED test_add.py::test_add - no",
    ]
    assert failed_steps(b"no step\n##[error]no") == b"no step\n##[error]no"
