"""Whatever kills Mulligan around a draft: there is one, it says what holds, and nobody waits."""

from collections.abc import Generator
from dataclasses import dataclass

import pytest
from pydantic import JsonValue

from mulligan.domain.issue import Stage
from mulligan.domain.outcome import FREE
from mulligan.domain.result import WorkerResultMeta
from mulligan.domain.status import IssueStatus, Phase
from mulligan.storage.database import open_database
from mulligan.storage.ledger import SqlLedger
from world.crash_points import AFTER, CrashPoint, CrashPointWatcher
from world.ledgers import TickingClock, folded
from world.lifecycles import IssueLifecycle, issue_lifecycle
from world.place import NAME
from world.repositories import branch_head

PASSES = 4
DEEP_SLICES = 6
EVERY = 8
"""Which of the points after the attempt are looked at; `make test-deep` looks at all of them."""
OPENING, ENDING = "the label", "a draft"
MOODS = {OPENING: "fails", ENDING: "knows"}
POLICY: dict[str, JsonValue] = {
    "max_issue_attempts": 1,
    "escalation": {"draft_pr": True},
    "review": {"settle": "0s"},
}


@dataclass(frozen=True)
class Books:
    """What the ledger holds of the issue."""

    status: IssueStatus
    history: tuple[WorkerResultMeta, ...]

    @property
    def rests(self) -> bool:
        return self.status.phase is Phase.IDLE and self.status.is_shown


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Generator[IssueLifecycle]:
    with issue_lifecycle(tmp_path_factory.mktemp("life"), **POLICY) as made:
        made.save(OPENING)
        made.set_agent_behaviour("fails")
        assert made.make_pass() == 0, made.said
        made.here.world.comment(made.ref, "/mulligan retry", "ada")
        made.save(ENDING)
        yield made


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


def assert_one_draft(kept: Books, life: IssueLifecycle) -> None:
    (pull,) = life.here.world.pulls_of(NAME)
    status, plea = life.here.comments(life.ref)
    assert pull.pull
    assert (pull.pull.draft, pull.title) == (True, "Not verified: Mend it")
    assert kept.status.pull.draft_of == kept.history[-1].number
    assert kept.status.pull.number == pull.number
    assert "unverified work is in a draft pull request" in status
    assert "The work is in a draft pull request" in plea
    assert kept.status.stage is Stage.HITL


def assert_it_became_ready(kept: Books, life: IssueLifecycle) -> None:
    (pull,) = life.here.world.pulls_of(NAME)
    assert pull.pull
    assert (pull.pull.draft, pull.title) == (False, "Mend it")
    assert (kept.status.pull.draft_of, kept.status.pull.left_draft) == (0, "")
    assert kept.status.stage is Stage.REVIEW
    assert len(life.here.comments(life.ref)) == 3


def assert_all_is_well(chapter: str, kept: Books, life: IssueLifecycle) -> None:
    paid = [meta for meta in kept.history if meta.outcome not in FREE]
    assert len(paid) == (1 if chapter is OPENING else 2)
    assert branch_head(life.here.bare, life.ref.branch) == kept.history[-1].head_sha
    check = assert_one_draft if chapter is OPENING else assert_it_became_ready
    check(kept, life)


def what_goes_wrong(chapter: str, life: IssueLifecycle, wanted: slice) -> dict[str, str]:
    """Kill the chapter at some of the points after its attempt, and look at what comes of it."""
    mood, wrong = MOODS[chapter], dict[str, str]()
    life.begin(chapter, mood)
    watched = CrashPointWatcher(lasting=life.here.directory)
    assert life.make_pass(watched) == 0, life.said
    ended = watched.passed.index(CrashPoint(AFTER, "ledger attempt_completed"))
    for number in [each for each in watched.different() if each > ended][wanted]:
        life.begin(chapter, mood)
        assert life.make_pass(CrashPointWatcher(fatal=number)) == -9, life.said
        try:
            assert_all_is_well(chapter, restart(life), life)
        except AssertionError as error:
            side, effect = watched.passed[number]
            wrong[f"{side} {effect} ({number})"] = str(error)
    return wrong


@pytest.mark.deep
@pytest.mark.parametrize("chapter", MOODS)
def test_a_kill_around_a_draft_loses_and_doubles_nothing(
    chapter: str, life: IssueLifecycle
) -> None:
    assert what_goes_wrong(chapter, life, slice(0, None, EVERY)) == {}


@pytest.mark.deep
@pytest.mark.parametrize("chapter", MOODS)
@pytest.mark.parametrize("part", range(DEEP_SLICES))
def test_a_kill_anywhere_around_a_draft_loses_and_doubles_nothing(
    part: int, chapter: str, life: IssueLifecycle
) -> None:
    assert what_goes_wrong(chapter, life, slice(part, None, DEEP_SLICES)) == {}
