"""Whether a comment was edited is told by its two times."""

from datetime import UTC, datetime, timedelta

import pytest

from mulligan.github.shapes import CommentShape

WRITTEN = datetime(2025, 3, 4, 12, 0, 0, 999_000, tzinfo=UTC)


@pytest.mark.pure
@pytest.mark.parametrize(
    ("later", "is_edited"),
    [
        (None, False),
        (timedelta(), False),
        # A server with fine times may take the two one after the other.
        (timedelta(milliseconds=1), False),
        (timedelta(seconds=1), True),
    ],
)
def test_an_edit_shows_by_the_second(later: timedelta | None, *, is_edited: bool) -> None:
    comment = CommentShape(
        id=1,
        html_url="",
        issue_url="",
        created_at=WRITTEN,
        updated_at=None if later is None else WRITTEN + later,
    )
    assert comment.is_edited is is_edited
