"""Whatever kills Mulligan while a review comes in: it is taken in once, answered once, and done."""

from collections.abc import Generator, Sequence

import pytest

from github_simulator.pulls import LineComment
from mulligan.domain.events import ReviewReceived
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.outcome import FREE
from mulligan.domain.status import Phase
from mulligan.storage.database import open_database
from mulligan.storage.ledger import SqlLedger
from world.crash_points import CrashPointWatcher
from world.ledgers import TickingClock, folded
from world.lifecycles import IssueLifecycle, issue_lifecycle
from world.place import NAME
from world.repositories import branch_head, read_branch

SLICES, DEEP_SLICES = 2, 16
EVERY = 8
"""Which of the points are looked at; `make test-deep` looks at all of them."""
PASSES = 4
CHAPTER = "a review"


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Generator[IssueLifecycle]:
    with issue_lifecycle(tmp_path_factory.mktemp("life")) as made:
        made.set_agent_behaviour("answers")
        assert made.make_pass(attempts=1) == 0, made.said
        (pull,) = made.here.world.pulls_of(NAME)
        note = LineComment("notes.txt", 1, "Please add more")
        made.here.world.review(IssueRef(NAME, pull.number), "wes", "REQUEST_CHANGES", "", [note])
        made.save(CHAPTER)
        yield made


@pytest.fixture(scope="module")
def watched(life: IssueLifecycle) -> CrashPointWatcher:
    """The answer to a review as it goes when nobody is killed."""
    life.begin(CHAPTER, "answers")
    found = CrashPointWatcher(lasting=life.here.directory)
    assert life.make_pass(found, attempts=1) == 0, life.said
    assert_answered(life)
    return found


def rests(life: IssueLifecycle) -> bool:
    with open_database(f"sqlite:///{life.here.directory}/mulligan.db") as database:
        status = SqlLedger(database, TickingClock()).status(life.ref)
    at_rest = status.stage is Stage.REVIEW and status.phase is Phase.IDLE and status.is_shown
    return at_rest and bool(status.handled)


def assert_answered(life: IssueLifecycle) -> None:
    """One review taken in, one more attempt paid, one answer, one pull request."""
    with open_database(f"sqlite:///{life.here.directory}/mulligan.db") as database:
        ledger = SqlLedger(database, TickingClock())
        status, history = ledger.status(life.ref), ledger.history(life.ref)
        assert status == folded(ledger, life.ref)
        events = [each.event for each in ledger.events(life.ref)]
    assert [isinstance(each, ReviewReceived) for each in events].count(True) == 1
    assert [meta.outcome for meta in history if meta.outcome not in FREE] == ["SUCCEEDED"] * 2
    (pull,) = life.here.world.pulls_of(NAME)
    assert pull.pull
    assert pull.state == "open"
    assert branch_head(life.here.bare, life.ref.branch) == history[-1].head_sha
    assert read_branch(life.here.bare, life.ref.branch, "more.txt") == "more"
    assert len([note for note in pull.pull.notes if note.in_reply_to]) == 1
    assert life.here.world.labels_of(life.ref) == ["mulligan:review"]


def what_goes_wrong(
    numbers: Sequence[int], life: IssueLifecycle, watch: CrashPointWatcher
) -> dict[str, str]:
    wrong = dict[str, str]()
    for number in numbers:
        life.begin(CHAPTER, "answers")
        assert life.make_pass(CrashPointWatcher(fatal=number)) == -9, life.said
        try:
            for _ in range(PASSES):
                assert life.make_pass() == 0, life.said
                if rests(life):
                    break
            assert_answered(life)
        except AssertionError as error:
            side, effect = watch.passed[number]
            wrong[f"{side} {effect} ({number})"] = str(error)
    return wrong


@pytest.mark.deep
@pytest.mark.parametrize("part", range(SLICES))
def test_a_kill_while_a_review_comes_in_loses_and_doubles_nothing(
    part: int, life: IssueLifecycle, watched: CrashPointWatcher
) -> None:
    numbers = watched.different()[part * EVERY :: EVERY * SLICES]
    assert what_goes_wrong(numbers, life, watched) == {}


@pytest.mark.deep
@pytest.mark.parametrize("part", range(DEEP_SLICES))
def test_a_kill_anywhere_in_a_review_loses_and_doubles_nothing(
    part: int, life: IssueLifecycle, watched: CrashPointWatcher
) -> None:
    numbers = watched.different()[part::DEEP_SLICES]
    assert what_goes_wrong(numbers, life, watched) == {}
