"""`mulligan run`: the daemon, its log, and reloads of its configuration."""

import logging
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from pathlib import Path
from typing import TypeVar, assert_never

import structlog
from rich.console import Console
from rich.text import Text

from mulligan.config.operator import Engine, Operator
from mulligan.config.restart import keys_that_need_restart, with_running_state
from mulligan.daemon.daemon import Daemon, Runtime, serving
from mulligan.daemon.fleet import Role, serving_fleet
from mulligan.daemon.worker import Worker
from mulligan.domain.errors import MulliganError, OutdatedError, UnavailableError, UsageError
from mulligan.domain.events import Decided, Drafted, Escalated, Event, Published
from mulligan.domain.status import IssueStatus
from mulligan.implement.ports import Listener
from mulligan.interfaces.bootstrap.clock_and_backoff import SystemClock
from mulligan.interfaces.bootstrap.container import OwnerOptions, build
from mulligan.interfaces.bootstrap.sandbox import warn_of_root
from mulligan.interfaces.bootstrap.stores import fetching_jobs, lock_state
from mulligan.interfaces.cli.exit_codes import Exit
from mulligan.interfaces.cli.live import LiveLines
from mulligan.interfaces.cli.setup import (
    configuration_path,
    environment,
    make_console,
    read_configuration,
    start_logs,
    stop_on_signals,
    wait_for_signal,
)
from mulligan.interfaces.cli.terminal import is_attended
from mulligan.interfaces.cli.work import ProgressLog, look_of
from mulligan.sandbox.cancellation import CLOSING, stopping

T = TypeVar("T")

log = structlog.get_logger()


def run(
    config: Path | None,
    *,
    role: str = Role.ALL,
    take_over: bool = False,
    json_logs: bool = False,
) -> Exit:
    """Run until SIGINT or SIGTERM; `take_over` the repositories of another installation."""
    path = configuration_path(config)
    operator = read_configuration(path)
    if role != Role.ALL and operator.engine is not Engine.FLEET:
        raise UsageError(
            "--role needs a fleet's job engine; set state.url: postgresql://… in mulligan.yml."
        )
    start_logs(logging.INFO, as_json=json_logs)
    warn_of_root()
    stop_on_signals(operator.limits.shutdown_grace)
    console = make_console()
    progress = ProgressLog(console, "Waiting for work. Press Ctrl-C to stop.")
    listeners: list[Listener] = [progress.on_event if console.is_interactive else _log_event]

    def notify(status: IssueStatus, event: Event) -> None:
        for each in listeners:
            each(status, event)

    build_runtime = _runtime_builder(notify, progress.live, take_over=take_over)
    daemon = Daemon(configuration_reader(path, operator, build_runtime))
    show_link = None if json_logs else link_printer(console)
    with lock_state(operator, "run"), closing(daemon), progress.live.shown():
        log.info("started", repositories=len(operator.repositories))
        with (
            _dashboard(operator, daemon, listeners.append, show_link),
            _at_work(operator, daemon, Role(role)),
        ):
            wait_for_signal(CLOSING)
    log.info("stopped")
    if daemon.fault:
        raise daemon.fault
    return Exit.DONE


def _at_work(operator: Operator, daemon: Daemon, role: Role) -> AbstractContextManager[None]:
    """Return the block in which the daemon works, by the engine that the configuration names."""
    often, limits, clock = operator.poll.interval, operator.limits, SystemClock()
    match operator.engine:
        case Engine.POLLING | None:
            return serving(daemon, often, limits, clock)
        case Engine.FLEET:
            return serving_fleet(daemon, role, fetching_jobs(operator), often, limits, clock)
        case _:
            assert_never(operator.engine)


def _dashboard(
    operator: Operator,
    daemon: Daemon,
    listen: Callable[[Listener], None],
    show_link: Callable[[str], None] | None,
) -> AbstractContextManager[None]:
    """Return the dashboard, or an empty context if it is off."""
    address = operator.dashboard.address
    if address is None:
        return nullcontext()
    # Imported here, since a web server takes 15 MB that a daemon without a dashboard does not need.
    from mulligan.interfaces.dashboard.app import open_dashboard  # noqa: PLC0415

    return open_dashboard(operator, daemon, address, listen, show_link)


def link_printer(console: Console) -> Callable[[str], None] | None:
    """Return a function that prints the dashboard's link; None if the output may become a log."""
    if not (is_attended(environment()) and sys.stderr.isatty()):
        return None

    def show(text: str) -> None:
        # A link with a line break could not be clicked.
        console.print(Text(text), soft_wrap=True)

    return show


def configuration_reader(
    path: Path, running: Operator, build_from: Callable[[Operator], T]
) -> Callable[[], T | None]:
    """Return a function that reads the file if it changed, and again until it can be used.

    It raises the mistake if no runtime was built before, and OutdatedError always: then there is
    nothing to go on with.
    """
    seen: object = None
    is_first = True

    def reload() -> T | None:
        nonlocal seen, is_first
        found = _file_state(path)
        if found == seen:
            return None
        try:
            changed = read_configuration(path)
            built = build_from(with_running_state(running, changed))
        except UnavailableError as error:
            log.warning("configuration_not_loaded", reason=str(error), again="with the next poll")
            return None
        except MulliganError as error:
            if is_first or isinstance(error, OutdatedError):
                raise
            log.error("configuration_refused", reason=str(error), kept="the last good one")  # noqa: TRY400
            return None
        if keys := keys_that_need_restart(running, changed):
            log.warning("restart_needed", keys=", ".join(keys))
        seen, is_first = found, False
        return built

    return reload


def _runtime_builder(
    listener: Listener, live: LiveLines, *, take_over: bool
) -> Callable[[Operator], Runtime]:
    """Return a function that builds a runtime; only the first one takes repositories over."""

    def build_runtime(operator: Operator) -> Runtime:
        nonlocal take_over
        # A replaced runtime must not release what the next one owns.
        options = OwnerOptions(take_over, ends=stopping)
        with ExitStack() as opened:
            built = opened.enter_context(build(operator, environment(), listener, options))
            runtime = Runtime(
                built.repositories,
                built.context,
                Worker(built.context),
                built.retention,
                queue=built.open_queue(),
                close=opened.pop_all().close,
            )
        take_over = False
        live.look = look_of(built)
        log.info("configuration_loaded", repositories=len(built.repositories))
        return runtime

    return build_runtime


def _file_state(path: Path) -> object:
    """Return a value that changes when the file does."""
    try:
        found = path.stat()
    except OSError as error:
        return error.errno
    return (found.st_mtime_ns, found.st_size, found.st_ino)


def _log_event(status: IssueStatus, event: Event) -> None:
    """Log an event as one line."""
    match event:
        case Decided(decision=decision):
            more = {"decision": decision.decision, "reason": decision.reason}
        case Published(pull_request=url) | Drafted(pull_request=url):
            more = {"pull_request": url}
        case Escalated(reason=reason):
            more = {"reason": reason}
        case _:
            more = dict[str, str]()
    log.info("recorded", action=event.kind, issue=str(status.issue), attempt=status.number, **more)
