"""Two Mulligans with a state of their own share one login: one works, the other stands back."""

import signal
import subprocess
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
from mulligan.storage.owner_ref import OWNER_REF, parse_records
from world.fork_server import ForkedProcess
from world.ledgers import TickingClock
from world.place import NAME, MulliganInstallation, mulligan_installation
from world.repositories import git

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

    def both_settled(self, refs: list[IssueRef]) -> None:
        """Make sure that each issue was handed over once, whoever did it."""
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

    def owner(self) -> str:
        """Name the owner of the repository, as the ref does; empty if there is none."""
        if not git(self.one.bare, "for-each-ref", OWNER_REF):
            return ""
        text = git(self.one.bare, "cat-file", "blob", f"{OWNER_REF}:owner.json")
        return parse_records(text.encode())["mulligan"].installation


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
        # GraphQL names a bot without the suffix that its login has; a machine user has none.
        one.world.users["mulligan-bot"].type = "User"
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


def until_stated(here: MulliganInstallation, sentence: str) -> None:
    until(lambda: sentence in (here.directory / "said").read_text())


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
    timeout = time.monotonic() + 120
    while not happened() and time.monotonic() < timeout:
        time.sleep(0.1)


@pytest.mark.deep
def test_the_second_stands_back_and_every_command_says_so_until_it_takes_over(here: Two) -> None:
    here.one.agent("import time; time.sleep(600)")
    here.other.agent("pathlib.Path('notes.txt').write_text('two')")
    ref = here.one.issue("Mend it")
    said = here.other.directory / "said"
    with running(here.one) as (first,):
        until(lambda: "mulligan:running" in here.labels(ref))
        owner = here.owner()
        sentence = f"another installation of Mulligan ({owner}) works on the label `mulligan`"
        with running(here.other):
            until(lambda: sentence in said.read_text())
            time.sleep(2)
        assert said.read_text().count(sentence) == 1
        done = here.other.run("once")
        assert (done.returncode, sentence in done.stdout) == (0, True)
        for command in (("status",), ("doctor",), ("explain", str(ref))):
            assert sentence in here.other.run(*command).stdout, command
        assert here.other.ask("status") == []
        assert sentence in here.other.run("work", str(ref)).stdout
        first.kill()
        first.wait(120)
        assert here.owner() == owner
        done = here.other.run("once", "--take-over")
        assert (done.returncode, done.stderr.count("ownership taken")) == (0, 1)
    assert here.labels(ref) == ["mulligan:review"]
    assert here.owner() == ""
    assert sentence not in here.other.run("status").stdout


@pytest.mark.deep
def test_a_copied_disk_stands_back_for_its_original(here: Two) -> None:
    """A virtual machine was cloned while it ran, so that both have one id and one history."""
    here.one.agent("import time; time.sleep(600)")
    here.other.agent("pathlib.Path('notes.txt').write_text('two')")
    ref = here.one.issue("Mend it")
    with running(here.one) as (first,):
        until(lambda: "mulligan:running" in here.labels(ref))
        owner = here.owner()
        copied = subprocess.run(
            ["sh", "-c", 'cp -a "$0"/mulligan.db* "$1"/', here.one.directory, here.other.directory],
            check=False,
        )
        assert copied.returncode == 0
        git(here.one.bare, "update-ref", "-d", OWNER_REF)  # the next renewal is not copied
        until(lambda: here.owner() == owner)
        with running(here.other) as (second,):
            until_stated(here.other, f"another installation of Mulligan ({owner}) works on")
            assert (first.poll(), second.poll()) == (None, None)
        assert status_of(here.other, ref).number == 1
        first.kill()
        first.wait(120)
        done = here.other.run("once", "--take-over")
        assert (done.returncode, done.stderr.count("ownership taken")) == (0, 1)
    assert here.labels(ref) == ["mulligan:review"]


@pytest.mark.deep
def test_of_two_that_run_one_works_and_the_other_goes_on_when_it_stops(here: Two) -> None:
    with running(*here.both) as daemons:
        refs = here.issues()
        until(lambda: sum("mulligan" in here.labels(ref) for ref in refs) <= 4)
        worked = [[status_of(each, ref).number for ref in refs] for each in here.both]
        assert [any(counts) for counts in worked].count(True) == 1
        leader = 0 if any(worked[0]) else 1
        daemons[leader].send_signal(signal.SIGTERM)
        until(lambda: all("mulligan" not in here.labels(ref) for ref in refs))
        time.sleep(4)
    here.both_settled(refs)
