"""Decide which installation owns a repository's ready label, and which stands back. Pure."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated

from pydantic import AwareDatetime, Field

RENEWAL = timedelta(minutes=1)
"""How often an owner renews its record."""

LAPSE = timedelta(minutes=5)
"""How long a record must stay unchanged until another installation may replace it."""

InstallationId = Annotated[str, Field(pattern=r"^[a-z0-9-]{1,40}$")]
"""An installation's id, which is no host name; anybody with push access can write one."""


@dataclass(frozen=True, slots=True)
class OwnerRecord:
    """Who owns a ready label; `renewals` grows with each renewal. `renewed` is for people only."""

    installation: InstallationId
    renewed: AwareDatetime
    renewals: Annotated[int, Field(ge=1, le=2**53)] = 1

    @property
    def version(self) -> str:
        """Identify this renewal; the next one has another value."""
        return f"{self.renewed.isoformat()} {self.renewals}"


@dataclass(frozen=True, slots=True)
class StandBack:
    """Another installation, `owner`, for which this one has stood back since `since`."""

    repository: str
    ready_label: str
    owner: str
    since: datetime

    @property
    def sentence(self) -> str:
        """Describe who owns the label, and how this installation gets it."""
        minutes = LAPSE // timedelta(minutes=1)
        return (
            f"{self.repository}: another installation of Mulligan ({self.owner}) works on the label"
            f" `{self.ready_label}`. This one has stood back since"
            f" {self.since:%Y-%m-%d %H:%M} UTC. It takes over {minutes} minutes after the other"
            " one stops. To take over now: `mulligan run --take-over`."
        )


def may_own(unchanged: timedelta | None, *, take_over: bool) -> bool:
    """Decide whether an installation may own a label.

    `unchanged`: how long it has seen the same record of another owner; None if there is none.
    """
    return unchanged is None or take_over or unchanged >= LAPSE


def renewed(record: OwnerRecord | None, installation: str, now: datetime) -> OwnerRecord:
    """Return the record that replaces another one, or the first."""
    return OwnerRecord(installation, now, 1 + (record.renewals if record else 0))
