"""Set up a command: configuration, logs, signals, terminal."""

import _thread
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Generator, MutableMapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from types import FrameType

from rich.console import Console

from mulligan.config.load import load_operator
from mulligan.config.operator import OPERATOR_FILE, Operator
from mulligan.config.settings import format_duration
from mulligan.domain.errors import UsageError
from mulligan.domain.issue import IssueRef
from mulligan.interfaces.bootstrap.redaction import redactor_of
from mulligan.interfaces.cli.exit_codes import Exit
from mulligan.interfaces.cli.terminal import (
    OUTPUT_FILTER,
    Cleaning,
    clean_record,
    on_standard_error,
)
from mulligan.sandbox.cancellation import CLOSING, SHUTDOWN

DEFAULT = Path(OPERATOR_FILE)
UNWRAPPED_WIDTH = 1000

OMITTED = {"level", "timestamp"}

DASHBOARD = "The dashboard is at {address} and asks for the access key in {key_file}"
"""Fields of a log record that a person at a terminal does not need."""


def read_configuration(named: Path | None, *, needs_token: bool = True) -> Operator:
    """Read the given configuration file, or the default one.

    Without `needs_token`, the token's variable may be missing.
    """
    OUTPUT_FILTER.config = None if named == DEFAULT else named
    operator = load_operator(configuration_path(named), os.environ, needs_token=needs_token)
    OUTPUT_FILTER.redactor = redactor_of(operator, os.environ)
    return operator


def configuration_path(named: Path | None) -> Path:
    """Return the given file, else ./mulligan.yml, else $MULLIGAN_CONFIG."""
    elsewhere = os.environ.get("MULLIGAN_CONFIG")
    return named or (Path(elsewhere) if elsewhere and not DEFAULT.exists() else DEFAULT)


def describe_configuration(path: Path, operator: Operator) -> str:
    """Return the sentence about a valid file."""
    count = len(operator.repositories)
    several = "1 repository" if count == 1 else f"{count} repositories"
    return f"{path} is valid; it names {several}."


def as_configured(ref: IssueRef, operator: Operator) -> IssueRef:
    """Spell the repository as in the configuration; GitHub ignores case."""
    return IssueRef(repository_as_configured(ref.repository, operator), ref.number)


def repository_as_configured(name: str, operator: Operator) -> str:
    """Spell a repository as the configuration does."""
    for repository in operator.repositories:
        if repository.name.lower() == name.lower():
            return repository.name
    raise UsageError(
        f"{name} is not in the configuration. Add it to `repositories` in mulligan.yml."
    )


def environment() -> dict[str, str]:
    """Return the environment, from which adapters pick variables by name."""
    return dict(os.environ)


def make_console() -> Console:
    """Return the console; without a terminal, lines have no colours and do not wrap."""
    if sys.stdout.isatty():
        console = Console(highlight=False)
    else:
        console = Console(
            highlight=False,
            no_color=True,
            width=UNWRAPPED_WIDTH,
            soft_wrap=True,
            force_interactive=False,
        )
    console.push_render_hook(Cleaning())
    return console


def start_logs(level: int = logging.WARNING, *, as_json: bool = False) -> None:
    """Log to standard error: sentences; at level INFO `key=value` lines, unless on a terminal."""
    # Imported here: it takes 75 ms of CPU, while `mulligan status` takes 600.
    import structlog  # noqa: PLC0415

    from mulligan.interfaces.cli.repeats import RepeatFilter  # noqa: PLC0415

    for library in ("github", "urllib3"):
        # Below that level, PyGithub logs whole requests and answers.
        logging.getLogger(library).setLevel(logging.WARNING)
    if as_json:
        renderer = structlog.processors.JSONRenderer()
    elif level > logging.INFO or sys.stderr.isatty():
        renderer = sentence
    else:
        renderer = structlog.processors.LogfmtRenderer(key_order=["timestamp", "level", "event"])
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            clean_record,
            RepeatFilter(),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        # Looked up for each record: live lines stand below what is written while they are shown.
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
    )


def sentence(_logger: object, _method: str, record: MutableMapping[str, object]) -> str:
    """Render a log record for a person: its reason, else its event, and the other fields."""
    if record.get("event") == "dashboard_open":
        return on_standard_error(f"mulligan: {DASHBOARD.format_map(record)}")
    event = str(record.pop("event", "")).replace("_", " ")
    message = " ".join(str(record.pop("reason", "") or event).split())
    rest = [f"{name} {value}" for name, value in record.items() if name not in OMITTED]
    more = f" ({', '.join(rest)})" if rest else ""
    return on_standard_error(f"mulligan: {message}{more}")


def _shut_down_after(seconds: float) -> None:
    time.sleep(seconds)
    SHUTDOWN.set()


def _write_error(message: str) -> None:
    sys.stderr.write(message)
    sys.stderr.flush()


SIGNAL_SECONDS = 0.2
"""The longest delay of a signal that another thread received."""


def wait_for_signal(event: threading.Event) -> None:
    """Wait until the handler of a signal, in this thread, has set the event.

    `event.wait()` could wait forever. The system may give a signal to another thread, which does
    not wake this one, and Python runs handlers in the main thread only. A handler that runs inside
    `event.wait()` can also find the event's lock taken.
    """
    while not event.is_set():
        time.sleep(SIGNAL_SECONDS)


@contextmanager
def stopping_on_signals(*, running: str) -> Generator[None]:
    """As `stop_on_signals` while the block lasts; a prompt after it is left by Ctrl-C again."""
    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    stop_on_signals(running=running)
    try:
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)


def stop_on_signals(grace: timedelta = timedelta(), *, running: str = "running attempts") -> None:
    """On SIGINT and SIGTERM, start no new work, and stop running work after `grace`.

    A second signal stops it at once. Stopped attempts are recorded. Without a grace, a second
    signal ends the process immediately. The handler may interrupt `threading` while that holds a
    lock, so it starts its threads without it.
    """

    def stop(number: int, _frame: FrameType | None) -> None:
        if SHUTDOWN.is_set():
            os._exit(Exit.INTERRUPTED)
        name, patient = signal.Signals(number).name, grace and not CLOSING.is_set()
        CLOSING.set()
        if patient:
            _thread.start_new_thread(_shut_down_after, (grace.total_seconds(),))
        else:
            SHUTDOWN.set()
        what = (
            f"running attempts have {format_duration(grace)} to finish"
            if patient
            else f"stopping {running}"
        )
        message = f"mulligan: {name}: {what}; repeat to stop at once.\n"
        if sys.stderr is sys.__stderr__:
            os.write(2, message.encode())
        else:
            # A thread of its own may wait until live lines are erased; this one may be writing
            # them.
            _thread.start_new_thread(_write_error, (message,))

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
