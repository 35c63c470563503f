"""Look for faults of this machine before work begins; a sound machine is trusted for a minute."""

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from mulligan.agents.runner import file_state, find_program, try_start
from mulligan.config.operator import Operator
from mulligan.daemon.doctor import agent_faults, machine_faults
from mulligan.domain.hold import Hold, Pause, hold_on
from mulligan.domain.host import AgentPresence, Diagnosis, DiskSpace, SandboxStatus
from mulligan.domain.signing import SigningKeyStatus
from mulligan.git.commits import read_signing_key
from mulligan.git.repository import version
from mulligan.implement.ports import Clock
from mulligan.interfaces.bootstrap.sandbox import network_inside, sandbox_status
from mulligan.sandbox.sandbox import Sandbox
from mulligan.storage.database import state_directory
from mulligan.storage.state_directory import disk_space_for

FRESH = timedelta(minutes=1)
"""How long a machine without faults is trusted; a faulty one is looked at each time."""


@dataclass(frozen=True, slots=True)
class MachineProbes:
    """Reads the facts about this machine; nothing here asks GitHub.

    `sandbox_works` says that the sandbox was tried a moment ago, with success. Without a `sandbox`,
    no agent's program is started to try it.
    """

    operator: Operator
    environment: Mapping[str, str]
    sandbox_works: bool = False
    sandbox: Sandbox | None = None

    def git_version(self) -> tuple[int, int]:
        """Ask git for its version."""
        return version(self.environment)

    def state_room(self) -> DiskSpace | None:
        """Measure the disk of the ledger; None if it is on a server."""
        directory = state_directory(self.operator.state.url)
        return disk_space_for(directory) if directory else None

    def workspace_room(self) -> DiskSpace:
        """Measure the disk of the worktrees."""
        return disk_space_for(self.operator.workspace.root)

    def agent(self, name: str) -> AgentPresence:
        """Look for the program, files and variables of a configured agent."""
        settings = self.operator.all_agents[name]
        return find_program(settings, self.environment, self.operator.adapters)

    def start_failure(self, name: str) -> str:
        """Start the program of a configured agent; return why that failed, or an empty string."""
        if self.sandbox is None:
            return ""
        settings, own = self.operator.all_agents[name], self.operator.adapters
        return try_start(settings, self.environment, self.sandbox, own).failure

    def started_agent(self, name: str) -> AgentPresence:
        """Look for a configured agent, and start its program."""
        found = self.agent(name)
        return replace(found, failure=self.start_failure(name) if found.program else "")

    def sandbox_status(self) -> SandboxStatus:
        """Try the sandbox, unless that was done a moment ago."""
        if self.sandbox_works:
            return SandboxStatus(available=True)
        return sandbox_status(self.operator, self.environment)

    def signing_key(self) -> SigningKeyStatus | None:
        """Read the facts about the key that signs commits; None if none is configured."""
        file = self.operator.github.signing_key_file
        return read_signing_key(file, self.environment) if file else None

    def network(self, name: str) -> str:
        """Name the network of an agent."""
        return network_inside(self.operator.all_agents[name], self.operator)


@dataclass(frozen=True, slots=True)
class AgentStart:
    """The last trial of an agent's program; `failure` says why it failed, if it did."""

    state: str
    at: datetime
    failure: str


class MachineHolds:
    """The port Holds, on a ledger and this machine; safe for threads."""

    def __init__(
        self, probes: MachineProbes, paused: Callable[[], Sequence[Pause]], clock: Clock
    ) -> None:
        self._probes = probes
        self._paused = paused
        self._clock = clock
        self._lock = threading.Lock()
        self._sound_at: datetime | None = None
        self._started = dict[str, AgentStart]()

    def on(self, repository: str, agents: Collection[str]) -> Hold | None:
        if paused := hold_on(repository, self._paused(), ()):
            return paused
        of_agents = [self._faults_of(name) for name in sorted(agents)]
        return hold_on(repository, (), self._faults(), of_agents)

    def is_missing(self, agent: str) -> bool:
        """Look for the agent's program each time."""
        return bool(self._faults_of(agent))

    def pauses(self) -> Sequence[Pause]:
        return self._paused()

    def _faults_of(self, agent: str) -> Sequence[Diagnosis]:
        found = self._probes.agent(agent)
        return agent_faults(agent, replace(found, failure=self._start_failure(agent, found)))

    def _start_failure(self, agent: str, found: AgentPresence) -> str:
        """Start the program once, again when its file changes, and each FRESH while that fails."""
        with self._lock:
            now, state = self._clock.now(), file_state(found.program)
            if not state:
                return ""
            last = self._started.get(agent)
            is_old = last and last.failure and not last.at <= now < last.at + FRESH
            if last is None or last.state != state or is_old:
                last = AgentStart(state, now, self._probes.start_failure(agent))
                self._started[agent] = last
            return last.failure

    def _faults(self) -> Sequence[Diagnosis]:
        with self._lock:
            now = self._clock.now()
            if self._sound_at and self._sound_at <= now < self._sound_at + FRESH:
                return ()
            found = machine_faults(self._probes.operator, self._probes)
            self._probes = replace(self._probes, sandbox_works=False)
            self._sound_at = None if found else now
            return found
