"""The JSON API, and the event stream."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Sequence
from datetime import timedelta

from pydantic import JsonValue, TypeAdapter
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from mulligan.domain.errors import MulliganError, UsageError
from mulligan.domain.events import RecordedEvent
from mulligan.domain.issue import IssueRef
from mulligan.domain.result import WorkerResultMeta
from mulligan.domain.status import IssueStatus
from mulligan.interfaces.dashboard.openapi import description
from mulligan.interfaces.dashboard.state import DashboardState, StatsReader
from mulligan.interfaces.json_output import decisions_of, event_row, inspection, status_rows
from mulligan.interfaces.stats_report import as_json

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


SPAN = re.compile(r"([0-9]{1,4})([dh])")


def stats(state: DashboardState, figures: StatsReader, request: Request) -> Response:
    """Return the statistics of a period."""
    given = request.query_params.get("since")
    named = SPAN.fullmatch(given) if given is not None else None
    if given is not None and named is None:
        message = "since is not a period. Write it like 12h or 30d."
        raise HTTPException(400, message)
    hours = int(named[1]) * (24 if named[2] == "d" else 1) if named else 0
    span = timedelta(hours=hours) if named else None
    found = figures.refresh(span, state.stores.clock.now(), None)
    return answer(as_json(found) if found else None, state)


def openapi(_: Request) -> Response:
    """Return the description of this API."""
    return Response(json.dumps(description()), media_type="application/json")


MAX_EVENTS = 500


def events(state: DashboardState, request: Request) -> Response:
    """Return up to 500 events above a sequence number; stream them if the client accepts that."""
    resumed = request.headers.get("last-event-id") or request.query_params.get("after")
    after = _number(resumed, "after")
    if "text/event-stream" in request.headers.get("accept", ""):
        start = state.stores.ledger.last_seq() if after is None else after
        only = request.query_params.get("issue")
        events = stream(state, start, IssueRef.parse(only) if only else None)
        return StreamingResponse(events, headers=STREAM_HEADERS)
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
        raise UsageError(f"{ref} is not in the ledger.")
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
        raise HTTPException(400, message)
    return int(given)


# The event stream

STREAM_HEADERS = {"Content-Type": "text/event-stream; charset=utf-8", "X-Accel-Buffering": "no"}

POLL_SECONDS = 0.5
"""Seconds between two reads; each costs the ledger about 0.2 ms."""

KEEPALIVE_SECONDS = 15.0
"""Seconds without an event after which a comment keeps the connection alive."""

PAGE = 200
KEEPALIVE = ": still there\n\n"
RECONNECT_DELAY = "retry: 3000\n\n"


async def stream(
    state: DashboardState, after: int, only: IssueRef | None = None
) -> AsyncGenerator[str]:
    """Yield the events of all issues, or of one, with a `seq` above `after`.

    It ends with the server, or when the client leaves.
    """
    yield RECONNECT_DELAY
    quiet = 0.0
    while not state.ending.is_set():
        found = await run_in_threadpool(_read, state, after, only)
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


def _read(state: DashboardState, after: int, only: IssueRef | None) -> Sequence[RecordedEvent]:
    try:
        return state.stores.ledger.events(only, after, PAGE)
    except MulliganError:
        return ()  # the client keeps its connection
