"""Issues that somebody's open pull request closes already: Mulligan waits for it (HAND-1). Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from mulligan.domain.issue import Act, LabelAct, Stage
from mulligan.domain.recorded_effects import InHand
from mulligan.domain.status import IssueStatus, Phase

CHECK_INTERVAL = timedelta(minutes=5)
"""How often one query reads the pull requests for which the issues of a repository wait."""


@dataclass(frozen=True, slots=True)
class ClosingPull:
    """An open pull request of somebody else whose merge closes an issue."""

    number: int
    url: str
    author: str
    is_draft: bool = False


@dataclass(frozen=True, slots=True)
class Closers:
    """The open pull requests that close an issue, and when the issue changed last."""

    pulls: tuple[ClosingPull, ...]
    updated_at: datetime


def describe_in_hand(pulls: Sequence[ClosingPull]) -> str:
    """Say that an issue waits for pull requests that close it; empty for none."""
    if not pulls:
        return ""
    named = ", ".join(f"{each.url} by {each.author}" for each in pulls)
    kind = "draft pull request" if all(each.is_draft for each in pulls) else "pull request"
    which, close = (kind, "closes") if len(pulls) == 1 else (f"{kind}s", "close")
    return (
        f"The open {which} {named} {close} this issue. Mulligan waits until it is closed without a "
        "merge. To start anyway, write `/mulligan retry`, or remove the label and add it again."
    )


def insists(act: Act, status: IssueStatus) -> bool:
    """Return whether a person wants the work in spite of a pull request that closes the issue.

    A command does, and so does a label that was added after the issue said that it waits.
    """
    shown = status.effects.last(InHand)
    return not isinstance(act, LabelAct) or (shown is not None and shown.act != act)


def waits_in_hand(status: IssueStatus) -> bool:
    """Return whether an issue waits for somebody's pull request."""
    shown = status.effects.last(InHand)
    rests = status.stage is Stage.READY and status.phase is Phase.IDLE
    return rests and shown is not None and status.request.act in {None, shown.act}
