"""Where Mulligan can be killed: before and after everything it does that lasts.

The points are not listed by hand. Each kind of effect passes one outermost edge, which counts:

- a ledger write passes the port Ledger (`CountedLedger`, in Mulligan's own process);
- a git effect passes a `git` that stands first on the PATH that is handed to Mulligan; whatever
  is not known to read only (`READING`) is an effect, however git was called;
- an HTTP effect passes the simulated GitHub (`count_requests`): every request but GET;
- the agent and the check pass a line of shell in themselves.

An effect that begins adds a line to the file `points`; the number of the line is its own. The one
whose number and side (`before`, `after`) stand in the file `kill` sends SIGKILL to the process
named in the file `worker`. Before means that nothing of the effect happens, after that all of it
has happened and Mulligan has not heard of it.
"""

import os
import shutil
import signal
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mulligan.domain.events import Event, Recorded
from mulligan.domain.issue import IssueRef
from mulligan.domain.lease import Lease
from mulligan.domain.result import WorkerResultMeta
from mulligan.domain.status import IssueStatus
from mulligan.ports import Ledger
from mulligan.simulator.faults import Fault
from mulligan.simulator.world import World

BEFORE, AFTER = "before", "after"
READING = (
    *("rev-parse", "rev-list", "cat-file", "for-each-ref", "ls-files", "ls-tree", "ls-remote"),
    *("status", "diff", "diff-tree"),
)
COUNT = """\
#!/bin/sh
here='{here}'
begin() {{
    printf '%s\\n' "$1" >> "$here/points"
    number=0
    while read -r line; do number=$((number + 1)); done < "$here/points"
}}
die_if() {{
    read -r wanted < "$here/kill"
    [ "$wanted" = "$1 $number" ] || return 1
    read -r worker < "$here/worker"
    kill -9 "$worker"
}}
"""
GIT = """\
. '{here}/count'
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
begin "git $word"
die_if before && exit 1
'{git}' "$@"
code=$?
die_if after
exit $code
"""


@dataclass(frozen=True)
class Points:
    """The files by which the edges count together; `path` is where the counting git is."""

    directory: Path

    @property
    def path(self) -> str:
        return f"{self.directory / 'bin'}:{os.environ['PATH']}"

    def prepare(self) -> None:
        """Make the files, and kill nothing."""
        git, place = shutil.which("git"), self.directory / "bin" / "git"
        place.parent.mkdir(parents=True)
        (self.directory / "count").write_text(COUNT.format(here=self.directory))
        place.write_text(
            f"#!/bin/sh\n{GIT.format(here=self.directory, git=git, reading='|'.join(READING))}"
        )
        place.chmod(0o755)
        self.kill_nothing()

    def kill_at(self, side: str, number: int) -> None:
        """Have the next worker killed on one side of its `number`-th effect, from 1."""
        (self.directory / "points").write_text("")
        (self.directory / "kill").write_text(f"{side} {number}\n")

    def kill_nothing(self) -> None:
        """Let the next worker live."""
        self.kill_at("never", 0)

    def enlist(self, worker: int) -> None:
        """Name the process that is killed."""
        (self.directory / "worker").write_text(f"{worker}\n")

    def passed(self) -> list[str]:
        """List the effects that began since the killing was set."""
        return (self.directory / "points").read_text().splitlines()

    def begin(self, effect: str) -> int:
        """Count an effect that begins; give its number."""
        with (self.directory / "points").open("a", encoding="utf-8") as file:
            file.write(f"{effect}\n")
        return len(self.passed())

    def die_if(self, side: str, number: int) -> bool:
        """Kill the worker if this is where; tell whether it was."""
        if (self.directory / "kill").read_text() != f"{side} {number}\n":
            return False
        os.kill(int((self.directory / "worker").read_text()), signal.SIGKILL)
        return True

    def count_requests(self, world: World) -> None:
        """Count what a simulated GitHub is asked to change; it may be asked by nobody else."""

        def fault(method: str, path: str) -> Fault | None:
            if method == "GET":
                return None
            number = self.begin(f"{method} {path}")
            if self.die_if(BEFORE, number):
                return Fault(503)
            # Who asked is dead before it is done, and done it is.
            self.die_if(AFTER, number)
            return None

        world.faults = fault


@dataclass(frozen=True, slots=True)
class CountedLedger:
    """The port Ledger over another one, counting what is appended."""

    inner: Ledger
    points: Points

    def append(self, ref: IssueRef, event: Event) -> IssueStatus:
        number = self.points.begin(f"ledger {event.kind}")
        self.points.die_if(BEFORE, number)
        status = self.inner.append(ref, event)
        self.points.die_if(AFTER, number)
        return status

    def under(self, lease: Lease) -> "CountedLedger":
        return replace(self, inner=self.inner.under(lease))

    def status(self, ref: IssueRef) -> IssueStatus:
        return self.inner.status(ref)

    def statuses(self) -> Sequence[IssueStatus]:
        return self.inner.statuses()

    def history(self, ref: IssueRef) -> tuple[WorkerResultMeta, ...]:
        return self.inner.history(ref)

    def events(self, ref: IssueRef | None = None, after: int = 0) -> Sequence[Recorded]:
        return self.inner.events(ref, after)
