"""What people removed from an issue is known from its events (PR-7)."""

import pytest
from pydantic import JsonValue

from mulligan.github.removals import Removals, removals, without
from mulligan.github.shapes import EVENTS

pytestmark = pytest.mark.pure

NONE = frozenset[str]()


def events(*found: tuple[str, str, str]) -> Removals:
    """Read events of a kind, about a field with a name; the first is the newest."""
    made: list[JsonValue] = [
        {
            "id": 100 - at,
            "event": kind,
            "created_at": "2025-03-04T12:00:00Z",
            field: {"name": name} if field == "label" else {"login": name},
        }
        for at, (kind, field, name) in enumerate(found)
    ]
    return removals(EVENTS.validate_python(made))


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ((), Removals()),
        ((("labeled", "label", "bot"),), Removals()),
        (
            (("unlabeled", "label", "Bot"), ("labeled", "label", "bot")),
            Removals(frozenset({"bot"})),
        ),
        ((("labeled", "label", "bot"), ("unlabeled", "label", "bot")), Removals()),
        (
            (("review_request_removed", "requested_reviewer", "Mia"),),
            Removals(NONE, frozenset({"mia"})),
        ),
        (
            (
                ("review_requested", "requested_reviewer", "mia"),
                ("review_request_removed", "requested_reviewer", "mia"),
            ),
            Removals(),
        ),
        ((("unassigned", "assignee", "mia"),), Removals(NONE, NONE, frozenset({"mia"}))),
    ],
)
def test_the_last_event_of_a_name_counts(
    found: tuple[tuple[str, str, str], ...], expected: Removals
) -> None:
    assert events(*found) == expected


def test_names_that_were_removed_are_left_out_in_any_case() -> None:
    assert without(["Ada", "Mia"], frozenset({"mia"})) == ["Ada"]
