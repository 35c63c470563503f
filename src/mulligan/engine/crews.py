"""The crews of a daemon: the newest, and those that were replaced and still have work to end."""

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from mulligan.engine.freshness import Freshness
from mulligan.engine.worker import Worker
from mulligan.tools import Tools


def _nothing() -> None:
    """Close nothing."""


@dataclass(frozen=True, slots=True)
class Crew:
    """What the configuration asks for: the repositories, and a worker with its tools.

    A new one fetches every repository afresh. `close` gives back what the tools have open.
    """

    repositories: tuple[str, ...]
    tools: Tools
    worker: Worker
    freshness: Freshness = field(default_factory=Freshness)
    close: Callable[[], None] = _nothing


@dataclass(slots=True)
class _Shift:
    crew: Crew
    uses: int = 0


class Crews:
    """Hands out crews; one that was replaced is closed once nobody uses it any more."""

    def __init__(self, reload: Callable[[], Crew | None]) -> None:
        """Start with no crew; `reload` gives one whenever the configuration changed, else None."""
        self._reload = reload
        self._lock = threading.Lock()
        self._shifts: list[_Shift] = []

    @property
    def newest(self) -> Crew | None:
        """Give the crew that serves, without a look at the configuration; None before the first."""
        with self._lock:
            return self._shifts[-1].crew if self._shifts else None

    @contextmanager
    def renewed(self) -> Generator[Crew | None]:
        """Look at the configuration, and use the newest crew."""
        # Whoever comes first reads the configuration; the others wait for it.
        with self._lock:
            if changed := self._reload():
                self._shifts.append(_Shift(changed))
            shifts = self._begin(self._shifts[-1:])
        with self._using(shifts):
            yield shifts[0].crew if shifts else None

    @contextmanager
    def serving(self) -> Generator[Crew]:
        """Use the newest crew; there has to be one."""
        with self._lock:
            shifts = self._begin(self._shifts[-1:])
        with self._using(shifts):
            yield shifts[0].crew

    @contextmanager
    def all(self) -> Generator[list[Crew]]:
        """Use every crew that still has work."""
        with self._lock:
            shifts = self._begin(self._shifts)
        with self._using(shifts):
            yield [each.crew for each in shifts]

    def close(self) -> None:
        """Close them all, when nobody uses any."""
        with self._lock:
            gone, self._shifts = self._shifts, []
        for each in gone:
            each.crew.close()

    def _begin(self, shifts: list[_Shift]) -> list[_Shift]:
        for each in shifts:
            each.uses += 1
        return list(shifts)

    @contextmanager
    def _using(self, shifts: list[_Shift]) -> Generator[None]:
        try:
            yield
        finally:
            with self._lock:
                for each in shifts:
                    each.uses -= 1
                gone = [each for each in self._shifts[:-1] if not each.uses]
                self._shifts = [each for each in self._shifts if each not in gone]
            for each in gone:
                each.crew.close()
