"""Drop the repeats of a warning or error from the log while its cause lasts."""

import time
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass, field
from threading import Lock

from structlog import DropEvent

REMINDER_SECONDS = 600.0
"""How often a line is logged again while its cause lasts."""

GAP_SECONDS = 120.0
"""The time without a line after which its cause has passed."""

CHANGES = frozenset({"configuration_loaded", "work_resumed", "poller_started"})
"""Events after which an earlier warning is news again, however soon it comes."""


@dataclass(slots=True)
class RepeatFilter:
    """A processor of structlog; `now` is in seconds. Safe for threads."""

    now: Callable[[], float] = time.monotonic
    _known: dict[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])
    """When each line was last logged, and when it last came."""
    _lock: Lock = field(default_factory=Lock)

    def __call__(
        self, _logger: object, _method: str, record: MutableMapping[str, object]
    ) -> MutableMapping[str, object]:
        """Return the record; raise DropEvent for a repeat."""
        with self._lock:
            if record["event"] in CHANGES:
                self._known.clear()
            if record["level"] == "info":
                return record
            now, line = self.now(), str({**record, "timestamp": None})
            since = now - GAP_SECONDS
            self._known = {each: at for each, at in self._known.items() if at[1] > since}
            logged, _ = self._known.get(line, (now, now))
            is_repeat = line in self._known and now < logged + REMINDER_SECONDS
            self._known[line] = (logged if is_repeat else now, now)
        if is_repeat:
            raise DropEvent
        return record
