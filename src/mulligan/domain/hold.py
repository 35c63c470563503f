"""Decide what holds new work: a pause by the operator, or a fault of this machine. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from mulligan.domain.host import Diagnosis, Level

EVERYTHING = ""
"""The key of a pause of all repositories."""


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


def hold_on(
    repository: str,
    pauses: Iterable[Pause],
    faults: Sequence[Diagnosis],
    agents: Sequence[Sequence[Diagnosis]] = (),
) -> Hold | None:
    """Decide whether attempts may begin in a repository; None if they may.

    `agents` has the findings about each agent that the repository may use. Their faults hold it
    only if every one of them has one.
    """
    for pause in pauses:
        if pause.repository in {EVERYTHING, repository}:
            return Hold(pause.sentence)
    found, missing = _faults(faults), [_faults(each) for each in agents]
    if all(missing):
        found += [reason for each in missing for reason in each]
    if not found:
        return None
    return Hold(
        f"Mulligan starts no attempt. {' '.join(found)} It continues when this is fixed.",
        is_fault=True,
    )


def _faults(findings: Iterable[Diagnosis]) -> list[str]:
    return [f"{each.message} {each.fix}" for each in findings if each.level is Level.FAULT]
