"""Clean-up takes what has grown old of issues at rest, and nothing that is still needed."""

import os
import shutil
from collections.abc import Callable, Generator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from mulligan.config.operator import Limits, RepositorySettings, Retention
from mulligan.daemon.cleanup import MIB, clean_up
from mulligan.daemon.daemon import Daemon, Runtime, serving
from mulligan.daemon.worker import Visit, Worker
from mulligan.domain.events import EffectDone, RetryScheduled
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.status import READ_TO
from mulligan.git.worktrees.files import locked
from mulligan.git.worktrees.naming import IssuePlace, issue_place
from mulligan.git.worktrees.worktrees import GitWorktrees
from mulligan.implement.ports import Tools
from world.checkouts import FixedToken
from world.processes import wait_until
from world.simulated import NAME
from world.workers import PATH, Shop, mend, shop

SECOND = timedelta(seconds=1)
DAY = timedelta(days=1)
LONG = timedelta(days=31)


@pytest.fixture
def here(tmp_path: Path) -> Generator[Shop]:
    with shop(tmp_path) as made:
        yield made


@pytest.fixture
def tools(here: Shop) -> Tools:
    settings = RepositorySettings(name=NAME, clone_url=str(here.desk.hub.bare), base_branch="main")
    facts = here.desk.tracker.repository
    root = here.directory / "work"
    mirrored = GitWorktrees(root, {NAME: settings}, FixedToken(), facts, PATH)
    return here.tools(mend, worktrees=mirrored)


def place(here: Shop, ref: IssueRef) -> IssuePlace:
    return issue_place(here.directory / "work", ref)


def reviewed(here: Shop, tools: Tools) -> IssueRef:
    ref = here.desk.ready()
    assert Worker(tools).visit(ref).problem is None
    assert here.ledger.status(ref).stage is Stage.REVIEW
    return ref


def kept_attempts(tools: Tools) -> list[tuple[IssueRef, int]]:
    return sorted((files.issue, files.number) for files in tools.artifacts.attempts())


def age(directory: Path, by: timedelta) -> None:
    """Let the files of a directory have been written earlier."""
    for file in directory.iterdir():
        then = file.stat().st_mtime - by.total_seconds()
        os.utime(file, (then, then))


def test_artifacts_of_a_rested_issue_go_when_they_are_old(here: Shop, tools: Tools) -> None:
    ref = reviewed(here, tools)
    here.desk.clock.time += 29 * DAY
    assert clean_up(tools, Worker(tools)) == {}
    assert kept_attempts(tools) == [(ref, 1)]
    here.desk.clock.time += 2 * DAY
    assert clean_up(tools, Worker(tools)) == {}
    assert kept_attempts(tools) == []


def test_the_worktree_of_a_rested_issue_goes_and_comes_back(here: Shop, tools: Tools) -> None:
    ref = reviewed(here, tools)
    here.desk.clock.time += 7 * DAY - SECOND
    clean_up(tools, Worker(tools))
    assert place(here, ref).tree.exists()
    here.desk.clock.time += 2 * SECOND
    clean_up(tools, Worker(tools))
    assert not tools.worktrees.has(ref)
    assert kept_attempts(tools) == [(ref, 1)]
    with tools.worktrees.open(ref) as tree:
        assert (tree.path / "src/tool.py").read_text() == "X = 1\n"


def test_that_comments_of_the_repository_were_read_keeps_no_worktree(
    here: Shop, tools: Tools
) -> None:
    ref = reviewed(here, tools)
    here.desk.clock.time += 8 * DAY
    here.ledger.append(ref, EffectDone(effect=READ_TO, key="issue", remote_id="to:9"))
    clean_up(tools, Worker(tools))
    assert not tools.worktrees.has(ref)


def test_what_waits_for_another_attempt_keeps_all(here: Shop, tools: Tools) -> None:
    ref = reviewed(here, tools)
    later = here.desk.clock.time + 2 * LONG
    here.ledger.append(ref, RetryScheduled(due=later, reason="GitHub is away."))
    here.desk.clock.time += LONG
    clean_up(tools, Worker(tools))
    assert kept_attempts(tools) == [(ref, 1)]
    assert place(here, ref).tree.exists()


def test_verified_work_that_could_not_be_published_is_kept(here: Shop, tools: Tools) -> None:
    hook = here.desk.hub.bare / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho 'no such branches' >&2\nexit 1\n")
    hook.chmod(0o755)
    ref = here.desk.ready()
    Worker(tools).visit(ref)
    assert here.ledger.status(ref).is_kept
    here.desk.clock.time += LONG
    clean_up(replace(tools, retention=Retention(artifacts_mib=1)), Worker(tools))
    assert kept_attempts(tools) == [(ref, 1)]
    shutil.rmtree(here.directory / "work")
    hook.unlink()
    here.desk.hub.world.label(ref, "mulligan", "wes")
    assert Worker(tools).visit(ref).problem is None
    assert here.ledger.status(ref).stage is Stage.REVIEW
    assert len(here.ledger.history(ref)) == 1


def test_the_oldest_go_beyond_the_size(here: Shop, tools: Tools) -> None:
    first, second = reviewed(here, tools), reviewed(here, tools)
    tools.artifacts.write(second, 1, "agent.log", bytes(MIB - 50_000))
    tools.artifacts.write(first, 1, "agent.log", bytes(100_000))
    age(tools.artifacts.path(first, 1, "agent.log").parent, DAY)
    clean_up(replace(tools, retention=Retention(artifacts_mib=1)), Worker(tools))
    assert kept_attempts(tools) == [(second, 1)]


def test_what_has_to_stay_takes_the_room_of_the_rest(here: Shop, tools: Tools) -> None:
    waiting, rested = reviewed(here, tools), reviewed(here, tools)
    here.ledger.append(waiting, RetryScheduled(due=here.desk.clock.time, reason="It is red."))
    tools.artifacts.write(waiting, 1, "agent.log", bytes(MIB))
    age(tools.artifacts.path(waiting, 1, "agent.log").parent, DAY)
    clean_up(replace(tools, retention=Retention(artifacts_mib=1)), Worker(tools))
    assert kept_attempts(tools) == [(waiting, 1)]
    assert place(here, rested).tree.exists()


def test_nothing_is_taken_from_under_a_worker(here: Shop, tools: Tools) -> None:
    ref = reviewed(here, tools)
    here.desk.clock.time += LONG
    with Worker(tools).holding(ref):
        assert clean_up(tools, Worker(tools)) == {}
    assert kept_attempts(tools) == [(ref, 1)]
    assert place(here, ref).tree.exists()


def test_an_issue_that_is_asked_for_again_in_between_keeps_all(here: Shop, tools: Tools) -> None:
    ref = reviewed(here, tools)
    here.desk.clock.time += LONG

    class Overtaken(Worker):
        """Comes to an issue just after somebody else was there."""

        def safely(
            self, ref: IssueRef, work: Callable[[Tools], Visit], most: int | None = None
        ) -> Visit:
            due = here.desk.clock.time + DAY
            here.ledger.append(ref, RetryScheduled(due=due, reason="It is asked for again."))
            return super().safely(ref, work, most)

    assert clean_up(tools, Overtaken(tools)) == {}
    assert kept_attempts(tools) == [(ref, 1)]
    assert place(here, ref).tree.exists()


def test_one_that_fails_does_not_stop_the_others(here: Shop, tools: Tools) -> None:
    first, second = reviewed(here, tools), reviewed(here, tools)
    here.desk.clock.time += LONG
    with locked(place(here, first).lock, SECOND, "it"):
        failed = clean_up(tools, Worker(tools))
    assert list(failed) == [first]
    assert "busy" in failed[first]
    assert not tools.worktrees.has(second)


def test_files_of_an_issue_that_is_not_known_stay(here: Shop, tools: Tools) -> None:
    stranger = IssueRef(NAME, 99)
    tools.artifacts.write(stranger, 1, "prompt.md", b"old")
    here.desk.clock.time += LONG
    clean_up(tools, Worker(tools))
    assert kept_attempts(tools) == [(stranger, 1)]


def test_the_daemon_cleans_up_as_it_starts(here: Shop, tools: Tools) -> None:
    ref = reviewed(here, tools)
    at_once = replace(tools, retention=Retention(worktrees=-DAY))
    crews = [Runtime((NAME,), at_once, Worker(at_once))]
    daemon = Daemon(lambda: crews.pop() if crews else None)
    with serving(daemon, SECOND, Limits(), here.desk.clock):
        wait_until(lambda: not tools.worktrees.has(ref))
