"""The record of an attempt holds what was known, however the attempt ended."""

from dataclasses import replace
from datetime import timedelta

import pytest

from mulligan.domain.attempt import AgentRun, AttemptState, Change, Fault
from mulligan.domain.attempt_times import Copies, Part
from mulligan.domain.outcome import Outcome
from mulligan.domain.result import AgentFacts, AttemptTimes, FileChange, SetUpFiles
from mulligan.domain.spending import Spent, spent_by
from mulligan.domain.status import IssueStatus
from mulligan.implement.result import (
    attempt_record,
    diff_stat,
    interrupted_record,
    with_times,
)
from world.attempts import NINE, REF, broken_rules, case, check

pytestmark = pytest.mark.pure

LATER = NINE + timedelta(minutes=2)
FILES = (
    FileChange(path="src/a.py", status="M", insertions=3, deletions=1),
    FileChange(path="logo.png", status="A"),
)
ADDED = FILES[0].model_copy(update={"deletions": 0})
RUN = AgentRun(0, timedelta(seconds=60), AgentFacts(kind="command", turns=7), summary="Did it.")


def used(usd: float) -> AgentFacts:
    return AgentFacts(kind="command", cost_usd=usd)


CHANGE = Change("start", "head", 2, FILES, b"diff")


def test_everything_that_is_known_is_in_the_record() -> None:
    known = AttemptState(
        base_sha="base",
        start_sha="start",
        manifest_hash="m",
        run=RUN,
        change=CHANGE,
        diff_artifact="diff",
        checks=(check("pytest"),),
    )
    meta = attempt_record(case(), known, {}, "worker-1", LATER)
    assert (meta.issue, meta.epoch, meta.attempt, meta.number) == (str(REF), 1, 1, 1)
    assert meta.outcome is Outcome.CHECKS_FAILED
    assert meta.error == meta.failure_reason == "Check 'pytest' failed with exit code 1."
    assert (meta.base_sha, meta.start_sha, meta.head_sha) == ("base", "start", "head")
    assert (meta.branch, meta.commits, meta.files_modified) == ("mulligan/issue-12", 2, FILES)
    assert meta.diff_summary == "2 files changed, 3 insertions(+), 1 deletion(-)"
    assert (meta.diff_artifact, meta.manifest_hash, meta.worker) == ("diff", "m", "worker-1")
    assert (meta.agent, meta.agent_summary) == (RUN.facts, "Did it.")
    assert (meta.started_at, meta.finished_at, meta.duration_ms) == (NINE, LATER, 120_000)
    assert meta.checks == known.checks
    assert meta.sketch == ()


def test_an_attempt_that_a_fault_ended_keeps_what_was_known_by_then() -> None:
    fault = Fault(Outcome.INFRASTRUCTURE, "No space left on the disk; make room.")
    known = AttemptState(fault=fault, start_sha="start", run=RUN, violations=broken_rules("a.yml"))
    meta = attempt_record(case(), known, {}, "w", LATER)
    assert meta.outcome is Outcome.INFRASTRUCTURE
    assert meta.error == "No space left on the disk; make room."
    assert (meta.start_sha, meta.agent, meta.guard_violations) == (
        "start",
        RUN.facts,
        broken_rules("a.yml"),
    )
    assert (meta.head_sha, meta.commits, meta.diff_summary) == (None, 0, "")


def test_the_record_has_the_parts_of_the_time() -> None:
    known = case()
    meta = attempt_record(known, AttemptState(run=RUN), {}, "w", LATER)
    measured = {Part.AGENT: timedelta(minutes=1)}
    timed = with_times(meta, known, measured, set_up_reused=True)
    assert timed.times == AttemptTimes(agent_ms=60_000, other_ms=60_000, set_up_reused=True)
    assert timed.set_up_files is None
    copies = Copies("there is no sandbox", timedelta(seconds=3))
    copied = SetUpFiles(copied_ms=3000, copied_because="there is no sandbox")
    assert with_times(meta, known, measured, copies=copies).set_up_files == copied


def test_an_attempt_whose_beginning_was_not_recorded_lasted_no_time() -> None:
    unknown = replace(case(), status=IssueStatus(REF, epoch=1, attempt=1, number=1))
    meta = attempt_record(unknown, AttemptState(), {}, "w", LATER)
    assert (meta.started_at, meta.duration_ms, meta.agent) == (LATER, 0, None)


@pytest.mark.parametrize("started", [NINE, None])
def test_a_dead_workers_attempt_is_recorded_as_interrupted(started: object) -> None:
    status = IssueStatus(REF, epoch=2, attempt=3, number=5, started_at=NINE if started else None)
    meta = interrupted_record(status, {0: used(0.25), 1: used(0.5)}, LATER)
    assert (meta.epoch, meta.attempt, meta.number) == (2, 3, 5)
    assert meta.outcome is Outcome.INTERRUPTED
    assert meta.error == meta.failure_reason == "Mulligan crashed during the attempt."
    assert meta.duration_ms == (120_000 if started else 0)
    assert spent_by([meta]) == Spent(0.75)


def test_what_a_run_had_used_that_was_broken_off_is_in_its_attempts_record() -> None:
    stopped = AttemptState(fault=Fault(Outcome.INTERRUPTED, "shutdown"), start_sha="start")
    assert spent_by([attempt_record(case(), stopped, {0: used(0.25)}, "w", LATER)]) == Spent(0.25)
    again = replace(stopped, earlier=(AttemptState(run=RUN),))
    meta = attempt_record(case(), again, {0: used(9), 1: used(0.5)}, "w", LATER)
    assert [each.usage for each in meta.fix_rounds] == [used(0.5)]
    assert meta.agent == RUN.facts


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ((), "no files changed"),
        (FILES[:1], "1 file changed, 3 insertions(+), 1 deletion(-)"),
        (FILES[1:], "1 file changed"),
        ((ADDED,), "1 file changed, 3 insertions(+)"),
    ],
)
def test_a_change_is_summarised_as_git_does(files: tuple[FileChange, ...], told: str) -> None:
    assert diff_stat(files) == told
