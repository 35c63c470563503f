"""Clean-up takes what has grown old of issues at rest, and nothing that is still needed."""

import os
import shutil
from collections.abc import Callable, Generator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from mulligan.config.operator import Limits, RepositorySettings, Retention
from mulligan.daemon.cleanup import MIB, RetentionPlan, clean_up
from mulligan.daemon.daemon import Daemon, Runtime, serving
from mulligan.daemon.worker import Visit, Worker
from mulligan.domain.events import RetryScheduled
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.recorded_effects import CommentsRead
from mulligan.git.worktrees.files import locked
from mulligan.git.worktrees.naming import WorktreePaths, worktree_paths
from mulligan.git.worktrees.worktrees import GitWorktrees
from mulligan.implement.ports import BotContext, NoImages
from world.checkouts import FixedToken
from world.processes import wait_until
from world.simulated import NAME
from world.workers import PATH, WorkerEnvironment, fix_the_bug, worker_environment

SECOND = timedelta(seconds=1)
DAY = timedelta(days=1)
LONG = timedelta(days=31)


@pytest.fixture
def here(tmp_path: Path) -> Generator[WorkerEnvironment]:
    with worker_environment(tmp_path) as made:
        yield made


@pytest.fixture
def context(here: WorkerEnvironment) -> BotContext:
    settings = RepositorySettings(name=NAME, clone_url=str(here.desk.hub.bare), base_branch="main")
    facts = here.desk.tracker.repository
    root = here.directory / "work"
    mirrored = GitWorktrees(root, {NAME: settings}, FixedToken(), facts, PATH)
    return here.context(fix_the_bug, worktrees=mirrored)


def place(here: WorkerEnvironment, ref: IssueRef) -> WorktreePaths:
    return worktree_paths(here.directory / "work", ref)


def reviewed(here: WorkerEnvironment, context: BotContext) -> IssueRef:
    ref = here.desk.ready()
    assert not Worker(context).visit(ref).problem
    assert here.ledger.status(ref).stage is Stage.REVIEW
    return ref


def kept_attempts(context: BotContext) -> list[tuple[IssueRef, int]]:
    return sorted((files.issue, files.number) for files in context.artifacts.attempts())


def age(directory: Path, by: timedelta) -> None:
    """Let the files of a directory have been written earlier."""
    for file in directory.iterdir():
        then = file.stat().st_mtime - by.total_seconds()
        os.utime(file, (then, then))


def test_artifacts_of_a_rested_issue_go_when_they_are_old(
    here: WorkerEnvironment, context: BotContext
) -> None:
    ref = reviewed(here, context)
    here.desk.clock.time += 29 * DAY
    assert clean_up(context, Worker(context), RetentionPlan()) == {}
    assert kept_attempts(context) == [(ref, 1)]
    here.desk.clock.time += 2 * DAY
    assert clean_up(context, Worker(context), RetentionPlan()) == {}
    assert kept_attempts(context) == []


def test_the_worktree_of_a_rested_issue_goes_and_comes_back(
    here: WorkerEnvironment, context: BotContext
) -> None:
    ref = reviewed(here, context)
    here.desk.clock.time += 7 * DAY - SECOND
    clean_up(context, Worker(context), RetentionPlan())
    assert place(here, ref).tree.exists()
    here.desk.clock.time += 2 * SECOND
    clean_up(context, Worker(context), RetentionPlan())
    assert not context.worktrees.exists(ref)
    assert kept_attempts(context) == [(ref, 1)]
    with context.worktrees.open(ref) as tree:
        assert (tree.path / "src/tool.py").read_text() == "X = 1\n"


def test_that_comments_of_the_repository_were_read_keeps_no_worktree(
    here: WorkerEnvironment, context: BotContext
) -> None:
    ref = reviewed(here, context)
    here.desk.clock.time += 8 * DAY
    here.ledger.append(ref, CommentsRead(read_to=9))
    clean_up(context, Worker(context), RetentionPlan())
    assert not context.worktrees.exists(ref)


def test_what_waits_for_another_attempt_keeps_all(
    here: WorkerEnvironment, context: BotContext
) -> None:
    ref = reviewed(here, context)
    later = here.desk.clock.time + 2 * LONG
    here.ledger.append(ref, RetryScheduled(due=later, reason="GitHub is away."))
    here.desk.clock.time += LONG
    clean_up(context, Worker(context), RetentionPlan())
    assert kept_attempts(context) == [(ref, 1)]
    assert place(here, ref).tree.exists()


def test_verified_work_that_could_not_be_published_is_kept(
    here: WorkerEnvironment, context: BotContext
) -> None:
    hook = here.desk.hub.bare / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho 'no such branches' >&2\nexit 1\n")
    hook.chmod(0o755)
    ref = here.desk.ready()
    Worker(context).visit(ref)
    assert here.ledger.status(ref).is_kept
    here.desk.clock.time += LONG
    clean_up(context, Worker(context), RetentionPlan(Retention(artifacts_mib=1)))
    assert kept_attempts(context) == [(ref, 1)]
    shutil.rmtree(here.directory / "work")
    hook.unlink()
    here.desk.hub.world.label(ref, "mulligan", "wes")
    assert not Worker(context).visit(ref).problem
    assert here.ledger.status(ref).stage is Stage.REVIEW
    assert len(here.ledger.history(ref)) == 1


def test_the_oldest_go_beyond_the_size(here: WorkerEnvironment, context: BotContext) -> None:
    first, second = reviewed(here, context), reviewed(here, context)
    context.artifacts.write(second, 1, "agent.log", bytes(MIB - 50_000))
    context.artifacts.write(first, 1, "agent.log", bytes(100_000))
    age(context.artifacts.path(first, 1, "agent.log").parent, DAY)
    clean_up(context, Worker(context), RetentionPlan(Retention(artifacts_mib=1)))
    assert kept_attempts(context) == [(second, 1)]


def test_what_has_to_stay_takes_the_room_of_the_rest(
    here: WorkerEnvironment, context: BotContext
) -> None:
    waiting, rested = reviewed(here, context), reviewed(here, context)
    here.ledger.append(waiting, RetryScheduled(due=here.desk.clock.time, reason="It is red."))
    context.artifacts.write(waiting, 1, "agent.log", bytes(MIB))
    age(context.artifacts.path(waiting, 1, "agent.log").parent, DAY)
    clean_up(context, Worker(context), RetentionPlan(Retention(artifacts_mib=1)))
    assert kept_attempts(context) == [(waiting, 1)]
    assert place(here, rested).tree.exists()


def test_nothing_is_taken_from_under_a_worker(here: WorkerEnvironment, context: BotContext) -> None:
    ref = reviewed(here, context)
    here.desk.clock.time += LONG
    with Worker(context).claim_lease(ref):
        assert clean_up(context, Worker(context), RetentionPlan()) == {}
    assert kept_attempts(context) == [(ref, 1)]
    assert place(here, ref).tree.exists()


def test_an_issue_that_is_asked_for_again_in_between_keeps_all(
    here: WorkerEnvironment, context: BotContext
) -> None:
    ref = reviewed(here, context)
    here.desk.clock.time += LONG

    class Overtaken(Worker):
        """Comes to an issue just after somebody else was there."""

        def run_leased(
            self,
            ref: IssueRef,
            work: Callable[[BotContext], Visit],
            most: int | None = None,
            *,
            is_local: bool = False,
        ) -> Visit:
            due = here.desk.clock.time + DAY
            here.ledger.append(ref, RetryScheduled(due=due, reason="It is asked for again."))
            return super().run_leased(ref, work, most, is_local=is_local)

    assert clean_up(context, Overtaken(context), RetentionPlan()) == {}
    assert kept_attempts(context) == [(ref, 1)]
    assert place(here, ref).tree.exists()


def test_one_that_fails_does_not_stop_the_others(
    here: WorkerEnvironment, context: BotContext
) -> None:
    first, second = reviewed(here, context), reviewed(here, context)
    here.desk.clock.time += LONG
    with locked(place(here, first).lock, SECOND, "it"):
        failed = clean_up(context, Worker(context), RetentionPlan())
    assert list(failed) == [first]
    assert "busy" in failed[first]
    assert not context.worktrees.exists(second)


def test_files_of_an_issue_that_is_not_known_stay(
    here: WorkerEnvironment, context: BotContext
) -> None:
    stranger = IssueRef(NAME, 99)
    context.artifacts.write(stranger, 1, "prompt.md", b"old")
    here.desk.clock.time += LONG
    clean_up(context, Worker(context), RetentionPlan())
    assert kept_attempts(context) == [(stranger, 1)]


def test_the_daemon_cleans_up_as_it_starts(here: WorkerEnvironment, context: BotContext) -> None:
    ref = reviewed(here, context)
    at_once = RetentionPlan(Retention(worktrees=-DAY))
    crews = [Runtime((NAME,), context, Worker(context), at_once)]
    daemon = Daemon(lambda: crews.pop() if crews else None)
    with serving(daemon, SECOND, Limits(), here.desk.clock):
        wait_until(lambda: not context.worktrees.exists(ref))


class PrunedImages(NoImages):
    """Takes down since when an image must not have been used."""

    def __init__(self) -> None:
        self.before = list[datetime]()

    def prune(self, before: datetime) -> None:
        self.before.append(before)


def test_images_that_nobody_used_go_after_their_time(
    here: WorkerEnvironment, context: BotContext
) -> None:
    images = PrunedImages()
    watched = replace(context, images=images)
    clean_up(watched, Worker(watched), RetentionPlan(Retention(images=3 * DAY)))
    assert images.before == [here.desk.clock.now() - 3 * DAY]
