"""Whatever kills Mulligan, and wherever: the next passes end with one pull request or one comment.

The way of one issue is cut into three chapters, each one attempt long: a first try that fails, a
second that succeeds and is published, a third that fails and is handed to a person. Each chapter
is watched once, which finds its points (`world.crash_points`); then it begins again for every
point, is killed there, and passes are made until the issue rests.
"""

from collections.abc import Generator
from dataclasses import dataclass

import pytest

from mulligan.domain.issue import Stage
from mulligan.domain.outcome import FREE, Outcome
from mulligan.domain.result import WorkerResultMeta
from mulligan.domain.status import IssueStatus, Phase
from mulligan.effects import is_shown
from mulligan.state.database import open_database
from mulligan.state.ledger import SqlLedger
from world.crash_points import Point, Watch
from world.ledgers import TickingClock, folded
from world.lives import Life, living
from world.place import NAME
from world.repositories import git, tip

SLICES = 16
"""Into how many tests the points of a chapter are dealt out, so that they can run side by side."""
PASSES = 4
KILLED = -9


@dataclass(frozen=True)
class Chapter:
    """Where it begins, how the agent is, and what the whole life comes to."""

    after: str
    mood: str
    end: Stage
    attempts: int

    @property
    def name(self) -> str:
        return f"after {self.after}, the agent {self.mood}"


FIRST = Chapter("the label", "mends", Stage.REVIEW, 2)
SECOND = Chapter("one red attempt", "mends", Stage.REVIEW, 2)
LAST = Chapter("two red attempts", "fails", Stage.HITL, 3)


@dataclass(frozen=True)
class Kept:
    """What the ledger holds of the issue."""

    status: IssueStatus
    history: tuple[WorkerResultMeta, ...]
    events: int

    @property
    def rests(self) -> bool:
        status = self.status
        settled = status.stage in {Stage.REVIEW, Stage.HITL}
        return settled and status.phase is Phase.IDLE and is_shown(status)

    @property
    def verified(self) -> WorkerResultMeta | None:
        return next((meta for meta in self.history if meta.outcome is Outcome.SUCCEEDED), None)


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Generator[Life]:
    with living(tmp_path_factory.mktemp("life")) as made:
        made.save(FIRST.after)
        for chapter, following in ((FIRST, SECOND), (SECOND, LAST)):
            made.begin(chapter.after, "fails")
            assert made.make_pass(attempts=1) == 0, made.said
            made.save(following.after)
        yield made


def ledger_of(life: Life) -> Kept:
    with open_database(f"sqlite:///{life.here.directory}/mulligan.db") as database:
        ledger = SqlLedger(database, TickingClock())
        status = ledger.status(life.ref)
        assert status == folded(ledger, life.ref)
        return Kept(status, ledger.history(life.ref), len(ledger.events()))


def points_of(chapter: Chapter, life: Life) -> tuple[list[Point], list[int]]:
    """Watch a chapter to its end; give all its points, and the numbers of those that differ."""
    life.begin(chapter.after, chapter.mood)
    watch = Watch(lasting=life.here.directory)
    assert life.make_pass(watch, attempts=1) == 0, life.said
    return watch.passed, watch.different()


def killed_at(number: int, chapter: Chapter, life: Life) -> Watch:
    """Begin a chapter, and kill it at a point."""
    life.begin(chapter.after, chapter.mood)
    watch = Watch(fatal=number)
    assert life.make_pass(watch) == KILLED, life.said
    return watch


def restart(life: Life) -> Kept:
    """Make passes until the issue rests."""
    for _ in range(PASSES):
        assert life.make_pass() == 0, life.said
        if (kept := ledger_of(life)).rests:
            return kept
    raise AssertionError(life.said)


def assert_nothing_is_lost_or_doubled(kept: Kept, chapter: Chapter, life: Life) -> None:
    world, ref, bare = life.here.world, life.ref, life.here.bare
    pulls = [pull for pull in world.pulls_of(NAME) if pull.pull]
    texts = life.here.comments(ref)
    branches = set(git(bare, "for-each-ref", "--format=%(refname)").splitlines())
    paid = [meta for meta in kept.history if meta.outcome not in FREE]
    assert kept.status.stage is chapter.end
    assert len(paid) == chapter.attempts
    assert len(kept.history) <= chapter.attempts + 1
    assert [text.count("<!-- mulligan:status ") for text in texts].count(1) == 1
    if chapter.end is Stage.REVIEW:
        assert kept.verified
        assert [pull.state for pull in pulls] == ["open"]
        assert tip(bare, ref.branch) == kept.verified.head_sha
        assert branches == {"refs/heads/main", f"refs/heads/{ref.branch}"}
        assert "asks for a review" in texts[0]
        assert len(texts) == 1
    else:
        assert pulls == []
        assert branches == {"refs/heads/main"}
        assert "handed this issue to a person" in texts[0]
        assert len(texts) == 2
        assert "All 3 attempts failed" in texts[1]
    assert world.labels_of(ref) == [f"mulligan:{chapter.end}"]
    assert git(bare, "rev-list", "--count", "main") == "1"


def assert_no_agent_ran_in_vain(kept: Kept, before: Kept, ran: int, life: Life) -> None:
    """One run for each attempt, and none once there is verified work."""
    assert life.agent_runs <= sum(meta.number > len(before.history) for meta in kept.history)
    if before.verified:
        assert life.agent_runs == ran


def see_to_its_end(number: int, chapter: Chapter, life: Life) -> None:
    killed_at(number, chapter, life)
    before, ran = ledger_of(life), life.agent_runs
    kept = restart(life)
    assert_nothing_is_lost_or_doubled(kept, chapter, life)
    assert life.agent_runs <= chapter.attempts + 1
    if before.verified:
        assert life.agent_runs == ran


@pytest.mark.timeout(120)
@pytest.mark.parametrize("slice_", range(SLICES))
@pytest.mark.parametrize("chapter", [FIRST, SECOND, LAST], ids=lambda chapter: chapter.name)
def test_a_kill_anywhere_loses_and_doubles_nothing(
    chapter: Chapter, slice_: int, life: Life
) -> None:
    points, numbers = points_of(chapter, life)
    wrong = dict[str, str]()
    for number in numbers[slice_::SLICES]:
        try:
            see_to_its_end(number, chapter, life)
        except AssertionError as error:
            wrong[f"{number} {' '.join(points[number])}"] = str(error)
    assert wrong == {}
