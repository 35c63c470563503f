"""How work is told to end: all of it at a shutdown, or one visit for a reason of its own."""

import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

from mulligan.domain.errors import MulliganError, ShutdownError

CLOSING = threading.Event()
"""Set when Mulligan is told to stop: what runs may end, and nothing new is begun."""

SHUTDOWN = threading.Event()
"""Set when that takes too long: every running command is ended."""


class Cancellation:
    """Tells the commands of one piece of work to end, and why; the first reason stays."""

    def __init__(self) -> None:
        self._reason: MulliganError | None = None

    def cancel(self, reason: MulliganError) -> None:
        """End what runs under it; `run` raises the reason."""
        self._reason = self._reason or reason

    @property
    def reason(self) -> MulliganError | None:
        """Give the reason to stop; None while there is none."""
        return self._reason


CURRENT_CANCELLATION: ContextVar[Cancellation | None] = ContextVar("stop", default=None)
"""What stops the work of this thread, besides SHUTDOWN."""


@contextmanager
def ignore_cancellation() -> Generator[None]:
    """Let the commands of this block run, though the work was told to end; a shutdown ends them."""
    token = CURRENT_CANCELLATION.set(None)
    try:
        yield
    finally:
        CURRENT_CANCELLATION.reset(token)


_RECORDING: ContextVar[bool] = ContextVar("recording", default=False)


@contextmanager
def defer_shutdown() -> Generator[None]:
    """Write down what happened: what this block runs comes to its end, also at a shutdown."""
    token = _RECORDING.set(True)
    try:
        yield
    finally:
        _RECORDING.reset(token)


def stopping() -> bool:
    """Tell whether Mulligan is stopping."""
    return CLOSING.is_set() or SHUTDOWN.is_set()


def reason_to_stop() -> MulliganError | None:
    """Say why the work of this thread is to end; None while it is not."""
    if _RECORDING.get():
        return None
    if SHUTDOWN.is_set():
        return _told_to_stop()
    stop = CURRENT_CANCELLATION.get()
    return stop.reason if stop else None


POLL_SECONDS = 0.1
"""How soon a rest hears that it is to end, in seconds."""


def sleep_until_cancelled(seconds: float) -> None:
    """Wait for something outside; raises why, as soon as the work is to end or nothing new begun.

    What is cut short is taken up again at the next start.
    """
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        if reason := reason_to_stop():
            raise reason
        if CLOSING.is_set():
            raise _told_to_stop()
        time.sleep(min(left, POLL_SECONDS))


def _told_to_stop() -> ShutdownError:
    return ShutdownError("Mulligan is stopping.")
