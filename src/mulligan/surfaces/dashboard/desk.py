"""What the dashboard looks at: the daemon's books as they are now, its pulse, GitHub's answers."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self

from mulligan.accounts import Accounts
from mulligan.artifacts import Artifacts
from mulligan.config.budget import Budget
from mulligan.engine.pulse import Pulse
from mulligan.errors import UnavailableError
from mulligan.ports import Clock, Ledger
from mulligan.text.redact import Redactor
from mulligan.tools import Tools
from mulligan.wiring.gauges import Gauges

STARTING = "Mulligan is starting, or its configuration has a mistake; its log says which."


@dataclass(frozen=True, slots=True)
class Books:
    """What is written down of all issues, and the filter that it is shown through."""

    ledger: Ledger
    accounts: Accounts
    artifacts: Artifacts
    clock: Clock
    budget: Budget = field(default_factory=Budget)
    redactor: Redactor = field(default_factory=Redactor)

    @classmethod
    def of(cls, tools: Tools) -> Self:
        """Take from the daemon's tools those that pages are made of."""
        return cls(
            tools.ledger,
            tools.accounts,
            tools.artifacts,
            tools.clock,
            tools.budget,
            tools.redactor,
        )


@dataclass(frozen=True, slots=True)
class Desk:
    """Everything by way of what the daemon has already; nothing here writes.

    `find_books` gives None before the configuration was read. `patience` is for how many seconds
    the poll may be quiet; `check_writable` raises a MulliganError where the ledger is not.
    `ending` is set when the server ends.
    """

    find_books: Callable[[], Books | None]
    pulse: Pulse
    gauges: Gauges
    patience: Callable[[], float]
    check_writable: Callable[[], None]
    ending: threading.Event = field(default_factory=threading.Event)

    @property
    def books(self) -> Books:
        """Give the books; UnavailableError while there are none."""
        found = self.find_books()
        if found is None:
            raise UnavailableError(STARTING)
        return found

    @property
    def redactor(self) -> Redactor:
        """Give the filter of the moment, which knows the shapes of tokens in any case."""
        found = self.find_books()
        return found.redactor if found else Redactor()
