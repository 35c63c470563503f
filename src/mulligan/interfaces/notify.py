"""Post messages about events to a webhook, in a separate thread (NOTIFY-1)."""

import queue
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import structlog
import urllib3
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_result,
    sleep_using_event,
    stop_after_attempt,
    stop_when_event_set,
    wait_chain,
    wait_fixed,
)
from urllib3.exceptions import HTTPError

from mulligan.config.certificates import context_of
from mulligan.config.operator import Notify, Occasion
from mulligan.domain.command import Verb
from mulligan.domain.events import CommandReceived, Decided, Escalated, Event
from mulligan.domain.outcome import WaitForBudget
from mulligan.domain.status import IssueStatus
from mulligan.text.certificates import TRUST, certificate_fault
from mulligan.text.escape import one_line

Message = dict[str, str]

REASON_CHARS = 500

RETRY_WAITS = (1.0, 5.0, 30.0)
"""Seconds to wait between the tries."""

TIMEOUT = 10.0

MAX_QUEUED = 100
"""Size of the queue; Mulligan drops further messages."""

DRAIN_SECONDS = 5.0
"""Seconds that the process waits for queued messages before it exits."""

FULL = f"{MAX_QUEUED} messages are queued already, so this one is dropped. Check notify.url."

log = structlog.get_logger()


def message_of(status: IssueStatus, event: Event) -> Message | None:
    """Return the message of an event, or None. Slack shows the field `text`."""
    ref = str(status.issue)
    match event:
        case Escalated(reason=reason, comment=url):
            message = f"{ref} needs human review: {_plain(reason)} {url}".rstrip()
            return _message(Occasion.ESCALATED, ref, reason, url, message)
        case CommandReceived(command=Verb.PAUSE, actor=actor):
            reason = f"{actor or 'An operator'} paused it."
            return _message(Occasion.PAUSED, ref, reason, "", f"{ref}: {_plain(reason)}")
        case Decided(decision=WaitForBudget(reason=reason)):
            return _message(Occasion.BUDGET, ref, reason, "", f"{ref} waits: {_plain(reason)}")
        case _:
            return None


def _plain(text: str) -> str:
    """Escape untrusted text so that Slack makes no mention or link of it."""
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
    """Queues messages, and sends them one after the other."""

    def __init__(
        self,
        settings: Notify,
        bundle: Path | None = None,
        waits: tuple[float, ...] = RETRY_WAITS,
    ) -> None:
        self._url = settings.url.get_secret_value() if settings.url else ""
        self._events = {each.value for each in settings.events}
        self._queue: queue.Queue[Message | None] = queue.Queue(MAX_QUEUED)
        self._closing = threading.Event()
        self._retrying = Retrying(
            retry=retry_if_result(bool),
            wait=wait_chain(*map(wait_fixed, waits)),
            # While the process exits, a message gets one more try at most.
            stop=stop_after_attempt(len(waits) + 1) | stop_when_event_set(self._closing),
            sleep=sleep_using_event(self._closing),
            retry_error_callback=_last_reason,
        )
        self._thread = threading.Thread(target=self._send_all, name="notify", daemon=True)
        self._pool = urllib3.PoolManager(
            retries=False,
            timeout=TIMEOUT,
            ssl_context=context_of(bundle) if bundle else None,
        )

    def on_event(self, status: IssueStatus, event: Event) -> None:
        """Queue the message of an event, if it is configured; never blocks."""
        message = message_of(status, event)
        if message is None or message["event"] not in self._events:
            return
        try:
            self._queue.put_nowait(message)
        except queue.Full:
            log.warning("notification_not_sent", issue=message["issue"], reason=FULL)

    @contextmanager
    def running(self) -> Generator[None]:
        """Send during this block; at its end, wait up to `DRAIN_SECONDS` for queued messages."""
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
        if reason := self._retrying(self._tried, message):
            log.warning("notification_not_sent", issue=message["issue"], reason=reason)

    def _tried(self, message: Message) -> str:
        """Send once; return the error, without the address because it may contain a token."""
        try:
            answer = self._pool.request("POST", self._url, json=message, redirect=False)
        except HTTPError as error:
            if refused := certificate_fault(error):
                return f"The certificate of notify.url {refused.explain(TRUST)}."
            return f"No answer from notify.url ({type(error).__name__}). Check the address."
        if answer.status < 300:  # noqa: PLR2004
            return ""
        return f"notify.url answered {answer.status}. Check the address and its token."


def _last_reason(state: RetryCallState) -> str:
    return state.outcome.result() if state.outcome else ""


@contextmanager
def open_notifier(
    settings: Notify, bundle: Path | None = None
) -> Generator[WebhookNotifier | None]:
    """Yield the notifier, or None without a configured address."""
    if settings.url is None:
        yield None
        return
    hook = WebhookNotifier(settings, bundle)
    with hook.running():
        yield hook
