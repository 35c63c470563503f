"""Give one run of an agent its way to the model, and to as little else as the sandbox allows."""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mulligan.agent.services import allowed_for, pointed_inside, pointed_outside, variables_inside
from mulligan.config.adapters import Adapter
from mulligan.egress.door import open_door
from mulligan.egress.journal import Journal
from mulligan.errors import UnavailableError
from mulligan.sandbox.confinement import Network
from mulligan.sandbox.sandbox import PORT


@dataclass(frozen=True, slots=True)
class WayOut:
    """How one run is led out: its adapter and variables, pointed at what it reaches."""

    adapter: Adapter
    variables: Mapping[str, str]
    network: Network
    door: Path | None = None
    journal: Journal | None = None

    @property
    def refused(self) -> tuple[str, ...]:
        """Name the hosts that were refused."""
        return self.journal.hosts if self.journal else ()


@dataclass(frozen=True, slots=True)
class Outside:
    """What agents may reach; `environment` is Mulligan's own, with the keys."""

    network: Network
    hosts: tuple[str, ...]
    environment: Mapping[str, str]
    clean: Callable[[str], str]

    @contextmanager
    def lead(self, adapter: Adapter, variables: Mapping[str, str], log: Path) -> Generator[WayOut]:
        """Lead one run out while the block lasts; what it reached and did not is kept at `log`.

        Raises MisconfiguredError where the address of a model is none.
        """
        if self.network is not Network.MODEL:
            pointed = pointed_outside(adapter, self.environment)
            yield WayOut(pointed, variables, self.network)
            return
        allowed = allowed_for(adapter, self.environment, self.hosts, PORT)
        inside = variables_inside(adapter, variables, self.environment, PORT)
        pointed = pointed_inside(adapter, self.environment, PORT)
        with _journal(log, self.clean) as journal, open_door(allowed, journal) as door:
            yield WayOut(pointed, inside, self.network, door, journal)


@contextmanager
def _journal(log: Path, clean: Callable[[str], str]) -> Generator[Journal]:
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        file = log.open("w", encoding="utf-8")
    except OSError as error:
        message = f"The log {log} cannot be written: {error.strerror}; make room for it."
        raise UnavailableError(message) from error
    with file:
        yield Journal(file, clean)
