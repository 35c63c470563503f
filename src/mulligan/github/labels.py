"""Which labels an issue must get and lose to show its stage (LABEL-2, LABEL-3). Pure."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import assert_never

from mulligan.config.policy import Labels
from mulligan.domain.issue import Stage


@dataclass(frozen=True, slots=True)
class LabelChange:
    """What to do, in this order: `add`, then `remove` (spelled as they are on the issue)."""

    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()


def label_change(current: Iterable[str], stage: Stage, labels: Labels) -> LabelChange:
    """Compare the labels on an issue with those of its stage; only Mulligan's are looked at.

    The ready label is a person's: it is never added, and stays until the issue is settled.
    GitHub's label names do not differ by case alone.
    """
    there = {name.casefold(): name for name in current}
    wanted, kept = _of(stage, labels)
    keeps = {name.casefold() for name in (*wanted, *kept)}
    ours = (labels.ready, labels.running, labels.review, labels.hitl)
    return LabelChange(
        add=tuple(name for name in wanted if name.casefold() not in there),
        remove=tuple(
            there[name]
            for name in dict.fromkeys(own.casefold() for own in ours)
            if name in there and name not in keeps
        ),
    )


def _of(stage: Stage, labels: Labels) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Give the labels that a stage puts on, and those that it leaves where they are."""
    match stage:
        case Stage.READY:
            return (), (labels.ready,)
        case Stage.RUNNING:
            return (labels.running,), (labels.ready,)
        case Stage.REVIEW:
            return (labels.review,), ()
        case Stage.HITL:
            return (labels.hitl,), ()
        case Stage.RESOLVED:
            return (), ()
        case _:
            assert_never(stage)


@dataclass(frozen=True, slots=True)
class LabelStyle:
    """A label as it is created: six hexadecimal digits of colour, and what it means."""

    name: str
    color: str
    description: str


def label_styles(labels: Labels) -> tuple[LabelStyle, ...]:
    """Say how the four labels look when Mulligan creates them (LABEL-1)."""
    return (
        LabelStyle(labels.ready, "0e8a16", "A request: Mulligan works on this"),
        LabelStyle(labels.running, "fbca04", "Mulligan is working on this"),
        LabelStyle(labels.review, "1d76db", "Mulligan has opened a pull request"),
        LabelStyle(labels.hitl, "d93f0b", "This needs human review (HITL)"),
    )


def priority_rank(carried: Collection[str], priority: Sequence[str]) -> int:
    """Rank an issue by the most urgent priority label that it carries (casefolded); 0 is first."""
    ranks = (rank for rank, label in enumerate(priority) if label.casefold() in carried)
    return next(ranks, len(priority))
