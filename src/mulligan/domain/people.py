"""What the ledger records of people who give commands (SPEC 14). Pure."""

from datetime import datetime
from typing import Literal

from mulligan.domain.command import Verb
from mulligan.domain.record import Record


class CommandReceived(Record):
    """A trusted person, or the operator, gave a command; `key` is the comment, or the moment.

    What it says holds from here on; that it was carried out is a HumanResponded.
    """

    kind: Literal["command_received"] = "command_received"
    key: str
    command: Verb
    text: str = ""
    actor: str = ""
    at: datetime
    actor_id: int | None = None


class HumanResponded(Record):
    """A command was carried out, or answered; there is one for each key."""

    kind: Literal["human_responded"] = "human_responded"
    key: str
    command: Verb
    actor: str = ""
    answer: str
