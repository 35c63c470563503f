"""The job engine of a fleet: who polls, who waits for a slot, and Procrastinate's jobs.

The only importer of Procrastinate. A job only wakes a worker; the claim in the ledger decides.
"""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import LiteralString, ParamSpec, TypeVar

import psycopg
import structlog
from procrastinate import App, JobContext, PsycopgConnector, sql
from procrastinate.connector import Notify
from procrastinate.exceptions import AlreadyEnqueued, ConnectorException
from procrastinate.schema import SchemaManager
from sqlalchemy import Connection, text
from sqlalchemy.engine import make_url
from tenacity import AsyncRetrying, retry_if_exception, stop_when_event_set, wait_fixed

from mulligan.config.operator import Limits
from mulligan.domain.errors import LeaseLostError
from mulligan.domain.issue import IssueRef, PollerLease
from mulligan.implement.ports import Clock
from mulligan.storage.database import Database
from mulligan.storage.postgres import CONNECT_SECONDS, KEEPALIVES, PREPARE
from mulligan.storage.serialization import write_time

QUEUE = "mulligan.visits.1"
"""The queue of the visits; the number is the version of their jobs, so that each worker fetches
only jobs that it understands."""

VISIT = "mulligan.visit"

HINTS = "mulligan_hints"
"""The channel of PostgreSQL that names repositories to poll at once."""

POLLER_LEASE = timedelta(seconds=20)
"""The time without a sign of life after which another worker polls."""

STALLED_SECONDS = 30
"""The time without a heartbeat after which a worker of Procrastinate counts as dead."""

FORGOTTEN_SECONDS = 24 * 60 * 60.0
"""The time after which Procrastinate forgets a worker. A worker frozen for less continues."""

FETCH_SECONDS = 1.0
"""How often a worker looks for jobs whose notification it missed, as while it reconnects."""

URGENT = 1_000_000
"""The priority of issues with begun work, which come before new ones."""

MOST_STARTED = 100
"""How many waiting issues are read at a time when some may start."""

FETCH_JOB = sql.queries["fetch_job"]

RETRY_SECONDS = 0.5
POOL_SECONDS = 5.0

Visit = Callable[[IssueRef, int], None]
"""Visits the issue of a job, which has this number."""


Hinted = Callable[[str], None]
"""Is called with the name of a repository that may have changed; returns at once."""

P = ParamSpec("P")
T = TypeVar("T")

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class JobQueue:
    """The port VisitQueue: due issues that may start have a job, the others wait.

    `account` names the login at GitHub that this worker polls with.
    """

    database: Database
    clock: Clock
    limits: Limits
    account: Callable[[], str]

    def lead(self, worker: str) -> PollerLease | None:
        """Use one statement on one row, so that a worker that froze or is offline blocks nobody."""
        account = self.account()
        with self.database.write_rows() as connection:
            now = self.clock.now()
            values = {
                "account": account,
                "worker": worker,
                "now": write_time(now),
                "expires": write_time(now + POLLER_LEASE),
            }
            fence = connection.execute(LEAD, values).scalar()
        return None if fence is None else PollerLease(account, worker, fence)

    def step_down(self, lease: PollerLease) -> None:
        with self.database.write_rows() as connection:
            connection.execute(STEP_DOWN, {"account": lease.account, "fence": lease.fence})

    def defer(self, lease: PollerLease, due: Sequence[IssueRef]) -> None:
        """Let repositories take turns; in each one, the given order counts.

        The check for another poller is in the same transaction.
        """
        with self._leading(lease) as (connection, now):
            self._wait(connection, due, now)
            connection.execute(UNFINISHED, {**self._urgent(now), "released": True})
            self._fill(connection, now)

    def fill(self, done: int | None = None) -> None:
        """The issue of `done` may be another worker's by now, and then takes a slot still."""
        with self.database.write() as connection:
            self._fill(connection, write_time(self.clock.now()), done)

    def tidy(self, lease: PollerLease) -> None:
        """Delete the jobs whose worker died, too."""
        with self._leading(lease) as (connection, now):
            old = {"queue": QUEUE, "now": now, "stalled": STALLED_SECONDS}
            age = self.limits.lease.total_seconds()
            stale = connection.execute(REAP, {**old, "age": age}).scalars().all()
            for lock in stale:
                log.warning("stalled_job_deleted", issue=lock)
            connection.execute(UNFINISHED, {**self._urgent(now), "released": False})
            self._fill(connection, now)

    def hint(self, repository: str) -> None:
        """A worker that misses the notification finds the change at its next poll."""
        with self.database.write_rows() as connection:
            connection.execute(HINT, {"channel": HINTS, "repository": repository})

    @contextmanager
    def _leading(self, lease: PollerLease) -> Generator[tuple[Connection, str]]:
        """Yield a writing transaction in which the right to poll is in force, and the time."""
        with self.database.write() as connection:
            now = write_time(self.clock.now())
            holder = {"account": lease.account, "fence": lease.fence, "now": now}
            if connection.execute(LEADS, holder).first() is None:
                raise LeaseLostError(
                    "Another worker of the fleet polls GitHub now; this one stops polling."
                )
            yield connection, now

    def _wait(self, connection: Connection, due: Iterable[IssueRef], now: str) -> None:
        found = dict.fromkeys(due)
        # Of ten thousand issues, psycopg would write two lists more slowly than PostgreSQL works.
        rows = {
            "repositories": " ".join(ref.repository for ref in found),
            "numbers": " ".join(str(ref.number) for ref in found),
        }
        connection.execute(WAIT, {**rows, "queue": QUEUE, "now": now})

    def _urgent(self, now: str) -> dict[str, object]:
        return {"now": now, "queue": QUEUE, "priority": URGENT}

    def _fill(self, connection: Connection, now: str, done: int | None = None) -> None:
        limits = {
            "now": now,
            "queue": QUEUE,
            "done": done,
            "per_repository": self.limits.per_repository,
            "fleet": self.limits.fleet,
            "most": MOST_STARTED,
        }
        while rows := connection.execute(NEXT, limits).all():
            slots = {row.repository: row.free for row in rows}
            started = 0
            for row in rows:
                if slots[row.repository]:
                    slots[row.repository] -= 1
                    started += 1
                    ref = IssueRef(row.repository, row.number)
                    self._defer(connection, ref, row.priority)
                    connection.execute(
                        STARTED, {"repository": row.repository, "number": row.number}
                    )
            if started == len(rows) < MOST_STARTED:
                return

    def _defer(self, connection: Connection, ref: IssueRef, priority: int) -> None:
        """Add the job in this transaction; within a savepoint, since a duplicate would end it."""
        driver = connection.connection.driver_connection
        named = str(ref)
        job = app.configure_task(
            VISIT,
            queue=QUEUE,
            lock=named,
            queueing_lock=named,
            priority=priority,
            connection=driver,
        )
        with suppress(AlreadyEnqueued), connection.begin_nested():
            job.defer(issue=named)


app = App(connector=PsycopgConnector())
"""Defers on connections that it is given. Procrastinate's own commands use it with libpq's
environment variables (docs/fleet.md)."""


def open_jobs(
    database: Database, clock: Clock, limits: Limits, account: Callable[[], str]
) -> JobQueue:
    """Open the queue in the ledger's database; create and migrate Procrastinate's tables."""
    with database.write() as connection:
        _bring_up_to_date(connection)
    return JobQueue(database, clock, limits, account)


def _bring_up_to_date(connection: Connection) -> None:
    """Run the migrations of Procrastinate that this database lacks; a comment says which it has."""
    scripts = sorted(Path(SchemaManager.get_migrations_path()).glob("*.sql"))
    exists = connection.exec_driver_sql("SELECT to_regclass('procrastinate_jobs')").scalar()
    if exists is None:
        _run(connection, SchemaManager.get_schema())
    else:
        known = connection.exec_driver_sql(
            "SELECT obj_description('procrastinate_jobs'::regclass)"
        ).scalar()
        newer = [each for each in scripts if known is not None and each.stem > known]
        if not newer:
            return
        for script in newer:
            _run(connection, script.read_text(encoding="utf-8"))
    newest = scripts[-1].stem
    connection.exec_driver_sql(f"COMMENT ON TABLE procrastinate_jobs IS '{newest}'")


def _run(connection: Connection, script: str) -> None:
    connection.exec_driver_sql(script.replace("%", "%%"))


HINT = text("SELECT pg_notify(:channel, :repository)")

# The rows.

LEAD = text(
    """
    INSERT INTO pollers (account, fence, worker, expires)
    VALUES (:account, 1, :worker, :expires)
    ON CONFLICT (account) DO UPDATE SET
        fence = pollers.fence + CASE
            WHEN pollers.worker = :worker AND pollers.expires > :now THEN 0 ELSE 1
        END,
        worker = :worker,
        expires = :expires
    WHERE pollers.worker IS NULL OR pollers.worker = :worker OR pollers.expires <= :now
    RETURNING fence
    """
)

LEADS = text(
    """
    SELECT 1 FROM pollers
    WHERE account = :account AND fence = :fence AND expires > :now
    FOR UPDATE
    """
)

STEP_DOWN = text(
    "UPDATE pollers SET worker = NULL, expires = NULL WHERE account = :account AND fence = :fence"
)

BUSY = """
    SELECT repository, number FROM leases WHERE expires > :now
    UNION
    SELECT split_part(lock, '#', 1), split_part(lock, '#', 2)::int FROM procrastinate_jobs
    WHERE queue_name = :queue AND status IN ('todo', 'doing')
"""
"""The issues that are being visited, or have a job: each takes a slot."""

WAIT = text(
    f"""
    INSERT INTO waiting (repository, number, priority, since)
    SELECT repository, number, found.priority, CAST(:now AS varchar)
    FROM (
        SELECT repository, number,
            1 - row_number() OVER (PARTITION BY repository COLLATE "C" ORDER BY place) AS priority
        FROM unnest(
            string_to_array(:repositories, ' '), CAST(string_to_array(:numbers, ' ') AS int[])
        ) WITH ORDINALITY AS due (repository, number, place)
        WHERE (repository, number) NOT IN ({BUSY})
    ) found LEFT JOIN waiting USING (repository, number)
    WHERE waiting.priority IS DISTINCT FROM found.priority
    ON CONFLICT (repository, number) DO UPDATE SET priority = excluded.priority
    """  # noqa: S608 - all its parts are in this file
)
"""The first due issue of each repository has priority 0, the next one -1, and so on.

Those that wait with the same priority already are left out: a conflict locks and writes its row.
"""

NEXT = text(
    f"""
    WITH busy AS (
        {BUSY} AND id IS DISTINCT FROM CAST(:done AS bigint)
    ), taken AS (
        SELECT repository, count(*) AS slots FROM busy GROUP BY repository
    )
    SELECT repository, number, priority, :per_repository - coalesce(slots, 0) AS free
    FROM waiting LEFT JOIN taken USING (repository)
    WHERE coalesce(slots, 0) < :per_repository
    AND (repository, number) NOT IN (SELECT repository, number FROM busy)
    ORDER BY priority DESC, since, repository, number
    LIMIT least(:most, CASE WHEN CAST(:fleet AS int) IS NOT NULL
        THEN greatest(0, :fleet - (SELECT count(*) FROM busy)) END)
    """  # noqa: S608 - all its parts are in this file
)
"""The first waiting issues of repositories that have a `free` slot; a limit that is NULL is none.

Without ranks in each repository, which would sort all that waits for each slot that is freed.
"""

STARTED = text("DELETE FROM waiting WHERE repository = :repository AND number = :number")

REAP = text(
    """
    DELETE FROM procrastinate_jobs job
    WHERE status = 'doing' AND queue_name = :queue
    AND NOT EXISTS (
        SELECT 1 FROM leases
        WHERE expires > :now AND repository || '#' || number = job.lock
    )
    AND (
        NOT EXISTS (
            SELECT 1 FROM procrastinate_workers
            WHERE id = job.worker_id
            AND last_heartbeat > clock_timestamp() - make_interval(secs => :stalled)
        )
        OR (
            SELECT max(at) FROM procrastinate_events WHERE job_id = job.id AND type = 'started'
        ) < clock_timestamp() - make_interval(secs => :age)
    )
    RETURNING lock
    """
)
"""Jobs that are fetched, without a lease: their worker died, or never got to know of them."""

UNFINISHED = text(
    f"""
    INSERT INTO waiting (repository, number, priority, since)
    SELECT repository, number, :priority, CAST(:now AS varchar)
    FROM issues JOIN leases USING (repository, number)
    WHERE phase <> 'idle'
    AND (leases.expires <= :now OR (:released AND leases.expires IS NULL))
    AND (repository, number) NOT IN ({BUSY})
    ON CONFLICT (repository, number) DO UPDATE SET priority = excluded.priority
    """  # noqa: S608 - all its parts are in this file
)
"""Issues that a dead worker left, and with `released` also those whose visit ended early."""


# The worker.


class _Connector(PsycopgConnector):
    """A connector that waits while PostgreSQL is unavailable, so that running visits continue."""

    def __init__(self, url: str, hinted: Hinted, stopping: threading.Event) -> None:
        own = {"connect_timeout": CONNECT_SECONDS, "application_name": "mulligan", **KEEPALIVES}
        address = make_url(url).set(drivername="postgresql")
        super().__init__(  # pyright: ignore[reportUnknownMemberType] - the pool's type is not whole
            conninfo=address.render_as_string(hide_password=False),
            kwargs={name: value for name, value in own.items() if name not in address.query},
            min_size=0,
            max_size=1,
            timeout=POOL_SECONDS,
            reconnect_timeout=POOL_SECONDS,
            configure=_prepare,
        )
        self._hinted = hinted
        self._stopping = stopping
        self._is_notified = False

    async def execute_query_async(self, query: LiteralString, **arguments: object) -> None:
        try:
            await self._patiently(super().execute_query_async, query, **arguments)
        except ConnectorException as error:
            # The poller may delete a job as stalled while its visit ends: nothing is left to do.
            if not isinstance(error.__cause__, psycopg.errors.RaiseException):
                raise

    async def execute_query_one_async(
        self, query: LiteralString, **arguments: object
    ) -> dict[str, object]:
        """Answer a query with one row; fetch again if a job came while none was found.

        Procrastinate's worker forgets a notification that comes during a fetch.
        """
        call = super().execute_query_one_async
        while True:
            self._is_notified = False
            row = await self._patiently(call, query, **arguments)
            if query != FETCH_JOB or row["id"] is not None or not self._is_notified:
                return row

    async def execute_query_all_async(
        self, query: LiteralString, **arguments: object
    ) -> list[dict[str, object]]:
        return await self._patiently(super().execute_query_all_async, query, **arguments)

    async def listen_notify(self, on_notification: Notify, channels: Iterable[str]) -> None:
        """Listen for jobs, and on the same connection for hints."""

        async def notified(*, channel: str, payload: str) -> None:
            if self._stopping.is_set():
                # Before Python 3.12, asyncio.wait_for loses a cancellation that comes together
                # with a notification (https://github.com/python/cpython/issues/86296): again.
                if listener := asyncio.current_task():
                    listener.cancel()
            elif channel == HINTS:
                self._hinted(payload)
            else:
                self._is_notified = True
                await on_notification(channel=channel, payload=payload)

        await self._patiently(super().listen_notify, notified, [*channels, HINTS])

    async def _patiently(
        self, call: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        retrying = AsyncRetrying(
            retry=retry_if_exception(_is_away),
            wait=wait_fixed(RETRY_SECONDS),
            stop=stop_when_event_set(self._stopping),
            reraise=True,
        )
        return await retrying(call, *args, **kwargs)


def _is_away(error: BaseException) -> bool:
    """Tell whether PostgreSQL does not answer, or is a replica until a failover ends."""
    return isinstance(error, ConnectorException) and isinstance(
        error.__cause__, psycopg.OperationalError | psycopg.errors.ReadOnlySqlTransaction
    )


async def _prepare(connection: psycopg.AsyncConnection) -> None:
    for setting in PREPARE:
        await connection.execute(setting)
    await connection.commit()


@contextmanager
def working(
    url: str,
    visit: Visit | None,
    concurrency: int,
    hinted: Hinted = lambda _: None,
    fetch_seconds: float = FETCH_SECONDS,
) -> Generator[None]:
    """Fetch jobs in this block and call `visit`, which must not raise, `concurrency` at a time.

    Without `visit`, fetch no jobs. `hinted` gets the hints of all workers. Leaving the block
    fetches no more, and waits for the visits that have begun.
    """
    for library in ("procrastinate", "psycopg.pool"):
        # They log each job, and tracebacks while PostgreSQL is away.
        logging.getLogger(library).setLevel(logging.CRITICAL)
    with ThreadPoolExecutor(concurrency, thread_name_prefix="visit") as pool:
        worker = _Worker(url, visit, pool, concurrency, hinted, fetch_seconds)
        thread = threading.Thread(target=worker.run, name="jobs")
        thread.start()
        try:
            yield
        finally:
            worker.stop()
            thread.join()


class _Worker:
    """Procrastinate's worker on an event loop in its own thread; visits run in `pool`."""

    def __init__(
        self,
        url: str,
        visit: Visit | None,
        pool: Executor,
        concurrency: int,
        hinted: Hinted,
        fetch_seconds: float,
    ) -> None:
        self._visit = visit
        self._pool = pool
        self._concurrency = concurrency
        self._fetch_seconds = fetch_seconds
        self._stopping = threading.Event()
        self._app = App(connector=_Connector(url, hinted, self._stopping))
        self._app.task(name=VISIT, queue=QUEUE, pass_context=True)(self._on_job)
        self._loop = asyncio.new_event_loop()
        self._task = self._loop.create_task(self._work())

    def run(self) -> None:
        """Work until `stop` is called; call this in a thread of its own."""
        with closing(self._loop), suppress(asyncio.CancelledError):
            self._loop.run_until_complete(self._task)

    def stop(self) -> None:
        """Fetch no more jobs; `run` returns when the running ones have ended."""
        self._stopping.set()
        with suppress(RuntimeError):  # the loop is closed if the worker has ended
            self._loop.call_soon_threadsafe(self._task.cancel)

    async def _work(self) -> None:
        while not self._stopping.is_set():
            try:
                async with self._app.open_async():
                    if self._visit:
                        await self._fetch()
                    else:
                        await self._app.connector.listen_notify(_ignore, [])
            except (ConnectorException, psycopg.Error) as error:
                log.warning("jobs_not_fetched", reason=str(error.__cause__ or error))
                await asyncio.sleep(RETRY_SECONDS)

    async def _fetch(self) -> None:
        await self._app.run_worker_async(
            queues=[QUEUE],
            concurrency=self._concurrency,
            fetch_job_polling_interval=self._fetch_seconds,
            stalled_worker_timeout=FORGOTTEN_SECONDS,
            delete_jobs="always",
            install_signal_handlers=False,
        )

    async def _on_job(self, context: JobContext, issue: str) -> None:
        loop, job = asyncio.get_running_loop(), context.job.id
        if self._visit and job is not None:
            await loop.run_in_executor(self._pool, self._visit, IssueRef.parse(issue), job)


async def _ignore(*, channel: str, payload: str) -> None:
    """Ignore a notification."""
