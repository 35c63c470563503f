"""Killed before or after anything while commands come in: each is carried out, and shows, once."""

from collections.abc import Generator

import pytest

from mulligan.domain.events import Authorised, CommandReceived, Event, HumanResponded, Resolved
from mulligan.domain.issue import Stage
from mulligan.storage.database import open_database
from mulligan.storage.ledger import SqlLedger
from world.crash_points import AFTER, BEFORE, CrashPoint, CrashPointWatcher
from world.ledgers import TickingClock, folded
from world.lifecycles import IssueLifecycle, issue_lifecycle
from world.place import MAINTAINER

pytestmark = pytest.mark.deep

KILLED = -9
DEEP_SLICES = 8
TALK, BEGIN = "three commands", "a retry"
WORDS = ("/mulligan status", "/mulligan rettry", "/mulligan skip not worth it")


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Generator[IssueLifecycle]:
    with issue_lifecycle(tmp_path_factory.mktemp("life")) as made:
        made.save("the label")
        made.begin("the label", "knows")
        assert made.make_pass() == 0, made.said
        made.save("review")
        for words in WORDS:
            made.here.world.comment(made.ref, words, MAINTAINER)
        made.save(TALK)
        made.begin("review", "knows")
        made.here.world.comment(made.ref, "/mulligan retry", MAINTAINER)
        made.save(BEGIN)
        yield made


@pytest.fixture(scope="module")
def watched(life: IssueLifecycle) -> dict[str, CrashPointWatcher]:
    """Each chapter as it goes when nobody is killed."""
    found = dict[str, CrashPointWatcher]()
    for chapter in (TALK, BEGIN):
        life.begin(chapter, "knows")
        found[chapter] = CrashPointWatcher(lasting=life.here.directory)
        assert life.make_pass(found[chapter]) == 0, life.said
    return found


def events(life: IssueLifecycle) -> list[Event]:
    with open_database(f"sqlite:///{life.here.directory}/mulligan.db") as database:
        ledger = SqlLedger(database, TickingClock())
        assert ledger.status(life.ref) == folded(ledger, life.ref)
        return [recorded.event for recorded in ledger.events(life.ref)]


def keys(found: list[Event], kind: type[CommandReceived | HumanResponded]) -> list[str]:
    return [event.key for event in found if isinstance(event, kind)]


def assert_each_was_answered_once(life: IssueLifecycle, commands: int) -> None:
    found = events(life)
    received, responded = keys(found, CommandReceived), keys(found, HumanResponded)
    assert received == responded
    assert len(set(responded)) == commands


def assert_all_was_said_once(life: IssueLifecycle) -> None:
    assert_each_was_answered_once(life, 3)
    replies = [text for text in life.here.comments(life.ref) if "<!-- mulligan:reply" in text]
    assert len(replies) == 2
    (resolved,) = [event for event in events(life) if isinstance(event, Resolved)]
    assert resolved.reason == f"{MAINTAINER} skipped it: not worth it"
    assert life.here.world.labels_of(life.ref) == []


def assert_one_epoch_was_opened(life: IssueLifecycle) -> None:
    assert_each_was_answered_once(life, 1)
    assert len([event for event in events(life) if isinstance(event, Authorised)]) == 2
    assert life.here.world.labels_of(life.ref) == [f"mulligan:{Stage.REVIEW}"]


def assert_killed_commands_are_answered_once(life: IssueLifecycle, number: int) -> None:
    life.begin(TALK, "knows")
    assert life.make_pass(CrashPointWatcher(fatal=number)) == KILLED, life.said
    assert life.make_pass() == 0, life.said
    assert_all_was_said_once(life)


def assert_a_killed_retry_opens_one_epoch(life: IssueLifecycle, number: int) -> None:
    life.begin(BEGIN, "knows")
    assert life.make_pass(CrashPointWatcher(fatal=number)) == KILLED, life.said
    assert life.make_pass() == 0, life.said
    assert_one_epoch_was_opened(life)


def opened(watch: CrashPointWatcher) -> int:
    """Number the point after which the epoch is open; the rest is as after any label."""
    return watch.passed.index(CrashPoint(AFTER, "ledger authorised")) + 2


def test_a_kill_at_a_point_that_is_drawn_doubles_no_command(
    life: IssueLifecycle, watched: dict[str, CrashPointWatcher]
) -> None:
    assert_killed_commands_are_answered_once(life, watched[TALK].drawn())
    until = CrashPoint(AFTER, "ledger authorised")
    assert_a_killed_retry_opens_one_epoch(life, watched[BEGIN].drawn(until=until))


def test_commands_that_talk_are_answered_once(
    life: IssueLifecycle, watched: dict[str, CrashPointWatcher]
) -> None:
    for number in watched[TALK].of_each_effect():
        assert_killed_commands_are_answered_once(life, number)


def test_a_retry_opens_one_epoch(
    life: IssueLifecycle, watched: dict[str, CrashPointWatcher]
) -> None:
    known = {effect for _, effect in watched[TALK].passed}
    watch = watched[BEGIN]
    for number in watch.of_each_effect(known, CrashPoint(BEFORE, "ledger command_received")):
        if number <= opened(watch):
            assert_a_killed_retry_opens_one_epoch(life, number)


@pytest.mark.parametrize("part", range(DEEP_SLICES))
def test_commands_are_answered_once_wherever_mulligan_is_killed(
    part: int, life: IssueLifecycle, watched: dict[str, CrashPointWatcher]
) -> None:
    for number in watched[TALK].different()[part::DEEP_SLICES]:
        assert_killed_commands_are_answered_once(life, number)
    for number in watched[BEGIN].different()[part::DEEP_SLICES]:
        if number <= opened(watched[BEGIN]):
            assert_a_killed_retry_opens_one_epoch(life, number)


def test_every_effect_of_a_command_is_among_the_points(
    watched: dict[str, CrashPointWatcher],
) -> None:
    effects = {effect for watch in watched.values() for _, effect in watch.passed}
    assert effects >= {"ledger command_received", "ledger human_responded", "ledger resolved"}
    assert any(effect.endswith("/reactions") for effect in effects)
