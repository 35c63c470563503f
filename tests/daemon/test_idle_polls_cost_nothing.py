"""What polls and issues cost: nothing without work, else few requests and processes (DAEMON-2)."""

import gc
import os
import shutil
import sys
import threading
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from mulligan.config.operator import RepositorySettings
from mulligan.config.policy import Labels
from mulligan.daemon.daemon import Daemon, Runtime
from mulligan.daemon.worker import Worker
from mulligan.domain.events import Decided, RetryScheduled
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.outcome import Escalate
from mulligan.git.worktrees.worktrees import GitWorktrees
from mulligan.github.labels import label_styles
from mulligan.github.tracker import FACTS_TTL
from mulligan.storage.owner_ref import Installation, RecordedTimes
from world.behaviours import AgentInput
from world.ledgers import completed
from world.owners import OwnedRemote
from world.simulated import NAME
from world.trackers import BOT
from world.workers import (
    PATH,
    WorkerEnvironment,
    fix_the_bug,
    worker_environment,
)

POLLS = 1000
WARM_UP = 50
INTERVAL = timedelta(seconds=10)


class NoToken:
    def git_token(self, repository: str) -> str | None:
        return None


def resting(here: WorkerEnvironment) -> Daemon:
    """Give a daemon whose issues are in review, with a person, and waiting."""
    mirrored = GitWorktrees(
        here.directory / "work",
        {NAME: RepositorySettings(name=NAME, clone_url=str(here.desk.hub.bare))},
        NoToken(),
        here.desk.tracker.repository,
        PATH,
    )
    context = here.context(fix_the_bug, worktrees=mirrored)
    reviewed, asked, waiting = (here.desk.ready() for _ in range(3))
    worker = Worker(context)
    assert worker.visit(reviewed).attempts == 1
    (pull,) = here.desk.hub.world.pulls_of(NAME)
    # The simulated GitHub runs git for each answer while a pull request is open.
    here.desk.hub.world.close(IssueRef(NAME, pull.number), "wes")
    here.ledger.append(asked, completed(asked, 1))
    here.ledger.append(asked, Decided(decision=Escalate(reason="It did not work out.")))
    later = here.desk.clock.time + timedelta(days=1)
    here.ledger.append(waiting, RetryScheduled(due=later, reason="GitHub is away."))
    crews = [Runtime((NAME,), context, worker)]
    return Daemon(lambda: crews.pop() if crews else None)


def poll(here: WorkerEnvironment, daemon: Daemon, times: int) -> int:
    """Poll at short intervals; give how many requests that took. Nobody is woken."""
    requests, woken = here.desk.hub.world.requests, list[IssueRef]()
    before = len(requests)
    for _ in range(times):
        here.desk.clock.time += INTERVAL
        daemon.poll(woken.extend)
        daemon.watch()
    asked = len(requests) - before
    assert woken == []
    requests.clear()
    return asked


def taken() -> tuple[int, int]:
    """Count the open descriptors and the threads of this process.

    The pools of GitHub and of the polls grow to a fixed size, at any time.
    """
    threads = [
        each for each in threading.enumerate() if not each.name.startswith(("simulator_", "poll_"))
    ]
    return len(list(Path("/proc/self/fd").iterdir())), len(threads)


def blocks() -> int:
    """Count the pieces of memory that Python has in use."""
    gc.collect()
    return sys.getallocatedblocks()


def test_a_thousand_idle_polls_cost_nothing(tmp_path: Path) -> None:
    with worker_environment(tmp_path) as here:
        window, daemon = here.desk.hub.world.meter.window(BOT), resting(here)
        # The second one asks for the comments after those that the first has read.
        poll(here, daemon, 2)
        used = window.used
        poll(here, daemon, WARM_UP)
        before, memory, started = taken(), blocks(), time.thread_time()
        asked = poll(here, daemon, POLLS)
        cpu = time.thread_time() - started
        assert window.used == used
        # One that stayed at each poll would be a thousand; a few come and go with other threads.
        assert all(now - then < POLLS / 10 for now, then in zip(taken(), before, strict=True))
        # Issues, comments and pull requests, and once in five minutes the base branch.
        assert asked <= POLLS * 3.2
        # Nothing is left of each poll: that would be thousands.
        assert blocks() - memory < POLLS
        # Seconds, by this thread alone.
        assert cpu / POLLS < 0.01


MAX_GIT = 29
"""Git processes from the poll that finds an issue to its pull request; two are for its title."""
MAX_REQUESTS, MAX_CHARGED = 31, 18
"""Requests in the same time, and those of them that count towards the rate limit."""


def count_git(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write each start of git by Mulligan to a file, one line each; give that."""
    log, program = directory / "git.log", directory / "bin" / "git"
    program.parent.mkdir()
    program.write_text(
        # The simulated GitHub names no GIT_DIR.
        f'#!/bin/sh\n[ -z "$GIT_DIR" ] || echo >> {log}\nexec {shutil.which("git")} "$@"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return log


def test_an_issue_costs_few_requests_and_few_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = count_git(tmp_path, monkeypatch)
    with worker_environment(tmp_path) as here:
        world, clock = here.desk.hub.world, here.desk.clock
        for look in label_styles(Labels())[1:]:
            here.desk.writer.create_label(NAME, look)
        settings = {NAME: RepositorySettings(name=NAME, clone_url=str(here.desk.hub.bare))}
        mirrored = GitWorktrees(
            *(here.directory / "work", settings, NoToken(), here.desk.tracker.recent_repository),
            {"PATH": os.environ["PATH"]},
        )
        installation = Installation("one", RecordedTimes(clock), clock)
        owners = OwnedRemote(here.desk.hub.bare, clock).owners(installation)

        def work_for_a_while(given: AgentInput) -> int | None:
            clock.time += 2 * FACTS_TTL
            return fix_the_bug(given)

        context = replace(here.context(work_for_a_while, worktrees=mirrored), owners=owners)
        crews = [Runtime((NAME,), context, Worker(context))]
        daemon = Daemon(lambda: crews.pop() if crews else None)
        # The first issue also pays for what is read once: the login, the mirror, permissions.
        for _ in range(2):
            ref, woken = here.desk.ready(), list[IssueRef]()
            log.unlink(missing_ok=True)
            world.requests.clear()
            clock.time += INTERVAL
            daemon.poll(woken.extend)
            assert woken == [ref]
            daemon.visit(ref)
            assert context.ledger.status(ref).stage is Stage.REVIEW
        assert len(log.read_text().splitlines()) <= MAX_GIT
        assert len(world.requests) <= MAX_REQUESTS
        assert sum(one.counted for one in world.requests) <= MAX_CHARGED
