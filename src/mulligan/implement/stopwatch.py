"""Measure the parts of a running attempt with its clock."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from mulligan.domain.attempt_times import NO_TIME, Copies, Part


@dataclass(slots=True)
class Stopwatch:
    """The time of each part so far; `now` returns the time.

    `set_up_reused` is set if no setup command had to run. `copies` are those of what the setup
    commands left; None if there is nothing.
    """

    now: Callable[[], datetime]
    measured: dict[Part, timedelta] = field(default_factory=dict[Part, timedelta])
    set_up_reused: bool = False
    copies: Copies | None = None

    @contextmanager
    def measure(self, part: Part) -> Generator[None]:
        """Add the time of this block to a part, also if the block fails."""
        began = self.now()
        try:
            yield
        finally:
            took = max(self.now() - began, NO_TIME)
            self.measured[part] = self.measured.get(part, NO_TIME) + took
