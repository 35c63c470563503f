"""A worker whose lease ran out has no effect any more, wherever it was when it did (RECOVERY-2)."""

import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import pytest

from github_simulator.world import Fault
from mulligan.config.operator import Limits
from mulligan.config.policy import Escalation
from mulligan.daemon.lease_guard import under_lease
from mulligan.daemon.recovery import recover
from mulligan.daemon.worker import Visit, Worker
from mulligan.domain.command import PendingCommand, Verb
from mulligan.domain.errors import LeaseLostError, UnavailableError, WithdrawnError
from mulligan.domain.events import IssueSeen
from mulligan.domain.issue import CommentAct, IssueRef, LabelAct, Lease, Stage
from mulligan.domain.outcome import Outcome
from mulligan.domain.status import Request
from mulligan.implement.issue_snapshot import load_context
from mulligan.implement.ports import BotContext, GitWriter, Leases, TrackerWriter
from mulligan.sandbox.cancellation import CURRENT_CANCELLATION, Cancellation, reason_to_stop
from mulligan.sandbox.process import run
from mulligan.storage.leases import LEASE_TIME
from world.behaviours import AgentInput
from world.processes import processes_in, shell, wait_until
from world.simulated import NAME
from world.trackers import BOT
from world.workers import WorkerEnvironment, fix_the_bug, worker_environment

SOON = timedelta(milliseconds=5)
WORDS = "Another worker has taken over"


@pytest.fixture
def here(tmp_path: Path) -> Generator[WorkerEnvironment]:
    with worker_environment(tmp_path, database=True) as made:
        yield made


@dataclass
class Sleeper:
    """Somebody who falls asleep in the middle of the work, until woken up."""

    asleep: threading.Event = field(default_factory=threading.Event)
    woken: threading.Event = field(default_factory=threading.Event)

    def sleep(self) -> None:
        self.asleep.set()
        assert self.woken.wait(120)

    def agent(self, given: AgentInput) -> None:
        self.sleep()
        given.write("src/tool.py", "X = 3  # too late\n")


@contextmanager
def asleep(visit: Callable[[], Visit], sleeper: Sleeper) -> Generator[Future[Visit]]:
    """Start a visit in which somebody is asleep; it is woken at the latest at the end."""
    with ThreadPoolExecutor(1) as pool:
        under_way = pool.submit(visit)
        assert sleeper.asleep.wait(120)
        try:
            yield under_way
        finally:
            sleeper.woken.set()


def take_over(context: BotContext, ref: IssueRef) -> Visit:
    """Do what the pass of another worker does."""
    worker = Worker(context)
    assert recover(context, worker).failed == {}
    return worker.visit(ref)


def result(here: WorkerEnvironment, ref: IssueRef) -> tuple[object, ...]:
    """All that can be seen of an issue, in the ledger, in git and on GitHub."""
    world = here.desk.hub.world
    pulls = [(pull.number, pull.title, pull.body) for pull in world.pulls_of(NAME)]
    return here.events(ref), here.pushed(ref), here.labels(ref), here.said(ref), pulls


def test_a_worker_that_wakes_up_after_its_lease_changes_nothing(here: WorkerEnvironment) -> None:
    ref, sleeper = here.desk.ready(), Sleeper()
    first, second = here.context(sleeper.agent, "one"), here.context(fix_the_bug, "two")
    with asleep(lambda: Worker(first).visit(ref), sleeper) as visit:
        here.let_leases_run_out()
        assert take_over(second, ref).attempts == 1
        stands, writes = result(here, ref), here.writes()
        sleeper.woken.set()
        assert WORDS in visit.result().skipped
    assert (result(here, ref), here.writes()) == (stands, writes)
    interrupted, verified = here.ledger.history(ref)
    assert (interrupted.outcome, verified.outcome) == (Outcome.INTERRUPTED, Outcome.SUCCEEDED)
    assert here.pushed(ref) == verified.head_sha
    assert here.labels(ref) == ["mulligan:review"]
    assert len(here.desk.hub.world.pulls_of(NAME)) == 1


def test_nothing_is_left_of_one_that_sleeps_while_the_work_is_checked(
    here: WorkerEnvironment,
) -> None:
    ref, sleeper = here.desk.ready(), Sleeper()

    def verdict(tree: Path) -> None:
        if "one" in tree.parts:
            sleeper.sleep()

    here.check(verdict)
    with asleep(lambda: Worker(here.context(fix_the_bug, "one")).visit(ref), sleeper) as visit:
        here.let_leases_run_out()
        take_over(here.context(fix_the_bug, "two"), ref)
        stands = result(here, ref)
        sleeper.woken.set()
        assert WORDS in visit.result().skipped
    assert result(here, ref) == stands


def test_one_that_sleeps_is_not_taken_for_dead_while_it_has_its_lease(
    here: WorkerEnvironment,
) -> None:
    ref, sleeper = here.desk.ready(), Sleeper()
    first, second = here.context(sleeper.agent, "one"), here.context(fix_the_bug, "two")
    with asleep(lambda: Worker(first).visit(ref), sleeper) as visit:
        here.desk.clock.time += LEASE_TIME - SOON
        assert take_over(second, ref).skipped == "Another worker has it."
        sleeper.woken.set()
        assert visit.result().attempts == 1
    assert [meta.worker for meta in here.ledger.history(ref)] == ["one"]


TOGETHER = (1, 1, 2, 3, 1)
"""Requests that are one effect: announced; the status; the pull request; labels; the status."""
ENDS = [sum(TOGETHER[: effect + 1]) for effect, count in enumerate(TOGETHER) for _ in range(count)]


@pytest.mark.parametrize(("last", "end"), list(enumerate(ENDS)))
def test_no_effect_comes_after_the_one_during_which_the_lease_is_lost(
    here: WorkerEnvironment, last: int, end: int
) -> None:
    """Another worker takes the issue over while GitHub works on a request of the first."""
    ref, seen = here.desk.ready(), list[object]()

    def fault(method: str, path: str) -> Fault | None:
        if method == "GET" or path == "/graphql":
            return None
        if len(here.writes()) == last:
            here.let_leases_run_out()
            assert here.leases.claim(ref, "two")
            seen.append(here.events(ref))
        return None

    here.desk.hub.world.faults = fault
    visit = Worker(here.context(fix_the_bug, "one")).visit(ref)
    here.desk.hub.world.faults = None
    assert WORDS in visit.skipped
    assert seen == [here.events(ref)]
    assert len(here.writes()) <= end
    here.let_leases_run_out()
    take_over(here.context(fix_the_bug, "two"), ref)
    (pull,) = here.desk.hub.world.pulls_of(NAME)
    assert here.ledger.status(ref).stage is Stage.REVIEW
    assert here.pushed(ref) == here.ledger.history(ref)[-1].head_sha
    assert here.labels(ref) == ["mulligan:review"]
    assert (len(here.said(ref)), pull.state) == (1, "open")


@dataclass
class ShakyLeases:
    """The port Leases on a database that may be away; it counts the beats of the heart."""

    inner: Leases
    away: bool = False
    beats: int = 0

    def claim(self, ref: IssueRef, worker: str, most: int | None = None) -> Lease | None:
        return self.inner.claim(ref, worker, most)

    def renew(self, lease: Lease) -> bool:
        self.beats += 1
        if self.away:
            message = "The database is away; try again."
            raise UnavailableError(message)
        return self.inner.renew(lease)

    def holds(self, lease: Lease) -> bool:
        return self.inner.holds(lease)

    def holder(self, ref: IssueRef) -> str | None:
        return self.inner.holder(ref)

    def release(self, lease: Lease) -> None:
        self.inner.release(lease)

    def release_all(self) -> None:
        self.inner.release_all()

    def heartbeat(self, worker: str) -> Sequence[str]:
        return self.inner.heartbeat(worker)

    def beat(self) -> None:
        """Wait until the heart has beaten at least once from its beginning to its end."""
        now = self.beats
        wait_until(lambda: self.beats > now + 1)


@contextmanager
def held(
    here: WorkerEnvironment, ref: IssueRef, limits: Limits | None = None
) -> Generator[tuple[Cancellation, ShakyLeases]]:
    """Hold an issue with a heart that beats fast."""
    lease, stop, leases = here.leases.claim(ref, "one"), Cancellation(), ShakyLeases(here.leases)
    assert lease
    context = replace(here.context(fix_the_bug), leases=leases, limits=limits or Limits())
    with under_lease(lease, context, stop, SOON):
        yield stop, leases


def test_the_heart_keeps_a_lease_alive(here: WorkerEnvironment) -> None:
    ref = here.desk.ready()
    with held(here, ref) as (stop, leases):
        for _ in range(3):
            here.desk.clock.time += LEASE_TIME - SOON
            leases.beat()
        assert stop.reason is None
        assert here.leases.claim(ref, "two") is None
    assert here.leases.claim(ref, "two")


def test_a_database_that_is_away_for_a_moment_does_no_harm(here: WorkerEnvironment) -> None:
    ref = here.desk.ready()
    with held(here, ref) as (stop, leases):
        leases.away = True
        leases.beat()
        here.desk.clock.time += LEASE_TIME - SOON
        leases.away = False
        leases.beat()
        here.desk.clock.time += LEASE_TIME - SOON
        assert stop.reason is None
        assert here.leases.claim(ref, "two") is None


def test_work_ends_with_its_lease_while_the_database_is_away(here: WorkerEnvironment) -> None:
    """Without it, the agent of a worker that is cut off would run beyond the limits."""
    limits = Limits(lease=timedelta(seconds=1))
    with held(here, here.desk.ready(), limits) as (stop, leases):
        leases.beat()
        assert stop.reason is None
        leases.away = True
        wait_until(lambda: stop.reason is not None)
    assert isinstance(stop.reason, LeaseLostError)


def test_a_lease_that_is_lost_ends_what_runs_under_it(
    here: WorkerEnvironment, tmp_path: Path
) -> None:
    ref, directory = here.desk.ready(), tmp_path / "tree"
    directory.mkdir()
    with held(here, ref), ThreadPoolExecutor(1) as pool:

        def lose() -> None:
            wait_until(lambda: processes_in(directory) != [], seconds=15)
            here.let_leases_run_out()
            assert here.leases.claim(ref, "two")

        lost = pool.submit(lose)
        with pytest.raises(LeaseLostError, match=WORDS):
            run(shell("sleep 60", directory))
        lost.result()
    assert processes_in(directory) == []
    assert here.leases.holder(ref) == "two"


def test_only_what_runs_under_the_lease_is_stopped(here: WorkerEnvironment) -> None:
    ref = here.desk.ready()
    assert reason_to_stop() is None
    with held(here, ref) as (stop, _):
        assert CURRENT_CANCELLATION.get() is stop
        stop.cancel(WithdrawnError("Its label was removed."))
        stop.cancel(LeaseLostError("Too late to be the reason."))
        assert isinstance(reason_to_stop(), WithdrawnError)
    assert reason_to_stop() is None


def test_what_is_only_read_needs_no_lease(here: WorkerEnvironment) -> None:
    ref = here.desk.ready()
    context = here.context(fix_the_bug)
    lease = here.leases.claim(ref, "one")
    assert lease
    with under_lease(lease, context, Cancellation()) as fenced:
        here.let_leases_run_out()
        fenced.worktrees.fetch_base(NAME)
        assert fenced.worktrees.base_branch(NAME) == "main"
        assert fenced.worktrees.base_file(NAME, "README.md") == b"# tools\n"
        assert fenced.tracker.repository(NAME).default_branch == "main"
        assert fenced.tracker.list_labelled(NAME, "mulligan") == [ref]
        act = fenced.tracker.authorising_act(ref, "mulligan")
        assert act
        labels = fenced.policies.in_force(NAME).labels
        status = replace(fenced.ledger.status(ref), request=Request(str(act.act)))
        assert not fenced.tracker.withdrawal(ref, status, labels)


def writes_of(port: type) -> set[str]:
    return {name for name in vars(port) if not name.startswith("_")} - {"guarded"}


def test_nothing_is_written_anywhere_without_the_lease(here: WorkerEnvironment) -> None:
    ref = here.desk.ready()
    other = here.desk.ready()
    here.desk.branch(other)
    body = {"title": "T", "head": other.branch, "base": "main"}
    pull: int = here.desk.hub.post("pulls", body, by=BOT).json()["number"]
    lease = here.leases.claim(ref, "one")
    assert lease
    with under_lease(lease, here.context(fix_the_bug), Cancellation()) as fenced:
        case, writer, git = (
            load_context(fenced.tracker.read(ref), fenced),
            fenced.writer,
            fenced.git,
        )
        earlier = replace(case, status=replace(case.status, epoch=9))
        asked_at = writer.post_escalation(earlier, Escalation())
        answered = replace(case, status=replace(case.status, asked_at=asked_at))
        order = PendingCommand(
            CommentAct(7), Verb.RESUME, "", "wes", here.desk.clock.now(), Stage.READY
        )
        here.let_leases_run_out()
        settings, before = fenced.policies.in_force(NAME), here.writes()
        writes: dict[str, Callable[[], object]] = {
            "set_stage_labels": lambda: writer.set_stage_labels(
                ref, Stage.RUNNING, settings.labels
            ),
            "update_status": lambda: writer.update_status(case),
            "show_stage": lambda: writer.show_stage(case, Stage.RUNNING, settings.labels),
            "post_escalation": lambda: writer.post_escalation(case, settings.escalation),
            "answer_escalation": lambda: writer.answer_escalation(answered),
            "open_pull_request": lambda: writer.open_pull_request(
                case, "main", settings.pull_request
            ),
            "open_draft": lambda: writer.open_draft(case, "main"),
            "ask_for_label": lambda: writer.ask_for_label(case, LabelAct(1), "It was changed"),
            "react": lambda: writer.react(NAME, 7, "eyes"),
            "reply": lambda: writer.reply(case, order, "It goes on."),
            "answer_thread": lambda: writer.answer_thread(ref, pull, 8, "Changed."),
            "answer_review": lambda: writer.answer_review(ref, pull, 8, "Changed."),
            "close_issue": lambda: writer.close_issue(ref),
            "push": lambda: git.push(ref, "0" * 40, None),
            "push_attempt": lambda: git.push_attempt(ref, "0" * 40, 1),
            "store_commit": lambda: git.store_commit(ref, "0" * 40, here.directory / "kept"),
            "delete_branch": lambda: git.delete_branch(ref, ()),
            "discard": lambda: git.discard(ref),
        }
        assert set(writes) == writes_of(TrackerWriter) | writes_of(GitWriter)
        writes["append"] = lambda: fenced.ledger.append(ref, IssueSeen(title="Mend it"))
        for write in writes.values():
            with pytest.raises(LeaseLostError, match=WORDS):
                write()
    assert (here.writes(), here.events(ref)) == (before, [])
