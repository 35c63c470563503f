"""What a token's first letters tell."""

import pytest

from mulligan.github.credentials import TOKEN_NOTES, token_notes

pytestmark = pytest.mark.pure


@pytest.mark.parametrize("start", TOKEN_NOTES)
def test_each_kind_has_its_note(start: str) -> None:
    assert token_notes(f"{start}abc") == (TOKEN_NOTES[start],)


@pytest.mark.parametrize("token", [None, "", "0123456789abcdef"])
def test_nothing_is_said_of_another_kind(token: str | None) -> None:
    assert token_notes(token) == ()
