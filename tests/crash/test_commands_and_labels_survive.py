"""Killed around what people set off, each thing on its own: it is done, said and paid for once."""

import random
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pydantic import JsonValue

from mulligan.domain.events import Authorised, Event, HumanResponded
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.outcome import FREE
from mulligan.domain.result import WorkerResultMeta
from mulligan.domain.status import IssueStatus, Phase
from mulligan.storage.database import open_database
from mulligan.storage.ledger import SqlLedger
from world.crash_points import AFTER, BEFORE, CrashPoint, CrashPointWatcher
from world.ledgers import TickingClock, folded
from world.lifecycles import CHECK, IssueLifecycle, issue_lifecycle
from world.place import MAINTAINER, NAME
from world.repositories import branch_head, commit_to, git

KILLED, PASSES, DEEP_SLICES = -9, 4, 4


@dataclass(frozen=True)
class Books:
    """What the ledger holds of the issue in the end."""

    status: IssueStatus
    history: tuple[WorkerResultMeta, ...]
    events: tuple[Event, ...]

    @property
    def paid(self) -> list[str]:
        return [meta.outcome for meta in self.history if meta.outcome not in FREE]

    def count(self, kind: str) -> int:
        return [each.kind for each in self.events].count(kind)


class Speaking(CrashPointWatcher):
    """Says something on the issue as soon as an agent is about to work."""

    def __init__(self, life: IssueLifecycle, fatal: int | None, lasting: Path | None) -> None:
        super().__init__(fatal, lasting)
        self.life, self.spoken = life, False

    def reach(self, side: str, effect: str) -> str:
        if effect == "agent" and side == BEFORE and not self.spoken:
            self.spoken = True
            self.life.here.world.comment(self.life.ref, "/mulligan fix: write two", MAINTAINER)
        return super().reach(side, effect)


@dataclass(frozen=True)
class Chapter:
    """What happens, at which effects it is killed in every run, and what has to come of it."""

    prepare: Callable[[IssueLifecycle], None]
    effects: tuple[str, ...]
    check: Callable[[Books, IssueLifecycle], None]
    mood: str = "knows"
    speaks: bool = False
    policy: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])


def pull_of(life: IssueLifecycle) -> IssueRef:
    (pull,) = life.here.world.pulls_of(NAME)
    return IssueRef(NAME, pull.number)


def in_review(life: IssueLifecycle) -> None:
    assert life.make_pass(attempts=1) == 0, life.said


def in_conflict(life: IssueLifecycle) -> None:
    in_review(life)
    commit_to(life.here.bare, {"notes.txt": "three\n"})


def assert_rebuilt(kept: Books, life: IssueLifecycle) -> None:
    assert (kept.count("conflicted"), kept.paid) == (1, ["SUCCEEDED"] * 2)
    assert branch_head(life.here.bare, life.ref.branch) == kept.history[-1].head_sha
    assert life.here.world.labels_of(life.ref) == ["mulligan:review"]
    assert len(life.here.world.pulls_of(NAME)) == 1


def told_to_pause(life: IssueLifecycle) -> None:
    life.here.world.comment(life.ref, "/mulligan pause", MAINTAINER)


def assert_paused(kept: Books, life: IssueLifecycle) -> None:
    assert kept.status.paused_by == MAINTAINER
    assert (kept.count("human_responded"), kept.history) == (1, ())
    assert "mulligan" in life.here.world.labels_of(life.ref)


def told_to_resume(life: IssueLifecycle) -> None:
    told_to_pause(life)
    in_review(life)
    life.here.world.comment(life.ref, "/mulligan resume", MAINTAINER)


def assert_resumed(kept: Books, life: IssueLifecycle) -> None:
    assert (kept.count("human_responded"), kept.paid) == (2, ["SUCCEEDED"])
    assert kept.status.paused_by == ""
    assert life.here.world.labels_of(life.ref) == ["mulligan:review"]


def assert_fixed(kept: Books, life: IssueLifecycle) -> None:
    """The words opened one epoch, were answered once, and no attempt of it is paid twice."""
    opened = [each for each in kept.events if isinstance(each, Authorised)]
    assert [each.guidance for each in opened] == ["", "write two"]
    assert len({each.key for each in kept.events if isinstance(each, HumanResponded)}) == 1
    assert kept.count("human_responded") == 1
    assert kept.status.stage is Stage.REVIEW
    assert branch_head(life.here.bare, life.ref.branch) == kept.history[-1].head_sha


def assert_work_was_pushed(kept: Books, life: IssueLifecycle) -> None:
    assert kept.status.stage is Stage.HITL
    number = kept.history[-1].number
    shown = f"refs/mulligan/attempts/{life.ref.number}-{number}"
    assert git(life.here.bare, "rev-parse", shown) == kept.history[-1].head_sha
    pleas = [text for text in life.here.comments(life.ref) if "<!-- mulligan:hitl" in text]
    assert len(pleas) == 1
    assert shown in pleas[0]


def reviewed_as_a_whole(life: IssueLifecycle) -> None:
    in_review(life)
    life.here.world.review(pull_of(life), "wes", "REQUEST_CHANGES", "Please add more")


def assert_answered_on_the_pull_request(kept: Books, life: IssueLifecycle) -> None:
    said = life.here.comments(pull_of(life))
    assert len([text for text in said if "<!-- mulligan:answer" in text]) == 1
    assert (kept.count("review_received"), kept.paid) == (1, ["SUCCEEDED"] * 2)


def edited_by_a_stranger(life: IssueLifecycle) -> None:
    life.here.world.edit(life.ref, "zoe", body="Do something else.")


def assert_the_label_is_asked_for_once(kept: Books, life: IssueLifecycle) -> None:
    said = life.here.comments(life.ref)
    assert len([text for text in said if "<!-- mulligan:label" in text]) == 1
    assert kept.history == ()


def waiting_for_another(life: IssueLifecycle) -> None:
    other = life.here.world.open_issue(NAME, "First this", "Please.", "zoe")
    life.here.world.edit(life.ref, MAINTAINER, body=f"Depends on #{other.number}")


def assert_held_once(kept: Books, life: IssueLifecycle) -> None:
    (said,) = life.here.comments(life.ref)
    assert "It waits until `#2` is closed." in said
    assert (kept.count("waiting"), kept.history) == (1, ())
    assert life.here.world.labels_of(life.ref) == ["mulligan"]


def nothing(_life: IssueLifecycle) -> None:
    """Begin with the label."""


CHAPTERS = {
    "conflict": Chapter(
        in_conflict,
        ("ledger conflicted", "ledger attempt_started", "git push"),
        assert_rebuilt,
        policy={"on_conflict": "rebuild"},
    ),
    "pause": Chapter(
        told_to_pause, ("ledger command_received", "ledger human_responded"), assert_paused
    ),
    "resume": Chapter(
        told_to_resume, ("ledger human_responded", "ledger attempt_started"), assert_resumed
    ),
    "fix": Chapter(
        nothing,
        ("agent", "ledger attempt_completed", "ledger published"),
        assert_fixed,
        speaks=True,
    ),
    "push_work": Chapter(
        nothing,
        ("git push", "ledger escalated"),
        assert_work_was_pushed,
        mood="fails",
        policy={"max_issue_attempts": 1, "escalation": {"push_work": True}},
    ),
    "answer": Chapter(
        reviewed_as_a_whole,
        ("ledger review_received", f"POST /repos/{NAME}/issues/2/comments"),
        assert_answered_on_the_pull_request,
        mood="answers",
    ),
    "label": Chapter(
        edited_by_a_stranger,
        (f"POST /repos/{NAME}/issues/1/comments", "ledger label_requested"),
        assert_the_label_is_asked_for_once,
    ),
    "hold": Chapter(
        waiting_for_another,
        ("ledger waiting", f"POST /repos/{NAME}/issues/1/comments"),
        assert_held_once,
    ),
}


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Generator[IssueLifecycle]:
    with issue_lifecycle(tmp_path_factory.mktemp("life")) as made:
        made.save("the label")
        yield made


def begin(chapter: Chapter, life: IssueLifecycle, saved: str) -> None:
    checks: list[JsonValue] = [{"name": "two", "run": CHECK}]
    policy: dict[str, JsonValue] = {"checks": checks, "review": {"settle": "0s"}, **chapter.policy}
    life.here.configure(
        repositories=[{"name": NAME, "clone_url": str(life.here.bare), "policy": policy}]
    )
    life.begin(saved, chapter.mood)


def make_pass(
    chapter: Chapter, life: IssueLifecycle, fatal: int | None = None
) -> CrashPointWatcher:
    """Make the pass of a chapter; it is killed at a number, or else all of it is taken down."""
    lasting = life.here.directory if fatal is None else None
    watch = Speaking(life, fatal, lasting) if chapter.speaks else CrashPointWatcher(fatal, lasting)
    assert life.make_pass(watch) == (0 if fatal is None else KILLED), life.said
    return watch


def rest(life: IssueLifecycle) -> Books:
    """Make passes until the issue rests."""
    for _ in range(PASSES):
        assert life.make_pass() == 0, life.said
        with open_database(f"sqlite:///{life.here.directory}/mulligan.db") as database:
            ledger = SqlLedger(database, TickingClock())
            status, events = ledger.status(life.ref), ledger.events(life.ref)
            assert status == folded(ledger, life.ref)
            kept = Books(status, ledger.history(life.ref), tuple(each.event for each in events))
        shown = status.is_shown or not status.epoch
        if status.phase is Phase.IDLE and shown and not status.pending:
            return kept
    raise AssertionError(life.said)


def what_goes_wrong(
    name: str, life: IssueLifecycle, wanted: Callable[[CrashPointWatcher], list[int]]
) -> dict[str, str]:
    chapter, saved, wrong = CHAPTERS[name], f"before {name}", dict[str, str]()
    begin(chapter, life, "the label")
    chapter.prepare(life)
    life.save(saved)
    begin(chapter, life, saved)
    watch = make_pass(chapter, life)
    chapter.check(rest(life), life)
    for number in wanted(watch):
        begin(chapter, life, saved)
        make_pass(chapter, life, number)
        try:
            chapter.check(rest(life), life)
        except AssertionError as error:
            side, effect = watch.passed[number]
            wrong[f"{side} {effect} ({number})"] = str(error)
    return wrong


def first_of(effects: tuple[str, ...], watch: CrashPointWatcher) -> list[int]:
    """Number one point of each effect; before and after take turns."""
    sides = (BEFORE, AFTER)
    return [
        watch.passed.index(CrashPoint(sides[turn % 2], effect))
        for turn, effect in enumerate(effects)
    ]


def test_a_kill_around_one_of_these_doubles_nothing(life: IssueLifecycle) -> None:
    name = random.choice([*CHAPTERS])
    effects = CHAPTERS[name].effects
    wrong = what_goes_wrong(name, life, lambda watch: [random.choice(first_of(effects, watch))])
    assert wrong == {}, name


@pytest.mark.deep
@pytest.mark.parametrize("name", CHAPTERS)
def test_a_kill_around_what_people_set_off_doubles_nothing(name: str, life: IssueLifecycle) -> None:
    effects = CHAPTERS[name].effects
    assert what_goes_wrong(name, life, lambda watch: first_of(effects, watch)) == {}


@pytest.mark.deep
@pytest.mark.parametrize("name", CHAPTERS)
@pytest.mark.parametrize("part", range(DEEP_SLICES))
def test_a_kill_anywhere_around_it_doubles_nothing(
    part: int, name: str, life: IssueLifecycle
) -> None:
    speaks = CHAPTERS[name].speaks

    def wanted(watch: CrashPointWatcher) -> list[int]:
        """Leave out what comes before anything was said."""
        spoken = watch.passed.index(CrashPoint(BEFORE, "agent")) if speaks else -1
        return [number for number in watch.different() if number > spoken][part::DEEP_SLICES]

    assert what_goes_wrong(name, life, wanted) == {}
