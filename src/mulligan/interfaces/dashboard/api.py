"""The JSON API, the event stream, and the files of attempts as plain text."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Sequence

from pydantic import JsonValue, TypeAdapter
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from mulligan.domain.errors import MulliganError, UsageError
from mulligan.domain.events import RecordedEvent
from mulligan.domain.issue import IssueRef
from mulligan.domain.result import CheckResult, WorkerResultMeta
from mulligan.domain.status import IssueStatus
from mulligan.implement.ports import Artifacts, Ledger
from mulligan.implement.prompt.manifest import of_round
from mulligan.interfaces.dashboard.state import DashboardState
from mulligan.interfaces.json_output import decisions_of, event_row, inspection, status_rows
from mulligan.text.escape import visible

# The JSON API

JSON: TypeAdapter[JsonValue] = TypeAdapter(JsonValue)


def issues(state: DashboardState, _: Request) -> Response:
    """List every issue with its status."""
    stores = state.stores
    return answer(status_rows(stores.ledger.statuses(), stores.holds.pauses()), state)


def issue(state: DashboardState, request: Request) -> Response:
    """Return the history of one issue."""
    status, history, events = find_issue(state, request)
    return answer(inspection(status, history, decisions_of(events)), state)


MAX_EVENTS = 500


def events(state: DashboardState, request: Request) -> Response:
    """Return up to 500 events above a sequence number; stream them if the client accepts that."""
    resumed = request.headers.get("last-event-id") or request.query_params.get("after")
    after = _number(resumed, "after")
    if "text/event-stream" in request.headers.get("accept", ""):
        start = state.stores.ledger.last_seq() if after is None else after
        return StreamingResponse(stream(state, start), headers=HEADERS)
    most = min(_number(request.query_params.get("limit"), "limit") or MAX_EVENTS, MAX_EVENTS)
    rows = state.stores.ledger.events(after=after or 0, most=most)
    return answer([event_row(each) for each in rows], state)


def find_issue(
    state: DashboardState, request: Request
) -> tuple[IssueStatus, Sequence[WorkerResultMeta], Sequence[RecordedEvent]]:
    """Return the issue that an address names; UsageError if the ledger has none."""
    parameters, ledger = request.path_params, state.stores.ledger
    ref = IssueRef.parse(f"{parameters['owner']}/{parameters['name']}#{parameters['number']}")
    known = ledger.events(ref)
    if not known:
        message = f"{ref} is not in the ledger."
        raise UsageError(message)
    return ledger.status(ref), ledger.history(ref), known


def answer(content: object, state: DashboardState) -> Response:
    """Return JSON, without secrets."""
    clean = state.stores.redactor.tree(JSON.validate_python(content))
    # ASCII only: invisible characters are escaped.
    return Response(json.dumps(clean), media_type="application/json")


NUMBER = re.compile(r"[0-9]{1,15}")


def _number(given: str | None, name: str) -> int | None:
    if given is None:
        return None
    if not NUMBER.fullmatch(given):
        message = f"{name} is not a number. Write it in digits."
        raise UsageError(message)
    return int(given)


# The event stream

HEADERS = {"Content-Type": "text/event-stream; charset=utf-8", "X-Accel-Buffering": "no"}

POLL_SECONDS = 0.5
"""Seconds between two reads; each costs the ledger about 0.2 ms."""

KEEPALIVE_SECONDS = 15.0
"""Seconds without an event after which a comment keeps the connection alive."""

PAGE = 200
KEEPALIVE = ": still there\n\n"
RECONNECT_DELAY = "retry: 3000\n\n"


async def stream(state: DashboardState, after: int) -> AsyncGenerator[str]:
    """Yield every event with a `seq` above `after`, until the server ends or the client leaves."""
    yield RECONNECT_DELAY
    quiet = 0.0
    while not state.ending.is_set():
        found = await run_in_threadpool(_read, state, after)
        if found:
            after = found[-1].seq
            # In one piece, so that a client's disconnect is noticed before the next.
            yield "".join(event_message(recorded, state) for recorded in found)
        quiet = 0.0 if found else quiet + POLL_SECONDS
        if quiet >= KEEPALIVE_SECONDS:
            quiet = 0.0
            yield KEEPALIVE
        if len(found) < PAGE:
            await asyncio.sleep(POLL_SECONDS)


def event_message(recorded: RecordedEvent, state: DashboardState) -> str:
    """Format an event for the protocol; its JSON is always one line."""
    row = state.stores.redactor.tree(JSON.validate_python(event_row(recorded)))
    return f"id: {recorded.seq}\nevent: recorded\ndata: {json.dumps(row)}\n\n"


def _read(state: DashboardState, after: int) -> Sequence[RecordedEvent]:
    ledger: Ledger = state.stores.ledger
    try:
        return ledger.events(after=after, most=PAGE)
    except MulliganError:
        return ()  # the client keeps its connection


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

CHECK = re.compile(r"check-([1-9][0-9]{0,2})")
ATTEMPT_NUMBER = re.compile(r"[1-9][0-9]{0,8}")

MAX_FILE_BYTES = 1024 * 1024
"""Bytes to show from the end of a file: a log may have a gigabyte."""

CUT = "[… only the end of this file; for the rest, run `mulligan inspect`]\n"


def text(state: DashboardState, request: Request) -> Response:
    """Return one file, without secrets and invisible characters."""
    status, history, _ = find_issue(state, request)
    stores, parameters = state.stores, request.path_params
    number, part = parameters["attempt"], parameters["part"]
    if not ATTEMPT_NUMBER.fullmatch(number) or not 1 <= int(number) <= status.number:
        message = f"{status.issue} has no attempt {number}."
        raise UsageError(message)
    artifact = _artifact(status.issue, int(number), part, history, stores.artifacts)
    if artifact is None:
        message = f"Attempt {number} of {status.issue} has no {part} here, or not any more."
        raise UsageError(message)
    content = stores.redactor.content(stores.artifacts.read(artifact, MAX_FILE_BYTES + 1))
    shown = visible(content[-MAX_FILE_BYTES:].decode(errors="replace"))
    return PlainTextResponse(CUT + shown if len(content) > MAX_FILE_BYTES else shown)


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
