"""Whatever kills Mulligan, and wherever: the next passes end with one pull request or one comment.

The life of an issue is cut into three chapters, each one attempt long: a first try that fails; a
second one that succeeds and is published; a third one that fails, and a person is asked. Each is
watched once, which finds its points (see `world.crash_points`). Then it begins again for a point
that is drawn, is killed there, and passes are made until the issue rests. `make test-deep` does so
for a point of every effect, and then for every point.
"""

import random
from collections.abc import Generator, Sequence
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
from world.repositories import branch_head, git

SLICES, DEEP_SLICES = 4, 16
"""Into how many tests the points of a chapter are dealt out, so that they can run side by side."""
PASSES = 4
KILLED = -9


@dataclass(frozen=True)
class Chapter:
    """What came before, how the agent is, what the end is and how many attempts it may cost."""

    after: str
    mood: str
    end: Stage
    paid: frozenset[int]


FIRST = Chapter("the label", "fails", Stage.REVIEW, frozenset({1, 2}))
SECOND = Chapter("one red attempt", "mends", Stage.REVIEW, frozenset({2}))
THIRD = Chapter("two red attempts", "fails", Stage.HITL, frozenset({3}))
CHAPTERS = (FIRST, SECOND, THIRD)


IN_EACH_CHAPTER = pytest.mark.parametrize(
    "chapter", CHAPTERS, ids=lambda each: f"after {each.after}"
)
Wrong = dict[str, str]


@dataclass(frozen=True)
class Books:
    """What the ledger holds of the issue."""

    status: IssueStatus
    history: tuple[WorkerResultMeta, ...]
    events: int

    @property
    def rests(self) -> bool:
        settled = self.status.stage in {Stage.REVIEW, Stage.HITL}
        return settled and self.status.phase is Phase.IDLE and self.status.is_shown

    @property
    def verified(self) -> WorkerResultMeta | None:
        return next((meta for meta in self.history if meta.outcome is Outcome.SUCCEEDED), None)

    @property
    def paid(self) -> int:
        return sum(meta.outcome not in FREE for meta in self.history)


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Generator[IssueLifecycle]:
    with issue_lifecycle(tmp_path_factory.mktemp("life")) as made:
        made.save(FIRST.after)
        for chapter, following in ((FIRST, SECOND), (SECOND, THIRD)):
            made.begin(chapter.after, "fails")
            assert made.make_pass(attempts=1) == 0, made.said
            made.save(following.after)
        yield made


@pytest.fixture(scope="module")
def watched(life: IssueLifecycle) -> dict[Chapter, CrashPointWatcher]:
    """Every chapter as it goes when nobody is killed."""
    found = dict[Chapter, CrashPointWatcher]()
    for chapter in CHAPTERS:
        life.begin(chapter.after, chapter.mood)
        found[chapter] = CrashPointWatcher(lasting=life.here.directory)
        assert life.make_pass(found[chapter], attempts=1) == 0, life.said
    return found


def books(life: IssueLifecycle) -> Books:
    with open_database(f"sqlite:///{life.here.directory}/mulligan.db") as database:
        ledger = SqlLedger(database, TickingClock())
        status = ledger.status(life.ref)
        assert status == folded(ledger, life.ref)
        return Books(status, ledger.history(life.ref), len(ledger.events()))


def restart(life: IssueLifecycle) -> Books:
    """Make passes until the issue rests."""
    for _ in range(PASSES):
        assert life.make_pass() == 0, life.said
        if (kept := books(life)).rests:
            return kept
    raise AssertionError(life.said)


def assert_one_pull_request(kept: Books, life: IssueLifecycle) -> None:
    ref, bare = life.ref, life.here.bare
    (pull,) = life.here.world.pulls_of(NAME)
    (status,) = life.here.comments(ref)
    assert kept.verified
    assert pull.state == "open"
    assert branch_head(bare, ref.branch) == kept.verified.head_sha
    assert branches(life) == {"refs/heads/main", f"refs/heads/{ref.branch}"}
    assert "<!-- mulligan:status" in status
    assert "asks for a review" in status


def assert_one_person_is_asked(kept: Books, life: IssueLifecycle) -> None:
    status, help_wanted = life.here.comments(life.ref)
    assert life.here.world.pulls_of(NAME) == []
    assert branches(life) == {"refs/heads/main"}
    assert "<!-- mulligan:status" in status
    assert "needs human review (HITL)" in status
    assert "<!-- mulligan:hitl" in help_wanted
    assert f"All {kept.paid} attempts failed" in help_wanted


def branches(life: IssueLifecycle) -> set[str]:
    return set(git(life.here.bare, "for-each-ref", "--format=%(refname)").splitlines())


def assert_all_is_well(kept: Books, life: IssueLifecycle) -> None:
    if kept.status.stage is Stage.REVIEW:
        assert_one_pull_request(kept, life)
    else:
        assert_one_person_is_asked(kept, life)
    assert life.here.world.labels_of(life.ref) == [f"mulligan:{kept.status.stage}"]
    assert git(life.here.bare, "rev-list", "--count", "main") == "1"


def see_to_its_end(number: int, chapter: Chapter, life: IssueLifecycle) -> None:
    """Kill a chapter at one of its points, and look at what becomes of the issue."""
    life.begin(chapter.after, chapter.mood)
    assert life.make_pass(CrashPointWatcher(fatal=number)) == KILLED, life.said
    before, runs = books(life), life.agent_runs
    if chapter is FIRST:
        life.set_agent_behaviour("mends" if before.history else "knows")
    kept = restart(life)
    assert kept.status.stage is chapter.end
    assert kept.paid in chapter.paid
    assert len(kept.history) <= kept.paid + 1
    assert_all_is_well(kept, life)
    new = [meta for meta in kept.history[len(before.history) :] if meta.outcome not in FREE]
    assert life.agent_runs - runs == (0 if before.verified else len(new))


def of_each_effect(watched: dict[Chapter, CrashPointWatcher], chapter: Chapter) -> list[int]:
    """Leave out what an earlier chapter does too, but not how this one is carried out."""
    earlier = CHAPTERS[: CHAPTERS.index(chapter)]
    known = {effect for each in earlier for _, effect in watched[each].passed}
    return watched[chapter].of_each_effect(known, CrashPoint(BEFORE, "ledger decided"))


def what_goes_wrong(
    numbers: Sequence[int], chapter: Chapter, life: IssueLifecycle, watch: CrashPointWatcher
) -> Wrong:
    wrong = Wrong()
    for number in numbers:
        try:
            see_to_its_end(number, chapter, life)
        except AssertionError as error:
            side, effect = watch.passed[number]
            wrong[f"{side} {effect} ({number})"] = str(error)
    return wrong


def test_a_kill_at_a_point_that_is_drawn_loses_and_doubles_nothing(
    life: IssueLifecycle, watched: dict[Chapter, CrashPointWatcher]
) -> None:
    chapter = random.choice(CHAPTERS)
    number = watched[chapter].drawn()
    assert what_goes_wrong([number], chapter, life, watched[chapter]) == {}


@pytest.mark.deep
@pytest.mark.parametrize("part", range(SLICES))
@IN_EACH_CHAPTER
def test_a_kill_at_any_effect_loses_and_doubles_nothing(
    chapter: Chapter, part: int, life: IssueLifecycle, watched: dict[Chapter, CrashPointWatcher]
) -> None:
    numbers = of_each_effect(watched, chapter)[part::SLICES]
    assert what_goes_wrong(numbers, chapter, life, watched[chapter]) == {}


@pytest.mark.deep
@pytest.mark.parametrize("part", range(DEEP_SLICES))
@IN_EACH_CHAPTER
def test_a_kill_anywhere_loses_and_doubles_nothing(
    chapter: Chapter, part: int, life: IssueLifecycle, watched: dict[Chapter, CrashPointWatcher]
) -> None:
    numbers = watched[chapter].different()[part::DEEP_SLICES]
    assert what_goes_wrong(numbers, chapter, life, watched[chapter]) == {}


def test_every_effect_has_its_kill(watched: dict[Chapter, CrashPointWatcher]) -> None:
    killed = {
        watched[chapter].passed[number].effect
        for chapter in CHAPTERS
        for number in of_each_effect(watched, chapter)
    }
    assert killed == {
        watch.passed[number].effect for watch in watched.values() for number in watch.different()
    }


def test_every_kind_of_effect_is_among_the_points(
    watched: dict[Chapter, CrashPointWatcher],
) -> None:
    passed = {point for watch in watched.values() for point in watch.passed}
    effects = {effect for _, effect in passed}
    assert {CrashPoint(side, effect) for side in (BEFORE, AFTER) for effect in effects} == passed
    issue, pulls = f"/repos/{NAME}/issues/1", f"/repos/{NAME}/pulls"
    assert effects >= {
        *("ledger authorised", "ledger attempt_started", "ledger attempt_completed"),
        *("ledger decided", "ledger published", "ledger escalated", "ledger status_written"),
        *("git fetch", "git reset", "git commit-tree", "git push", "agent"),
        *(f"POST {pulls}", f"POST {issue}/comments", f"POST {issue}/labels"),
        f"DELETE {issue}/labels/mulligan:running",
    }


@pytest.mark.deep
@pytest.mark.parametrize("further", [8, 3])
def test_restarts_that_are_killed_too_come_to_an_end(further: int, life: IssueLifecycle) -> None:
    """Each restart gets some points further than the one before."""
    life.begin(SECOND.after, SECOND.mood)
    life.here.configure(limits={"interruptions": 1000})
    fatal, code = 1, KILLED
    while code == KILLED:
        code, fatal = life.make_pass(CrashPointWatcher(fatal=fatal)), fatal + further
    kept = restart(life)
    assert (kept.status.stage, kept.paid) == (Stage.REVIEW, 2)
    assert fatal > 20
    assert_all_is_well(kept, life)


@pytest.mark.deep
def test_an_issue_that_kills_mulligan_every_time_reaches_a_person(life: IssueLifecycle) -> None:
    life.begin(FIRST.after, FIRST.mood)
    deaths = 0
    while life.make_pass(CrashPointWatcher(fatal=CrashPoint(BEFORE, "agent"))) == KILLED:
        deaths += 1
    kept = books(life)
    assert kept.status.stage is Stage.HITL
    assert {meta.outcome for meta in kept.history} == {Outcome.INTERRUPTED}
    # Three deaths cost nothing, the next three one attempt each.
    assert deaths == len(kept.history) == life.agent_runs == 6


OWNING = {f"git {word}" for word in ("add", "write-tree", "commit-tree", "push")}
"""What it takes to own the repository during a pass, and to release it (OWNER-1)."""


def test_an_issue_at_rest_is_left_alone(life: IssueLifecycle) -> None:
    life.begin(SECOND.after, SECOND.mood)
    kept, runs = restart(life), life.agent_runs
    watch = CrashPointWatcher()
    assert life.make_pass(watch) == 0
    assert {effect for _, effect in watch.passed} == {"git fetch"} | OWNING
    assert (books(life), life.agent_runs) == (kept, runs)
