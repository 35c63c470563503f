"""Two Mulligans with a state of their own share one login: neither undoes what the other did."""

import signal
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from mulligan.domain.issue import IssueRef
from mulligan.domain.status import IssueStatus
from mulligan.storage.database import open_database
from mulligan.storage.ledger import SqlLedger
from world.fork_server import ForkedProcess
from world.ledgers import TickingClock
from world.place import NAME, MulliganInstallation, mulligan_installation

BOT = "mulligan-bot"
WORK = """
import re, time
number = int(re.search(r"Mend (\\d)", prompt).group(1))
time.sleep({slow} if number % 2 == {mine} else {quick})
if number <= 4:
    pathlib.Path("notes.txt").write_text("two")
"""
"""Something comes of the first four issues only; each side is slow at half of them all."""


@dataclass(frozen=True)
class Two:
    """Two installations that share nothing but their GitHub and their login."""

    one: MulliganInstallation
    other: MulliganInstallation

    @property
    def both(self) -> tuple[MulliganInstallation, MulliganInstallation]:
        return self.one, self.other

    def issues(self) -> list[IssueRef]:
        return [self.one.issue(f"Mend {number}") for number in range(1, 7)]

    def labels(self, ref: IssueRef) -> list[str]:
        return self.one.world.labels_of(ref)

    def holds(self, refs: list[IssueRef]) -> None:
        """Make sure that each issue was handed over once, and is held by one of the two."""
        pulls = [pull.pull.head_ref for pull in self.one.world.pulls_of(NAME) if pull.pull]
        labels = {ref.number: self.labels(ref) for ref in refs}
        assert labels == {
            number: ["mulligan:review" if number <= 4 else "mulligan:hitl"]
            for number in range(1, 7)
        }
        assert sorted(pulls) == [ref.branch for ref in refs[:4]]
        for ref in refs:
            said = [text for text in self.one.comments(ref) if "<!-- mulligan:hitl" in text]
            assert len(said) == (0 if ref.number <= 4 else 1)
            stands = [status_of(here, ref) for here in self.both]
            assert [each.elsewhere for each in stands].count(True) == 1, stands


def status_of(here: MulliganInstallation, ref: IssueRef) -> IssueStatus:
    with open_database(f"sqlite:///{here.directory}/mulligan.db") as database:
        return SqlLedger(database, TickingClock()).status(ref)


@pytest.fixture
def here(tmp_path: Path) -> Generator[Two]:
    (tmp_path / "one").mkdir()
    (tmp_path / "other").mkdir()
    with mulligan_installation(
        tmp_path / "one", {"notes.txt": "one\n"}, max_issue_attempts=1
    ) as one:
        one.configure(poll={"interval": "300ms"}, limits={"concurrency": 6})
        other = replace(one, directory=tmp_path / "other", settings=dict(one.settings))
        agent: list[str] = [str(each) for each in ("python3", other.directory / "agent.py")]
        other.configure(
            agent={"kind": "command", "command": list(agent)},
            state={"url": f"sqlite:///{other.directory}/mulligan.db"},
            workspace={"root": str(other.directory / "work")},
        )
        one.agent(WORK.format(slow=3, quick=0.3, mine=0))
        other.agent(WORK.format(slow=3, quick=0.3, mine=1))
        yield Two(one, other)


@contextmanager
def running(*places: MulliganInstallation) -> Generator[list[ForkedProcess]]:
    with ExitStack() as stack:
        daemons = list[ForkedProcess]()
        for each in places:
            said = stack.enter_context((each.directory / "said").open("w"))
            daemons.append(each.start("run", said=said))
        try:
            yield daemons
        finally:
            for daemon in daemons:
                daemon.send_signal(signal.SIGTERM)
            for daemon in daemons:
                daemon.wait(120)


def until(happened: Callable[[], bool]) -> None:
    patience = time.monotonic() + 120
    while not happened() and time.monotonic() < patience:
        time.sleep(0.1)


@pytest.mark.deep
def test_at_the_same_time_each_issue_is_settled_once_and_left_to_who_did_it(here: Two) -> None:
    with running(*here.both):
        refs = here.issues()
        until(lambda: all("mulligan" not in here.labels(ref) for ref in refs))
        time.sleep(4)  # Whoever was slow comes to its end, and would undo what was done.
    here.holds(refs)
