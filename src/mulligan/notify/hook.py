"""Send messages to one web address, from a thread of its own: nothing waits for it (SPEC 17).

Best effort: a message is tried a few times, ever later, and lost with the process. Whoever must be
reached is, on GitHub.
"""

import queue
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress

import structlog
import urllib3
from urllib3.exceptions import HTTPError

from mulligan.config.notify import Notify
from mulligan.domain.events import Event
from mulligan.domain.status import IssueStatus
from mulligan.notify.messages import Message, message_of

WAITS = (0.0, 1.0, 5.0, 30.0)
"""Before each try, in seconds."""

TIMEOUT = 10.0
MOST = 100
"""How many messages wait at most; what comes then is left out."""

FAREWELL = 5.0
"""How long the end of the process waits for what is still to be sent, in seconds."""

log = structlog.get_logger()


class Hook:
    """Takes messages at once, and sends them one after the other."""

    def __init__(self, settings: Notify, waits: tuple[float, ...] = WAITS) -> None:
        self._url = settings.url.get_secret_value() if settings.url else ""
        self._events = {each.value for each in settings.events}
        self._waits = waits
        self._queue: queue.Queue[Message | None] = queue.Queue(MOST)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._send_all, name="notify", daemon=True)
        self._pool = urllib3.PoolManager(retries=False, timeout=TIMEOUT)

    def hear(self, status: IssueStatus, event: Event) -> None:
        """Have an event told, if it is one of those that were asked for; never blocks."""
        message = message_of(status, event)
        if message is None or message["event"] not in self._events:
            return
        try:
            self._queue.put_nowait(message)
        except queue.Full:
            log.warning("not_notified", issue=message["issue"], reason="Too many wait.")

    @contextmanager
    def running(self) -> Generator[None]:
        """Send in this block; its end waits a moment for what is left."""
        self._thread.start()
        try:
            yield
        finally:
            self._closing.set()
            with suppress(queue.Empty):
                while self._queue.full():
                    self._queue.get_nowait()
            self._queue.put_nowait(None)
            self._thread.join(FAREWELL)
            self._pool.clear()

    def _send_all(self) -> None:
        while message := self._queue.get():
            self._send(message)

    def _send(self, message: Message) -> None:
        reason = ""
        for wait in self._waits:
            # At the end there is no time for more than one try of each.
            if wait and self._closing.wait(wait):
                break
            reason = self._tried(message)
            if not reason:
                return
        log.warning("not_notified", issue=message["issue"], reason=reason)

    def _tried(self, message: Message) -> str:
        """Send it once; give what went wrong, in words that do not hold the address."""
        try:
            answer = self._pool.request("POST", self._url, json=message, redirect=False)
        except HTTPError as error:
            return f"The address did not answer ({type(error).__name__})."
        return "" if answer.status < 300 else f"The address answered {answer.status}."  # noqa: PLR2004


@contextmanager
def hooked(settings: Notify) -> Generator[Hook | None]:
    """Give the hook while the block runs; None where no address is configured."""
    if settings.url is None:
        yield None
        return
    hook = Hook(settings)
    with hook.running():
        yield hook
