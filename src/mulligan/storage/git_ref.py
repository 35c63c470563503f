"""Keep the ledger and the leases on a git ref of the repository (ACTION-1)."""

import hashlib
import io
import json
import re
import tarfile
import threading
import time
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial

from pydantic import TypeAdapter, ValidationError
from tenacity import (
    RetryError,
    Retrying,
    retry_if_exception_type,
    stop_after_attempt,
    wait_chain,
    wait_fixed,
)

from mulligan.domain.errors import ConfigError, UnavailableError
from mulligan.domain.events import (
    AttemptCompleted,
    BaselineRecorded,
    CommandReceived,
    Event,
    RecordedEvent,
    comments_read_to,
)
from mulligan.domain.issue import (
    REPOSITORY,
    CommentAct,
    IssueRef,
    Lease,
    Stage,
    lease_lost,
    parse_act,
)
from mulligan.domain.recorded_effects import CommentsRead, StageShown, StatusWritten, key_of
from mulligan.domain.restoration import MIRROR_REF
from mulligan.domain.result import CheckResult, WorkerResultMeta, latest_records
from mulligan.domain.retention import needs_commit
from mulligan.domain.status import IssueStatus
from mulligan.git.remote_ref import RefMovedError, RemoteRef, open_remote_ref
from mulligan.git.repository import Remote
from mulligan.implement.ports import Clock, Listener, ignore_event
from mulligan.implement.prompt.context_sections import detailed_attempt
from mulligan.sandbox.cancellation import defer_shutdown
from mulligan.storage.ledger import SqlLedger
from mulligan.storage.serialization import (
    Row,
    event_of,
    folded,
    recorded_of,
    redacted,
    values_of,
    write_time,
)
from mulligan.text.redact import Redactor

# The files that the ref holds.

LEASES_FILE = "leases.json"

ISSUE_FILE = re.compile(rf"({REPOSITORY.pattern})/([1-9][0-9]{{0,9}})\.jsonl")


@dataclass(frozen=True, slots=True)
class StoredLease:
    """Who works on an issue, and until when; nobody if `expires` is None. `fence` only grows."""

    fence: int
    worker: str = ""
    expires: datetime | None = None

    def is_good(self, now: datetime) -> bool:
        """Return whether the lease is in force at `now`."""
        return self.expires is not None and self.expires > now


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that the ref holds at one commit; `issues` holds the content of their files."""

    sha: str | None = None
    issues: Mapping[IssueRef, bytes] = field(default_factory=dict[IssueRef, bytes])
    leases: Mapping[IssueRef, StoredLease] = field(default_factory=dict[IssueRef, StoredLease])

    @property
    def files(self) -> dict[str, bytes]:
        """The files, by path."""
        named = {f"{ref.repository}/{ref.number}.jsonl": text for ref, text in self.issues.items()}
        kept = {str(ref): each for ref, each in sorted(self.leases.items())}
        return {**named, LEASES_FILE: _STORED_LEASES.dump_json(kept, indent=1) + b"\n"}


_STORED_LEASES: TypeAdapter[dict[str, StoredLease]] = TypeAdapter(dict[str, StoredLease])


def snapshot_of(sha: str, files: Mapping[str, bytes]) -> Snapshot:
    """Parse the files of a commit; ignore files that are not Mulligan's."""
    found = {name: ISSUE_FILE.fullmatch(name) for name in files}
    issues = {
        IssueRef(match[1], int(match[2])): files[name] for name, match in found.items() if match
    }
    try:
        stored = _STORED_LEASES.validate_json(files.get(LEASES_FILE, b"{}"))
    except ValidationError as error:
        message = (
            f"{LEASES_FILE} of Mulligan's state cannot be read; use the version that wrote it."
        )
        raise ConfigError(message) from error
    return Snapshot(sha, issues, {IssueRef.parse(name): each for name, each in stored.items()})


# The ref on a remote.

STATE_REF = MIRROR_REF

MAX_READ_BYTES = 256 * 1024 * 1024
"""More than Mulligan writes: anybody with push access can write the ref."""


@dataclass(frozen=True, slots=True)
class StateRef:
    """The ref on a remote, as a snapshot."""

    ref: RemoteRef

    def tip(self) -> str | None:
        """Return the commit that the ref names; None if there is no ref yet."""
        return self.ref.tip()

    def read(self) -> Snapshot:
        """Fetch the ref and parse its files."""
        with defer_shutdown():
            if self.tip() is None:
                return Snapshot()
            sha = self.ref.fetch()
            if self.ref.size(sha) > MAX_READ_BYTES:
                message = f"{STATE_REF} holds more than Mulligan writes. Delete it."
                raise ConfigError(message)
            return snapshot_of(sha, _unpacked(self.ref.git.read("archive", "--format=tar", sha)))

    def write(self, new: Snapshot, before: Snapshot) -> Snapshot:
        """Make the ref hold `new`; RefMovedError if it no longer holds `before`."""
        return Snapshot(self.ref.write(new.files, before.sha), new.issues, new.leases)


@contextmanager
def open_state_ref(outer: Mapping[str, str], remote: Callable[[], Remote]) -> Generator[StateRef]:
    """Open the ref with temporary files, which are removed afterwards."""
    with open_remote_ref(STATE_REF, "Where Mulligan's issues stand", outer, remote) as ref:
        yield StateRef(ref)


def _unpacked(archive: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
        return {
            each.name: opened.read()
            for each in packed
            if each.isfile() and (opened := packed.extractfile(each))
        }


# The state of one run, and its exchange with the ref.

LEASE_TIME = timedelta(minutes=2)
"""How long a run counts as alive after it last renewed its lease."""

MAX_READS = 20
"""How often one save reads the ref again because another run wrote it first."""

RETRY_WAITS = (1.0, 2.0, 4.0, 8.0)
"""Seconds between attempts to reach GitHub."""


@dataclass(frozen=True, slots=True)
class HeldLease:
    """A lease of this run; other runs see it once it `is_published`."""

    lease: Lease
    expires: datetime
    is_published: bool = False

    @property
    def as_stored(self) -> StoredLease:
        """The lease as it is stored on the ref."""
        return StoredLease(self.lease.fence, self.lease.worker, self.expires)


class RefSession:
    """The state of this run on top of the ref's, and the port Leases; thread-safe.

    Only `save` writes the ref.

    A claim is published with the first saved event, or before the first effect. If another run
    claimed the issue first, the events recorded here under the lost claim are dropped.
    """

    def __init__(
        self,
        ref: StateRef,
        ledger: SqlLedger,
        clock: Clock,
        redactor: Redactor | None = None,
        lease: timedelta = LEASE_TIME,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.ledger = ledger
        self.clock = clock
        self.lock = threading.RLock()
        self._ref = ref
        self._redactor = redactor or Redactor()
        self._time = lease
        self._sleep = sleep
        self._base = Snapshot()
        self._dropped: frozenset[IssueRef] = frozenset()
        self._unsaved: dict[IssueRef, list[RecordedEvent]] = {}
        self._claims: dict[IssueRef, HeldLease] = {}
        self._fences: dict[IssueRef, int] = {}
        self._confirmed: dict[IssueRef, Confirmed] = {}
        self._own: dict[IssueRef, set[bytes]] = {}
        self._unsure: dict[str, int] = {}
        self._ended: set[IssueRef] = set()

    def restore(self) -> None:
        """Read the ref, and choose the issues to delete with the next save."""
        with self.lock:
            self.refresh()
            if stored := self._base.issues:
                events = {ref: read_lines(ref, text) for ref, text in stored.items()}
                sizes = {ref: len(text) for ref, text in stored.items()}
                self._dropped = outdated(events, sizes, self.clock.now())

    def refresh(self) -> None:
        """Read what other runs have written since; unsaved events stay on top of it."""
        with self.lock:
            if self._ref.tip() == self._base.sha:
                return
            before, self._base = self._base, self._ref.read()
            for ref in {*before.issues, *self._base.issues}:
                known, stored = self._confirmed.get(ref), self._base.issues.get(ref, b"")
                if known and known.stored == stored:
                    self._keep(ref, known.believed)
                elif (was := before.issues.get(ref, b"")) != stored:
                    if known and self._still_holds(ref):
                        self._believe(ref, continued(stored, was, self._own.get(ref, set())))
                    else:
                        self._confirmed.pop(ref, None)
                    self._adopt(ref)

    def _still_holds(self, ref: IssueRef) -> bool:
        """Return whether no other run has claimed an issue that this run works on."""
        claim = self._claims.get(ref)
        lease = self._base.leases.get(ref, StoredLease(0))
        return claim is not None and ref not in self._ended and not _is_lost(claim.lease, lease)

    def _believe(self, ref: IssueRef, believed: bytes) -> None:
        """Keep of an issue's stored events only those that are believed."""
        stored = self._base.issues.get(ref, b"")
        kept = set(believed.splitlines(keepends=True))
        dropped = (line for line in stored.splitlines(keepends=True) if line not in kept)
        self._read_again(ref, map(_comment_in, dropped))
        self._confirmed[ref] = Confirmed(stored, believed)
        self._keep(ref, believed)

    def note(self, ref: IssueRef, recorded: RecordedEvent) -> None:
        """Add an event of this run to the next `save`."""
        with self.lock:
            if comments_read_to(recorded.event):
                self._unsure.pop(ref.repository, None)
            self._unsaved.setdefault(ref, []).append(recorded)
            self._own.setdefault(ref, set()).add(_line(recorded, self._redactor))

    def mark(self, ref: IssueRef) -> str:
        """Return the checksum by which the status comment confirms an issue's events."""
        with self.lock:
            return mark_of(self._text(ref))

    def confirm(self, ref: IssueRef, read_mark: Callable[[str], str]) -> bool:
        """Keep an issue on which another run works as that run writes it.

        Anybody with push access can write the ref. If nothing is confirmed, the issue is unknown.
        """
        with self.lock:
            text = self._base.issues.get(ref, b"")
            comment = self.ledger.status(ref).effects.status_comment
            if ref in self._confirmed or self.is_anothers(ref):
                return True
            if not text:
                self._believe(ref, b"")
                return True
        mark = read_mark(comment) if comment else ""
        with self.lock:
            if self._base.issues.get(ref) != text:
                return self.confirm(ref, read_mark)
            believed = confirmed(text, mark, self._own.get(ref, set()))
            self._believe(ref, believed)
            self._adopt(ref)
            return bool(believed)

    def is_anothers(self, ref: IssueRef) -> bool:
        with self.lock:
            lease = self._base.leases.get(ref)
            is_held = lease is not None and lease.is_good(self.clock.now())
            return is_held and not self._still_holds(ref)

    def comments_read_to(self, repository: str) -> int:
        """Return up to which comment to read on from: a command may have to be read again.

        Of a command on the ref, only the comment counts, until this run has read it.
        """
        with self.lock:
            read_to = self.ledger.comments_read_to(repository)
            return min(read_to, self._unsure.get(repository, read_to))

    def with_learnings(self, repository: str) -> Sequence[IssueRef]:
        """List the issues whose stored events hold facts about the repository."""
        with self.lock:
            return [
                ref
                for ref, text in self._base.issues.items()
                if ref.repository == repository and LEARNINGS.search(text)
            ]

    def attempts(self, ref: IssueRef) -> tuple[WorkerResultMeta, ...] | None:
        """Return the records, confirmed or not."""
        with self.lock:
            known = self._confirmed.get(ref)
            text = known.stored if known else self._base.issues.get(ref, b"")
        found = (each.event for each in read_lines(ref, text))
        return latest_records(each.meta for each in found if isinstance(each, AttemptCompleted))

    def save(self) -> None:
        """Write all unsaved events and leases to the ref; drop claims taken by another run."""
        with self.lock:
            retrying = Retrying(
                retry=retry_if_exception_type(UnavailableError),
                wait=wait_chain(*map(wait_fixed, RETRY_WAITS)),
                stop=stop_after_attempt(len(RETRY_WAITS) + 1),
                sleep=self._sleep,
                reraise=True,
            )
            retrying(self._write)

    def _write(self) -> None:
        retrying = Retrying(
            retry=retry_if_exception_type(RefMovedError),
            stop=stop_after_attempt(MAX_READS),
            before_sleep=lambda _: self.refresh(),
        )
        try:
            retrying(self._write_once)
        except RetryError as error:
            message = "Too many runs write Mulligan's state at once; Mulligan tries again later."
            raise UnavailableError(message) from error

    def _write_once(self) -> None:
        self._drop_lost_claims()
        self._base = self._ref.write(self._next(), self._base)
        self._saved()

    def claim(self, ref: IssueRef, worker: str, most: int | None = None) -> Lease | None:
        """Read the ref first, and claim the issue on its current state."""
        with self.lock:
            self.refresh()
            now = self.clock.now()
            held = [each for each, lease in self.leases().items() if lease.is_good(now)]
            if ref in held or (most is not None and len(held) >= most):
                return None
            known = self.leases().get(ref, StoredLease(0)).fence
            self._fences[ref] = max(known, self._fences.get(ref, 0)) + 1
            lease = Lease(ref, worker, self._fences[ref])
            self._claims[ref] = HeldLease(lease, now + self._time)
            self._ended.discard(ref)
            return lease

    def is_good(self, lease: Lease) -> bool:
        """Return whether a lease of this run is in force, without reading the ref."""
        with self.lock:
            found = self._claims.get(lease.issue)
            mine = found and found.lease == lease and lease.issue not in self._ended
            return bool(found and mine and found.expires > self.clock.now())

    def holds(self, lease: Lease) -> bool:
        """Publish the lease if need be, so that effects may follow."""
        with self.lock:
            if self.is_good(lease) and not self._claims[lease.issue].is_published:
                self.save()
            return self.is_good(lease)

    def renew(self, lease: Lease) -> bool:
        """Extend the lease only once half of its time is over."""
        with self.lock:
            if not self.is_good(lease):
                return False
            found, now = self._claims[lease.issue], self.clock.now()
            if found.expires - now > self._time / 2:
                return True
            self._claims[lease.issue] = replace(found, expires=now + self._time, is_published=False)
            return self.holds(lease)

    def release(self, lease: Lease) -> None:
        """Drop an unpublished lease without a save."""
        with self.lock:
            found = self._claims.get(lease.issue)
            if found is None or found.lease != lease:
                return
            if not found.is_published and not self._unsaved.get(lease.issue):
                del self._claims[lease.issue]
                return
            self._ended.add(lease.issue)
            self.save()

    def holder(self, ref: IssueRef) -> str | None:
        """Read no ref."""
        with self.lock:
            lease = self.leases().get(ref)
            return lease.worker if lease and lease.is_good(self.clock.now()) else None

    def heartbeat(self, worker: str) -> Sequence[str]:
        """Return `worker` alone: runs are too short to count each other."""
        return (worker,)

    def release_all(self) -> None:
        with self.lock:
            self.refresh()
            now = self.clock.now()
            for ref, lease in self.leases().items():
                self._claims[ref] = HeldLease(Lease(ref, lease.worker, lease.fence), now)
            self._ended = set(self._claims)
            if self._ended:
                self.save()

    def needs_commit(self, ref: IssueRef) -> bool:
        """Read the ref, and tell whether an issue's verified commit is still needed."""
        with self.lock:
            self.refresh()
            lease = self.leases().get(ref)
            at_work = lease is not None and lease.is_good(self.clock.now())
            return at_work or needs_commit(self.ledger.status(ref))

    def leases(self) -> Mapping[IssueRef, StoredLease]:
        """Return all leases known to this run."""
        mine = {
            ref: StoredLease(claim.lease.fence) if ref in self._ended else claim.as_stored
            for ref, claim in self._claims.items()
        }
        return {**self._base.leases, **mine}

    def _next(self) -> Snapshot:
        """Return the ref's content with this run's events and leases added."""
        new = {ref: self._text(ref) for ref in self._unsaved}
        deleted = self._dropped - set(new) - set(self._claims)
        issues = {ref: text for ref, text in self._base.issues.items() if ref not in deleted} | new
        leases = {ref: each for ref, each in self.leases().items() if ref not in deleted}
        return Snapshot(None, issues, leases)

    def _text(self, ref: IssueRef) -> bytes:
        """Return an issue's file with the events of this run."""
        unsaved = write_lines(self._unsaved.get(ref, []), self._redactor)
        whole = self._base.issues.get(ref, b"") + unsaved
        return shortened(ref, whole, self._redactor, keep_round=True)

    def _keep(self, ref: IssueRef, text: bytes) -> None:
        """Put the confirmed events in place of the stored ones; the next save writes that."""
        others = {each: kept for each, kept in self._base.issues.items() if each != ref}
        self._base = replace(self._base, issues={**others, ref: text} if text else others)

    def _saved(self) -> None:
        self._unsaved.clear()
        kept = {ref: each for ref, each in self._claims.items() if ref not in self._ended}
        self._claims = {ref: replace(claim, is_published=True) for ref, claim in kept.items()}
        self._ended.clear()

    def _drop_lost_claims(self) -> None:
        """Drop claims that another run has taken, and the events recorded under them."""
        for ref, claim in [*self._claims.items()]:
            lease = self._base.leases.get(ref, StoredLease(0))
            if _is_lost(claim.lease, lease):
                del self._claims[ref]
                self._ended.discard(ref)
                self._unsaved.pop(ref, None)
                self._adopt(ref)

    def _adopt(self, ref: IssueRef) -> None:
        stored = read_lines(ref, self._base.issues.get(ref, b""))
        if ref not in self._confirmed:
            # They concern other issues, too.
            stored = [each for each in stored if each.event.kind not in SHARED_EVENTS]
        self.ledger.adopt(ref, [*stored, *self._unsaved.get(ref, [])])
        if ref not in self._confirmed:
            orders = self.ledger.status(ref).pending
            self._read_again(ref, (order.comment for order in orders))

    def _read_again(self, ref: IssueRef, comments: Iterable[int | None]) -> None:
        """Have comments be read again: on the ref, anybody could have written their commands."""
        known = self._unsure.get(ref.repository)
        before = [comment - 1 for comment in comments if comment]
        if before:
            self._unsure[ref.repository] = min(before if known is None else [known, *before])


def _is_lost(mine: Lease, stored: StoredLease) -> bool:
    """Return whether another run has taken over a lease."""
    is_mine = stored.worker in {"", mine.worker} and stored.fence == mine.fence
    return stored.fence >= mine.fence and not is_mine


# What the status comment confirms.

SHARED_EVENTS = frozenset({"baseline_recorded", "learnings_accepted", "learnings_dropped"})

LEARNINGS = re.compile(rb'"kind": ?"learnings_')


UNCONFIRMED_EFFECTS = StatusWritten | StageShown | CommentsRead
"""Effects that may follow the last writing of the status comment; a false one only costs time."""


@dataclass(frozen=True, slots=True)
class Confirmed:
    """What the ref holds of an issue, and what is believed of that."""

    stored: bytes
    believed: bytes


def mark_of(text: bytes) -> str:
    """Return the number and the hash of an issue's lines up to the last one that decides."""
    lines = text.splitlines(keepends=True)
    while lines and _may_follow(lines[-1]):
        lines.pop()
    return f"{len(lines)}:{_hash(lines)}" if lines else ""


def confirmed(text: bytes, mark: str, own: Collection[bytes] = ()) -> bytes:
    """Return the lines that a mark confirms, and those after them that are `own` or harmless.

    Empty if the lines are not those of the mark.
    """
    lines = text.splitlines(keepends=True)
    count, _, wanted = mark.partition(":")
    number = int(count) if count.isdecimal() else 0
    if not number or number > len(lines) or _hash(lines[:number]) != wanted:
        return b""
    later = (line for line in lines[number:] if line in own or _may_follow(line))
    return b"".join((*lines[:number], *later))


def continued(text: bytes, before: bytes, own: Collection[bytes]) -> bytes:
    """Return what a run believed `before`, and of later lines those that are `own` or harmless."""
    later = text.removeprefix(before) if text.startswith(before) else b""
    lines = later.splitlines(keepends=True)
    return before + b"".join(line for line in lines if line in own or _may_follow(line))


def _hash(lines: Iterable[bytes]) -> str:
    return hashlib.sha256(b"".join(lines)).hexdigest()[:32]


def _comment_in(line: bytes) -> int | None:
    """Return the id of the comment with the command that a line has."""
    event = _event_in(line)
    act = parse_act(event.key) if isinstance(event, CommandReceived) else None
    return act.comment if isinstance(act, CommentAct) else None


def _may_follow(line: bytes) -> bool:
    return isinstance(_event_in(line), UNCONFIRMED_EFFECTS)


def _event_in(line: bytes) -> Event | None:
    """Return the event of a line; None if it cannot be read."""
    try:
        read = json.loads(line)
        return event_of(json.dumps(read["event"]), read["schema_version"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


# The other ports over the session.


@dataclass(frozen=True, slots=True)
class RefMirror:
    """The port Mirror over the session: the status comment confirms what the ref holds."""

    session: RefSession

    def attempts(self, ref: IssueRef) -> tuple[WorkerResultMeta, ...] | None:
        return self.session.attempts(ref)

    def mark(self, ref: IssueRef) -> str:
        return self.session.mark(ref)

    def confirm(self, ref: IssueRef, read_mark: Callable[[IssueRef, str], str]) -> bool:
        """Confirm an issue's events, and the facts that other issues hold about the repository."""
        for each in self.session.with_learnings(ref.repository):
            self.session.confirm(each, partial(read_mark, each))
        return self.session.confirm(ref, partial(read_mark, ref))

    def is_anothers(self, ref: IssueRef) -> bool:
        return self.session.is_anothers(ref)


DEFERRED_EVENTS = frozenset(
    {
        *("issue_seen", "authorised", "worktree_reset", "agent_started", "agent_finished"),
        *(
            "check_finished",
            "check_skipped",
            "baseline_recorded",
            "fix_round_started",
            "review_finished",
        ),
        *("retry_context_assembled", "attempt_context_truncated", "attempt_context_delivered"),
    }
)
"""Events that are pushed with the next event of another kind: they change nothing outside."""


@dataclass(frozen=True, slots=True)
class RefLedger:
    """The port Ledger on a ref: events go to this run's database, and to the ref by `save`."""

    session: RefSession
    lease: Lease | None = None
    listener: Listener = ignore_event

    def append(self, ref: IssueRef, event: Event) -> IssueStatus:
        """Save the event to the ref unless its kind is in DEFERRED_EVENTS."""
        session = self.session
        with session.lock:
            if self.lease and not session.is_good(self.lease):
                raise lease_lost(self.lease)
            status = session.ledger.append(ref, event)
            session.note(ref, session.ledger.events(ref)[-1])
            if event.kind not in DEFERRED_EVENTS:
                session.save()
                if self.lease and not session.is_good(self.lease):
                    raise lease_lost(self.lease)
        self.listener(status, event)
        return status

    def restore(self, ref: IssueRef, events: Sequence[Event]) -> bool:
        session = self.session
        with session.lock:
            done = session.ledger.restore(ref, events)
            for recorded in session.ledger.events(ref) if done else ():
                session.note(ref, recorded)
            if done:
                session.save()
        if done:
            self.listener(self.status(ref), events[-1])
        return done

    def with_lease(self, lease: Lease) -> "RefLedger":
        return replace(self, lease=lease)

    def status(self, ref: IssueRef) -> IssueStatus:
        return self.session.ledger.status(ref)

    def statuses(self) -> Sequence[IssueStatus]:
        return self.session.ledger.statuses()

    def history(self, ref: IssueRef) -> tuple[WorkerResultMeta, ...]:
        return self.session.ledger.history(ref)

    def events(
        self, ref: IssueRef | None = None, after: int = 0, most: int | None = None
    ) -> Sequence[RecordedEvent]:
        return self.session.ledger.events(ref, after, most)

    def last_seq(self) -> int:
        return self.session.ledger.last_seq()

    def comments_read_to(self, repository: str) -> int:
        return self.session.comments_read_to(repository)

    def baseline(self, repository: str, key: str) -> BaselineRecorded | None:
        return self.session.ledger.baseline(repository, key)

    def learnings(self, repository: str) -> Sequence[RecordedEvent]:
        return self.session.ledger.learnings(repository)


# The lines of an issue's file.


def write_lines(events: Iterable[RecordedEvent], redactor: Redactor) -> bytes:
    """Serialize events, one JSON line each, without secrets."""
    return b"".join(_line(each, redactor) for each in events)


def _line(recorded: RecordedEvent, redactor: Redactor) -> bytes:
    clean = recorded.model_copy(update={"event": redacted(recorded.event, redactor)})
    values = values_of(clean)
    line = {
        "at": values["at"],
        "epoch": values["epoch"],
        "attempt": values["attempt"],
        "schema_version": values["schema_version"],
        "event": clean.event.model_dump(mode="json"),
    }
    return json.dumps(line, ensure_ascii=True).encode() + b"\n"


def read_lines(ref: IssueRef, text: bytes) -> tuple[RecordedEvent, ...]:
    """Parse an issue's events, numbered from 1; ConfigError if a line cannot be read."""
    lines = [line for line in text.split(b"\n") if line]
    try:
        return tuple(recorded_of(_row(ref, seq, line)) for seq, line in enumerate(lines, start=1))
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        message = f"The state of {ref} cannot be read; use the version that wrote it."
        raise ConfigError(message) from error


def _row(ref: IssueRef, seq: int, line: bytes) -> Row:
    read = json.loads(line)
    event = read["event"]
    return Row(
        seq=seq,
        at=write_time(datetime.fromisoformat(read["at"])),
        repository=ref.repository,
        number=ref.number,
        epoch=read["epoch"],
        attempt=read["attempt"],
        kind=event["kind"],
        schema_version=read["schema_version"],
        body=json.dumps(event),
    )


# Shortening a file that is too long.

MAX_ISSUE_BYTES = 256 * 1024
"""Above this, an issue's file is shortened."""

PROGRESS_EVENTS = frozenset(
    {"worktree_reset", "agent_started", "agent_finished", "check_finished", "check_skipped"}
)
"""Events that no status depends on; the records of the attempts hold the same facts."""

LAST_VALUE_EFFECTS = StageShown | CommentsRead
"""Effects of which only the last matters; every few comments in a repository record one."""


def shortened(
    ref: IssueRef,
    text: bytes,
    redactor: Redactor,
    most: int = MAX_ISSUE_BYTES,
    *,
    keep_round: bool = False,
) -> bytes:
    """Shorten an issue's file above `most` bytes: drop progress events, then old findings.

    `keep_round` keeps the records of the last round, of which the status comment has checksums.
    """
    if len(text) <= most:
        return text
    events = _without_progress(read_lines(ref, text))
    shorter = write_lines(events, redactor)
    if len(shorter) <= most:
        return shorter
    return write_lines(_without_findings(events, keep_round=keep_round), redactor)


def _without_progress(events: Sequence[RecordedEvent]) -> list[RecordedEvent]:
    last = {
        key_of(each.event): each.seq
        for each in events
        if isinstance(each.event, LAST_VALUE_EFFECTS)
    }
    return [
        each
        for each in events
        if each.event.kind not in PROGRESS_EVENTS
        and (not isinstance(each.event, LAST_VALUE_EFFECTS) or each.seq in last.values())
    ]


def _without_findings(events: Sequence[RecordedEvent], *, keep_round: bool) -> list[RecordedEvent]:
    """Drop the findings of all attempts but those to keep.

    The next prompt shows one attempt in full.
    """
    metas = [each.event.meta for each in events if isinstance(each.event, AttemptCompleted)]
    kept = {detailed_attempt(metas).number} if metas else set[int]()
    if keep_round:
        kept |= {meta.number for meta in metas if meta.epoch == metas[-1].epoch}
    return [_without_old_findings(each) if _number(each) not in kept else each for each in events]


def _number(recorded: RecordedEvent) -> int | None:
    event = recorded.event
    return event.meta.number if isinstance(event, AttemptCompleted) else None


def _without_old_findings(recorded: RecordedEvent) -> RecordedEvent:
    event = recorded.event
    if not isinstance(event, AttemptCompleted):
        return recorded
    lean = AttemptCompleted(meta=_lean_meta(event.meta))
    return recorded.model_copy(update={"event": lean})


def _lean_meta(meta: WorkerResultMeta) -> WorkerResultMeta:
    return meta.model_copy(
        update={
            "checks": tuple(map(_lean_check, meta.checks)),
            "set_up": meta.set_up and _lean_check(meta.set_up),
            "fix_rounds": (),
            "files_modified": meta.files_modified[:20],
        }
    )


def _lean_check(check: CheckResult) -> CheckResult:
    nothing: dict[str, object] = dict.fromkeys(("findings", "known", "unsteady", "source"), ())
    lean = {**nothing, "digest": check.digest.partition("\n")[0][:200], "long_digest": ""}
    return check.model_copy(update=lean)


# Deleting resolved issues.

RESOLVED_RETENTION = timedelta(days=90)
"""How long a resolved issue is kept after its last event (LEDGER-3)."""

MAX_TOTAL_BYTES = 16 * 1024 * 1024
"""Above this, resolved issues are deleted before RESOLVED_RETENTION is over."""


def outdated(
    issues: Mapping[IssueRef, Sequence[RecordedEvent]],
    sizes: Mapping[IssueRef, int],
    now: datetime,
    most: int = MAX_TOTAL_BYTES,
) -> frozenset[IssueRef]:
    """Choose resolved issues to delete: after RESOLVED_RETENTION, or sooner if over `most` bytes.

    The oldest go first. An issue that is not resolved always stays. So does one that records up to
    where comments were read, since old commands would run again.
    """
    resolved = [ref for ref, events in issues.items() if _is_deletable(ref, events)]
    deleted, held = set[IssueRef](), sum(sizes.values())
    for ref in sorted(resolved, key=lambda ref: issues[ref][-1].at):
        if held > most or now - issues[ref][-1].at > RESOLVED_RETENTION:
            deleted.add(ref)
            held -= sizes[ref]
    return frozenset(deleted)


def _is_deletable(ref: IssueRef, events: Sequence[RecordedEvent]) -> bool:
    status = folded(ref, events)
    holds_cursor = any(comments_read_to(each.event) for each in events)
    return bool(events) and status.stage is Stage.RESOLVED and not holds_cursor
