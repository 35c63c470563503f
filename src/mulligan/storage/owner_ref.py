"""Own ready labels by records on a git ref that every installation reads (OWNER-1)."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from types import TracebackType
from typing import Protocol, Self

import structlog
from pydantic import TypeAdapter, ValidationError
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt

from mulligan.domain.errors import DeniedError, MulliganError, StandsBackError
from mulligan.domain.ownership import RENEWAL, OwnerRecord, StandBack, may_own, renewed
from mulligan.git.remote_ref import RefMovedError, RemoteRef
from mulligan.implement.ports import Clock

OWNER_REF = "refs/mulligan/owner"

OWNER_TITLE = "Which installations of Mulligan work here"

OWNER_FILE = "owner.json"

MAX_BYTES = 64 * 1024
"""A larger file is not Mulligan's."""

TRUSTED = (2 * RENEWAL).total_seconds()
"""Seconds after a renewal in which nobody can have replaced it, but by `--take-over`."""

TICK = (RENEWAL / 4).total_seconds()

DUE = RENEWAL.total_seconds() - TICK
"""Seconds after which a record is renewed, so that the next tick is not too late."""

MAX_READS = 5
"""How often one claim reads the ref again because another installation wrote it first."""

PARALLEL_RENEWALS = 8

log = structlog.get_logger()

_RECORDS = TypeAdapter(dict[str, OwnerRecord])


def parse_records(text: bytes) -> dict[str, OwnerRecord]:
    """Parse the owners by label; a file that Mulligan cannot have written has none."""
    try:
        return _RECORDS.validate_json(text)
    except ValidationError:
        return {}


def read_records(ref: RemoteRef, sha: str) -> dict[str, OwnerRecord]:
    """Read the owners from a fetched commit."""
    size = ref.git.query("cat-file", "-s", f"{sha}:{OWNER_FILE}")
    if size.exit_code or not size.text.isdecimal() or int(size.text) > MAX_BYTES:
        return {}
    return parse_records(ref.git.read("cat-file", "blob", f"{sha}:{OWNER_FILE}"))


class Sightings(Protocol):
    """Remembers this installation's renewals, and other owners. See storage/sightings.py."""

    def note_renewal(self, repository: str, version: str) -> None:
        """Note a renewal that this installation is about to write."""
        ...

    def is_own(self, repository: str, version: str) -> bool:
        """Return whether this installation wrote a renewal; if not, a copy of its disk did."""
        ...

    def see(
        self, repository: str, ready_label: str, record: OwnerRecord
    ) -> tuple[StandBack, timedelta]:
        """Note another owner; say for how long its record was seen unchanged."""
        ...

    def forget(self, repository: str) -> None:
        """Note that this installation owns a repository's label."""
        ...

    def all(self) -> Sequence[StandBack]:
        """List the other owners."""
        ...


@dataclass(frozen=True, slots=True)
class RecordedTimes:
    """Sightings of a run that forgets them: it compares the record's time with its own clock."""

    clock: Clock

    def note_renewal(self, repository: str, version: str) -> None:
        """Remember nothing."""

    def is_own(self, repository: str, version: str) -> bool:  # noqa: ARG002 - any of its id
        """Trust the id in the record."""
        return True

    def see(
        self, repository: str, ready_label: str, record: OwnerRecord
    ) -> tuple[StandBack, timedelta]:
        """Trust the time in the record."""
        back = StandBack(repository, ready_label, record.installation, record.renewed)
        return back, self.clock.now() - record.renewed

    def forget(self, repository: str) -> None:
        """Remember nothing."""

    def all(self) -> Sequence[StandBack]:
        """Remember nothing."""
        return ()


@dataclass(frozen=True, slots=True)
class Installation:
    """The id of this installation, its clock and its memory.

    `may_release` returns whether no other worker or runtime of it continues after this one.
    """

    id: str
    sightings: Sightings
    clock: Clock
    may_release: Callable[[], bool] = lambda: True
    take_over: bool = False


@dataclass(slots=True)
class _Claim:
    """The known state of one repository's ref; `label` is None while others own it.

    `written` is the time of the last certain renewal of the record of `label`.
    """

    take_over: bool
    lock: threading.Lock = field(default_factory=threading.Lock)
    sha: str | None = None
    records: dict[str, OwnerRecord] = field(default_factory=dict[str, OwnerRecord])
    label: str | None = None
    written: float = float("-inf")
    is_refused: bool = False

    def give_up(self) -> None:
        """Note that this installation does not own the label."""
        self.label, self.written = None, float("-inf")


def seconds_since_boot() -> float:
    """Read a clock that cannot be set, and that continues while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class RefOwners:
    """Implements Owners on the remotes' refs; safe for threads.

    In a `with` block, a thread renews the records; the end of the block releases them.
    """

    def __init__(
        self,
        installation: Installation,
        refs: Callable[[str], AbstractContextManager[RemoteRef]],
        ready_label: Callable[[str], str],
        steady: Callable[[], float] = seconds_since_boot,
    ) -> None:
        self._me = installation
        self._refs = refs
        self._ready_label = ready_label
        self._steady = steady
        self._lock = threading.Lock()
        self._claims: dict[str, _Claim] = {}
        self._standing = {each.repository: each for each in installation.sightings.all()}
        self._ended = threading.Event()
        self._renewer = threading.Thread(target=self._renew_always, name="owner", daemon=True)

    def __enter__(self) -> Self:
        self._renewer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._renewer.join()
        self.release()

    def require(self, repository: str, *, fresh: bool = True) -> None:
        claim = self._claim(repository)
        with claim.lock:
            is_trusted = claim.label is not None and self._steady() - claim.written < TRUSTED
            if is_trusted and not fresh:
                return
            with self._refs(repository) as ref:
                _while_it_moves(lambda: self._own(repository, claim, ref))

    def is_contested(self, repository: str) -> bool:
        """Return whether another installation owned the label when it was last read."""
        return repository in self._standing or self._claim(repository).take_over

    def standing_back(self) -> Sequence[StandBack]:
        return [back for _, back in sorted(self._standing.items())]

    def renew(self) -> None:
        """Renew every record that is due, and log what failed."""
        now = self._steady()
        due = [name for name, each in self._held() if now - each.written >= DUE]
        if due:
            with ThreadPoolExecutor(PARALLEL_RENEWALS, thread_name_prefix="owner") as pool:
                list(pool.map(self._renew_one, due))

    def release(self) -> None:
        """Remove this installation's records, if none of its workers continues; log failures."""
        for name, claim in self._held():
            try:
                if claim.is_refused or not self._me.may_release():
                    continue
                with claim.lock, self._refs(name) as ref:
                    _while_it_moves(partial(self._release, name, claim, ref))
            except MulliganError as error:
                log.warning("ownership_not_released", repository=name, reason=str(error))

    def _claim(self, repository: str) -> _Claim:
        with self._lock:
            return self._claims.setdefault(repository, _Claim(self._me.take_over))

    def _held(self) -> list[tuple[str, _Claim]]:
        with self._lock:
            return [(name, each) for name, each in self._claims.items() if each.label is not None]

    def _own(self, repository: str, claim: _Claim, ref: RemoteRef) -> None:
        label, now = self._ready_label(repository), self._steady()
        self._read(repository, claim, ref, label)
        record, unchanged = claim.records.get(label.casefold()), None
        if record and not self._is_own(repository, record):
            claim.give_up()
            back, unchanged = self._me.sightings.see(repository, label, record)
            self._standing[repository] = back
        if not may_own(unchanged, take_over=claim.take_over):
            raise StandsBackError(self._standing[repository].sentence)
        if claim.label not in {None, label} or now - claim.written >= DUE:
            self._record(repository, claim, ref, label)
            claim.written = now
        claim.label, claim.take_over = label, False
        if self._standing.pop(repository, None):
            self._me.sightings.forget(repository)
            log.warning("ownership_taken", repository=repository, ready_label=label)

    def _is_own(self, repository: str, record: OwnerRecord) -> bool:
        """Return whether this installation wrote the record; a copy of its disk has the same id."""
        return record.installation == self._me.id and self._me.sightings.is_own(
            repository, record.version
        )

    def _record(self, repository: str, claim: _Claim, ref: RemoteRef, label: str) -> None:
        """Write the record of `label` instead of the one of the claim."""
        before = claim.records.get(label.casefold())
        new = renewed(before, self._me.id, self._me.clock.now())
        kept = _without(claim.records, claim.label)
        self._me.sightings.note_renewal(repository, new.version)
        try:
            self._write(claim, ref, {**kept, label.casefold(): new})
        except DeniedError as error:
            # The lease only avoids double work, and the token may be good for all the rest.
            if not claim.is_refused:
                log.warning("ownership_not_recorded", repository=repository, reason=str(error))
            claim.is_refused = True

    def _read(self, repository: str, claim: _Claim, ref: RemoteRef, label: str) -> None:
        """Read the ref, and when another worker of this installation renewed the label's record.

        Workers share the clock of the ledger, and LAPSE is far longer than its possible error.
        """
        now, sha = self._steady(), ref.tip()
        if sha == claim.sha:
            return
        claim.records = read_records(ref, ref.fetch()) if sha else {}
        claim.sha = sha
        record = claim.records.get(label.casefold())
        if record and self._is_own(repository, record):
            age = (self._me.clock.now() - record.renewed).total_seconds()
            if abs(age) < DUE:
                claim.written = max(claim.written, now - max(age, 0.0))

    def _write(self, claim: _Claim, ref: RemoteRef, records: dict[str, OwnerRecord]) -> None:
        text = _RECORDS.dump_json(records, indent=1) + b"\n"
        claim.sha = ref.write({OWNER_FILE: text}, claim.sha)
        claim.records = records

    def _release(self, repository: str, claim: _Claim, ref: RemoteRef) -> None:
        label = claim.label or ""
        self._read(repository, claim, ref, label)
        record = claim.records.get(label.casefold())
        if claim.sha and record and self._is_own(repository, record):
            if left := _without(claim.records, label):
                self._write(claim, ref, left)
            else:
                ref.delete(claim.sha)
        claim.give_up()

    def _renew_always(self) -> None:
        while not self._ended.wait(TICK):
            self.renew()

    def _renew_one(self, repository: str) -> None:
        try:
            self.require(repository)
        except StandsBackError as error:
            log.warning("ownership_lost", repository=repository, reason=str(error))
        except MulliganError as error:
            log.warning("ownership_not_renewed", repository=repository, reason=str(error))


def _without(records: Mapping[str, OwnerRecord], label: str | None) -> dict[str, OwnerRecord]:
    gone = label.casefold() if label is not None else None
    return {name: each for name, each in records.items() if name != gone}


def _while_it_moves(work: Callable[[], None]) -> None:
    """Repeat work while another installation writes the ref at the same time."""
    Retrying(
        retry=retry_if_exception_type(RefMovedError),
        stop=stop_after_attempt(MAX_READS),
        reraise=True,
    )(work)
