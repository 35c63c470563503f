"""What the port Tracker has for talking with people: commands in, acknowledgements out."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from mulligan.domain.case import Case
from mulligan.domain.command import Heard, Order
from mulligan.domain.issue import IssueRef


class Conversation(Protocol):
    """See github/hearing.py and github/replies.py."""

    def hear(
        self, repository: str, after: int, since: datetime, places: Sequence[IssueRef] = ()
    ) -> Heard:
        """Read the commands of trusted people in comments newer than id `after`, and `since`.

        A server that has no list of all comments is asked for those in `places`, which are issues
        and pull requests.
        """
        ...

    def react(self, repository: str, comment: int, reaction: str) -> None:
        """Acknowledge a comment; best effort."""
        ...

    def reply(self, case: Case, order: Order, answer: str) -> str:
        """Write the one comment that answers a command; give its id."""
        ...
