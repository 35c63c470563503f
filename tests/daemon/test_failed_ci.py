"""The checks that GitHub runs on a pull request ask for another attempt, or are told (PR-3)."""

from collections.abc import Generator
from datetime import timedelta
from pathlib import Path

import pytest

from github_simulator.records import Annotation, CheckOutput
from github_simulator.world import Fault
from mulligan.daemon.explain import explain
from mulligan.daemon.once import run_once
from mulligan.daemon.poll import FetchCache, poll
from mulligan.daemon.worker import Worker
from mulligan.domain.events import CiFailed, CiPassed
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.outcome import Outcome
from mulligan.interfaces.json_output import status_row
from world.behaviours import AgentInput
from world.repositories import branch_head, commit_to
from world.simulated import NAME
from world.workers import WorkerEnvironment, worker_environment

FILE = "src/tool.py"
DONE = Outcome.SUCCEEDED
LOG = "2025-11-21T09:00:00.1234567Z E   AssertionError: 41 is not 42\n"
PASSED = "On GitHub, 2 checks passed and none failed."


def count_up(given: AgentInput) -> None:
    """Write what no attempt before has written."""
    given.write(FILE, f"X = {given.prompt.count('AssertionError') + len(given.prompt)}\n")


@pytest.fixture
def here(tmp_path: Path) -> Generator[WorkerEnvironment]:
    with worker_environment(tmp_path) as made:
        made.policy["watch_ci"] = True
        yield made


def make_pass(here: WorkerEnvironment) -> None:
    here.desk.clock.time += timedelta(hours=1)
    assert run_once([NAME], here.context(count_up)).problems == ()


def published(here: WorkerEnvironment) -> IssueRef:
    ref = here.desk.ready()
    make_pass(here)
    return ref


def runs(
    here: WorkerEnvironment, ref: IssueRef, name: str, conclusion: str | None, log: str = LOG
) -> None:
    """Have a check of that name run on the pull request's head, or run again."""
    head = here.pushed(ref) or ""
    here.desk.hub.world.runs.check((NAME, head), name, conclusion, CheckOutput(log))


def outcomes(here: WorkerEnvironment, ref: IssueRef) -> list[Outcome]:
    return [meta.outcome for meta in here.ledger.history(ref)]


def failures(here: WorkerEnvironment, ref: IssueRef) -> list[CiFailed]:
    return [each for each in here.events(ref) if isinstance(each, CiFailed)]


def asked_about_checks(here: WorkerEnvironment) -> list[str]:
    parts = ("/check-runs", "/status", "/logs")
    asked = here.desk.hub.world.requests
    return [one.path for one in asked if one.path.endswith(parts)]


def test_jobs_of_two_workflows_that_bear_one_name_both_count(here: WorkerEnvironment) -> None:
    ref = published(here)
    commit = (NAME, here.pushed(ref) or "")
    for suite, conclusion in ((1, "failure"), (2, "failure"), (3, "success")):
        here.desk.hub.world.runs.check(commit, "tests", conclusion, CheckOutput(LOG), suite=suite)
    make_pass(here)
    (failed,) = failures(here, ref)
    assert [check.name for check in failed.checks] == ["tests", "tests (2)"]


def test_a_failing_check_asks_for_one_attempt_that_is_told_of_it(here: WorkerEnvironment) -> None:
    ref = published(here)
    runs(here, ref, "tests", "failure")
    head = here.pushed(ref)
    make_pass(here)
    (failed,) = failures(here, ref)
    assert (failed.head_sha, failed.refused) == (head, "")
    assert [check.name for check in failed.checks] == ["tests"]
    assert "AssertionError: 41 is not 42" in failed.checks[0].digest
    assert outcomes(here, ref) == [DONE, DONE]
    assert here.pushed(ref) != head
    make_pass(here)
    assert len(failures(here, ref)) == 1
    assert here.ledger.status(ref).epoch == 1


def test_a_failure_waits_for_the_checks_that_still_run(here: WorkerEnvironment) -> None:
    here.policy["watch_ci"] = {"pending_timeout": "9h"}
    ref = published(here)
    runs(here, ref, "build", "failure")
    runs(here, ref, "tide", None)
    began = here.desk.hub.world.runs.checks[-1].at
    make_pass(here)
    assert outcomes(here, ref) == [DONE]
    waits = f"Waits for `tide` since {began:%H:%M} UTC; `build` failed."
    assert waits in here.said(ref)[0]
    told = explain(ref, here.context(count_up), at_work="one").notes
    assert any(note.startswith(waits) for note in told)
    assert status_row(here.ledger.status(ref))["notes"] == [
        *here.ledger.status(ref).effects.pull_notes
    ]
    writes = len(here.writes())
    make_pass(here)
    assert len(here.writes()) == writes
    runs(here, ref, "tide", "success")
    make_pass(here)
    assert outcomes(here, ref) == [DONE, DONE]
    assert waits not in here.said(ref)[0]


def test_a_failure_is_acted_on_after_a_time_although_a_check_never_ends(
    here: WorkerEnvironment,
) -> None:
    here.policy["watch_ci"] = {"pending_timeout": "90m"}
    ref = published(here)
    runs(here, ref, "build", "failure")
    here.desk.hub.world.runs.status((NAME, here.pushed(ref) or ""), "tide", "pending")
    context, fresh = here.context(count_up), FetchCache()
    for hours, due in ((0, []), (1, []), (3, [ref])):
        here.desk.clock.time = here.desk.hub.world.runs.checks[-1].at + timedelta(hours=hours)
        assert poll([NAME], context, Worker(context), fresh) == (due, {})
    make_pass(here)
    assert outcomes(here, ref) == [DONE, DONE]
    (failed,) = failures(here, ref)
    assert [check.name for check in failed.checks] == ["build"]


def test_checks_can_be_ignored_by_name(here: WorkerEnvironment) -> None:
    here.policy["watch_ci"] = {"ignore": ["tide", "codecov/*"]}
    ref = published(here)
    commit = (NAME, here.pushed(ref) or "")
    here.desk.hub.world.runs.status(commit, "tide", "pending")
    here.desk.hub.world.runs.status(commit, "codecov/patch", "failure")
    runs(here, ref, "tests", "success")
    runs(here, ref, "lint", "success")
    make_pass(here)
    assert outcomes(here, ref) == [DONE]
    assert PASSED in here.said(ref)[-1]


def on_base(here: WorkerEnvironment, name: str, conclusion: str | None) -> None:
    """Have a check of that name run on the commit that the work is based on."""
    base = branch_head(here.desk.hub.bare, "main") or ""
    here.desk.hub.world.runs.check((NAME, base), name, conclusion, CheckOutput(LOG), suite=2)


def test_a_check_that_fails_on_the_base_too_starts_nothing_and_is_told_once(
    here: WorkerEnvironment,
) -> None:
    ref = published(here)
    on_base(here, "deploy-preview", "failure")
    commit_to(here.desk.hub.bare, {"c": "1\n"})
    runs(here, ref, "deploy-preview", "failure")
    runs(here, ref, "tests", "success")
    make_pass(here)
    assert outcomes(here, ref) == [DONE]
    assert failures(here, ref) == []
    assert "`deploy-preview` failed on GitHub, and on the base commit" in here.said(ref)[0]
    assert any(
        "deploy-preview" in each for each in explain(ref, here.context(count_up), "one").notes
    )
    writes = len(here.writes())
    make_pass(here)
    assert len(here.writes()) == writes
    runs(here, ref, "tests", "failure")
    make_pass(here)
    (failed,) = failures(here, ref)
    assert [check.name for check in failed.checks] == ["tests"]


def test_a_failure_counts_where_the_base_commit_is_gone(here: WorkerEnvironment) -> None:
    ref = published(here)
    base = branch_head(here.desk.hub.bare, "main") or ""
    on_base(here, "tests", "failure")
    runs(here, ref, "tests", "failure")
    here.desk.hub.world.faults = lambda _, path: (
        Fault(422, '{"message": "No commit found"}') if f"/commits/{base}/" in path else None
    )
    make_pass(here)
    assert outcomes(here, ref) == [DONE, DONE]


def test_a_check_that_still_runs_on_the_base_is_waited_for(here: WorkerEnvironment) -> None:
    here.policy["watch_ci"] = {"pending_timeout": "9h"}
    ref = published(here)
    on_base(here, "tests", None)
    runs(here, ref, "tests", "failure")
    make_pass(here)
    assert outcomes(here, ref) == [DONE]
    on_base(here, "tests", "success")
    make_pass(here)
    assert outcomes(here, ref) == [DONE, DONE]


def test_the_check_is_named_and_quoted_where_the_agent_changed_nothing_for_it(
    here: WorkerEnvironment,
) -> None:
    here.policy["max_issue_attempts"] = 2
    ref = published(here)
    runs(here, ref, "deploy-preview", "failure")
    here.desk.clock.time += timedelta(hours=1)
    seen = list[str]()

    def do_nothing(_given: AgentInput) -> None:
        seen.extend(here.said(ref))

    run_once([NAME], here.context(do_nothing))
    assert "`deploy-preview` failed on GitHub." in seen[0]
    assert outcomes(here, ref) == [DONE, Outcome.ZERO_COMMIT]
    asked = here.said(ref)[-1]
    assert "The agent changed nothing for the checks that fail on GitHub." in asked
    assert "`deploy-preview` failed on GitHub." in asked.partition("### Suggested actions")[0]
    assert "AssertionError: 41 is not 42" in asked


def test_a_rerun_takes_the_place_of_the_failure(here: WorkerEnvironment) -> None:
    ref = published(here)
    runs(here, ref, "tests", "failure")
    runs(here, ref, "tests", "success")
    make_pass(here)
    assert outcomes(here, ref) == [DONE]


def test_the_status_comment_says_once_that_all_passed(here: WorkerEnvironment) -> None:
    ref = published(here)
    assert "On GitHub" not in here.said(ref)[-1]
    runs(here, ref, "tests", "success")
    runs(here, ref, "lint", "success")
    make_pass(here)
    assert PASSED in here.said(ref)[-1]
    edits = len(here.writes())
    make_pass(here)
    assert len(here.writes()) == edits
    assert [each.count for each in here.events(ref) if isinstance(each, CiPassed)] == [2]


def test_what_passed_is_not_said_of_the_next_head(here: WorkerEnvironment) -> None:
    ref = published(here)
    runs(here, ref, "tests", "success")
    make_pass(here)
    runs(here, ref, "tests", "failure")
    make_pass(here)
    assert outcomes(here, ref) == [DONE, DONE]
    assert "On GitHub" not in here.said(ref)[-1]


def test_a_person_is_asked_after_so_many_attempts(here: WorkerEnvironment) -> None:
    here.policy |= {"watch_ci": {"max_attempts": 1}}
    ref = published(here)
    for _ in range(3):
        runs(here, ref, "tests", "failure")
        make_pass(here)
    assert outcomes(here, ref) == [DONE, DONE]
    first, second = failures(here, ref)
    assert first.refused == ""
    assert second.refused == (
        "Checks of the pull request still fail on GitHub after 1 attempt: tests."
    )
    assert here.labels(ref) == ["mulligan:hitl"]


def test_a_person_is_asked_where_no_attempt_is_left(here: WorkerEnvironment) -> None:
    here.policy["max_issue_attempts"] = 1
    ref = published(here)
    runs(here, ref, "tests", "failure")
    make_pass(here)
    make_pass(here)
    assert outcomes(here, ref) == [DONE]
    assert here.ledger.status(ref).stage is Stage.HITL
    assert "no attempt is left: tests." in here.ledger.status(ref).reason


def test_nothing_is_asked_without_watch_ci(here: WorkerEnvironment) -> None:
    del here.policy["watch_ci"]
    ref = published(here)
    runs(here, ref, "tests", "failure")
    make_pass(here)
    assert outcomes(here, ref) == [DONE]
    assert asked_about_checks(here) == []


def test_a_head_of_somebody_else_is_not_watched(here: WorkerEnvironment) -> None:
    ref = published(here)
    commit_to(here.desk.hub.bare, {"b.txt": "b\n"}, ref.branch, "By hand")
    runs(here, ref, "tests", "failure")
    make_pass(here)
    assert outcomes(here, ref) == [DONE]
    assert asked_about_checks(here) == []


def test_a_poll_costs_nothing_while_nothing_changes(here: WorkerEnvironment) -> None:
    ref = published(here)
    runs(here, ref, "tests", "success")
    context, fresh = here.context(count_up), FetchCache()
    for _ in range(2):
        poll([NAME], context, Worker(context), fresh)
    before = len(here.desk.hub.world.requests)
    poll([NAME], context, Worker(context), fresh)
    assert not any(one.counted for one in here.desk.hub.world.requests[before:])
    assert asked_about_checks(here)


def test_without_a_log_the_annotations_are_told(here: WorkerEnvironment) -> None:
    ref = published(here)
    note = Annotation("src/tool.py", 3, "This is not right.")
    said = CheckOutput(title="1 finding", summary="See below.", annotations=(note,))
    commit = (NAME, here.pushed(ref) or "")
    here.desk.hub.world.runs.check(commit, "scan", "failure", said, app="scanner")
    here.desk.hub.world.runs.status(commit, "deploy/preview", "error", "No disk is left")
    make_pass(here)
    (failed,) = failures(here, ref)
    told = {check.name: check.digest for check in failed.checks}
    assert "src/tool.py:3: error: This is not right." in told["scan"]
    assert "No disk is left" in told["deploy/preview"]


@pytest.mark.parametrize("path", ["/check-runs", "/logs"])
def test_what_cannot_be_read_is_read_again(here: WorkerEnvironment, path: str) -> None:
    ref = published(here)
    runs(here, ref, "tests", "failure")
    context, fresh = here.context(count_up), FetchCache()
    here.desk.hub.world.faults = lambda _, asked: Fault(503) if path in asked else None
    found, failed = poll([NAME], context, Worker(context), fresh)
    assert (found, list(failed)) == ([], [str(ref)])
    here.desk.hub.world.faults = None
    assert poll([NAME], context, Worker(context), fresh) == ([ref], {})
