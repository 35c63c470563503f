"""Durations as they are written in configuration files."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.config.settings import format_duration, parse_duration

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("30s", timedelta(seconds=30)),
        ("10m", timedelta(minutes=10)),
        ("1h30m", timedelta(hours=1, minutes=30)),
        ("2d", timedelta(days=2)),
        ("250ms", timedelta(milliseconds=250)),
        ("0s", timedelta()),
    ],
)
def test_a_duration_reads_as_it_is_written(text: str, span: timedelta) -> None:
    assert parse_duration(text) == span
    assert format_duration(span) == text


@pytest.mark.parametrize("value", ["", "10", "s", "1 h", "-1s", "1.5h", 30, None, ["1h"]])
def test_anything_else_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="write it like 30s, 10m or 1h"):
        parse_duration(value)


@given(st.integers(0, 10**9))
def test_writing_and_reading_give_the_same_span(milliseconds: int) -> None:
    span = timedelta(milliseconds=milliseconds)
    assert parse_duration(format_duration(span)) == span


def test_a_span_stays_as_it_is() -> None:
    assert parse_duration(timedelta(seconds=3)) == timedelta(seconds=3)
