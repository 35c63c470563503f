"""The files of attempts as plain text, and the logs of running attempts as they grow."""

import asyncio
import os
import re
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from markupsafe import escape
from pydantic import JsonValue, TypeAdapter, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from mulligan.domain.errors import UsageError
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.result import CheckResult, WorkerResultMeta
from mulligan.domain.status import IssueStatus
from mulligan.implement.ports import Artifacts
from mulligan.implement.prompt.manifest import of_round
from mulligan.interfaces.dashboard.api import (
    KEEPALIVE,
    POLL_SECONDS,
    RECONNECT_DELAY,
    STREAM_HEADERS,
    find_issue,
)
from mulligan.interfaces.dashboard.state import DashboardState
from mulligan.text.escape import visible
from mulligan.text.redact import Redactor

# The files of attempts

ARTIFACT_NAMES = {
    "prompt": "prompt.md",
    "context": "context.json",
    "diff": "changes.diff",
    "log": "agent.log",
    "manifest": "manifest.json",
    "setup": "setup.log",
}
"""Parts of an attempt that can be requested, with their files."""

NUMBER = re.compile(r"[0-9]{1,15}")
CHECK = re.compile(r"check-([1-9][0-9]{0,2})")
ATTEMPT_NUMBER = re.compile(r"[1-9][0-9]{0,8}")

MAX_FILE_BYTES = 1024 * 1024
"""Bytes to show from the end of a file: a log may have a gigabyte."""

CUT = "[… only the end of this file; for the rest, run `mulligan inspect`]\n"


def text(state: DashboardState, request: Request) -> Response:
    """Return one file, without secrets and invisible characters."""
    status, history, _ = find_issue(state, request)
    part, number = request.path_params["part"], attempt_in(request, status)
    shown = content_of(state, status.issue, number, part, history)
    if shown is None:
        raise UsageError(
            f"{part} of attempt {number} of {status.issue} is not stored here, or was removed."
        )
    return PlainTextResponse(shown)


def attempt_in(request: Request, status: IssueStatus) -> int:
    """Return the attempt that an address names; UsageError if the issue has none such."""
    number = request.path_params["attempt"]
    if not ATTEMPT_NUMBER.fullmatch(number) or not 1 <= int(number) <= status.number:
        raise UsageError(f"{status.issue} has no attempt {number}.")
    return int(number)


def content_of(
    state: DashboardState,
    ref: IssueRef,
    number: int,
    part: str,
    history: Sequence[WorkerResultMeta],
    most: int = MAX_FILE_BYTES,
) -> str | None:
    """Return a part of an attempt, clean, at most its last bytes; None if it is not stored here."""
    stores = state.stores
    artifact = _artifact(ref, number, part, history, stores.artifacts)
    if artifact is None:
        return None
    content = stores.redactor.content(stores.artifacts.read(artifact, most + 1))
    shown = visible(content[-most:].decode(errors="replace"))
    return CUT + shown if len(content) > most else shown


def files_of(
    ref: IssueRef, number: int, meta: WorkerResultMeta | None, artifacts: Artifacts
) -> tuple[tuple[str, str], ...]:
    """List the stored files of an attempt: the part of the address, and the file's name."""
    rounds = len(meta.fix_rounds) if meta else 0
    wanted = [(part, part) for part in ARTIFACT_NAMES]
    for fix_round in range(1, rounds + 1):
        wanted += [
            (f"{part}-fix-{fix_round}", f"{part} of fix round {fix_round}")
            for part in ("prompt", "log")
        ]
    kept = [each for each in wanted if _kept(ref, number, each[0], artifacts)]
    checks = enumerate(meta.checks if meta else (), start=1)
    logs = [
        (f"check-{place}", f"log of {check.name}")
        for place, check in checks
        if _log_of(check, ref, number, artifacts)
    ]
    return (*kept, *logs)


def _artifact(
    ref: IssueRef,
    number: int,
    part: str,
    history: Sequence[WorkerResultMeta],
    artifacts: Artifacts,
) -> str | None:
    if of_check := CHECK.fullmatch(part):
        checks = [check for meta in history if meta.number == number for check in meta.checks]
        place = int(of_check[1]) - 1
        return _log_of(checks[place], ref, number, artifacts) if place < len(checks) else None
    return _kept(ref, number, part, artifacts)


def _log_of(check: CheckResult, ref: IssueRef, number: int, artifacts: Artifacts) -> str | None:
    """Return the log of a check, if it is stored on this machine."""
    own = f"{ref.repository}/{ref.number}/{number}/"
    name = check.log_artifact.removeprefix(own)
    return artifacts.find(ref, number, name) if name else None


def _kept(ref: IssueRef, number: int, part: str, artifacts: Artifacts) -> str | None:
    name, _, fix_round = part.partition("-fix-")
    if name not in ARTIFACT_NAMES or (fix_round and not ATTEMPT_NUMBER.fullmatch(fix_round)):
        return None
    return artifacts.find(ref, number, of_round(ARTIFACT_NAMES[name], int(fix_round or 0)))


# The log of a running attempt

MAX_LOG_BYTES = 64 * 1024
"""Bytes of a log to send at once; older output is skipped."""

SKIPPED = "[… earlier output: see the log]"


@dataclass(frozen=True, slots=True)
class LogPosition:
    """A place in the log that was written last: the file's name, and the bytes already sent."""

    name: str = ""
    offset: int = 0

    def __str__(self) -> str:
        return f"{self.offset}:{self.name}"

    @classmethod
    def parse(cls, text: str) -> "LogPosition":
        """Read what `str` writes; the start for anything else."""
        offset, _, name = text.partition(":")
        return cls(name, int(offset)) if NUMBER.fullmatch(offset) else cls()


def read_on(directory: Path, at: LogPosition, most: int) -> tuple[LogPosition, str]:
    """Return the lines after a position, the last `most` bytes at most, and where they end.

    The rest of one file comes before the first line of the next.
    """
    found = _newest_log(directory)
    if found is None:
        return at, ""
    before = directory / at.name
    is_other = found.name != at.name
    if at.name and is_other and before.is_file() and before.stat().st_size > at.offset:
        return _lines(before, at.offset, most, is_whole=True)
    position, text = _lines(found, 0 if is_other else at.offset, most)
    return position, f"── {found.stem} ──\n{text}" if is_other and text else text


def _newest_log(directory: Path) -> Path | None:
    newest, at = None, 0.0
    for file in directory.glob("*.log"):
        with suppress(OSError):
            changed = file.stat().st_mtime
            if "egress" not in file.name and changed >= at:
                newest, at = file, changed
    return newest


def _lines(
    file: Path, offset: int, most: int, *, is_whole: bool = False
) -> tuple[LogPosition, str]:
    with file.open("rb") as log:
        size = log.seek(0, os.SEEK_END)
        begin = max(offset if offset <= size else 0, size - most)
        log.seek(begin)
        content = log.read(most)
    end = len(content) if is_whole else content.rfind(b"\n") + 1
    text = content[:end].decode(errors="replace")
    if begin > offset:
        _, _, rest = text.partition("\n")
        text = f"{SKIPPED}\n{rest}"
    return LogPosition(file.name, begin + end), text


def readable(text: str, redactor: Redactor) -> str:
    """Return lines of a log without secrets and invisible characters; of JSON, its text."""
    shown = (_sentence(line) for line in visible(redactor.text(text)).split("\n"))
    return "\n".join(line for line in shown if line is not None)


LINE: TypeAdapter[dict[str, JsonValue]] = TypeAdapter(dict[str, JsonValue])
TELLING = (
    *("name", "tool", "command", "file_path", "path", "pattern", "query", "prompt", "description"),
    *("text", "thinking", "message", "content", "output", "result", "error", "summary", "title"),
    *("delta", "item", "part", "input", "arguments", "state", "params"),
)
"""The keys of an agent's JSON lines whose values are words for people."""

MAX_SENTENCE = 600


def _sentence(line: str) -> str | None:
    """Return the text of a JSON line, None if it has no text; return any other line unchanged."""
    if not line.startswith("{"):
        return line
    try:
        line_record = LINE.validate_json(line)
    except ValidationError:
        return line
    words = " ".join(" ".join(_texts_in(line_record)).split())
    return words[:MAX_SENTENCE] or None


def _texts_in(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from _texts_in(each)
    elif isinstance(value, dict):
        for key in TELLING:
            yield from _texts_in(value.get(key))


def directory_of(ref: IssueRef, number: int, artifacts: Artifacts) -> Path:
    """Return the directory of an attempt's files."""
    return artifacts.path(ref, number, ARTIFACT_NAMES["log"]).parent


def end_of_log(
    ref: IssueRef, number: int, state: DashboardState, most: int
) -> tuple[LogPosition, str]:
    """Return the end of a running attempt's output, and where it ends."""
    stores = state.stores
    directory = directory_of(ref, number, stores.artifacts)
    position, text = read_on(directory, LogPosition(), most)
    return position, readable(text, stores.redactor)


def log(state: DashboardState, request: Request) -> Response:
    """Stream the output of a running attempt as pieces of HTML, from `after` on."""
    status, _, _ = find_issue(state, request)
    if status.stage is not Stage.RUNNING or request.path_params["attempt"] != str(status.number):
        raise UsageError(
            f"Attempt {request.path_params['attempt']} of {status.issue} is not running."
        )
    resumed = request.headers.get("last-event-id") or request.query_params.get("after", "")
    pieces = _pieces(state, status, LogPosition.parse(resumed))
    return StreamingResponse(pieces, headers=STREAM_HEADERS)


async def _pieces(
    state: DashboardState, status: IssueStatus, at: LogPosition
) -> AsyncGenerator[str]:
    yield RECONNECT_DELAY
    directory = directory_of(status.issue, status.number, state.stores.artifacts)
    while not state.ending.is_set():
        position, text = await run_in_threadpool(read_on, directory, at, MAX_LOG_BYTES)
        if text:
            at = position
            shown = escape(readable(text, state.redactor))
            lines = "\n".join(f"data: {line}" for line in f"<span>{shown}</span>".split("\n"))
            yield f"id: {at}\n{lines}\n\n"
        else:
            # A client that left is noticed at the next piece.
            yield KEEPALIVE
            await asyncio.sleep(POLL_SECONDS)
