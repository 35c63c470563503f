"""Call things at intervals, in the background, on APScheduler's clock (SPEC E1)."""

import logging
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.base import BaseTrigger

Tick = Callable[[], None]
Interval = Callable[[], timedelta]
NAME = "mulligan.schedule"
SHORTEST = timedelta(milliseconds=10)


class _Paced(BaseTrigger):
    """Fires at an interval that may change from call to call; what was missed is made up once."""

    def __init__(self, interval: Interval) -> None:
        self._interval = interval

    def get_next_fire_time(  # pyright: ignore[reportIncompatibleMethodOverride] - it has no types
        self, previous_fire_time: datetime | None, now: datetime
    ) -> datetime:
        interval = max(self._interval(), SHORTEST)
        following = (previous_fire_time or now) + interval
        return following if following > now else now + interval


@contextmanager
def ticking(ticks: Mapping[str, tuple[Tick, Interval]], now: datetime) -> Generator[None]:
    """Call each tick at once and then at its interval, never twice at a time, in this block.

    A tick that is late is made up for once, however late; APScheduler's own grace of one second
    would drop it silently. `now` is the time of the first call. Leaving the block waits for those
    that have begun.
    """
    # It warns of each call that is left out while the one before still runs, as is meant here.
    logger = logging.getLogger(NAME)
    logger.setLevel(logging.ERROR)
    scheduler = BackgroundScheduler(
        logger=logger,
        timezone=UTC,
        job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
    )
    for name, (tick, interval) in ticks.items():
        scheduler.add_job(  # pyright: ignore[reportUnknownMemberType] - it has no types
            tick, _Paced(interval), id=name, next_run_time=now
        )
    scheduler.start()  # pyright: ignore[reportUnknownMemberType]
    try:
        yield
    finally:
        scheduler.shutdown(wait=True)  # pyright: ignore[reportUnknownMemberType]
