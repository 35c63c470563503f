"""Call things at intervals, in the background, on APScheduler's clock (SPEC E1)."""

import logging
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from apscheduler.schedulers.background import BackgroundScheduler

Tick = Callable[[], None]
NAME = "mulligan.schedule"


@contextmanager
def ticking(ticks: Mapping[str, tuple[Tick, timedelta]], now: datetime) -> Generator[None]:
    """Call each tick at once and then at its interval, never twice at a time, in this block.

    A tick that is late is made up for once, however late; APScheduler's own grace of one second
    would drop it silently. `now` is the time of the first call: APScheduler counts every missed run
    from there on. Leaving the block waits for those that have begun.
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
            tick, "interval", seconds=interval.total_seconds(), id=name, next_run_time=now
        )
    scheduler.start()  # pyright: ignore[reportUnknownMemberType]
    try:
        yield
    finally:
        scheduler.shutdown(wait=True)  # pyright: ignore[reportUnknownMemberType]
