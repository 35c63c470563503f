"""Runs that share nothing but the ref lose nothing of one another, and never work twice."""

import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from mulligan.domain.command import Verb
from mulligan.domain.errors import LeaseLostError, UnavailableError
from mulligan.domain.events import (
    AttemptStarted,
    Authorised,
    CommandReceived,
    IssueSeen,
    StoodDown,
)
from mulligan.domain.issue import IssueRef, Lease
from mulligan.domain.outcome import Outcome
from mulligan.domain.recorded_effects import CommentsRead, StatusWritten
from mulligan.git.repository import Remote
from mulligan.implement.ports import Ledger
from mulligan.sandbox.cancellation import SHUTDOWN
from mulligan.storage.git_ref import (
    LEASE_TIME,
    RESOLVED_RETENTION,
    RETRY_WAITS,
    STATE_REF,
    RefLedger,
    RefSession,
    open_state_ref,
)
from mulligan.text.redact import Redactor
from world.fake_sleep import FakeSleep
from world.ledgers import START, completed
from world.repositories import git
from world.stores import ref_session, shared_remote
from world.trackers import FrozenClock

REF, OTHER = IssueRef("octo/one", 1), IssueRef("octo/one", 12)
AUTHORISED = Authorised(act="labeled:7", actor="ada", act_at=START)
SECRET = "token-of-the-bot"
DONE = StatusWritten(comment="77")


def started(number: int = 1) -> AttemptStarted:
    return AttemptStarted(attempt=number, number=number, worker="here")


class Runs:
    """Runs of the Action on one repository, and the clock that all of them read."""

    def __init__(self, directory: Path, stack: ExitStack) -> None:
        self.directory = directory
        self.clock = FrozenClock()
        self._stack = stack

    def begin(self, sleep: Callable[[float], None] = time.sleep) -> RefSession:
        return self._stack.enter_context(
            ref_session(self.directory, self.clock, redactor=Redactor((SECRET,)), sleep=sleep)
        )

    def stored(self) -> str:
        """Give all that the ref holds."""
        bare = shared_remote(self.directory)
        names = git(bare, "ls-tree", "-r", "--name-only", STATE_REF).splitlines()
        return "".join(git(bare, "cat-file", "blob", f"{STATE_REF}:{name}") for name in names)


@pytest.fixture
def runs(tmp_path: Path) -> Generator[Runs]:
    with ExitStack() as stack:
        yield Runs(tmp_path, stack)


def take(book: RefSession, worker: str, ref: IssueRef = REF) -> tuple[Lease, Ledger]:
    lease = book.claim(ref, worker)
    assert lease
    return lease, RefLedger(book).with_lease(lease)


def test_what_one_run_recorded_the_next_knows(runs: Runs) -> None:
    first = runs.begin()
    _, ledger = take(first, "one")
    for event in (IssueSeen(title="Mend it"), AUTHORISED, started(), completed(REF, 1)):
        ledger.append(REF, event)
    second = RefLedger(runs.begin())
    assert second.status(REF) == ledger.status(REF)
    assert second.history(REF) == ledger.history(REF)
    assert [each.event for each in second.events(REF)] == [
        each.event for each in ledger.events(REF)
    ]


def test_what_only_tells_a_story_is_pushed_with_the_next_thing_that_lasts(runs: Runs) -> None:
    _, ledger = take(runs.begin(), "one")
    ledger.append(REF, IssueSeen(title="Mend it"))
    assert RefLedger(runs.begin()).status(REF).text.title == ""
    ledger.append(REF, started())
    assert RefLedger(runs.begin()).status(REF).text.title == "Mend it"


def test_runs_on_different_issues_keep_what_the_other_wrote(runs: Runs) -> None:
    one, two = runs.begin(), runs.begin()
    _, mine = take(one, "one", REF)
    _, theirs = take(two, "two", OTHER)
    mine.append(REF, started())
    theirs.append(OTHER, started())
    mine.append(REF, completed(REF, 1))
    theirs.append(OTHER, completed(OTHER, 1))
    last = RefLedger(runs.begin())
    assert [status.issue for status in last.statuses()] == [REF, OTHER]
    assert [len(last.history(ref)) for ref in (REF, OTHER)] == [1, 1]
    # Each has heard of the other meanwhile.
    assert mine.status(OTHER).number == 1


def test_of_two_runs_that_claim_at_once_the_slower_one_stops(runs: Runs) -> None:
    one, two = runs.begin(), runs.begin()
    lease, mine = take(one, "one")
    beaten, theirs = take(two, "two")
    mine.append(REF, started())
    with pytest.raises(LeaseLostError):
        theirs.append(REF, started())
    assert one.holds(lease)
    assert not two.holds(beaten)
    assert not two.renew(beaten)
    # What it has noted of the issue is gone; what the other wrote is there.
    assert [each.event for each in theirs.events(REF)] == [started()]
    assert runs.stored().count("attempt_started") == 1


# Anybody with push access can write to the ref, also while a run works (ACTION-2).

ORDER = CommandReceived(
    key="comment:7", command=Verb.FIX, text="Put EVIL in.", actor="ada", at=START
)
READ = CommentsRead(read_to=9)


def test_a_run_believes_no_event_that_others_add_to_its_issue(runs: Runs) -> None:
    first = runs.begin()
    _, ledger = take(first, "one")
    assert first.confirm(REF, lambda _: "")
    ledger.append(REF, AUTHORISED)
    other = RefLedger(runs.begin())
    for event in (ORDER, READ):
        other.append(REF, event)
    ledger.append(REF, started())
    believed = [READ, AUTHORISED, started()]
    assert [each.event for each in ledger.events(REF)] == believed
    assert "EVIL" not in runs.stored()
    # Of the order, only the comment counts, until it is read.
    assert ledger.comments_read_to(REF.repository) == 6
    ledger.append(REF, READ)
    assert ledger.comments_read_to(REF.repository) == 9


def test_an_issue_of_another_run_stays_as_that_run_writes_it(runs: Runs) -> None:
    first, second = runs.begin(), runs.begin()
    _, ledger = take(first, "one")
    ledger.append(REF, DONE)
    ledger.append(REF, started())
    second.refresh()
    assert not first.is_anothers(REF)
    assert second.is_anothers(REF)
    assert second.confirm(REF, lambda _: "")
    RefLedger(second).append(OTHER, started())
    ledger.append(REF, completed(REF, 1))
    kinds = [each.event.kind for each in RefLedger(runs.begin()).events(REF)]
    assert kinds == ["status_written", "attempt_started", "attempt_completed"]


def test_the_comment_of_a_command_on_the_ref_is_read_again(runs: Runs) -> None:
    """A run may record a command, and end before the status comment confirms it."""
    first = RefLedger(runs.begin())
    for event in (DONE, ORDER, READ):
        first.append(REF, event)
    second = runs.begin()
    assert RefLedger(second).comments_read_to(REF.repository) == 6
    assert not second.confirm(REF, lambda _: "")
    assert RefLedger(second).comments_read_to(REF.repository) == 6


def test_a_claim_is_told_before_the_first_effect(runs: Runs) -> None:
    one, two = runs.begin(), runs.begin()
    lease, _ = take(one, "one")
    assert one.holds(lease)
    assert two.claim(REF, "two") is None
    assert two.holder(REF) == "one"
    one.release(lease)
    assert two.claim(REF, "two")


def test_a_claim_that_nobody_was_told_of_leaves_no_trace(runs: Runs) -> None:
    book = runs.begin()
    lease, _ = take(book, "one")
    book.release(lease)
    assert git(shared_remote(runs.directory), "for-each-ref") == ""


def test_a_run_that_is_not_heard_of_any_more_is_overtaken(runs: Runs) -> None:
    dead, heir = runs.begin(), runs.begin()
    _, ledger = take(dead, "dead")
    ledger.append(REF, started())
    assert heir.claim(REF, "heir") is None
    runs.clock.time += LEASE_TIME
    _, taken = take(heir, "heir")
    taken.append(REF, completed(REF, 1, Outcome.INTERRUPTED))
    with pytest.raises(LeaseLostError):
        ledger.append(REF, completed(REF, 1, Outcome.SUCCEEDED))
    assert [meta.outcome for meta in RefLedger(runs.begin()).history(REF)] == [Outcome.INTERRUPTED]


def test_a_lease_is_prolonged_on_the_ref_when_half_of_it_is_over(runs: Runs) -> None:
    book = runs.begin()
    lease, ledger = take(book, "one")
    ledger.append(REF, started())
    before = runs.stored()
    assert book.renew(lease)
    assert runs.stored() == before
    runs.clock.time += LEASE_TIME / 2
    assert book.renew(lease)
    runs.clock.time += LEASE_TIME - timedelta(seconds=1)
    assert runs.begin().claim(REF, "two") is None


def test_no_history_grows(runs: Runs) -> None:
    _, ledger = take(runs.begin(), "one")
    for number in (1, 2, 3):
        ledger.append(REF, started(number))
    bare = shared_remote(runs.directory)
    assert git(bare, "rev-list", "--count", STATE_REF) == "1"
    assert git(bare, "for-each-ref", "--format=%(refname)") == STATE_REF


def test_the_ref_holds_no_secret(runs: Runs) -> None:
    book = runs.begin()
    RefLedger(book).append(REF, IssueSeen(title=f"a {SECRET}"))
    RefLedger(book).append(REF, started())
    assert "[redacted]" in runs.stored()
    assert SECRET not in runs.stored()


def test_an_issue_that_was_resolved_long_ago_is_dropped(runs: Runs) -> None:
    book = runs.begin()
    RefLedger(book).append(REF, StoodDown(reason="Closed."))
    runs.clock.time += RESOLVED_RETENTION + timedelta(days=1)
    later = runs.begin()
    RefLedger(later).append(OTHER, started())
    assert [status.issue for status in RefLedger(runs.begin()).statuses()] == [OTHER]


@contextmanager
def shut_down() -> Generator[None]:
    SHUTDOWN.set()
    try:
        yield
    finally:
        SHUTDOWN.clear()


def test_what_a_shutdown_cut_short_is_still_written_down(runs: Runs) -> None:
    _, ledger = take(runs.begin(), "one")
    ledger.append(REF, started())
    with shut_down():
        ledger.append(REF, completed(REF, 1, Outcome.INTERRUPTED))
    assert len(RefLedger(runs.begin()).history(REF)) == 1


def test_a_remote_that_is_away_for_a_moment_is_tried_again(runs: Runs, tmp_path: Path) -> None:
    good, away, waits = shared_remote(tmp_path), tmp_path / "away", list[float]()

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == len(RETRY_WAITS):
            away.rename(good)

    book = runs.begin(sleep)
    good.rename(away)
    RefLedger(book).append(REF, DONE)
    assert waits == [*RETRY_WAITS]
    assert RefLedger(runs.begin()).status(REF).effects.status_comment == "77"


def test_a_remote_that_stays_away_is_given_up_after_the_last_wait(
    runs: Runs, tmp_path: Path
) -> None:
    naps = FakeSleep()
    book = runs.begin(naps)
    shared_remote(tmp_path).rename(tmp_path / "away")
    with pytest.raises(UnavailableError):
        RefLedger(book).append(REF, DONE)
    assert naps.taken == [*RETRY_WAITS]


def test_a_push_that_failed_and_happened_counts(runs: Runs, tmp_path: Path) -> None:
    hook = shared_remote(tmp_path) / "hooks" / "post-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nkill -9 $(ps -o ppid= $PPID) $PPID\n")
    hook.chmod(0o755)
    RefLedger(runs.begin()).append(REF, DONE)
    assert RefLedger(runs.begin()).status(REF).effects.status_comment == "77"


def test_a_remote_that_stays_away_is_an_error_in_one_sentence(tmp_path: Path) -> None:
    away = Remote((tmp_path / "no").as_uri())
    with (
        open_state_ref({"PATH": "/usr/bin:/bin"}, lambda: away) as ref,
        pytest.raises(UnavailableError),
    ):
        ref.read()
