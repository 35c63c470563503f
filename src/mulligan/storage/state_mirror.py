"""Mirror a worker's ledger on the state ref of each repository (RESTORE-3)."""

import threading
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime

import structlog
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt

from mulligan.domain.errors import ConfigError, MulliganError, StandsBackError, UsageError
from mulligan.domain.events import AttemptCompleted, AttemptStarted, Event, RecordedEvent
from mulligan.domain.issue import IssueRef, RepositoryFacts, Stage
from mulligan.domain.result import WorkerResultMeta, latest_records
from mulligan.domain.status import IssueStatus
from mulligan.git.remote_ref import RefMovedError
from mulligan.implement.ports import Clock, LedgerReader, Owners, OwnLedger
from mulligan.storage.git_ref import (
    DEFERRED_EVENTS,
    MAX_ISSUE_BYTES,
    Snapshot,
    StateRef,
    outdated,
    read_lines,
    shortened,
    write_lines,
)
from mulligan.text.redact import Redactor

GATHER = 3.0
"""Seconds in which further events join the next write."""

RETRY = 60.0
"""Seconds until a write that failed is tried again."""

DRAIN_SECONDS = 20.0
"""Seconds that the process waits for the last write before it exits."""

MAX_READS = 5
"""How often one write reads the ref again because somebody else wrote it first."""

log = structlog.get_logger()


class StateMirror(OwnLedger):
    """The port Mirror: writes the ref in a thread of its own, from what the ledger holds then.

    It authorises nothing: see domain/restoration.py for what counts when it is read.
    """

    def __init__(
        self,
        open_ref: Callable[[str], AbstractContextManager[StateRef]],
        facts: Callable[[str], RepositoryFacts],
        redactor: Redactor,
        *,
        may_be_public: bool,
        gather: float = GATHER,
    ) -> None:
        self.open_ref = open_ref
        self._facts = facts
        self._redactor = redactor
        self._may_be_public = may_be_public
        self._gather = gather
        self._lock = threading.Lock()
        self._due = set[IssueRef]()
        self._wake = threading.Event()
        self._ended = threading.Event()
        self._failed = set[str]()

    def on_event(self, status: IssueStatus, event: Event) -> None:
        """Write the issue soon, if the event lasts; never blocks."""
        if event.kind not in DEFERRED_EVENTS:
            self._add({status.issue})

    @contextmanager
    def running(self, ledger: LedgerReader, owners: Owners, clock: Clock) -> Generator[None]:
        """Write during this block what is due, and at first all issues that are not resolved."""
        self._add({each.issue for each in ledger.statuses() if each.stage is not Stage.RESOLVED})
        work = (ledger, owners, clock)
        thread = threading.Thread(target=self._write_always, args=work, name="mirror", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            self._wake.set()
            thread.join(DRAIN_SECONDS)

    def attempts(self, ref: IssueRef) -> tuple[WorkerResultMeta, ...] | None:
        try:
            with self.open_ref(ref.repository) as state:
                events = read_lines(ref, state.read().issues.get(ref, b""))
        except ConfigError:
            return None
        found = (each.event for each in events)
        return latest_records(each.meta for each in found if isinstance(each, AttemptCompleted))

    def _add(self, issues: Iterable[IssueRef]) -> None:
        with self._lock:
            self._due.update(issues)
            if self._due:
                self._wake.set()

    def _write_always(self, ledger: LedgerReader, owners: Owners, clock: Clock) -> None:
        while True:
            self._wake.wait(RETRY if self._failed else None)
            self._ended.wait(self._gather)
            is_last = self._ended.is_set()
            self._wake.clear()
            self.write_due(ledger, owners, clock)
            if is_last:
                return

    def write_due(self, ledger: LedgerReader, owners: Owners, clock: Clock) -> None:
        """Write the issues that are due, and log what failed."""
        with self._lock:
            due, self._due = self._due, set[IssueRef]()
        for repository in sorted({ref.repository for ref in due}):
            issues = {ref for ref in due if ref.repository == repository}
            try:
                owners.require(repository, fresh=False)
                texts = {ref: self._text(ref, ledger) for ref in issues}
                self._write(repository, texts, clock.now())
                self._failed.discard(repository)
            except StandsBackError:
                continue
            except MulliganError as error:
                if repository not in self._failed:
                    log.warning("mirror_not_written", repository=repository, reason=str(error))
                self._failed.add(repository)
                with self._lock:
                    self._due |= issues

    def _text(self, ref: IssueRef, ledger: LedgerReader) -> bytes:
        """Return an issue's lines, without host names."""
        lines = write_lines(map(_without_worker, ledger.events(ref)), self._redactor)
        return shortened(ref, lines, self._redactor, MAX_ISSUE_BYTES, keep_round=True)

    def _write(self, repository: str, texts: Mapping[IssueRef, bytes], now: datetime) -> None:
        if not (self._may_be_public or self._facts(repository).is_private):
            raise UsageError(
                f"{repository} is public, and so is the ref. To mirror it all the same, write"
                " `state: {mirror: public}`."
            )
        retrying = Retrying(
            retry=retry_if_exception_type(RefMovedError),
            stop=stop_after_attempt(MAX_READS),
            reraise=True,
        )
        with self.open_ref(repository) as ref:
            retrying(_write_once, ref, texts, now)


def _write_once(ref: StateRef, texts: Mapping[IssueRef, bytes], now: datetime) -> None:
    before = ref.read()
    issues = {**before.issues, **texts}
    if issues == before.issues:
        return
    if len(issues) > len(before.issues):
        events = {each: _events(each, text) for each, text in issues.items()}
        sizes = {each: len(text) for each, text in issues.items()}
        for each in outdated(events, sizes, now):
            del issues[each]
    ref.write(Snapshot(None, issues, before.leases), before)


def _events(ref: IssueRef, text: bytes) -> tuple[RecordedEvent, ...]:
    """Parse an issue's events; none if they cannot be read, so that others are written."""
    try:
        return read_lines(ref, text)
    except ConfigError:
        return ()


def _without_worker(recorded: RecordedEvent) -> RecordedEvent:
    match recorded.event:
        case AttemptStarted() as event:
            clean = event.model_copy(update={"worker": ""})
        case AttemptCompleted(meta=meta):
            clean = AttemptCompleted(meta=meta.model_copy(update={"worker": ""}))
        case _:
            return recorded
    return recorded.model_copy(update={"event": clean})
