"""What a command comes to, by what it is and where the issue stands (SPEC H4). Pure."""

from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from mulligan.domain.command import Order, Verb, aborted, skipped
from mulligan.domain.issue import Stage
from mulligan.domain.status import IssueStatus


class Deed(StrEnum):
    """What is done about a command; TELL is to answer it in a comment, and no more."""

    OPEN_EPOCH = "open_epoch"
    STAND_DOWN = "stand_down"
    RESOLVE = "resolve"
    SHOW = "show"
    TELL = "tell"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Ruling:
    """What is done, and what it is called: in the ledger, and in an answer."""

    deed: Deed
    words: str


def ruling(order: Order, status: IssueStatus, *, is_open: bool) -> Ruling:
    """Say what a command comes to; an issue that is closed is not worked on."""
    match order.verb:
        case Verb.RETRY | Verb.FIX:
            return _again(order, status, is_open=is_open)
        case Verb.ABORT:
            return _abort(order, status)
        case Verb.SKIP:
            done = status.stage is Stage.RESOLVED and status.reason == skipped(order)
            return Ruling(Deed.SHOW if done else Deed.RESOLVE, skipped(order))
        case Verb.PAUSE:
            return Ruling(Deed.SHOW, "It is paused; an attempt that runs goes on to its end.")
        case Verb.RESUME:
            return Ruling(Deed.SHOW, "It goes on.")
        case Verb.STATUS:
            return Ruling(Deed.TELL, "Told where it stands.")
        case Verb.MISTYPED:
            return Ruling(Deed.TELL, order.text)
        case _:
            assert_never(order.verb)


def _again(order: Order, status: IssueStatus, *, is_open: bool) -> Ruling:
    if status.act == order.key:
        return Ruling(Deed.SHOW, "It is taken up again.")
    if not is_open:
        return Ruling(Deed.TELL, "This issue is closed; reopen it, then ask again.")
    if order.verb is Verb.RETRY and order.stage is Stage.RUNNING:
        said = "An attempt runs already. To have it begin afresh with other guidance, use `fix:`."
        return Ruling(Deed.TELL, said)
    waits_for_nothing = status.epoch and not status.attempt and not status.reason
    if order.verb is Verb.RETRY and status.stage is Stage.READY and waits_for_nothing:
        return Ruling(Deed.SHOW, "It is queued already.")
    return Ruling(Deed.OPEN_EPOCH, "It is taken up again.")


def _abort(order: Order, status: IssueStatus) -> Ruling:
    words = aborted(order)
    if status.stage is Stage.READY and status.epoch:
        return Ruling(Deed.STAND_DOWN, words)
    if status.stage is Stage.RESOLVED and status.reason == words:
        return Ruling(Deed.NOTHING, words)
    if order.stage is Stage.RUNNING:
        return Ruling(Deed.TELL, "The attempt had ended before it could be stopped.")
    return Ruling(Deed.TELL, "No attempt runs, and none is queued.")
