"""What GitHub does not find, or lists as empty, for a while ends nothing (GITHUB-3)."""

from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from github_simulator.world import Fault
from mulligan.daemon.poll import FetchCache, poll
from mulligan.daemon.pull_requests import MERGED
from mulligan.daemon.recovery import recover
from mulligan.daemon.worker import Worker
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.outcome import Outcome
from world.behaviours import AgentInput
from world.repositories import branch_head
from world.simulated import NAME
from world.workers import WorkerEnvironment, worker_environment

PAGE = "<html><title>Unicorn!</title></html>"
ANSWERS = {
    "not found": Fault(404),
    "an empty list": Fault(200, "[]"),
    "a server error": Fault(500),
    "a page": Fault(200, PAGE, content_type="text/html"),
}
POLL = timedelta(seconds=30)
MAX_PASSES = 40
PASSES_AFTERWARDS = 7
ONE_READ = 5
"""Requests of one read, with its repeats."""


@dataclass
class BadRead:
    """Answers the n-th read, and then all of that path, with a fault: a few, or for a time."""

    fault: Fault
    at: int
    lasts: timedelta | None
    now: Callable[[], datetime]
    seen: list[str] = field(default_factory=list[str])
    path: str = ""
    until: datetime | None = None
    left: int = ONE_READ

    def __call__(self, method: str, path: str) -> Fault | None:
        if method != "GET" and path != "/graphql":
            return None
        self.seen.append(path)
        if len(self.seen) == self.at + 1:
            self.path, self.until = path, self.now() + self.lasts if self.lasts else None
        if path != self.path or (self.until and self.now() > self.until):
            return None
        self.left -= self.until is None
        return self.fault if self.left >= 0 else None


@dataclass
class Journey:
    """An issue from its label over a review to the merge of its pull request, poll by poll."""

    here: WorkerEnvironment
    ref: IssueRef
    runs: int = 0
    reviewed: bool = False

    def make(self) -> None:
        context, cache = self.here.context(self._work), FetchCache()
        self.worker = Worker(context)
        left = PASSES_AFTERWARDS
        for _ in range(MAX_PASSES):
            self.here.desk.clock.time += POLL
            recover(context, self.worker, (NAME,))
            due, _ = poll((NAME,), context, self.worker, cache)
            for ref in due:
                self.worker.visit(ref)
            self.assert_nothing_was_lost()
            left -= self._people_act()
            if not left:
                return

    def _work(self, given: AgentInput) -> None:
        self.runs += 1
        self.worker.watch()
        given.write("src/tool.py", f"X = {1 + self.runs}\n")

    def _people_act(self) -> bool:
        """Review the first result and merge the second; return whether all is done."""
        world, status = self.here.desk.hub.world, self.here.ledger.status(self.ref)
        if status.stage is Stage.REVIEW and status.pull.number:
            pull = IssueRef(NAME, status.pull.number)
            if not self.reviewed:
                world.review(pull, "wes", "REQUEST_CHANGES", "Please write 3", ())
                self.reviewed = True
            elif self.runs > 1 and world.issue_of(pull).state == "open":
                world.merge(pull, "wes")
        return status.stage is Stage.RESOLVED

    def assert_nothing_was_lost(self) -> None:
        """See that nothing was ended, deleted, closed or said that a good GitHub would not see."""
        world, status = self.here.desk.hub.world, self.here.ledger.status(self.ref)
        pulls = world.pulls_of(NAME)
        assert len(pulls) <= 1
        for pull in pulls:
            issue = world.issue_of(IssueRef(NAME, pull.number))
            if issue.pull and not issue.pull.merged_at:
                assert issue.state == "open"
                assert branch_head(self.here.desk.hub.bare, self.ref.branch)
        outcomes = {meta.outcome for meta in self.here.ledger.history(self.ref)}
        assert outcomes <= {Outcome.SUCCEEDED, Outcome.INFRASTRUCTURE}
        assert status.stage is not Stage.HITL
        assert len(self.here.said(self.ref)) <= 1
        if status.stage is Stage.RESOLVED:
            assert status.reason == MERGED


@pytest.fixture
def here(tmp_path: Path) -> Generator[WorkerEnvironment]:
    with worker_environment(tmp_path) as made:
        yield made


def journey(here: WorkerEnvironment, fault: Fault, at: int, lasts: timedelta | None) -> int:
    """Make the journey with one bad read; return how many reads it has."""
    here.policy["review"] = {"settle": "0s"}
    world = here.desk.hub.world
    world.stamps = replace(world.stamps, clock=here.desk.clock.now)
    made = Journey(here, here.desk.ready())
    world.faults = bad = BadRead(fault, at, lasts, here.desk.clock.now)
    made.make()
    assert made.runs == 2
    assert here.ledger.status(made.ref).reason == MERGED
    assert here.labels(made.ref) == []
    assert branch_head(here.desk.hub.bare, made.ref.branch) is None
    return len(bad.seen)


READS = 94
"""Fewer than the journey has."""

LASTS = {"once": None, "for two minutes": timedelta(minutes=2)}


CASES = [(fault, lasts) for fault in ANSWERS for lasts in LASTS]


@pytest.mark.parametrize("at", range(READS))
def test_no_bad_read_ends_anything(here: WorkerEnvironment, at: int) -> None:
    fault, lasts = CASES[at % len(CASES)]
    journey(here, ANSWERS[fault], at, LASTS[lasts])


@pytest.mark.deep
@pytest.mark.parametrize(("fault", "lasts"), CASES)
@pytest.mark.parametrize("at", range(READS))
def test_no_bad_read_of_any_kind_ends_anything(
    here: WorkerEnvironment, at: int, fault: str, lasts: str
) -> None:
    journey(here, ANSWERS[fault], at, LASTS[lasts])


def test_the_journey_has_these_reads(here: WorkerEnvironment) -> None:
    last_at_work = 10
    assert READS <= journey(here, Fault(404), 10**6, None) - last_at_work < READS + 10
