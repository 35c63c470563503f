"""How work is told to end: all of it at a shutdown, or one visit for a reason of its own."""

import threading
from contextvars import ContextVar

from mulligan.errors import MulliganError, ShutdownError

SHUTDOWN = threading.Event()
"""Set once, when Mulligan is told to stop: every running command is then ended."""


class Stop:
    """Tells the commands of one piece of work to end, and why; the first reason stays."""

    def __init__(self) -> None:
        self._reason: MulliganError | None = None

    def give(self, reason: MulliganError) -> None:
        """End what runs under it; `run` raises the reason."""
        self._reason = self._reason or reason

    @property
    def reason(self) -> MulliganError | None:
        """Give the reason to stop; None while there is none."""
        return self._reason


STOP: ContextVar[Stop | None] = ContextVar("stop", default=None)
"""What stops the work of this thread, besides SHUTDOWN."""


def stopping() -> bool:
    """Tell whether Mulligan was told to stop."""
    return SHUTDOWN.is_set()


def reason_to_stop() -> MulliganError | None:
    """Say why the work of this thread is to end; None while it is not."""
    if stopping():
        return ShutdownError("Mulligan was told to stop.")
    stop = STOP.get()
    return stop.reason if stop else None
