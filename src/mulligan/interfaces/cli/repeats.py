"""Drop the repeats of a warning or error from the log while its cause lasts."""

import time
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass, field
from threading import Lock

from structlog import DropEvent

REMINDER_SECONDS = 600.0
"""How often a line is logged again while its cause lasts."""

CHANGES = frozenset({"configuration_loaded", "work_resumed", "poller_started"})
"""Events after which an earlier warning is news again, however soon it comes."""


@dataclass(slots=True)
class RepeatFilter:
    """A processor of structlog; `now` is in seconds. Safe for threads."""

    now: Callable[[], float] = time.monotonic
    _logged: dict[str, float] = field(default_factory=dict[str, float])
    """When each line was last logged."""
    _lock: Lock = field(default_factory=Lock)

    def __call__(
        self, _logger: object, _method: str, record: MutableMapping[str, object]
    ) -> MutableMapping[str, object]:
        """Return the record; raise DropEvent for a repeat."""
        with self._lock:
            if record["event"] in CHANGES:
                self._logged.clear()
            if record["level"] == "info":
                return record
            now, line = self.now(), str({**record, "timestamp": None})
            since = now - REMINDER_SECONDS
            self._logged = {each: at for each, at in self._logged.items() if at > since}
            if line in self._logged:
                raise DropEvent
            self._logged[line] = now
        return record
