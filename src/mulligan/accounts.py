"""The port Accounts: what agents have used of the money and the tokens that they may use."""

from collections.abc import Mapping
from datetime import date, datetime
from typing import Protocol

from mulligan.domain.issue import IssueRef
from mulligan.domain.result import AgentFacts
from mulligan.domain.spending import Run, Spent


class Accounts(Protocol):
    """What agents have used, as they report it, for all workers. See state/accounts.py."""

    def record(self, run: Run, usage: AgentFacts) -> None:
        """Note durably what a run has used so far, in place of what was noted of it before."""
        ...

    def on(self, day: date) -> Mapping[str, Spent]:
        """Add up what the runs that began on a day in UTC have used, by repository."""
        ...

    def of(self, ref: IssueRef, number: int) -> Mapping[int, AgentFacts]:
        """Give what the runs of an attempt have used, by fix round; 0 is the first run."""
        ...

    def refused_at(self, agent: str) -> datetime | None:
        """Say when the last run of an agent began, if the model's service refused its key then."""
        ...
