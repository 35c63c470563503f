"""Labels to add and remove to show an issue's stage (LABEL-2, LABEL-3). Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import assert_never

from mulligan.config.policy import Labels
from mulligan.domain.issue import Stage


@dataclass(frozen=True, slots=True)
class LabelChange:
    """Labels to `add`, then to `remove`, which are spelled as on the issue."""

    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()


def label_change(current: Iterable[str], stage: Stage, labels: Labels) -> LabelChange:
    """Compare the labels on an issue with those of its stage; ignore labels of other people.

    Only people add the ready label. It stays until the issue is settled. GitHub ignores the case of
    label names.
    """
    existing = {name.casefold(): name for name in current}
    wanted, kept = _of(stage, labels)
    keeps = {name.casefold() for name in (*wanted, *kept)}
    ours = (labels.ready, labels.running, labels.review, labels.hitl)
    return LabelChange(
        add=tuple(name for name in wanted if name.casefold() not in existing),
        remove=tuple(
            existing[name]
            for name in dict.fromkeys(own.casefold() for own in ours)
            if name in existing and name not in keeps
        ),
    )


def _of(stage: Stage, labels: Labels) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the labels that a stage adds, and those that it keeps."""
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
    """A label to create: six hexadecimal digits of colour, and a description."""

    name: str
    color: str
    description: str


def label_styles(labels: Labels) -> tuple[LabelStyle, ...]:
    """Return colour and description of the four labels (LABEL-1)."""
    return (
        LabelStyle(labels.ready, "0e8a16", "A request: Mulligan works on this"),
        LabelStyle(labels.running, "fbca04", "Mulligan is working on this"),
        LabelStyle(labels.review, "1d76db", "Mulligan has opened a pull request"),
        LabelStyle(labels.hitl, "d93f0b", "This needs human review (HITL)"),
    )
