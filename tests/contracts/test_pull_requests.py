"""What is read of open pull requests, and written there once (port PullRequests)."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from github_simulator.pulls import LineComment
from github_simulator.records import Annotation, CheckOutput
from github_simulator.world import Fault
from mulligan.domain.errors import DeniedError, UnavailableError, UnconfirmedError
from mulligan.domain.feedback import CheckRun
from mulligan.domain.issue import IssueRef
from mulligan.implement.ports import PullRequests
from world.repositories import branch_head
from world.simulated import NAME, push
from world.trackers import BOT, TrackerEnvironment, tracker_environment

FILE = "src/tool.py"


@pytest.fixture
def office(tmp_path: Path) -> Iterator[TrackerEnvironment]:
    with tracker_environment(tmp_path) as found:
        yield found


@pytest.fixture
def pulls(office: TrackerEnvironment) -> PullRequests:
    return office.tracker.pulls


@pytest.fixture
def ref(office: TrackerEnvironment) -> IssueRef:
    return office.ready()


@pytest.fixture
def pull(office: TrackerEnvironment, ref: IssueRef) -> IssueRef:
    office.branch(ref)
    return opened(office, ref.branch)


def opened(office: TrackerEnvironment, branch: str) -> IssueRef:
    body = {"title": "T", "head": branch, "base": "main"}
    made = office.hub.post("pulls", body, by=BOT)
    return IssueRef(NAME, made.json()["number"])


def test_only_pull_requests_of_mulligans_branches_are_listed(
    office: TrackerEnvironment, pulls: PullRequests, ref: IssueRef, pull: IssueRef
) -> None:
    push(office.hub.bare, "feature", {"x": "1\n"})
    opened(office, "feature")
    (found,) = pulls.list_open(NAME)
    assert (found.number, found.branch) == (pull.number, ref.branch)
    assert found.updated_at <= datetime.now(UTC)


def test_reviews_of_trusted_people_are_read_with_their_comments_on_lines(
    office: TrackerEnvironment, pulls: PullRequests, ref: IssueRef, pull: IssueRef
) -> None:
    world = office.hub.world
    first = world.review(pull, "wes", "COMMENT", "", [LineComment(FILE, 1, "Why?")])
    world.review(pull, "tri", "REQUEST_CHANGES", "All of it", [LineComment(FILE, 1, "No.")])
    world.review(pull, "ada", "APPROVE", "Fine")
    assert not pulls.reviews(ref, pull.number)
    second = world.review(
        pull, "mia", "REQUEST_CHANGES", "Rename it.", [LineComment(FILE, 1, "This.")]
    )
    asked, objects = pulls.reviews(ref, pull.number)
    assert [(each.id, each.author, each.requests_changes) for each in (asked, objects)] == [
        (first, "wes", False),
        (second, "mia", True),
    ]
    assert [said.body for said in asked.remarks] == ["Why?"]
    whole, line = objects.remarks
    assert (whole.body, whole.path, whole.thread, whole.review) == ("Rename it.", "", 0, second)
    assert (line.body, line.path, line.line, line.side) == ("This.", FILE, 1, "RIGHT")
    assert line.code == f"@@ -1,1 +1,1 @@\n X = {ref.number}"
    assert line.thread
    office.hub.advance_one_second()
    world.review(pull, "mia", "APPROVE")
    (withdrawn,) = pulls.reviews(ref, pull.number)
    assert (withdrawn.id, withdrawn.withdrawn, withdrawn.remarks) == (second, True, ())


@pytest.mark.parametrize("how", ["merged", "closed", "open"])
def test_it_is_known_what_became_of_it(
    office: TrackerEnvironment, pulls: PullRequests, ref: IssueRef, pull: IssueRef, how: str
) -> None:
    if how == "merged":
        office.hub.world.merge(pull, "wes")
    if how == "closed":
        office.hub.world.close(pull, "wes")
    state = pulls.state(ref, pull.number)
    assert (state.is_open, state.is_merged) == (how == "open", how == "merged")
    assert state.into_default


def test_one_that_github_does_not_find_is_no_closed_one(pulls: PullRequests, ref: IssueRef) -> None:
    with pytest.raises(UnconfirmedError, match="#99"):
        pulls.state(ref, 99)


@pytest.fixture
def thread(office: TrackerEnvironment, pull: IssueRef) -> int:
    office.hub.world.review(pull, "wes", "REQUEST_CHANGES", "", [LineComment(FILE, 1, "Why?")])
    return notes(office, pull)[0][0]


def notes(office: TrackerEnvironment, pull: IssueRef) -> list[tuple[int, str]]:
    found = office.hub.get(f"pulls/{pull.number}/comments").json()
    return [(note["id"], note["body"]) for note in found]


def test_an_answer_shows_once(
    office: TrackerEnvironment, ref: IssueRef, pull: IssueRef, thread: int
) -> None:
    writer, mark = office.writer, f"<!-- mulligan:answer {ref} -->"
    one = writer.answer_thread(ref, pull.number, thread, "Done in c0ffee.")
    assert writer.answer_thread(ref, pull.number, thread, "Done in c0ffee.") == one
    assert [body for _, body in notes(office, pull)] == ["Why?", f"{mark}\nDone in c0ffee."]
    assert writer.answer_thread(ref, pull.number, thread, "And again.") != one


def test_an_answer_that_was_not_acknowledged_is_found(
    office: TrackerEnvironment, ref: IssueRef, pull: IssueRef, thread: int
) -> None:
    def lose(method: str, _path: str) -> Fault | None:
        return Fault(502, apply=True) if method == "POST" else None

    office.hub.world.faults = lose
    office.writer.answer_thread(ref, pull.number, thread, "Done.")
    office.hub.world.faults = lambda method, _: Fault(502) if method == "POST" else None
    with pytest.raises(UnavailableError):
        office.writer.answer_thread(ref, pull.number, thread, "Again.")
    office.hub.world.faults = None
    said = [body for _, body in notes(office, pull)]
    assert said == ["Why?", f"<!-- mulligan:answer {ref} -->\nDone."]


def test_a_review_is_answered_in_one_comment(
    office: TrackerEnvironment, ref: IssueRef, pull: IssueRef
) -> None:
    writer = office.writer
    for review, text in ((7, "Done."), (7, "Done."), (77, "Done as well."), (7, "Done again.")):
        writer.answer_review(ref, pull.number, review, text)
    assert [comment.body for comment in office.hub.world.comments_of(pull)] == [
        f"<!-- mulligan:answer {ref} review=7 -->\nDone again.",
        f"<!-- mulligan:answer {ref} review=77 -->\nDone as well.",
    ]


def test_there_is_no_answer_to_what_is_not_there(
    office: TrackerEnvironment, ref: IssueRef, pull: IssueRef
) -> None:
    with pytest.raises(DeniedError):
        office.writer.answer_thread(ref, pull.number, 1, "Hello?")


def test_an_issue_is_closed_once(office: TrackerEnvironment, ref: IssueRef) -> None:
    for _ in range(2):
        office.writer.close_issue(ref)
    assert office.hub.world.issue_of(ref).state == "closed"
    writes = [one for one in office.hub.world.requests if one.method == "PATCH"]
    assert len(writes) == 1


def test_a_dry_run_writes_nothing(
    office: TrackerEnvironment, ref: IssueRef, pull: IssueRef, thread: int
) -> None:
    writer = office.dry_run()
    assert writer.answer_thread(ref, pull.number, thread, "Done.") == "dry-run"
    assert writer.answer_review(ref, pull.number, 7, "Done.") == "dry-run"
    writer.close_issue(ref)
    assert [said.partition(":")[0] for said in office.said] == [
        f"Would answer comment {thread} on #{pull.number} of {NAME}",
        f"Would answer review 7 on #{pull.number} of {NAME}",
        f"Would close {ref}.",
    ]
    assert [body for _, body in notes(office, pull)] == ["Why?"]
    assert office.hub.world.issue_of(ref).state == "open"


@pytest.fixture
def head(office: TrackerEnvironment, ref: IssueRef) -> str:
    office.branch(ref)
    return branch_head(office.hub.bare, ref.branch) or ""


def test_what_runs_on_a_commit_is_read(
    office: TrackerEnvironment, pulls: PullRequests, ref: IssueRef, head: str
) -> None:
    assert pulls.checks(ref, head) == ()
    runs = office.hub.world.runs
    first = runs.check((NAME, head), "tests", "failure")
    second = runs.check((NAME, head), "scan", app="scanner")
    runs.status((NAME, head), "deploy", "error", "No disk")
    runs.status((NAME, head), "deploy", "pending", "Trying again")
    times = {run.at.replace(microsecond=0) for run in runs.checks}
    read = pulls.checks(ref, head)
    assert {run.at for run in read if run.app != "status"} == times
    found = {(run.app, run.name): replace(run, at=None) for run in read}
    assert found[("github-actions", "tests")] == CheckRun(
        first, "github-actions", "tests", "failure", suite=1
    )
    assert found[("scanner", "scan")] == CheckRun(second, "scanner", "scan", suite=1)
    deploy = found[("status", "deploy")]
    assert (deploy.conclusion, deploy.said) == (None, "Trying again")


def test_many_checks_are_read_to_the_last(
    office: TrackerEnvironment, pulls: PullRequests, ref: IssueRef, head: str
) -> None:
    for number in range(101):
        office.hub.world.runs.check((NAME, head), f"tests {number}", "success")
    assert len(pulls.checks(ref, head)) == 101


def test_the_log_of_a_job_is_fetched_from_where_it_is_kept(
    office: TrackerEnvironment, pulls: PullRequests, ref: IssueRef, head: str
) -> None:
    office.hub.world.runs.check((NAME, head), "tests", "failure", CheckOutput("1 failed\n"))
    (run,) = pulls.checks(ref, head)
    assert pulls.log(ref, run) == b"1 failed\n"


def test_a_check_without_a_log_tells_of_itself(
    office: TrackerEnvironment, pulls: PullRequests, ref: IssueRef, head: str
) -> None:
    notes = (Annotation("a.py", 3, "No."), Annotation("b.py", 4, "Hm.", "warning"))
    said = CheckOutput(title="2 findings", summary="See there.", annotations=notes)
    runs = office.hub.world.runs
    runs.check((NAME, head), "gone", "failure", said)
    runs.check((NAME, head), "scan", "failure", said, app="scanner")
    runs.status((NAME, head), "deploy", "failure", "No disk")
    told = {run.name: pulls.log(ref, run).decode() for run in pulls.checks(ref, head)}
    whole = "2 findings\na.py:3: error: No.\nb.py:4: warning: Hm.\nSee there."
    assert told == {"gone": whole, "scan": whole, "deploy": "No disk"}
