"""`mulligan run` is killed at random, again and again, while people command, review and merge.

All is real but GitHub: the command line, SQLite, git, the agent's process and the owner's ref. A
kill hits the daemon alone or every process: at any time, within a write on GitHub, in a run of the
agent, or between the push of a branch and the record of its pull request.
"""

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from github_simulator.reply import ErrorReply
from github_simulator.world import Fault
from mulligan.domain.outcome import Outcome
from mulligan.storage.database import open_database
from mulligan.storage.ledger import SqlLedger
from world.busy_repository import Maintainers, act, broken_promises
from world.fork_server import ForkedProcess
from world.ledgers import TickingClock
from world.lifecycles import working_below
from world.place import NAME, MulliganInstallation, mulligan_installation
from world.processes import wait_until
from world.repositories import git

PARTS, KILLS, ISSUES = 5, 60, 12
"""300 kills over 60 issues, in parts that each end within ten minutes on two busy cores."""

AT_ANY_TIME, ALL_PROCESSES = "of the daemon", "of every process"
BEFORE_A_WRITE, AFTER_A_WRITE = "before a write on GitHub", "after a write on GitHub"
IN_A_RUN, AT_PUBLICATION = "in a run of the agent", "at the creation of a pull request"
KINDS = (AT_ANY_TIME, ALL_PROCESSES, BEFORE_A_WRITE, AFTER_A_WRITE, *[IN_A_RUN, AT_PUBLICATION] * 2)

LONGEST_LIFE = 6.0
"""Seconds until a daemon is killed; one that does nothing else takes half a second to begin."""

LONGEST_WAIT = 30.0
"""Seconds that a daemon lives if what it is to be killed at does not happen."""
PATIENCE = 300
AGENT = """
import random, time
issue, notes = os.environ["MULLIGAN_ISSUE"], pathlib.Path({notes!r})
def note(what):
    with notes.open("a") as file:
        file.write(f"{{what}} {{issue}}\\n")
note("start")
time.sleep(random.uniform(0, {longest}))
moods = ["works", "works", "works", "fails", "idles"]
mood = "works" if pathlib.Path({good!r}).exists() else random.choice(moods)
if mood != "idles":
    text = "BAD" if mood == "fails" else "GOOD"
    pathlib.Path("issue-" + issue.partition("#")[2]).write_text(f"{{text}} {{random.random()}}")
note("end")
"""
LONGEST_RUN = 0.5
CHECK = "! grep BAD issue-*"


@dataclass
class KilledDaemon:
    """A daemon that is started again after each kill, and what its people and its agent did."""

    here: MulliganInstallation
    people: Maintainers
    kinds: Counter[str] = field(default_factory=Counter[str])
    process: ForkedProcess | None = None

    def broken(self, *, at_rest: bool = False) -> list[str]:
        """List every promise that is broken now."""
        notes = Counter((self.here.directory / "notes").read_text().splitlines())
        runs = Counter({ref: notes[f"start {ref}"] for ref in self.people.refs})
        whole = Counter({ref: notes[f"end {ref}"] for ref in self.people.refs})
        with open_database(f"sqlite:///{self.here.directory}/mulligan.db") as database:
            ledger = SqlLedger(database, TickingClock())
            # A kill after the agent's end, and before the verdict, interrupts the attempt as well.
            cut_off = runs - whole
            for ref in self.people.refs:
                outcomes = Counter(meta.outcome for meta in ledger.history(ref))
                cut_off[ref] = max(cut_off[ref], outcomes[Outcome.INTERRUPTED])
            return broken_promises(
                self.people, self.here.bare, ledger, runs, cut_off, at_rest=at_rest
            )

    def live(self) -> None:
        """Start it, let people act, and kill it."""
        draw, log = self.people.random, self.here.directory / "log"
        with log.open("a") as said:
            self.process = self.here.start("run", said=said)
        kind = draw.choice(KINDS)
        self._aim(kind)
        is_hit = self._live_until(kind)
        self.here.world.faults = None
        time.sleep(draw.uniform(0, LONGEST_RUN) if kind == IN_A_RUN else 0)
        self.process.kill()
        if kind == ALL_PROCESSES or (kind == IN_A_RUN and draw.random() < 0.5):
            for each in working_below(self.here.directory):
                with suppress(ProcessLookupError):
                    os.kill(int(each), signal.SIGKILL)
        assert self.process.wait(60) == -signal.SIGKILL, log.read_text()[-3000:]
        self.kinds[kind if is_hit or kind == ALL_PROCESSES else AT_ANY_TIME] += 1

    def _aim(self, kind: str) -> None:
        """Kill it at a write of that kind, and let it have something to do."""
        draw = self.people.random
        if kind in {BEFORE_A_WRITE, AFTER_A_WRITE}:
            self.arm(draw.randrange(8), Fault(503, apply=kind == AFTER_A_WRITE))
        if kind == AT_PUBLICATION:
            self.arm(0, Fault(503, apply=draw.random() < 0.5), "/pulls")
        if kind in {IN_A_RUN, AT_PUBLICATION}:
            self.ask()

    def _live_until(self, kind: str) -> bool:
        """Let people act until the kill; tell whether what it was to hit has happened."""
        draw, runs, acts_at = self.people.random, self.runs, time.monotonic()
        waits = kind in {IN_A_RUN, AT_PUBLICATION}
        end = acts_at + (LONGEST_WAIT if waits else draw.uniform(0.2, LONGEST_LIFE))
        while time.monotonic() < end and self.process and self.process.poll() is None:
            if kind == IN_A_RUN and self.runs > runs:
                return True
            if time.monotonic() >= acts_at:
                self.act()
                acts_at += draw.uniform(2, 6) if waits else draw.uniform(0, 1.5)
            time.sleep(0.05)
        return self.process is not None and self.process.poll() is not None

    @property
    def runs(self) -> int:
        """Count the runs of the agent."""
        return (self.here.directory / "notes").read_text().count("start")

    def ask(self) -> None:
        """Have somebody ask for work that has not been asked for."""
        with suppress(ErrorReply):
            if len(self.people.refs) < ISSUES:
                self.people.open_issue()
            else:
                ref = self.people.random.choice(self.people.refs)
                self.people.reopen(ref)
                self.people.say(ref, "/mulligan fix: Do it well.")

    def arm(self, writes: int, fault: Fault, end: str = "") -> None:
        """Kill the daemon at its next write but so many to a path with this end."""
        left = [writes]

        def answer(method: str, path: str) -> Fault | None:
            if method == "GET" or path == "/graphql" or not path.endswith(end):
                return None
            left[0] -= 1
            if left[0] >= 0 or self.process is None:
                return None
            self.process.kill()
            return fault

        self.here.world.faults = answer

    def act(self) -> None:
        """Have somebody do something; another may have been faster."""
        with suppress(ErrorReply):
            if len(self.people.refs) < ISSUES and self.people.random.random() < 0.3:
                self.people.open_issue()
            elif self.people.refs:
                act(self.people)

    def settle(self) -> None:
        """Let it live until nothing is left to do."""
        (self.here.directory / "good").touch()
        with (self.here.directory / "log").open("a") as said:
            self.process = self.here.start("run", said=said)
        end = time.monotonic() + PATIENCE
        while self.broken(at_rest=True) and time.monotonic() < end:
            time.sleep(1)
        self.process.terminate()
        assert self.process.wait(60) == 0


@contextmanager
def killed_daemon(directory: Path, seed: int) -> Generator[KilledDaemon]:
    checks = [{"name": "good", "run": CHECK}]
    with mulligan_installation(
        directory, {"notes.txt": "one\n"}, checks, review={"settle": "0s"}
    ) as here:
        # The agent notes its runs where no sandbox would let it.
        here.configure(sandbox="off", poll={"interval": "200ms"}, limits={"concurrency": 2})
        notes, good = directory / "notes", directory / "good"
        here.agent(AGENT.format(notes=str(notes), good=str(good), longest=LONGEST_RUN))
        (directory / "notes").touch()
        here.world.meter.limit = 10**9
        tip = git(here.bare, "rev-parse", "main")
        people = Maintainers(here.world, Random(seed), lambda: None, [tip])
        made = KilledDaemon(here, people)
        try:
            yield made
        finally:
            if made.process:
                made.process.kill()
            wait_until(lambda: not working_below(directory))


@pytest.mark.deep
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("part", range(1, PARTS + 1))
def test_kills_at_random_lose_and_double_nothing(tmp_path: Path, part: int) -> None:
    seed = random.getrandbits(32)
    with killed_daemon(tmp_path, seed) as killed:
        for _ in range(KILLS):
            killed.live()
            assert killed.broken() == []
        while len(killed.people.refs) < ISSUES:
            killed.people.open_issue()
        killed.settle()
        assert killed.broken(at_rest=True) == []
        notes = (tmp_path / "notes").read_text()
        figures = {
            **killed.kinds,
            "issues": len(killed.people.refs),
            "pull requests": len(killed.here.world.pulls_of(NAME)),
            "agent runs": notes.count("start"),
            "agent runs cut off": notes.count("start") - notes.count("end"),
            "commands": len(killed.people.commands),
            "merges": len(killed.people.merges) - 1,
        }
        print(f"part {part}, seed {seed}: {killed.kinds.total()} kills,", figures)
