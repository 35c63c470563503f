"""Posts messages about events to one web address, in a thread of its own (NOTIFY-1)."""

import queue
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress

import structlog
import urllib3
from urllib3.exceptions import HTTPError

from mulligan.config.operator import Notify, Occasion
from mulligan.domain.command import Verb
from mulligan.domain.events import CommandReceived, Decided, Escalated, Event
from mulligan.domain.outcome import WaitForBudget
from mulligan.domain.status import IssueStatus
from mulligan.text.escape import one_line

Message = dict[str, str]

REASON_CHARS = 500

RETRY_WAITS = (0.0, 1.0, 5.0, 30.0)
"""Before each try, in seconds."""

TIMEOUT = 10.0

MAX_QUEUED = 100
"""Messages that wait at most; further ones are dropped."""

DRAIN_SECONDS = 5.0
"""How long the end of the process waits for what is still to be sent, in seconds."""

log = structlog.get_logger()


def message_of(status: IssueStatus, event: Event) -> Message | None:
    """Give the message of an event; None if it has none. `text` is what Slack shows."""
    ref = str(status.issue)
    match event:
        case Escalated(reason=reason, comment=url):
            said = f"{ref} needs a person: {_plain(reason)} {url}".rstrip()
            return _message(Occasion.ESCALATED, ref, reason, url, said)
        case CommandReceived(command=Verb.PAUSE, actor=actor):
            reason = f"{actor or 'An operator'} paused it."
            return _message(Occasion.PAUSED, ref, reason, "", f"{ref}: {_plain(reason)}")
        case Decided(decision=WaitForBudget(reason=reason)):
            return _message(Occasion.BUDGET, ref, reason, "", f"{ref} waits: {_plain(reason)}")
        case _:
            return None


def _plain(text: str) -> str:
    """Write foreign text so that Slack makes no mention and no link of it."""
    shown = one_line(text, REASON_CHARS)
    return shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _message(occasion: Occasion, ref: str, reason: str, url: str, text: str) -> Message:
    return {
        "text": text,
        "event": occasion.value,
        "issue": ref,
        "reason": one_line(reason, REASON_CHARS),
        "url": url,
    }


class WebhookNotifier:
    """Takes messages at once, and sends them one after the other."""

    def __init__(self, settings: Notify, waits: tuple[float, ...] = RETRY_WAITS) -> None:
        self._url = settings.url.get_secret_value() if settings.url else ""
        self._events = {each.value for each in settings.events}
        self._waits = waits
        self._queue: queue.Queue[Message | None] = queue.Queue(MAX_QUEUED)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._send_all, name="notify", daemon=True)
        self._pool = urllib3.PoolManager(retries=False, timeout=TIMEOUT)

    def on_event(self, status: IssueStatus, event: Event) -> None:
        """Queue the message of an event, if it is configured; never blocks."""
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
            self._thread.join(DRAIN_SECONDS)
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
def open_notifier(settings: Notify) -> Generator[WebhookNotifier | None]:
    """Give the hook while the block runs; None where no address is configured."""
    if settings.url is None:
        yield None
        return
    hook = WebhookNotifier(settings)
    with hook.running():
        yield hook
