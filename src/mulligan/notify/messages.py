"""What is told of an event, and whether anything is: JSON that Slack understands too. Pure."""

from mulligan.config.notify import Occasion
from mulligan.domain.command import Verb
from mulligan.domain.decision import WaitForBudget
from mulligan.domain.events import Decided, Escalated, Event
from mulligan.domain.people import CommandReceived
from mulligan.domain.status import IssueStatus
from mulligan.text.escape import one_line

Message = dict[str, str]
REASON_CHARS = 500


def message_of(status: IssueStatus, event: Event) -> Message | None:
    """Word an event; None for one that nobody is told of. `text` is what Slack shows."""
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
