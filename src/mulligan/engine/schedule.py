"""The daemon: poll, wake and watch on APScheduler's clock until Mulligan is told to stop (E1)."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from apscheduler.schedulers.background import BackgroundScheduler

Tick = Callable[[], None]


def run_until(stopped: Callable[[], None], ticks: dict[str, tuple[Tick, timedelta]]) -> None:
    """Call each tick at once and then at its interval, never twice at a time, until `stopped`.

    `stopped` blocks until Mulligan is told to stop. A tick that is late is made up for once,
    however late (APScheduler's own grace of one second would drop it silently).
    """
    scheduler = BackgroundScheduler(
        timezone=UTC,
        job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
    )
    for name, (tick, interval) in ticks.items():
        scheduler.add_job(
            tick,
            "interval",
            seconds=interval.total_seconds(),
            id=name,
            next_run_time=datetime.now(UTC),
        )
    scheduler.start()
    try:
        stopped()
    finally:
        scheduler.shutdown(wait=True)
