"""Where Mulligan can be killed: before and after everything it does that lasts.

The points are found by watching a pass, not listed by hand. Each kind of effect is caught at its
outermost edge, wherever in the code it comes from:

- a ledger write in the port Ledger (`CountedLedger`), in Mulligan's own process;
- a git effect in a `git` that stands first on the PATH that is handed to Mulligan: whatever is
  not known to read only (`READING`) is one, however git was started;
- an HTTP effect in the simulated GitHub: every request but GET and GraphQL's queries;
- a run of the agent in the agent's own script.

Whoever comes to a point says so to the test's process, and waits for leave to go on. So all points
of a pass have one order, and the process that makes the pass can be killed with SIGKILL at any of
them: before, when nothing of the effect has happened, or after, when all of it has and Mulligan
has not heard of it. Points that find all files and GitHub as the one before did count as one.
"""

import os
import random
import shutil
import signal
import stat
import threading
from collections.abc import Collection, Generator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple, Protocol

from github_simulator.world import Fault
from mulligan.domain.events import BaselineRecorded, Event, RecordedEvent
from mulligan.domain.issue import IssueRef, Lease
from mulligan.domain.result import WorkerResultMeta
from mulligan.domain.status import IssueStatus
from mulligan.implement.ports import Ledger
from world.simulated_github import World

BEFORE, AFTER = "before", "after"
LIVE, DIE = "live", "die"
READING = (
    *("rev-parse", "rev-list", "cat-file", "for-each-ref", "ls-files", "ls-tree", "ls-remote"),
    *("status", "diff", "diff-tree", "merge-base"),
)
WORKING_MEMORY = "-shm"
"""How the file ends that SQLite makes anew from what is lasting, and that mere reading changes."""
REACH = """\
reach() {{
    echo "$1 $2" > '{here}/asking'
    read -r verdict < '{here}/answer'
    [ "$verdict" = live ]
}}
"""
GIT = """\
#!/bin/sh
. '{here}/reach'
skip=
for word; do
    case $skip$word in
        skip*) skip= ;;
        -c) skip=skip ;;
        -*) ;;
        *) break ;;
    esac
done
case $word in {reading}) exec '{git}' "$@" ;; esac
reach before "git $word" || exit 1
'{git}' "$@"
code=$?
reach after "git $word"
exit $code
"""


class CrashPoint(NamedTuple):
    """One side of one effect."""

    side: str
    effect: str


class CrashPoints(Protocol):
    """Is notified of every point, and may kill the process that reaches it."""

    def reach(self, side: str, effect: str) -> None: ...


@dataclass(frozen=True, slots=True)
class CrashPointPipe:
    """The directory in which processes report the points that they reach."""

    directory: Path

    @property
    def path(self) -> str:
        """Give the PATH on which the git that counts comes first."""
        return f"{self.directory / 'bin'}:{os.environ['PATH']}"

    def prepare(self) -> None:
        """Make the pipes and the scripts."""
        (self.directory / "bin").mkdir(parents=True)
        for pipe in ("asking", "answer"):
            os.mkfifo(self.directory / pipe)
        words = {"here": self.directory, "git": shutil.which("git"), "reading": "|".join(READING)}
        (self.directory / "reach").write_text(REACH.format_map(words))
        git = self.directory / "bin" / "git"
        git.write_text(GIT.format_map(words))
        git.chmod(0o755)

    def reach(self, side: str, effect: str) -> None:
        """Say where this process is; it may be the last thing that it does."""
        with (self.directory / "asking").open("w", encoding="utf-8") as asking:
            asking.write(f"{side} {effect}\n")
        with (self.directory / "answer").open(encoding="utf-8") as answer:
            answer.readline()


@dataclass
class CrashPointWatcher:
    """Hears of the points of one pass, and kills its process at a `fatal` one, from 0 on.

    With `lasting`, a directory, `states` tells what was in it at every point, and how much GitHub
    had been `asked` to change.
    """

    fatal: int | CrashPoint | None = None
    lasting: Path | None = None
    worker: Future[int] = field(default_factory=Future[int])
    asked: int = 0
    passed: list[CrashPoint] = field(default_factory=list[CrashPoint])
    states: list[str] = field(default_factory=list[str])

    def reach(self, side: str, effect: str) -> str:
        """Take down a point; kill whoever makes the pass if this is where."""
        point, number = CrashPoint(side, effect), len(self.passed)
        self.passed.append(point)
        if self.lasting:
            self.states.append(f"{self.asked} {state_of(self.lasting)}")
        if self.fatal not in (number, point):
            return LIVE
        os.kill(self.worker.result(timeout=120), signal.SIGKILL)
        return DIE

    def different(self) -> list[int]:
        """Number the points, except those with the same state as the point before."""
        before = [None, *self.states]
        return [number for number, state in enumerate(self.states) if state != before[number]]

    def of_each_effect(
        self, known: Collection[str] = (), since: CrashPoint | None = None
    ) -> list[int]:
        """Number one of the different points of each effect; where both sides are, they take turns.

        Effects that are `known` are left out, but not from the point `since` on.
        """
        opened = self.passed.index(since) if since else len(self.passed)
        sides = dict[str, dict[str, int]]()
        for number in self.different():
            side, effect = self.passed[number]
            if number >= opened or effect not in known:
                sides.setdefault(effect, {}).setdefault(side, number)
        return sorted(
            [*each.values()][turn % len(each)] for turn, each in enumerate(sides.values())
        )

    def drawn(self, *, until: CrashPoint | None = None) -> int:
        """Draw one of the different points, with the seed that pytest prints (`-p randomly`)."""
        last = self.passed.index(until) if until else len(self.passed)
        return random.choice([each for each in self.different() if each <= last])

    def answer(self, method: str, path: str) -> Fault | None:
        """Take down what the simulated GitHub is asked to change."""
        if method == "GET" or path == "/graphql":
            return None
        if self.reach(BEFORE, f"{method} {path}") == DIE:
            return Fault(503)
        # From here on it is done, whether whoever asked lives to hear of it or not.
        self.asked += 1
        self.reach(AFTER, f"{method} {path}")
        return None

    @contextmanager
    def over(self, world: World, desk: CrashPointPipe) -> Generator[None]:
        """Receive every point in this block; no process may wait for an answer at its end."""
        asking, answer = (
            os.open(desk.directory / pipe, os.O_RDWR | os.O_CLOEXEC)
            for pipe in ("asking", "answer")
        )
        thread = threading.Thread(target=self._hear, args=(asking, answer), name="points")
        thread.start()
        world.faults = self.answer
        try:
            yield
        finally:
            world.faults = None
            os.write(asking, b"\n")
            thread.join()
            os.close(asking)
            os.close(answer)

    def _hear(self, asking: int, answer: int) -> None:
        with open(asking, closefd=False, encoding="utf-8") as lines:
            while line := lines.readline().rstrip("\n"):
                side, _, effect = line.partition(" ")
                os.write(answer, f"{self.reach(side, effect)}\n".encode())


def state_of(directory: Path) -> str:
    """Hash what is below a directory; git's objects are what their names say."""
    found = sha256()
    for place, directories, files in os.walk(directory):
        directories.sort()
        for name in sorted([*directories, *files]):
            path = f"{place}/{name}"
            if name.endswith(WORKING_MEMORY):
                continue
            mode = os.lstat(path).st_mode
            found.update(f"{path} {mode}\n".encode())
            if stat.S_ISREG(mode) and "/objects/" not in path:
                with open(path, "rb") as content:  # noqa: PTH123 - a Path for each is half the time
                    found.update(content.read())
    return found.hexdigest()


@dataclass(frozen=True, slots=True)
class CountedLedger:
    """The port Ledger over another one; what is appended is a point."""

    inner: Ledger
    desk: CrashPoints

    def append(self, ref: IssueRef, event: Event) -> IssueStatus:
        self.desk.reach(BEFORE, f"ledger {event.kind}")
        status = self.inner.append(ref, event)
        self.desk.reach(AFTER, f"ledger {event.kind}")
        return status

    def restore(self, ref: IssueRef, events: Sequence[Event]) -> bool:
        self.desk.reach(BEFORE, "ledger restored")
        done = self.inner.restore(ref, events)
        self.desk.reach(AFTER, "ledger restored")
        return done

    def with_lease(self, lease: Lease) -> "CountedLedger":
        return replace(self, inner=self.inner.with_lease(lease))

    def status(self, ref: IssueRef) -> IssueStatus:
        return self.inner.status(ref)

    def statuses(self) -> Sequence[IssueStatus]:
        return self.inner.statuses()

    def history(self, ref: IssueRef) -> tuple[WorkerResultMeta, ...]:
        return self.inner.history(ref)

    def baseline(self, repository: str, key: str) -> BaselineRecorded | None:
        return self.inner.baseline(repository, key)

    def learnings(self, repository: str) -> Sequence[RecordedEvent]:
        return self.inner.learnings(repository)

    def events(
        self, ref: IssueRef | None = None, after: int = 0, most: int | None = None
    ) -> Sequence[RecordedEvent]:
        return self.inner.events(ref, after, most)

    def last_seq(self) -> int:
        return self.inner.last_seq()

    def comments_read_to(self, repository: str) -> int:
        return self.inner.comments_read_to(repository)
