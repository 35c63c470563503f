"""Verified work is published in the end, once, and nobody builds it again (PUBLISH-1, COMMIT-2)."""

import json
import re
import shutil
from collections.abc import Generator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from github_simulator.world import Fault
from mulligan.config.operator import RepositorySettings
from mulligan.daemon.once import PassResult, run_once
from mulligan.domain.events import AttemptCompleted, Decided, Event
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.outcome import Escalate, Outcome
from mulligan.domain.status import IssueStatus
from mulligan.git.worktrees.worktrees import GitWorktrees
from mulligan.implement.effects import REFUSAL_TIME
from world.behaviours import Behaviour, crash
from world.checkouts import FixedToken, never_asked
from world.ledgers import with_listener
from world.repositories import git
from world.scripted_agent import ScriptedAgent
from world.simulated import NAME
from world.trackers import BOT
from world.workers import PATH, WorkerEnvironment, fix_the_bug, worker_environment

PULLS = f"POST /repos/{NAME}/pulls"
REVIEWERS = f"{PULLS}/2/requested_reviewers"
COMMENT = f"POST /repos/{NAME}/issues/1/comments"
EDIT = f"PATCH /repos/{NAME}/issues/comments/[0-9]+"
ADD = f"POST /repos/{NAME}/issues/1/labels"
REMOVE = f"DELETE /repos/{NAME}/issues/1/labels/.*"
"""What GitHub is asked to change in the life of an issue."""


@pytest.fixture
def here(tmp_path: Path) -> Generator[WorkerEnvironment]:
    with worker_environment(tmp_path) as made:
        yield made


class Trouble:
    """Answers the first requests of one kind with faults, and then as GitHub does."""

    def __init__(self, asked: str, *faults: Fault) -> None:
        self.asked = asked
        self.faults = list(faults)

    def __call__(self, method: str, path: str) -> Fault | None:
        asked = re.fullmatch(self.asked, f"{method} {path}")
        return self.faults.pop(0) if asked and self.faults else None


def work(
    here: WorkerEnvironment, agent: ScriptedAgent | Behaviour = fix_the_bug
) -> tuple[IssueRef, ScriptedAgent]:
    """Label an issue, and make a first pass."""
    ref = here.desk.ready()
    agent = agent if isinstance(agent, ScriptedAgent) else ScriptedAgent(agent)
    run_once([NAME], here.context(agent))
    return ref, agent


def passes(here: WorkerEnvironment, agent: ScriptedAgent, most: int = 4) -> list[PassResult]:
    """Make passes until one has no problem."""
    made = list[PassResult]()
    while not made or (made[-1].problems and len(made) < most):
        made.append(run_once([NAME], here.context(agent)))
    return made


def assert_published_once(here: WorkerEnvironment, ref: IssueRef, agent: ScriptedAgent) -> None:
    (pull,) = here.desk.hub.world.pulls_of(NAME)
    (meta,) = here.ledger.history(ref)
    (status,) = here.said(ref)
    assert len(agent.tasks) == 1
    assert meta.outcome is Outcome.SUCCEEDED
    assert here.pushed(ref) == meta.head_sha
    assert here.labels(ref) == ["mulligan:review"]
    assert (here.ledger.status(ref).stage, pull.state) == (Stage.REVIEW, "open")
    assert "asks for a review" in status


def test_a_pull_request_that_fails_three_times_is_opened_by_the_fourth(
    here: WorkerEnvironment,
) -> None:
    here.desk.hub.world.faults = Trouble(PULLS, *[Fault(502)] * 3)
    ref, agent = work(here)
    assert here.ledger.status(ref).stage is Stage.RUNNING
    assert len(passes(here, agent)) == 3
    assert here.writes().count(PULLS) == 4
    assert_published_once(here, ref, agent)


def test_a_pull_request_that_only_seemed_to_fail_is_found(here: WorkerEnvironment) -> None:
    here.desk.hub.world.faults = Trouble(PULLS, Fault(502, apply=True))
    ref, agent = work(here)
    assert here.writes().count(PULLS) == 1
    assert_published_once(here, ref, agent)


@pytest.mark.parametrize("way", ["closed", "merged"])
def test_a_pull_request_that_was_closed_before_it_was_recorded_stays_the_only_one(
    here: WorkerEnvironment, way: str
) -> None:
    world = here.desk.hub.world

    def down_once_it_is_open(method: str, path: str) -> Fault | None:
        is_opened = (method, path) == ("POST", f"/repos/{NAME}/pulls")
        return Fault(502, apply=is_opened) if is_opened or world.pulls_of(NAME) else None

    world.faults = down_once_it_is_open
    ref, agent = work(here)
    world.faults = None
    (pull,) = world.pulls_of(NAME)
    (world.close if way == "closed" else world.merge)(IssueRef(NAME, pull.number), "wes")
    passes(here, agent)
    run_once([NAME], here.context(agent))
    assert [each.number for each in world.pulls_of(NAME)] == [pull.number]
    assert here.ledger.status(ref).stage is Stage.RESOLVED
    assert len(agent.tasks) == 1


KINDS = pytest.mark.parametrize("asked", [PULLS, REVIEWERS, COMMENT, EDIT, ADD, REMOVE])


@KINDS
@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(Fault(502), id="failed"),
        pytest.param(Fault(502, apply=True), id="failed but done"),
        pytest.param(Fault(cut=True), id="cut off", marks=pytest.mark.deep),
        pytest.param(Fault(cut=True, apply=True), id="cut off but done", marks=pytest.mark.deep),
    ],
)
def test_any_request_may_fail_and_may_have_happened(
    here: WorkerEnvironment, asked: str, fault: Fault
) -> None:
    here.desk.hub.world.faults = trouble = Trouble(asked, *[fault] * 3)
    ref, agent = work(here)
    passes(here, agent)
    assert len(trouble.faults) < 3
    assert_published_once(here, ref, agent)


@pytest.mark.parametrize("asked", [COMMENT, ADD, REMOVE, EDIT])
@pytest.mark.parametrize(
    "fault", [Fault(502), Fault(502, apply=True)], ids=["failed", "failed but done"]
)
def test_a_person_is_asked_once_whatever_fails(
    here: WorkerEnvironment, asked: str, fault: Fault
) -> None:
    ref = here.desk.ready()
    here.desk.hub.world.faults = trouble = Trouble(asked, *[fault] * 8)
    agent = ScriptedAgent(crash)
    passes(here, agent, most=9)
    assert len(trouble.faults) < 8
    assert len(agent.tasks) == 3
    help_wanted, status = sorted(here.said(ref))
    assert "needs human review (HITL)" in status
    assert "All 3 attempts failed" in help_wanted
    assert here.labels(ref) == ["mulligan:hitl"]


def test_a_stage_that_comes_again_is_shown_again(here: WorkerEnvironment) -> None:
    ref, world = here.desk.ready(), here.desk.hub.world
    run_once([NAME], here.context(crash))
    ask_again(here, ref)
    world.faults = Trouble(f"{ADD}|{REMOVE}", *[Fault(502)] * 9)
    assert len(run_once([NAME], here.context(crash)).problems) == 1
    assert here.ledger.status(ref).epoch == 2
    world.faults = None
    assert run_once([NAME], here.context(crash)).problems == ()
    assert here.labels(ref) == ["mulligan:hitl"]
    assert (
        sum("Before the last command or label: 3 attempts" in text for text in here.said(ref)) == 1
    )


def invalid(message: str, **error: str) -> Fault:
    return Fault(422, json.dumps({"message": message, "errors": [error] if error else []}))


PAGE = "<html>Whoa there!</html>"
QUICKLY = invalid("was submitted too quickly")


@pytest.mark.parametrize(
    ("asked", "fault"),
    [
        (PULLS, invalid("Validation Failed", field="head", code="invalid")),
        (PULLS, QUICKLY),
        (COMMENT, QUICKLY),
        (EDIT, QUICKLY),
        (PULLS, Fault(403)),
        (PULLS, Fault(403, PAGE, content_type="text/html")),
        (COMMENT, Fault(403, PAGE, content_type="text/html")),
    ],
)
@pytest.mark.parametrize("times", [1, 4])
def test_a_refusal_that_passes_asks_nobody(
    here: WorkerEnvironment, asked: str, fault: Fault, times: int
) -> None:
    here.desk.hub.world.faults = trouble = Trouble(asked, *[fault] * times)
    ref, agent = work(here)
    for _ in range(4):
        here.desk.clock.time += timedelta(seconds=30)
        run_once([NAME], here.context(agent))
    assert trouble.faults == []
    assert_published_once(here, ref, agent)


def test_writes_that_are_refused_for_twelve_seconds_ask_nobody(here: WorkerEnvironment) -> None:
    world, ref = here.desk.hub.world, here.desk.ready()
    agent = ScriptedAgent(fix_the_bug)
    began = here.desk.clock.now()

    def refuse(method: str, path: str) -> Fault | None:
        is_over = here.desk.clock.now() >= began + timedelta(seconds=12)
        return None if is_over or method == "GET" or path == "/graphql" else Fault(403)

    world.faults = refuse
    for _ in range(8):
        run_once([NAME], here.context(agent))
        here.desk.clock.time += timedelta(seconds=3)
    outcomes = [meta.outcome for meta in here.ledger.history(ref)]
    assert outcomes[-1] is Outcome.SUCCEEDED
    assert set(outcomes[:-1]) <= {Outcome.INFRASTRUCTURE}
    assert (here.labels(ref), len(agent.tasks)) == (["mulligan:review"], 1)
    assert len(here.said(ref)) == 1


def test_what_is_ready_says_why_it_is_not_published_yet(here: WorkerEnvironment) -> None:
    here.desk.hub.world.faults = Trouble(PULLS, *[Fault(502)] * 9)
    ref, agent = work(here)
    delay = here.ledger.status(ref).publication_delay
    assert delay
    assert "(Fault)" in delay.reason
    run_once([NAME], here.context(agent))
    assert here.ledger.status(ref).publication_delay == delay
    here.desk.hub.world.faults = None
    run_once([NAME], here.context(agent))
    assert here.ledger.status(ref).publication_delay is None
    assert_published_once(here, ref, agent)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (403, "Pull requests: write"),
        (422, "fix the named problem"),
    ],
)
def test_a_refusal_for_good_reaches_a_person_with_the_fix(
    here: WorkerEnvironment, status: int, words: str
) -> None:
    here.desk.hub.world.faults = Trouble(PULLS, *[Fault(status)] * (2 if status == 403 else 1))
    ref, agent = work(here)
    if status == 403:
        assert here.labels(ref) == ["mulligan", "mulligan:running"]
        here.desk.clock.time += REFUSAL_TIME
        run_once([NAME], here.context(agent))
    (meta,) = here.ledger.history(ref)
    assert meta.outcome is Outcome.SUCCEEDED
    assert len(agent.tasks) == 1
    assert here.labels(ref) == ["mulligan:hitl"]
    assert here.desk.hub.world.pulls_of(NAME) == []
    _, help_wanted = here.said(ref)
    assert "could not publish it" in help_wanted
    assert words in help_wanted
    writes = here.writes()
    assert run_once([NAME], here.context(agent)) == PassResult()
    assert here.writes() == writes
    assert here.pushed(ref) == meta.head_sha


def ask_again(here: WorkerEnvironment, ref: IssueRef, minutes: int = 1) -> None:
    """Put the label on again, some minutes later."""
    world, later = here.desk.hub.world, timedelta(minutes=minutes)
    world.stamps = replace(world.stamps, clock=lambda: datetime.now(UTC) + later)
    world.label(ref, "mulligan", "wes")


def test_what_was_refused_is_published_when_it_is_asked_for_again(here: WorkerEnvironment) -> None:
    here.desk.hub.world.faults = Trouble(PULLS, Fault(422), Fault(422))
    ref, agent = work(here)
    ask_again(here, ref)
    assert run_once([NAME], here.context(agent)).escalated
    assert here.labels(ref) == ["mulligan:hitl"]
    asked = [text for text in here.said(ref) if "<!-- mulligan:hitl" in text]
    assert ["could not publish it" in text for text in asked] == [True, True]
    ask_again(here, ref, minutes=2)
    run_once([NAME], here.context(agent))
    status = here.ledger.status(ref)
    assert (status.epoch, status.attempt, status.stage) == (3, 0, Stage.REVIEW)
    assert not status.is_kept
    assert len(agent.tasks) == len(here.ledger.history(ref)) == 1
    assert here.labels(ref) == ["mulligan:review"]
    (pull,) = here.desk.hub.world.pulls_of(NAME)
    assert pull.state == "open"


def test_what_was_refused_and_then_lost_is_made_again(here: WorkerEnvironment) -> None:
    here.desk.hub.world.faults = Trouble(PULLS, Fault(422))
    ref, agent = work(here)
    shutil.rmtree(here.directory / "artifacts")
    shutil.rmtree(here.directory / "one")
    git(here.desk.hub.bare, "update-ref", "-d", f"refs/heads/{ref.branch}")
    ask_again(here, ref)
    run_once([NAME], here.context(agent))
    first, second = here.ledger.history(ref)
    assert (first.outcome, second.outcome) == (Outcome.INTERRUPTED, Outcome.SUCCEEDED)
    assert (len(agent.tasks), second.epoch) == (2, 2)
    assert here.labels(ref) == ["mulligan:review"]


def real(here: WorkerEnvironment) -> GitWorktrees:
    """Give Mulligan's own worktrees, on the repository that GitHub shows."""
    bare = str(here.desk.hub.bare)
    settings = RepositorySettings(name=NAME, clone_url=bare, base_branch="main")
    return GitWorktrees(
        root=here.directory / "work",
        repositories={NAME: settings},
        credentials=FixedToken(),
        facts=never_asked,
        environment=PATH,
    )


def hook(here: WorkerEnvironment, name: str, script: str) -> Path:
    place = here.desk.hub.bare / "hooks" / name
    place.parent.mkdir(exist_ok=True)
    place.write_text(f"#!/bin/sh\n{script}\n")
    place.chmod(0o755)
    return place


def test_a_push_whose_answer_was_lost_is_not_repeated(here: WorkerEnvironment) -> None:
    hook(here, "post-receive", "kill -9 $PPID")
    ref, agent = here.desk.ready(), ScriptedAgent(fix_the_bug)
    assert run_once([NAME], here.context(agent, worktrees=real(here))).problems == ()
    assert_published_once(here, ref, agent)


def test_a_push_that_fails_is_repeated_without_the_agent(here: WorkerEnvironment) -> None:
    broken = hook(here, "pre-receive", "kill -9 $PPID")
    ref, agent = here.desk.ready(), ScriptedAgent(fix_the_bug)
    context = here.context(agent, worktrees=real(here))
    assert len(run_once([NAME], context).problems) == 1
    assert len(run_once([NAME], context).problems) == 1
    broken.unlink()
    assert run_once([NAME], context).problems == ()
    assert_published_once(here, ref, agent)


def test_a_refused_push_reaches_a_person_and_keeps_the_work(here: WorkerEnvironment) -> None:
    hook(here, "update", "echo 'names must begin with feature/' >&2; exit 1")
    ref, agent = here.desk.ready(), ScriptedAgent(fix_the_bug)
    context = here.context(agent, worktrees=real(here))
    assert run_once([NAME], context).escalated
    (meta,) = here.ledger.history(ref)
    assert "names must begin with feature/" in here.said(ref)[-1]
    assert (here.labels(ref), here.pushed(ref)) == (["mulligan:hitl"], None)
    shutil.rmtree(here.directory / "work")
    assert meta.head_sha
    assert context.worktrees.ensure_commit(ref, meta.head_sha, bundle(here, ref))


def bundle(here: WorkerEnvironment, ref: IssueRef) -> Path:
    return here.directory / "artifacts" / ref.repository / f"{ref.number}" / "1" / "verified.bundle"


def unpublished(here: WorkerEnvironment) -> tuple[IssueRef, ScriptedAgent]:
    """Have verified work whose publishing GitHub put off."""
    ref, agent = here.desk.ready(), ScriptedAgent(fix_the_bug)
    hook(here, "pre-receive", "kill -9 $PPID")
    run_once([NAME], here.context(agent, worktrees=real(here)))
    (here.desk.hub.bare / "hooks" / "pre-receive").unlink()
    assert here.pushed(ref) is None
    return ref, agent


def test_verified_work_outlives_its_mirror(here: WorkerEnvironment) -> None:
    ref, agent = unpublished(here)
    shutil.rmtree(here.directory / "work")
    assert run_once([NAME], here.context(agent, worktrees=real(here))).problems == ()
    assert_published_once(here, ref, agent)


def test_verified_work_that_is_gone_was_interrupted_and_is_made_again(
    here: WorkerEnvironment,
) -> None:
    ref, agent = unpublished(here)
    shutil.rmtree(here.directory / "work")
    bundle(here, ref).unlink()
    assert run_once([NAME], here.context(agent, worktrees=real(here))).problems == ()
    lost, verified = here.ledger.history(ref)
    assert (lost.outcome, verified.outcome) == (Outcome.INTERRUPTED, Outcome.SUCCEEDED)
    assert "no longer on this machine" in lost.error
    assert len(agent.tasks) == 2
    assert here.pushed(ref) == verified.head_sha
    assert here.labels(ref) == ["mulligan:review"]


def test_work_is_kept_before_anything_is_decided_about_it(here: WorkerEnvironment) -> None:
    ref, kept = here.desk.ready(), dict[str, bool]()

    def listen(status: IssueStatus, event: Event) -> None:
        kept[event.kind] = bundle(here, status.issue).exists()

    context = here.context(fix_the_bug)
    run_once([NAME], replace(context, ledger=with_listener(context.ledger, listen)))
    assert here.ledger.status(ref).stage is Stage.REVIEW
    assert (kept["attempt_completed"], kept["decided"]) == (False, True)


def test_work_that_was_lost_before_it_was_decided_is_made_again(here: WorkerEnvironment) -> None:
    ref, _ = unpublished(here)
    (meta,) = here.ledger.history(ref)
    here.ledger.append(ref, AttemptCompleted(meta=meta))
    shutil.rmtree(here.directory / "work")
    bundle(here, ref).unlink()
    run_once([NAME], here.context(fix_the_bug, worktrees=real(here)))
    assert here.ledger.status(ref).stage is Stage.REVIEW
    assert not any(
        isinstance(event, Decided) and isinstance(event.decision, Escalate)
        for event in here.events(ref)
    )


@pytest.mark.parametrize("account", ["Bot", "User"])
def test_the_verdict_is_one_check_run_where_github_allows_it_and_is_no_ci(
    here: WorkerEnvironment, account: str
) -> None:
    world = here.desk.hub.world
    world.users[BOT.casefold()].type = account
    here.policy["pull_request"] = {"check_run": True}
    here.desk.hub.world.faults = Trouble(f"POST /repos/{NAME}/check-runs", Fault(502, apply=True))
    ref, agent = work(here)
    passes(here, agent)
    here.desk.clock.time += timedelta(hours=1)
    passes(here, agent)
    assert here.ledger.status(ref).stage is Stage.REVIEW
    shown = [(run.name, run.conclusion, run.commit[1]) for run in world.runs.checks]
    expected = [("Mulligan", "neutral", here.pushed(ref))] if account == "Bot" else []
    assert shown == expected
    assert not here.desk.tracker.pulls.checks(ref, here.pushed(ref) or "")
