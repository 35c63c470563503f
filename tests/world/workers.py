"""Workers in this process: a simulated GitHub, fresh clones, agents and checks as functions."""

import os
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import patch

from pydantic import JsonValue

from github_simulator.reply import Request
from github_simulator.world import Fault
from mulligan.config.operator import Limits
from mulligan.domain.events import Event
from mulligan.domain.issue import IssueRef
from mulligan.git.worktrees.base_policy import BasePolicies
from mulligan.implement import effects
from mulligan.implement.ports import (
    AgentRegistry,
    BotContext,
    CodingAgent,
    Leases,
    Ledger,
    NoRetention,
    RetentionStore,
    UsageStore,
)
from mulligan.storage.artifacts import FileArtifacts
from mulligan.storage.database import open_database
from mulligan.storage.leases import LEASE_TIME, SqlLeases
from mulligan.storage.ledger import SqlLedger
from mulligan.storage.memory import MemoryLeases, MemoryLedger
from mulligan.storage.retention import SqlRetentionStore
from mulligan.storage.usage import MemoryUsageStore, SqlUsageStore
from world.behaviours import AgentInput, Behaviour
from world.ledgers import migrated
from world.plain_worktrees import Clones, PlainWorktrees
from world.repositories import branch_head
from world.scripted_agent import ScriptedAgent
from world.scripted_verifier import ScriptedVerifier, Verdict
from world.simulated import NAME
from world.trackers import BOT, TrackerEnvironment, tracker_environment

PATH = {"PATH": os.environ["PATH"]}


@dataclass
class WorkerEnvironment:
    """Where workers share a GitHub, a ledger and a clock, each with clones of its own."""

    directory: Path
    desk: TrackerEnvironment
    ledger: Ledger
    leases: Leases
    accounts: UsageStore
    lines: dict[str, Verdict] = field(default_factory=dict[str, Verdict])
    policy: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    attic: RetentionStore = field(default_factory=NoRetention)
    programs: str = ""
    """The toolchain that the checks run with."""

    def context(
        self,
        agent: CodingAgent | Behaviour,
        worker: str = "one",
        worktrees: Clones | None = None,
    ) -> BotContext:
        """Put a worker's tools together."""
        root = self.directory / worker
        root.mkdir(exist_ok=True)
        clones = worktrees or PlainWorktrees(root, self.desk.hub.bare)
        overrides: Mapping[str, Mapping[str, JsonValue]] = {NAME: self.policy}
        return BotContext(
            tracker=self.desk.tracker,
            writer=self.desk.writer,
            worktrees=clones,
            git=clones,
            policies=BasePolicies(clones, overrides),
            agents=AgentRegistry(ScriptedAgent(agent) if callable(agent) else agent),
            verifier=ScriptedVerifier(self.lines, self.programs),
            ledger=self.ledger,
            leases=self.leases,
            usage=self.accounts,
            artifacts=FileArtifacts(self.directory / "artifacts"),
            clock=self.desk.clock,
            worker=worker,
            limits=Limits(),
        )

    def check(self, verdict: Verdict) -> None:
        """Use a function as the repository's check."""
        self.lines["check"] = verdict
        self.policy["checks"] = [{"name": "check", "run": "check"}]

    def github_answers(self, fault: Fault | None) -> None:
        """Answer every request like this from now on; None for the real answer."""

        def answer(_method: str, _path: str) -> Fault | None:
            return fault

        self.desk.hub.world.faults = answer

    def let_leases_run_out(self) -> None:
        """Advance the clock until every lease has expired."""
        self.desk.clock.time += LEASE_TIME

    def events(self, ref: IssueRef) -> list[Event]:
        return [recorded.event for recorded in self.ledger.events(ref)]

    def writes(self) -> list[str]:
        """List what GitHub was asked to change so far."""
        asked = self.desk.hub.world.requests
        return [f"{one.method} {one.path}" for one in asked if is_write(one)]

    def labels(self, ref: IssueRef) -> list[str]:
        return self.desk.hub.world.labels_of(ref)

    def said(self, ref: IssueRef) -> list[str]:
        """List what Mulligan wrote on an issue."""
        written = self.desk.hub.world.comments_of(ref)
        return [comment.body for comment in written if comment.author.login == BOT]

    def pushed(self, ref: IssueRef) -> str | None:
        """Give the commit on the issue's branch."""
        return branch_head(self.desk.hub.bare, ref.branch)


def is_write(request: Request) -> bool:
    """Return whether a request may change something; GraphQL requests only read."""
    return request.method != "GET" and request.path != "/graphql"


def fix_the_bug(given: AgentInput) -> None:
    """Do good work."""
    given.write("src/tool.py", "X = 2\n")


def fail_once_changed(tree: Path) -> str | None:
    """Find fault with whatever was made of the tool."""
    return None if (tree / "src/tool.py").read_text() == "X = 1\n" else "It is red."


@contextmanager
def worker_environment(directory: Path, *, database: bool = False) -> Generator[WorkerEnvironment]:
    """Set up a GitHub, a ledger and leases on one clock that stands still.

    All is in memory but with `database`, which knows several workers and can delete history.
    No time passes while somebody waits for GitHub to show what it was told.
    """
    with tracker_environment(directory) as found, ExitStack() as stack:
        waits = (0.0,) * len(effects.PULL_REQUEST_WAITS)
        stack.enter_context(patch.object(effects, "PULL_REQUEST_WAITS", waits))
        # APScheduler goes by the true time, and would make up for what it missed since then.
        found.clock.time = datetime.now(UTC)
        if not database:
            leases = MemoryLeases(found.clock)
            ledger = MemoryLedger(found.clock, leases)
            yield WorkerEnvironment(directory, found, ledger, leases, MemoryUsageStore())
            return
        opened = stack.enter_context(open_database(migrated(directory / "mulligan.db")))
        yield WorkerEnvironment(
            directory,
            found,
            SqlLedger(opened, found.clock),
            SqlLeases(opened, found.clock),
            SqlUsageStore(opened),
            attic=SqlRetentionStore(opened, found.clock),
        )
