"""A tracker and a writer over a simulated GitHub, and a writer that only says what it would do."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from mulligan.config.operator import Trust
from mulligan.domain.issue import IssueRef
from mulligan.domain.issue_context import IssueContext
from mulligan.domain.recorded_effects import Pushed
from mulligan.github.client import Client, RetrySettings
from mulligan.github.comments import StatusComments
from mulligan.github.tracker import GitHubTracker
from mulligan.github.writer import DryRunWriter, GitHubWriter
from world.fake_sleep import FakeSleep
from world.in_process import in_process
from world.simulated import NAME, Reach, SimulatedGitHub, push, simulated_github

BOT = "mulligan-bot"
TOKEN = "token-mulligan-bot"


@dataclass
class FrozenClock:
    """A clock that moves only when told."""

    time: datetime = datetime(2025, 3, 4, 12, 0, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time

    def backoff(self, step: int) -> timedelta:
        return timedelta(seconds=step)


@dataclass
class TrackerEnvironment:
    """A tracker at work on a simulated GitHub, and what it was heard saying."""

    hub: SimulatedGitHub
    client: Client
    tracker: GitHubTracker
    writer: GitHubWriter
    clock: FrozenClock
    said: list[str] = field(default_factory=list[str])

    def dry_run(self) -> DryRunWriter:
        """Return the writer of a dry run; its reports are in `said`."""
        return DryRunWriter(self.tracker, self.said.append)

    def ready(self, title: str = "It is broken", by: str = "wes") -> IssueRef:
        """Open an issue, and have somebody ask for work on it."""
        ref = self.hub.issue(title)
        self.hub.world.label(ref, "mulligan", by)
        return ref

    def branch(self, ref: IssueRef) -> str:
        """Push a commit to the issue's branch, as Mulligan does before a review; give its SHA."""
        return push(self.hub.bare, ref.branch, {"src/tool.py": f"X = {ref.number}\n"})

    def requests(self) -> list[str]:
        """List what was asked of GitHub so far, and forget it."""
        asked = [f"{one.method} {one.path}" for one in self.hub.world.requests]
        self.hub.world.requests.clear()
        return asked


@contextmanager
def tracker_environment(
    directory: Path,
    *trusted: str,
    token: str = TOKEN,
    reach: Reach = in_process,
) -> Generator[TrackerEnvironment]:
    """Set up a simulated GitHub and a tracker that never waits."""
    with simulated_github(directory, reach) as found:
        found.world.add_user(BOT, token=TOKEN)
        found.world.set_role(NAME, BOT, "write")
        naps = FakeSleep()
        timeout = RetrySettings(attempts=3, timeout=120, sleep=naps, now=naps.now)
        client, clock = Client(found.url, lambda _: token, timeout), FrozenClock()
        tracker = GitHubTracker(client, Trust(users=trusted), clock)
        writer = GitHubWriter(client, tracker.own_login, StatusComments(clock))
        yield TrackerEnvironment(found, client, tracker, writer, clock)
        client.close()


def case_for(case: IssueContext, ref: IssueRef) -> IssueContext:
    """Create the issue of a story."""
    issue, status = replace(case.issue, ref=ref), replace(case.status, issue=ref)
    return replace(case, issue=issue, status=status)


def pushed(case: IssueContext) -> IssueContext:
    """Record a push of the issue's branch in the ledger."""
    effects = case.status.effects.plus(
        Pushed(branch=case.issue.ref.branch, head_sha="5ca1ab1e" * 5)
    )
    return replace(case, status=replace(case.status, effects=effects))
