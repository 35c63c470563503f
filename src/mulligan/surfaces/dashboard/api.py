"""The JSON API: the same as `status --json`, `inspect --json` and the events of the ledger."""

import json
import re
from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from mulligan.domain.events import Recorded
from mulligan.domain.issue import IssueRef
from mulligan.domain.result import WorkerResultMeta
from mulligan.domain.status import IssueStatus
from mulligan.errors import UsageError
from mulligan.surfaces.dashboard import feed
from mulligan.surfaces.dashboard.desk import Desk
from mulligan.surfaces.shapes import decisions_of, event_row, inspection, status_row

NUMBER = re.compile(r"[0-9]{1,15}")
MOST = 500


def issues(desk: Desk, _: Request) -> Response:
    """List every issue, and where it stands."""
    return answer([status_row(each) for each in desk.books.ledger.statuses()], desk)


def issue(desk: Desk, request: Request) -> Response:
    """Tell what happened to one issue."""
    status, history, events = found(desk, request)
    return answer(inspection(status, history, decisions_of(events)), desk)


def events(desk: Desk, request: Request) -> Response:
    """Give the events above a sequence number: up to 500, or as they come to who asks for that."""
    resumed = request.headers.get("last-event-id") or request.query_params.get("after")
    after = _number(resumed, "after")
    if "text/event-stream" in request.headers.get("accept", ""):
        start = desk.books.ledger.newest() if after is None else after
        return StreamingResponse(feed.stream(desk, start), headers=feed.HEADERS)
    most = min(_number(request.query_params.get("limit"), "limit") or MOST, MOST)
    rows = desk.books.ledger.events(after=after or 0, most=most)
    return answer([event_row(each) for each in rows], desk)


def found(
    desk: Desk, request: Request
) -> tuple[IssueStatus, Sequence[WorkerResultMeta], Sequence[Recorded]]:
    """Look up the issue that an address names; UsageError where the ledger has no such one."""
    asked, ledger = request.path_params, desk.books.ledger
    ref = IssueRef.parse(f"{asked['owner']}/{asked['name']}#{asked['number']}")
    known = ledger.events(ref)
    if not known:
        message = f"{ref} is not in the ledger."
        raise UsageError(message)
    return ledger.status(ref), ledger.history(ref), known


def answer(content: object, desk: Desk) -> Response:
    """Write JSON, without any secret in it."""
    clean = desk.books.redactor.tree(feed.JSON.validate_python(content))
    # Only ASCII: what nobody would see stands as its escape.
    return Response(json.dumps(clean), media_type="application/json")


def _number(given: str | None, name: str) -> int | None:
    if given is None:
        return None
    if not NUMBER.fullmatch(given):
        message = f"{name} is a number; write it in digits."
        raise UsageError(message)
    return int(given)
