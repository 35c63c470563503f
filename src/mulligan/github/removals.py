"""What people removed from an issue or a pull request, which Mulligan does not add again. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mulligan.github.shapes import EventShape


@dataclass(frozen=True, slots=True)
class Removals:
    """Labels, requested reviewers and assignees that were added once, and removed last."""

    labels: frozenset[str] = frozenset()
    reviewers: frozenset[str] = frozenset()
    assignees: frozenset[str] = frozenset()


def removals(events: Iterable[EventShape]) -> Removals:
    """Read the removals from the events of an issue or a pull request; names ignore case."""
    every = sorted(events, key=lambda event: event.id)
    labels = [(each.event, each.label.name) for each in every if each.label]
    reviewers = [(each.event, each.reviewer.login) for each in every if each.reviewer]
    assignees = [(each.event, each.assignee.login) for each in every if each.assignee]
    return Removals(
        _removed(labels, "unlabeled"),
        _removed(reviewers, "review_request_removed"),
        _removed(assignees, "unassigned"),
    )


def _removed(changes: Sequence[tuple[str, str]], kind: str) -> frozenset[str]:
    last = {name.casefold(): event for event, name in changes}
    return frozenset(name for name, event in last.items() if event == kind)


def without(names: Iterable[str], removed: frozenset[str]) -> list[str]:
    """Return the names that were not removed."""
    return [name for name in names if name.casefold() not in removed]
