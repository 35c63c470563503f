"""The port Attic: what the ledger holds of issues that nobody has asked about for long."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from mulligan.domain.issue import IssueRef


class Attic(Protocol):
    """Lets go of old issues, for all workers. See state/attic.py."""

    def outdated(self, before: datetime) -> Sequence[IssueRef]:
        """Name the resolved issues to which nothing has happened since, and that are still kept."""
        ...

    def forget(self, ref: IssueRef, before: datetime) -> bool:
        """Remove all but the remnant of an issue at once; False where something happened since."""
        ...


class Undisturbed:
    """The port Attic where nothing is ever let go of: in memory, and where a ref is the ledger."""

    def outdated(self, before: datetime) -> Sequence[IssueRef]:  # noqa: ARG002 - nothing is
        """Name no issue."""
        return ()

    def forget(self, ref: IssueRef, before: datetime) -> bool:  # noqa: ARG002 - it is kept
        """Remove nothing."""
        return False
