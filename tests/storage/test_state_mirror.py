"""What a worker writes on the state ref: only what lasts, only where it may, and nothing else's."""

import time
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from mulligan.domain.errors import StandsBackError
from mulligan.domain.events import (
    AgentStarted,
    AttemptCompleted,
    AttemptStarted,
    Authorised,
    Event,
    IssueSeen,
    StoodDown,
)
from mulligan.domain.issue import IssueRef, RepositoryFacts
from mulligan.domain.result import CheckKind, CheckResult
from mulligan.git.repository import Remote
from mulligan.implement.ports import NoOwners
from mulligan.storage.git_ref import (
    MAX_ISSUE_BYTES,
    RESOLVED_RETENTION,
    STATE_REF,
    StoredLease,
    open_state_ref,
    write_lines,
)
from mulligan.storage.memory import MemoryLeases, MemoryLedger
from mulligan.storage.state_mirror import StateMirror
from mulligan.text.redact import Redactor
from world.ledgers import START, completed
from world.repositories import git, make_remote
from world.trackers import FrozenClock
from world.workers import PATH

REF, OTHER, THIRD = (IssueRef("octo/one", number) for number in (1, 12, 13))
AUTHORISED = Authorised(act="labeled:7", actor="ada", act_at=START)
HOST = "build-7.example:4711"
SECRET = "token-of-the-bot"


class Elsewhere(NoOwners):
    """Another installation owns every repository."""

    def require(self, repository: str, *, fresh: bool = True) -> None:
        raise StandsBackError(repository)


@dataclass
class Here:
    """A worker with a ledger, and the remote that it may mirror it on."""

    bare: Path
    ledger: MemoryLedger
    clock: FrozenClock
    is_private: bool = True
    may_be_public: bool = False
    owners: NoOwners = field(default_factory=NoOwners)

    def mirror(self) -> StateMirror:
        facts = RepositoryFacts("octo/one", "", "main", is_private=self.is_private)
        return StateMirror(
            lambda _: open_state_ref(PATH, lambda: Remote(str(self.bare))),
            lambda _: facts,
            Redactor((SECRET,)),
            may_be_public=self.may_be_public,
            gather=0.1,
        )

    def record(self, *events: Event, ref: IssueRef = REF) -> None:
        for event in events:
            self.ledger.append(ref, event)

    def write(self) -> None:
        """Run a worker that begins and ends."""
        with self.mirror().running(self.ledger, self.owners, self.clock):
            pass

    def stored(self) -> dict[str, str]:
        """Give the files of the ref."""
        if not git(self.bare, "for-each-ref", STATE_REF):
            return {}
        names = git(self.bare, "ls-tree", "-r", "--name-only", STATE_REF).splitlines()
        return {name: git(self.bare, "cat-file", "blob", f"{STATE_REF}:{name}") for name in names}


@pytest.fixture
def here(tmp_path: Path) -> Here:
    clock = FrozenClock()
    ledger = MemoryLedger(clock, MemoryLeases(clock))
    return Here(make_remote(tmp_path / "bare.git", {}), ledger, clock)


def started(number: int = 1) -> AttemptStarted:
    return AttemptStarted(attempt=number, number=number, worker=HOST)


def test_the_ref_has_the_events_of_open_issues_without_hosts_and_secrets(here: Here) -> None:
    meta = completed(REF, 1).meta.model_copy(update={"worker": HOST, "error": f"no {SECRET}"})
    here.record(IssueSeen(title="Mend it"), AUTHORISED, started(), AttemptCompleted(meta=meta))
    here.record(IssueSeen(title="Done"), AUTHORISED, StoodDown(reason="skip"), ref=OTHER)
    here.write()
    assert set(here.stored()) == {"octo/one/1.jsonl", "leases.json"}
    text = here.stored()["octo/one/1.jsonl"]
    assert (HOST in text, SECRET in text, '"attempt_completed"' in text) == (False, False, True)
    found = here.mirror().attempts(REF)
    assert found is not None
    assert [(each.number, each.worker) for each in found] == [(1, "")]
    assert here.mirror().attempts(OTHER) == ()


@pytest.mark.parametrize(
    ("is_private", "may_be_public", "is_written"),
    [(True, False, True), (True, True, True), (False, True, True), (False, False, False)],
)
def test_a_public_repository_is_mirrored_only_by_that_word(
    here: Here,
    capfd: pytest.CaptureFixture[str],
    *,
    is_private: bool,
    may_be_public: bool,
    is_written: bool,
) -> None:
    here.is_private, here.may_be_public = is_private, may_be_public
    here.record(AUTHORISED, started())
    here.write()
    logged = capfd.readouterr()
    assert bool(here.stored()) is is_written
    assert ("mirror: public" in logged.out + logged.err) is not is_written


def test_who_stands_back_writes_nothing_and_says_nothing(
    here: Here, capfd: pytest.CaptureFixture[str]
) -> None:
    here.owners = Elsewhere()
    here.record(AUTHORISED, started())
    here.write()
    logged = capfd.readouterr()
    assert (here.stored(), logged.out + logged.err) == ({}, "")


def test_an_event_that_lasts_is_written_at_once_and_others_with_the_next(here: Here) -> None:
    mirror = here.mirror()
    with mirror.running(here.ledger, here.owners, here.clock):
        for event in (AUTHORISED, started()):
            mirror.on_event(here.ledger.append(REF, event), event)
        limit = time.monotonic() + 20
        while not here.stored() and time.monotonic() < limit:
            time.sleep(0.1)
        assert '"attempt_started"' in here.stored()["octo/one/1.jsonl"]
        tip = git(here.bare, "rev-parse", STATE_REF)
        running = AgentStarted(agent="claude")
        mirror.on_event(here.ledger.append(REF, running), running)
        time.sleep(1)
        assert git(here.bare, "rev-parse", STATE_REF) == tip
        mirror.on_event(here.ledger.append(REF, completed(REF, 1)), completed(REF, 1))
    assert '"agent_started"' in here.stored()["octo/one/1.jsonl"]


def test_what_others_wrote_on_the_ref_stays(here: Here) -> None:
    here.record(AUTHORISED, started())  # the foreign file is no JSON of Mulligan's
    kept = StoredLease(7, "a run")
    with here.mirror().open_ref("octo/one") as ref:
        before = ref.read()
        foreign = {
            OTHER: b"{}\n",
            THIRD: write_lines(here.ledger.events(REF), Redactor()).splitlines(keepends=True)[-1],
        }
        ref.write(replace(before, issues=foreign, leases={OTHER: kept}), before)
    here.write()
    files = {"octo/one/1.jsonl", "octo/one/12.jsonl", "octo/one/13.jsonl", "leases.json"}
    assert set(here.stored()) == files
    assert '"fence": 7' in here.stored()["leases.json"]


def test_a_long_history_keeps_the_records_of_the_last_round(here: Here) -> None:
    check = CheckResult(
        name="tests", kind=CheckKind.TEST, command="make", passed=False, exit_code=1, digest="x"
    )
    long = check.model_copy(update={"long_digest": "FAILED " * (MAX_ISSUE_BYTES // 20)})
    metas = [completed(REF, n).meta.model_copy(update={"checks": (long,)}) for n in range(1, 6)]
    rounds = [meta.model_copy(update={"epoch": 1 + (meta.number > 3)}) for meta in metas]
    here.record(AUTHORISED, *(AttemptCompleted(meta=meta) for meta in rounds))
    here.write()
    found = here.mirror().attempts(REF)
    assert found
    assert [bool(meta.checks[0].long_digest) for meta in found] == [False] * 3 + [True] * 2


def test_a_resolved_issue_is_removed_in_the_end(here: Here) -> None:
    here.record(AUTHORISED, started())
    here.write()
    with here.mirror().open_ref("octo/one") as ref:
        assert ref.read().issues
    here.record(completed(REF, 1), StoodDown(reason="skip"))
    mirror = here.mirror()
    mirror.on_event(here.ledger.status(REF), StoodDown(reason="skip"))
    mirror.write_due(here.ledger, here.owners, here.clock)
    assert "stood_down" in here.stored()["octo/one/1.jsonl"]
    here.clock.time += RESOLVED_RETENTION * 2
    here.record(AUTHORISED, ref=OTHER)
    here.write()
    assert set(here.stored()) == {"octo/one/12.jsonl", "leases.json"}


def test_a_remote_that_is_away_is_said_once_and_written_later(
    here: Here, capfd: pytest.CaptureFixture[str]
) -> None:
    here.record(AUTHORISED, started())
    mirror, away = here.mirror(), here.bare.with_name("away")
    mirror.on_event(here.ledger.status(REF), started())
    here.bare.rename(away)
    for _ in range(3):
        mirror.write_due(here.ledger, here.owners, here.clock)
    away.rename(here.bare)
    mirror.write_due(here.ledger, here.owners, here.clock)
    logged = capfd.readouterr()
    assert (logged.out + logged.err).count("mirror_not_written") == 1
    assert "octo/one/1.jsonl" in here.stored()
