"""What runs on the commits of the simulated GitHub: check runs with their logs, and statuses."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from mulligan.simulator.records import Stamps

ACTIONS = "github-actions"


@dataclass(frozen=True, slots=True)
class Annotation:
    """What a check run says about a line; `level` is notice, warning or failure."""

    path: str
    line: int
    message: str
    level: str = "failure"


@dataclass(frozen=True, slots=True)
class Output:
    """What a check run prints, `log`, and what it says of itself."""

    log: str | None = None
    title: str | None = None
    summary: str | None = None
    annotations: Sequence[Annotation] = ()


@dataclass(frozen=True, slots=True)
class CheckRun:
    """A check run; without a conclusion it is in progress."""

    id: int
    commit: tuple[str, str]
    name: str
    app: str
    conclusion: str | None
    output: Output
    at: datetime
    suite: int = 1


@dataclass(frozen=True, slots=True)
class Status:
    """A commit status; the state is pending, success, failure or error."""

    id: int
    context: str
    state: str
    description: str | None
    at: datetime


@dataclass(slots=True)
class Runs:
    """All of them; a commit is (name of the repository in lower case, SHA)."""

    stamps: Stamps
    checks: list[CheckRun] = field(default_factory=list[CheckRun])
    statuses: dict[tuple[str, str], list[Status]] = field(
        default_factory=dict[tuple[str, str], list[Status]]
    )

    def check(
        self,
        commit: tuple[str, str],
        name: str,
        conclusion: str | None = None,
        output: Output | None = None,
        app: str = ACTIONS,
        suite: int = 1,
    ) -> int:
        """Have a check run on a commit; the same name again is a re-run in its suite. Give its id.

        Each workflow has a suite of its own.
        """
        now, where = self.stamps.now(), (commit[0].lower(), commit[1])
        said = output or Output()
        run = CheckRun(self.stamps.id(), where, name, app, conclusion, said, now, suite)
        self.checks.append(run)
        return run.id

    def status(
        self, commit: tuple[str, str], context: str, state: str, description: str | None = None
    ) -> None:
        """Set a commit status; of one context the newest counts."""
        where = (commit[0].lower(), commit[1])
        made = Status(self.stamps.id(), context, state, description, self.stamps.now())
        self.statuses.setdefault(where, []).append(made)

    def checks_of(self, commit: tuple[str, str], *, every: bool) -> list[CheckRun]:
        """List the check runs of a commit, newest first; only the latest of each, or `every`."""
        found = [run for run in self.checks if run.commit == commit]
        newest = {(run.app, run.suite, run.name): run for run in found}
        return list(reversed(found if every else list(newest.values())))

    def statuses_of(self, commit: tuple[str, str]) -> list[Status]:
        """List the newest status of each context."""
        return list({one.context: one for one in self.statuses.get(commit, [])}.values())

    def find(self, repository: str, number: str) -> CheckRun | None:
        """Find a check run of a repository by its id."""
        named = (run for run in self.checks if str(run.id) == number)
        return next((run for run in named if run.commit[0] == repository.lower()), None)
