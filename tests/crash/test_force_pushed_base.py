"""Whatever kills Mulligan where the base branch is force-pushed back: it comes back in no branch.

Either that happens while the agent works, and Mulligan is killed as it finds out; or Mulligan is
killed while it publishes, and the base branch is put back before it is started again.
"""

import shutil
from collections.abc import Generator
from dataclasses import dataclass

import pytest

from mulligan.domain.issue import Stage
from mulligan.domain.outcome import FREE, Outcome
from mulligan.domain.result import WorkerResultMeta
from mulligan.domain.status import IssueStatus, Phase
from mulligan.storage.database import open_database
from mulligan.storage.ledger import SqlLedger
from world.crash_points import AFTER, BEFORE, CrashPoint, CrashPointWatcher
from world.ledgers import TickingClock, folded
from world.lifecycles import IssueLifecycle, issue_lifecycle
from world.place import NAME
from world.repositories import branch_head, commit_to, git

PASSES = 4
DEEP_SLICES = 6
EVERY = 4
"""Which of the points are looked at; `make test-deep` looks at all of them."""
MEANWHILE, LATER = "while the agent works", "after the kill"
WHEN = pytest.mark.parametrize("when", [MEANWHILE, LATER])
START = "two commits"


@dataclass(frozen=True)
class Books:
    """What the ledger holds of the issue."""

    status: IssueStatus
    history: tuple[WorkerResultMeta, ...]

    @property
    def rests(self) -> bool:
        settled = self.status.stage in {Stage.REVIEW, Stage.HITL}
        return settled and self.status.phase is Phase.IDLE and self.status.is_shown


@dataclass(frozen=True)
class Base:
    """The base branch's commits: the one that stays, and the one that is taken back."""

    life: IssueLifecycle
    kept: str
    dropped: str

    @property
    def force_push(self) -> list[str]:
        bare, program = str(self.life.here.bare), shutil.which("git") or "git"
        pushed = ["push", "-q", "--force", bare, f"{self.kept}:refs/heads/main"]
        return [program, "-C", bare, *pushed]

    def begin(self, when: str) -> None:
        """Begin anew, with an agent that knows what to do."""
        self.life.begin(START, "knows")
        then = " ".join(self.force_push) if when is MEANWHILE else ":"
        script = f"sh {self.life.desk.directory}/agent knows && {then}"
        self.life.here.configure(agent={"kind": "command", "command": ["sh", "-c", script]})

    def take_back(self) -> None:
        git(self.life.here.bare, *self.force_push[3:])


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Generator[Base]:
    with issue_lifecycle(tmp_path_factory.mktemp("life")) as life:
        kept = branch_head(life.here.bare, "main") or ""
        dropped = commit_to(life.here.bare, {"secret.txt": "taken back\n"})
        life.save(START)
        yield Base(life, kept, dropped)


def books(life: IssueLifecycle) -> Books:
    with open_database(f"sqlite:///{life.here.directory}/mulligan.db") as database:
        ledger = SqlLedger(database, TickingClock())
        status = ledger.status(life.ref)
        assert status == folded(ledger, life.ref)
        return Books(status, ledger.history(life.ref))


def restart(life: IssueLifecycle) -> Books:
    """Make passes until the issue rests."""
    for _ in range(PASSES):
        assert life.make_pass() == 0, life.said
        if (kept := books(life)).rests:
            return kept
    raise AssertionError(life.said)


def assert_all_is_well(kept: Books, base: Base) -> None:
    here, ref = base.life.here, base.life.ref
    (pull,) = here.world.pulls_of(NAME)
    (status,) = here.comments(ref)
    *free, good = kept.history
    assert (kept.status.stage, pull.state) == (Stage.REVIEW, "open")
    assert (good.outcome, good.base_sha) == (Outcome.SUCCEEDED, base.kept)
    assert [meta for meta in free if meta.outcome not in FREE] == []
    assert any(meta.base_dropped for meta in free)
    assert branch_head(here.bare, ref.branch) == good.head_sha
    assert git(here.bare, "rev-list", ref.branch).split() == [good.head_sha, base.kept]
    assert here.world.labels_of(ref) == ["mulligan:review"]
    assert "<!-- mulligan:status" in status
    assert base.life.agent_runs == len(kept.history)


def points(watched: CrashPointWatcher) -> list[int]:
    """Number the points after the attempt, up to where nothing of this is left to be done."""
    ended = watched.passed.index(CrashPoint(AFTER, "ledger attempt_completed"))
    there = CrashPoint(BEFORE, "ledger published")
    last = watched.passed.index(there) if there in watched.passed else len(watched.passed)
    return [each for each in watched.different() if ended < each <= last]


def what_goes_wrong(when: str, base: Base, wanted: slice) -> dict[str, str]:
    """Kill at some of the points, and look at what comes of it."""
    life, wrong = base.life, dict[str, str]()
    base.begin(when)
    watched = CrashPointWatcher(lasting=life.here.directory)
    assert life.make_pass(watched, attempts=1) == 0, life.said
    numbers = points(watched)[wanted]
    assert numbers
    for number in numbers:
        base.begin(when)
        assert life.make_pass(CrashPointWatcher(fatal=number)) == -9, life.said
        base.take_back()
        try:
            assert_all_is_well(restart(life), base)
        except AssertionError as error:
            side, effect = watched.passed[number]
            wrong[f"{side} {effect} ({number})"] = str(error)
    return wrong


@pytest.mark.deep
@WHEN
def test_a_kill_where_the_base_is_taken_back_loses_and_doubles_nothing(
    when: str, base: Base
) -> None:
    assert what_goes_wrong(when, base, slice(0, None, EVERY)) == {}


@pytest.mark.deep
@WHEN
@pytest.mark.parametrize("part", range(DEEP_SLICES))
def test_a_kill_anywhere_where_the_base_is_taken_back_loses_and_doubles_nothing(
    part: int, when: str, base: Base
) -> None:
    assert what_goes_wrong(when, base, slice(part, None, DEEP_SLICES)) == {}
