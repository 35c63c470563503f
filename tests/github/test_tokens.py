"""What a token's first letters tell."""

import pytest

from mulligan.github.credentials import TOKEN_NOTES, notes_on

pytestmark = pytest.mark.pure


@pytest.mark.parametrize("start", TOKEN_NOTES)
def test_each_kind_has_its_note(start: str) -> None:
    assert notes_on(f"{start}abc") == (TOKEN_NOTES[start],)


@pytest.mark.parametrize("token", [None, "", "0123456789abcdef"])
def test_nothing_is_said_of_another_kind(token: str | None) -> None:
    assert notes_on(token) == ()
