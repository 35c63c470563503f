"""Open the dashboard beside a daemon; where it cannot be, that is said once and nothing stops."""

from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from functools import partial

import structlog

from mulligan.config.operator import Operator
from mulligan.engine.daemon import Daemon
from mulligan.engine.pace import stretched
from mulligan.engine.watch import Listener
from mulligan.errors import UnavailableError
from mulligan.surfaces.dashboard.app import build
from mulligan.surfaces.dashboard.desk import Books, Desk
from mulligan.surfaces.dashboard.key import key_in
from mulligan.surfaces.dashboard.metrics import Measures
from mulligan.surfaces.dashboard.server import serving
from mulligan.wiring.gauges import GAUGES
from mulligan.wiring.records import check_writable, state_place

LONGEST_QUIET = timedelta(minutes=10)
"""Of a poll: one repository may have GitHub waited for at several requests, a minute at each."""

MISSED_POLLS = 3

log = structlog.get_logger()


@contextmanager
def opened(
    operator: Operator,
    daemon: Daemon,
    address: tuple[str, int],
    listen: Callable[[Listener], None],
) -> Generator[None]:
    """Serve the dashboard while the block lasts; `listen` has its counters hear of events."""

    def patience() -> float:
        interval = stretched(operator.poll.interval, daemon.repositories)
        return max(LONGEST_QUIET, MISSED_POLLS * interval).total_seconds()

    def books() -> Books | None:
        tools = daemon.tools
        return Books.of(tools) if tools else None

    desk = Desk(
        find_books=books,
        pulse=daemon.pulse,
        gauges=GAUGES,
        patience=patience,
        check_writable=partial(check_writable, operator),
    )
    measures = Measures(desk)
    listen(measures.hear)
    with ExitStack() as stack:
        try:
            key = key_in(state_place(operator))
            app = build(desk, key, frozenset(operator.dashboard.hosts), measures)
            where = stack.enter_context(serving(app, address, desk.ending))
        except UnavailableError as error:
            log.warning("dashboard_closed", reason=str(error))
        else:
            log.info("dashboard_open", address=where, key_file=str(key.place))
        yield
