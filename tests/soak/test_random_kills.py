"""`mulligan run` is killed at random, again and again, while people command, review and merge.

All is real but GitHub: the command line, SQLite, git, the agent's process and the owner's ref. A
kill hits the daemon alone or every process, at any time or within a write on GitHub.
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

KILLS, ISSUES = 300, 60
LONGEST_LIFE = 6.0
"""Seconds until a daemon is killed; one that does nothing else takes half a second to begin."""
PATIENCE = 300
AGENT = """
import random, time
issue, notes = os.environ["MULLIGAN_ISSUE"], pathlib.Path({notes!r})
def note(what):
    with notes.open("a") as file:
        file.write(f"{{what}} {{issue}}\\n")
note("start")
time.sleep(random.uniform(0, 0.5))
moods = ["works", "works", "works", "fails", "idles"]
mood = "works" if pathlib.Path({good!r}).exists() else random.choice(moods)
if mood != "idles":
    text = "BAD" if mood == "fails" else "GOOD"
    pathlib.Path("issue-" + issue.partition("#")[2]).write_text(f"{{text}} {{random.random()}}")
note("end")
"""
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
        kind = draw.choice(["daemon", "all processes", "within a write", "after a write"])
        if "write" in kind:
            self.arm(draw.randrange(8), Fault(503, apply=kind == "after a write"))
        end = time.monotonic() + draw.uniform(0.2, LONGEST_LIFE)
        while time.monotonic() < end and self.process.poll() is None:
            self.act()
            time.sleep(draw.uniform(0, 1.5))
        killed = self.process.poll() is not None
        self.here.world.faults = None
        self.process.kill()
        if kind == "all processes":
            for each in working_below(self.here.directory):
                with suppress(ProcessLookupError):
                    os.kill(int(each), signal.SIGKILL)
        assert self.process.wait(60) == -signal.SIGKILL, log.read_text()[-3000:]
        self.kinds[kind if killed or "write" not in kind else "daemon"] += 1

    def arm(self, writes: int, fault: Fault) -> None:
        """Kill the daemon at its next write but so many."""
        left = [writes]

        def answer(method: str, path: str) -> Fault | None:
            if method == "GET" or path == "/graphql":
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
        here.agent(AGENT.format(notes=str(directory / "notes"), good=str(directory / "good")))
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
@pytest.mark.timeout(3600)
def test_kills_at_random_lose_and_double_nothing(tmp_path: Path) -> None:
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
        print(f"seed {seed}: {killed.kinds.total()} kills,", figures)
