"""What every command needs before it can start: configuration, logs, signals, a terminal."""

import logging
import os
import signal
import sys
from pathlib import Path
from types import FrameType

import structlog
from rich.console import Console

from mulligan.config.load import load_operator
from mulligan.config.operator import Operator
from mulligan.stop import SHUTDOWN
from mulligan.surfaces.cli.exits import Exit

DEFAULT = Path("mulligan.yml")
WIDE = 1000


def read_configuration(named: Path | None) -> Operator:
    """Read the configuration that was named, else ./mulligan.yml, else $MULLIGAN_CONFIG."""
    elsewhere = os.environ.get("MULLIGAN_CONFIG")
    path = named or (Path(elsewhere) if elsewhere and not DEFAULT.exists() else DEFAULT)
    return load_operator(path, os.environ)


def environment() -> dict[str, str]:
    """Give the environment that adapters may pick names from."""
    return dict(os.environ)


def make_console() -> Console:
    """Give the terminal; without one, lines are neither coloured nor wrapped."""
    if sys.stdout.isatty():
        return Console(highlight=False)
    return Console(highlight=False, no_color=True, width=WIDE, soft_wrap=True)


def start_logs(level: int = logging.WARNING) -> None:
    """Send log records to standard error, one `key=value` line each."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.LogfmtRenderer(key_order=["timestamp", "level", "event"]),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


def stop_on_signals() -> None:
    """On the first SIGINT or SIGTERM end what runs and record it; on the second leave at once."""

    def stop(number: int, _frame: FrameType | None) -> None:
        if SHUTDOWN.is_set():
            os._exit(Exit.INTERRUPTED)
        SHUTDOWN.set()
        name = signal.Signals(number).name
        os.write(2, f"mulligan: {name}: ending what runs; once more to leave at once.\n".encode())

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
