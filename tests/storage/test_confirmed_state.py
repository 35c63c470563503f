"""Which lines of an issue's file on the state ref a status comment confirms (ACTION-2)."""

import json

import pytest

from mulligan.storage.git_ref import confirmed, mark_of


def line(kind: str, **values: str) -> bytes:
    return json.dumps({"schema_version": 2, "event": {"kind": kind, **values}}).encode() + b"\n"


STARTED, DONE = line("attempt_started"), line("attempt_completed")
WRITTEN, SHOWN = line("status_written", comment="7"), line("stage_shown", stage="review")
READ, PUSHED = line("comments_read", read_to="7"), line("pushed", branch="b", head_sha="c")
TEXT = STARTED + WRITTEN + DONE


def test_a_mark_covers_the_events_up_to_the_last_that_decides() -> None:
    assert mark_of(TEXT).startswith("3:")
    assert mark_of(TEXT + WRITTEN + SHOWN + READ) == mark_of(TEXT)
    assert mark_of(TEXT + PUSHED) != mark_of(TEXT)
    assert mark_of(b"") == mark_of(WRITTEN + SHOWN) == ""


def test_what_the_mark_confirms_counts_and_what_follows_only_if_it_is_harmless() -> None:
    mark = mark_of(TEXT)
    assert confirmed(TEXT, mark) == TEXT
    later = WRITTEN + PUSHED + DONE + READ + b"{\n" + b"[" * 100_000 + b"\n" + SHOWN
    assert confirmed(TEXT + later, mark) == TEXT + WRITTEN + READ + SHOWN
    assert confirmed(TEXT + DONE + PUSHED, mark, {PUSHED}) == TEXT + PUSHED


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        (TEXT, ""),
        (TEXT, "3"),
        (TEXT, "3:"),
        (TEXT, "0:" + mark_of(TEXT).partition(":")[2]),
        (TEXT, "²:" + mark_of(TEXT).partition(":")[2]),
        (TEXT, mark_of(STARTED + DONE)),
        (STARTED + WRITTEN, mark_of(TEXT)),
        (DONE + TEXT, mark_of(TEXT)),
        (STARTED + DONE + WRITTEN, mark_of(TEXT)),
        (TEXT.replace(b"started", b"starte"), mark_of(TEXT)),
        (b"", mark_of(TEXT)),
    ],
)
def test_nothing_counts_if_the_mark_is_of_something_else(text: bytes, mark: str) -> None:
    assert confirmed(text, mark) == b""
