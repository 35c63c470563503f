"""A line whose cause lasts is logged again now and then, not at each poll."""

from collections.abc import MutableMapping

import pytest
from structlog import DropEvent

from mulligan.interfaces.cli.repeats import REMINDER_SECONDS, RepeatFilter

AWAY = {"level": "warning", "event": "not_polled", "reason": "GitHub did not answer."}
OTHER = {**AWAY, "reason": "GitHub refused the token."}
RECORDED = {"level": "info", "event": "recorded"}
RESUMED = {"level": "info", "event": "work_resumed"}
SOON, LATER = REMINDER_SECONDS - 1, REMINDER_SECONDS

Record = dict[str, str]


@pytest.mark.parametrize(
    ("second", "after", "is_logged"),
    [
        pytest.param([AWAY], SOON, False, id="the same line"),
        pytest.param([OTHER], SOON, True, id="another reason"),
        pytest.param([RECORDED, AWAY], SOON, False, id="the same line after other work"),
        pytest.param([RESUMED, AWAY], SOON, True, id="the same line after work went on"),
        pytest.param([AWAY], LATER, True, id="the same line after ten minutes"),
    ],
)
def test_only_news_is_logged(second: list[Record], after: float, *, is_logged: bool) -> None:
    now = [0.0]
    repeats = RepeatFilter(lambda: now[0])
    assert is_shown(repeats, AWAY)
    now[0] = after
    assert [is_shown(repeats, each) for each in second][-1] == is_logged


def test_a_cause_that_lasts_is_named_again_every_ten_minutes() -> None:
    now = [0.0]
    repeats = RepeatFilter(lambda: now[0])
    shown = list[float]()
    while now[0] < 3 * REMINDER_SECONDS:
        if is_shown(repeats, AWAY):
            shown.append(now[0])
        now[0] += REMINDER_SECONDS / 2
    assert shown == [0, REMINDER_SECONDS, 2 * REMINDER_SECONDS]


def is_shown(repeats: RepeatFilter, record: Record) -> bool:
    stamped: MutableMapping[str, object] = {**record, "timestamp": repr(repeats.now())}
    try:
        return repeats(None, "", stamped) == stamped
    except DropEvent:
        return False
