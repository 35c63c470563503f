"""What is kept of issues on a ref of their repository: files of JSON lines, and leases. Pure."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from pydantic import TypeAdapter, ValidationError

from mulligan.domain.events import AttemptCompleted, EffectDone, Recorded
from mulligan.domain.issue import REPOSITORY, IssueRef, Stage
from mulligan.domain.result import CheckResult, WorkerResultMeta
from mulligan.domain.status import READ_TO, SHOWN_STAGE
from mulligan.errors import ConfigError
from mulligan.retry.context import told_in_full
from mulligan.state.events import Row, folded, recorded_of, redacted, values_of, write_time
from mulligan.text.redact import Redactor

FILE = re.compile(rf"({REPOSITORY.pattern})/([1-9][0-9]{{0,9}})\.jsonl")
LEASES = "leases.json"
KEPT = timedelta(days=90)
"""How long after its last event an issue that is resolved is kept (SPEC 14)."""
MOST_OF_AN_ISSUE = 256 * 1024
MOST_IN_ALL = 16 * 1024 * 1024
"""Bytes."""
STORY = frozenset({"worktree_reset", "agent_started", "agent_finished", "check_finished"})
"""Events from which nothing is derived; the records of the attempts say the same."""
LAST_COUNTS = frozenset({SHOWN_STAGE, READ_TO})
"""Effects of which only the last is looked at; every few comments in a repository leave one."""


@dataclass(frozen=True, slots=True)
class Tenure:
    """Who works on an issue, until when; nobody where `expires` is None. `fence` only grows."""

    fence: int
    worker: str = ""
    expires: datetime | None = None

    def is_good(self, now: datetime) -> bool:
        """Tell whether somebody may be at work."""
        return self.expires is not None and self.expires > now


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that the ref holds at one commit; an issue's file is as it is stored."""

    sha: str | None = None
    issues: Mapping[IssueRef, bytes] = field(default_factory=dict[IssueRef, bytes])
    tenures: Mapping[IssueRef, Tenure] = field(default_factory=dict[IssueRef, Tenure])

    @property
    def files(self) -> dict[str, bytes]:
        """Give the files, by their paths."""
        named = {f"{ref.repository}/{ref.number}.jsonl": text for ref, text in self.issues.items()}
        kept = {str(ref): each for ref, each in sorted(self.tenures.items())}
        return {**named, LEASES: _TENURES.dump_json(kept, indent=1) + b"\n"}


_TENURES: TypeAdapter[dict[str, Tenure]] = TypeAdapter(dict[str, Tenure])


def snapshot_of(sha: str, files: Mapping[str, bytes]) -> Snapshot:
    """Read the files of a commit; those that are not Mulligan's are passed over."""
    found = {name: FILE.fullmatch(name) for name in files}
    issues = {
        IssueRef(match[1], int(match[2])): files[name] for name, match in found.items() if match
    }
    try:
        stored = _TENURES.validate_json(files.get(LEASES, b"{}"))
    except ValidationError as error:
        message = f"{LEASES} of Mulligan's state cannot be read; use the version that wrote it."
        raise ConfigError(message) from error
    return Snapshot(sha, issues, {IssueRef.parse(name): each for name, each in stored.items()})


def write_lines(events: Iterable[Recorded], redactor: Redactor) -> bytes:
    """Write one line for each event, without secrets."""
    return b"".join(_line(each, redactor) for each in events)


def _line(recorded: Recorded, redactor: Redactor) -> bytes:
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


def read_lines(ref: IssueRef, text: bytes) -> tuple[Recorded, ...]:
    """Read an issue's events back, numbered from 1; ConfigError where that cannot be."""
    lines = [line for line in text.split(b"\n") if line]
    try:
        return tuple(recorded_of(_row(ref, seq, line)) for seq, line in enumerate(lines, start=1))
    except (ValueError, TypeError, KeyError) as error:
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


def bounded(ref: IssueRef, text: bytes, redactor: Redactor, most: int = MOST_OF_AN_ISSUE) -> bytes:
    """Shorten an issue's file where it is too long: the story goes first, then old findings."""
    if len(text) <= most:
        return text
    events = _without_story(read_lines(ref, text))
    shorter = write_lines(events, redactor)
    if len(shorter) <= most:
        return shorter
    return write_lines(_without_findings(events), redactor)


def _without_story(events: Sequence[Recorded]) -> list[Recorded]:
    last = {each.event.effect: each.seq for each in events if isinstance(each.event, EffectDone)}
    return [each for each in events if each.event.kind not in STORY and not _is_past(each, last)]


def _is_past(recorded: Recorded, last: Mapping[str, int]) -> bool:
    event = recorded.event
    if not isinstance(event, EffectDone) or event.effect not in LAST_COUNTS:
        return False
    return recorded.seq < last[event.effect]


def _without_findings(events: Sequence[Recorded]) -> list[Recorded]:
    """Take the findings out of every attempt but the one that the next is told in full."""
    metas = [each.event.meta for each in events if isinstance(each.event, AttemptCompleted)]
    kept = told_in_full(metas).number if metas else None
    return [_lean(each) if _number(each) != kept else each for each in events]


def _number(recorded: Recorded) -> int | None:
    event = recorded.event
    return event.meta.number if isinstance(event, AttemptCompleted) else None


def _lean(recorded: Recorded) -> Recorded:
    event = recorded.event
    if not isinstance(event, AttemptCompleted):
        return recorded
    lean = AttemptCompleted(meta=_lean_meta(event.meta))
    return recorded.model_copy(update={"event": lean})


def _lean_meta(meta: WorkerResultMeta) -> WorkerResultMeta:
    checks = tuple(map(_lean_check, meta.checks))
    return meta.model_copy(
        update={"checks": checks, "fix_rounds": (), "files_modified": meta.files_modified[:20]}
    )


def _lean_check(check: CheckResult) -> CheckResult:
    nothing: dict[str, object] = dict.fromkeys(("findings", "known", "unsteady", "source"), ())
    return check.model_copy(update={**nothing, "digest": check.digest.partition("\n")[0][:200]})


def outdated(
    issues: Mapping[IssueRef, Sequence[Recorded]],
    sizes: Mapping[IssueRef, int],
    now: datetime,
    most: int = MOST_IN_ALL,
) -> frozenset[IssueRef]:
    """Choose the issues that go: resolved ones after their time, or sooner where there is no room.

    The oldest go first. One that is not resolved always stays, and so does one that holds how far
    comments were read, lest old commands be obeyed again.
    """
    resolved = [ref for ref, events in issues.items() if _may_go(ref, events)]
    going, held = set[IssueRef](), sum(sizes.values())
    for ref in sorted(resolved, key=lambda ref: issues[ref][-1].at):
        if held > most or now - issues[ref][-1].at > KEPT:
            going.add(ref)
            held -= sizes[ref]
    return frozenset(going)


def _may_go(ref: IssueRef, events: Sequence[Recorded]) -> bool:
    status = folded(ref, events)
    holds_cursor = any(name.startswith(f"{READ_TO}:") for name, _ in status.effects)
    return bool(events) and status.stage is Stage.RESOLVED and not holds_cursor
