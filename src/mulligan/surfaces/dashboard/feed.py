"""The events of the ledger as they come, for browsers and programs (server-sent events)."""

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence

from pydantic import JsonValue, TypeAdapter
from starlette.concurrency import run_in_threadpool

from mulligan.domain.events import Recorded
from mulligan.errors import MulliganError
from mulligan.ports import Ledger
from mulligan.surfaces.dashboard.desk import Desk
from mulligan.surfaces.shapes import event_row

JSON: TypeAdapter[JsonValue] = TypeAdapter(JsonValue)
GLANCE = 0.5
"""Seconds between two looks; one costs the ledger about 0.2 ms."""

STILL_THERE = 15.0
"""Seconds without an event after which a comment shows that the connection is alive."""

PAGE = 200
COMMENT = ": still there\n\n"
AGAIN = "retry: 3000\n\n"
HEADERS = {"Content-Type": "text/event-stream; charset=utf-8", "X-Accel-Buffering": "no"}


async def stream(desk: Desk, after: int) -> AsyncGenerator[str]:
    """Give every event with a `seq` above `after`, until the server ends or nobody listens."""
    yield AGAIN
    quiet = 0.0
    while not desk.ending.is_set():
        found = await run_in_threadpool(_read, desk, after)
        if found:
            after = found[-1].seq
            # In one piece, so that one who has left is noticed before the next.
            yield "".join(told(recorded, desk) for recorded in found)
        quiet = 0.0 if found else quiet + GLANCE
        if quiet >= STILL_THERE:
            quiet = 0.0
            yield COMMENT
        if len(found) < PAGE:
            await asyncio.sleep(GLANCE)


def told(recorded: Recorded, desk: Desk) -> str:
    """Write one event as the protocol has it; its JSON is one line, whatever it holds."""
    row = desk.books.redactor.tree(JSON.validate_python(event_row(recorded)))
    return f"id: {recorded.seq}\nevent: recorded\ndata: {json.dumps(row)}\n\n"


def _read(desk: Desk, after: int) -> Sequence[Recorded]:
    ledger: Ledger = desk.books.ledger
    try:
        return ledger.events(after=after, most=PAGE)
    except MulliganError:
        return ()  # whoever listens goes on to listen
