"""The commands that people give in comments or on the command line (COMMAND-1). Pure."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from mulligan.domain.issue import Act, CommentAct, Stage


class Verb(StrEnum):
    """The commands; MISTYPED is an invalid one."""

    RETRY = "retry"
    FIX = "fix"
    SKIP = "skip"
    ABORT = "abort"
    PAUSE = "pause"
    RESUME = "resume"
    STATUS = "status"
    MISTYPED = "mistyped"


OPENING = frozenset({Verb.RETRY, Verb.FIX})
"""Commands that request new attempts and end a pause."""

ASKING = frozenset({Verb.STATUS, Verb.RETRY, Verb.MISTYPED})
"""Commands that are answered while an attempt runs, without changing anything."""

STOPPING = frozenset({Verb.ABORT, Verb.SKIP, Verb.FIX})
"""Commands that end a running attempt."""


@dataclass(frozen=True, slots=True)
class Command:
    """A parsed command; `text` is the guidance, the reason, or the error in it."""

    verb: Verb
    text: str = ""


@dataclass(frozen=True, slots=True)
class CommentCommand:
    """A command in a trusted person's comment; `number` is of the issue or pull request."""

    number: int
    comment: int
    command: Command
    actor: str
    at: datetime
    actor_id: int | None = None
    on_pull_request: bool = False

    @property
    def act(self) -> CommentAct:
        """Return the act of the command; it runs only once."""
        return CommentAct(self.comment)


@dataclass(frozen=True, slots=True)
class CommandBatch:
    """The commands in the comments that were read; `read_to` is the newest comment's id."""

    commands: tuple[CommentCommand, ...] = ()
    read_to: int = 0


@dataclass(frozen=True, slots=True)
class PendingCommand:
    """A recorded command without an answer; `stage` is the issue's when it was given.

    `is_done`: the work that it stops has ended, so that only the answer is left.
    """

    act: Act
    verb: Verb
    text: str
    actor: str
    at: datetime
    stage: Stage
    actor_id: int | None = None
    is_done: bool = False

    @property
    def who(self) -> str:
        """Return the name of the person who gave it."""
        return self.actor or "An operator"

    @property
    def comment(self) -> int | None:
        """Return the id of its comment; None for one from the command line."""
        return self.act.comment if isinstance(self.act, CommentAct) else None

    @property
    def as_withdrawal(self) -> str:
        """Return why the command stops a running attempt."""
        match self.verb:
            case Verb.FIX:
                return f"{self.who} gave a new instruction; a new attempt starts."
            case Verb.SKIP:
                return f"{self.who} skipped it."
            case _:
                return aborted(self)


def aborted(order: PendingCommand) -> str:
    """Return the reason that an abort gives for the stop."""
    return f"{order.who} stopped it."


def skipped(order: PendingCommand) -> str:
    """Return the reason that a skip gives for the stop."""
    why = f": {order.text}" if order.text else "."
    return f"{order.who} skipped it{why}"
