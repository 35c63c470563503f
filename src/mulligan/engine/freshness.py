"""Fetch a repository before it is worked on, and once in a while besides, but not at every poll."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from mulligan.engine.listening import Ears
from mulligan.errors import MisconfiguredError
from mulligan.tools import Tools

LONGEST = timedelta(minutes=5)
"""How old the policy may be by which a repository without work is asked; a fetch costs 20 ms."""


@dataclass(frozen=True, slots=True)
class Freshness:
    """When each repository was fetched last, and what was heard of it; for one thread at a time."""

    fetched: dict[str, datetime] = field(default_factory=dict[str, datetime])
    ears: Ears = field(default_factory=Ears)

    def renew(self, repository: str, tools: Tools, oldest: timedelta) -> str | None:
        """Fetch the base branch, with the policy on it, unless that was done just now.

        Gives what is wrong with a branch that is not there. That does not stop the poll: each
        issue is told so by its attempt.
        """
        now, last = tools.clock.now(), self.fetched.get(repository)
        if last is not None and last <= now < last + oldest:
            return None
        wrong = None
        try:
            tools.worktrees.refresh(repository)
        except MisconfiguredError as error:
            wrong = str(error)
        self.fetched[repository] = now
        return wrong
