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

    @property
    def on_issues(self) -> str:
        """Describe the pause to people who cannot end it."""
        what = "this repository" if self.repository else "everything"
        return f"An operator paused {what} at {self.since:%Y-%m-%d %H:%M} UTC, and can resume it."


AGENTS_MISSING = (
    "The agent cannot start where Mulligan runs: its program or a setting is missing, or the "
    "program cannot be executed. The command mulligan doctor names the fix. Work starts when that "
    "is fixed."
)
"""What issues show; the findings themselves name paths of the machine."""


@dataclass(frozen=True, slots=True)
class Hold:
    """Why no attempt begins; `is_fault` tells a fault of the machine from a pause.

    `on_issues` is the reason that waiting issues show, "" for none. `until` is when the first agent
    that rests is tried again.
    """

    reason: str
    is_fault: bool = False
    on_issues: str = ""
    until: datetime | None = None

    @property
    def sentence(self) -> str:
        """Describe the hold, with the time of the next try."""
        if self.until is None:
            return self.reason
        return f"{self.reason} The next try starts after {self.until:%Y-%m-%d %H:%M:%S} UTC."


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
            return Hold(pause.sentence, on_issues=pause.on_issues)
    found, missing = _faults(faults), [_faults(each) for each in agents]
    on_issues = AGENTS_MISSING if missing and all(missing) and not found else ""
    if all(missing):
        found += [reason for each in missing for reason in each]
    if not found:
        return None
    return Hold(
        f"Mulligan starts no attempt until this is fixed: {' '.join(found)}",
        is_fault=True,
        on_issues=on_issues,
    )


def _faults(findings: Iterable[Diagnosis]) -> list[str]:
    return [f"{each.message} {each.fix}" for each in findings if each.level is Level.FAULT]
