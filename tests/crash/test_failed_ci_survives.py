"""Killed while red checks on GitHub, or the end of the pull request, are taken in: each once."""

from collections.abc import Generator

import pytest

from github_simulator.records import CheckOutput
from mulligan.domain.events import CiFailed, Event, Resolved
from mulligan.domain.issue import IssueRef
from mulligan.domain.outcome import FREE
from mulligan.storage.database import open_database
from mulligan.storage.ledger import SqlLedger
from world.crash_points import AFTER, BEFORE, CrashPoint, CrashPointWatcher
from world.ledgers import TickingClock, folded
from world.lifecycles import IssueLifecycle, issue_lifecycle
from world.place import MAINTAINER, NAME
from world.repositories import branch_head, read_branch

RED, MERGED, KILLED, PASSES = "red on GitHub", "merged", -9, 4
LOG = "E   AssertionError: add more\n"


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Generator[IssueLifecycle]:
    with issue_lifecycle(tmp_path_factory.mktemp("life")) as made:
        (served,) = made.here.operator().repositories
        policy = {**(served.policy or {}), "watch_ci": True}
        made.here.configure(
            repositories=[{"name": NAME, "clone_url": str(made.here.bare), "policy": policy}]
        )
        made.set_agent_behaviour("answers")
        assert made.make_pass(attempts=1) == 0, made.said
        made.save("review")
        head = branch_head(made.here.bare, made.ref.branch) or ""
        made.here.world.runs.check((NAME, head), "tests", "failure", CheckOutput(LOG))
        made.save(RED)
        made.begin("review", "answers")
        (pull,) = made.here.world.pulls_of(NAME)
        made.here.world.merge(IssueRef(NAME, pull.number), MAINTAINER)
        made.save(MERGED)
        yield made


@pytest.fixture(scope="module")
def watched(life: IssueLifecycle) -> dict[str, CrashPointWatcher]:
    """Each chapter as it goes when nobody is killed."""
    found = dict[str, CrashPointWatcher]()
    for chapter in (RED, MERGED):
        life.begin(chapter, "answers")
        found[chapter] = CrashPointWatcher(lasting=life.here.directory)
        assert life.make_pass(found[chapter], attempts=1) == 0, life.said
    return found


def events(life: IssueLifecycle) -> list[Event]:
    with open_database(f"sqlite:///{life.here.directory}/mulligan.db") as database:
        ledger = SqlLedger(database, TickingClock())
        assert ledger.status(life.ref) == folded(ledger, life.ref)
        return [recorded.event for recorded in ledger.events(life.ref)]


def assert_mended_once(life: IssueLifecycle) -> None:
    """One failure taken in, one more attempt paid, one pull request with what was asked for."""
    with open_database(f"sqlite:///{life.here.directory}/mulligan.db") as database:
        history = SqlLedger(database, TickingClock()).history(life.ref)
    assert [isinstance(each, CiFailed) for each in events(life)].count(True) == 1
    assert [meta.outcome for meta in history if meta.outcome not in FREE] == ["SUCCEEDED"] * 2
    assert len(life.here.world.pulls_of(NAME)) == 1
    assert branch_head(life.here.bare, life.ref.branch) == history[-1].head_sha
    assert read_branch(life.here.bare, life.ref.branch, "more.txt") == "more"
    assert life.here.world.labels_of(life.ref) == ["mulligan:review"]


def assert_resolved_once(life: IssueLifecycle) -> None:
    (resolved,) = [each for each in events(life) if isinstance(each, Resolved)]
    assert resolved.reason == "Its pull request was merged."
    assert life.here.world.labels_of(life.ref) == []
    assert branch_head(life.here.bare, life.ref.branch) is None
    assert len(life.here.comments(life.ref)) == 1


def around_the_start(watch: CrashPointWatcher) -> list[int]:
    """Number the points up to where the attempt starts; the rest is as after a review."""
    started = watch.passed.index(CrashPoint(AFTER, "ledger attempt_started"))
    return [number for number in watch.different() if number <= started]


def assert_a_kill_takes_them_in_once(life: IssueLifecycle, number: int) -> None:
    life.begin(RED, "answers")
    assert life.make_pass(CrashPointWatcher(fatal=number)) == KILLED, life.said
    for _ in range(PASSES):
        assert life.make_pass() == 0, life.said
        if life.here.world.labels_of(life.ref) == ["mulligan:review"] and life.agent_runs:
            break
    assert_mended_once(life)


def assert_a_kill_resolves_it_once(life: IssueLifecycle, number: int) -> None:
    life.begin(MERGED, "answers")
    assert life.make_pass(CrashPointWatcher(fatal=number)) == KILLED, life.said
    assert life.make_pass() == 0, life.said
    assert_resolved_once(life)


@pytest.mark.deep
def test_red_checks_are_taken_in_once(
    life: IssueLifecycle, watched: dict[str, CrashPointWatcher]
) -> None:
    for number in around_the_start(watched[RED]):
        assert_a_kill_takes_them_in_once(life, number)


@pytest.mark.deep
def test_the_end_of_a_pull_request_is_taken_in_once(
    life: IssueLifecycle, watched: dict[str, CrashPointWatcher]
) -> None:
    for number in watched[MERGED].different():
        assert_a_kill_resolves_it_once(life, number)


@pytest.mark.deep
def test_what_comes_back_is_among_the_points(watched: dict[str, CrashPointWatcher]) -> None:
    passed = {point for watch in watched.values() for point in watch.passed}
    effects = {"ledger ci_failed", "ledger resolved", "git push"}
    assert passed >= {CrashPoint(side, effect) for side in (BEFORE, AFTER) for effect in effects}
