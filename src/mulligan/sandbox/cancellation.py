"""Cancellation: of all work at a shutdown, or of one visit for its own reason."""

import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import TypeVar

from mulligan.domain.errors import MulliganError, ShutdownError, WithdrawnError

T = TypeVar("T")

CLOSING = threading.Event()
"""Set when Mulligan is asked to stop: running work may finish, and no work starts."""

SHUTDOWN = threading.Event()
"""Set when that takes too long: every running command is stopped."""


class Cancellation:
    """Stops the commands of one piece of work, with a reason; the first reason stays."""

    def __init__(self) -> None:
        self._reason: MulliganError | None = None
        self._expiry: tuple[float, MulliganError] | None = None

    def cancel(self, reason: MulliganError) -> None:
        """Stop the commands; `run` raises the reason."""
        self._reason = self._reason or reason

    def expire(self, at: float, reason: MulliganError) -> None:
        """Stop the commands at this `time.monotonic()`, unless a later call sets a later time."""
        self._expiry = (at, reason)

    @property
    def reason(self) -> MulliganError | None:
        """Return the reason to stop; None if there is none."""
        if self._expiry and time.monotonic() >= self._expiry[0]:
            self.cancel(self._expiry[1])
        return self._reason


CURRENT_CANCELLATION: ContextVar[Cancellation | None] = ContextVar("stop", default=None)
"""Stops the work of this thread, besides SHUTDOWN."""


@contextmanager
def ignore_cancellation() -> Generator[None]:
    """Run this block's commands although the work is cancelled; a shutdown still stops them."""
    token = CURRENT_CANCELLATION.set(None)
    try:
        yield
    finally:
        CURRENT_CANCELLATION.reset(token)


_RECORDING: ContextVar[bool] = ContextVar("recording", default=False)


@contextmanager
def defer_shutdown() -> Generator[None]:
    """Run this block to its end, even at a shutdown, so that its results are recorded."""
    token = _RECORDING.set(True)
    try:
        yield
    finally:
        _RECORDING.reset(token)


@contextmanager
def meanwhile(call: Callable[[], T]) -> Generator[Callable[[], T]]:
    """Make a call in a thread while the block runs; yield a function that waits for its result.

    What cancels the work of this thread cancels the call too. The block ends after the call.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="meanwhile") as pool:
        yield pool.submit(copy_context().run, call).result


@contextmanager
def in_background(call: Callable[[], None]) -> Generator[None]:
    """Make a call in a thread while the block runs; at the end of the block, stop it, and wait.

    Unlike `meanwhile`, only the end of the block and a shutdown stop its commands. The block raises
    what the call raises.
    """
    stop, context = Cancellation(), copy_context()
    context.run(CURRENT_CANCELLATION.set, stop)
    with ThreadPoolExecutor(1, thread_name_prefix="background") as pool:
        made = pool.submit(context.run, call)
        try:
            yield
        finally:
            stop.cancel(WithdrawnError("The result is not needed any more."))
    made.result()


def wait_for(event: threading.Event, seconds: float) -> bool:
    """Wait until an event is set; False if it is not in time. Raise why this work must stop."""
    until = time.monotonic() + seconds
    while not event.wait(min(POLL_SECONDS, max(until - time.monotonic(), 0))):
        if reason := reason_to_stop():
            raise reason
        if time.monotonic() >= until:
            return False
    return True


def stopping() -> bool:
    """Return whether Mulligan is stopping."""
    return CLOSING.is_set() or SHUTDOWN.is_set()


def reason_to_stop() -> MulliganError | None:
    """Return why the work of this thread must stop; None if it need not."""
    if _RECORDING.get():
        return None
    if SHUTDOWN.is_set():
        return _told_to_stop()
    stop = CURRENT_CANCELLATION.get()
    return stop.reason if stop else None


POLL_SECONDS = 0.1
"""How often a sleep checks for cancellation, in seconds."""


def sleep_until_cancelled(seconds: float) -> None:
    """Sleep; raise the reason as soon as the work is cancelled or Mulligan is stopping.

    The next start continues interrupted work.
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
