"""Decide what holds new work: a pause by the operator, or a fault of this machine. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from mulligan.domain.host import Diagnosis, Level

EVERYTHING = ""
"""What a pause of all repositories is stored under."""


@dataclass(frozen=True, slots=True)
class Pause:
    """A pause of one repository, or of EVERYTHING, until an operator resumes it."""

    repository: str
    since: datetime

    @property
    def sentence(self) -> str:
        """Describe the pause, and how it ends."""
        what = self.repository or "Everything"
        resume = f"mulligan resume {self.repository}".rstrip()
        return (
            f"{what} has been paused since {self.since:%Y-%m-%d %H:%M} UTC. To resume: `{resume}`."
        )


@dataclass(frozen=True, slots=True)
class Hold:
    """Why no attempt begins; `is_fault` tells a fault of the machine from a pause."""

    reason: str
    is_fault: bool = False


def hold_on(repository: str, pauses: Iterable[Pause], faults: Sequence[Diagnosis]) -> Hold | None:
    """Decide whether attempts may begin in a repository; None if they may."""
    for pause in pauses:
        if pause.repository in {EVERYTHING, repository}:
            return Hold(pause.sentence)
    found = [f"{each.message} {each.fix}" for each in faults if each.level is Level.FAULT]
    if not found:
        return None
    return Hold(
        f"No attempt begins: {' '.join(found)} Work goes on when that is fixed.", is_fault=True
    )
