"""The commands that people with the access key give on the page of an issue."""

from contextlib import suppress
from urllib.parse import parse_qs

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response

from mulligan.domain.command import Verb
from mulligan.domain.errors import UsageError
from mulligan.domain.events import CommandReceived
from mulligan.domain.issue import ConsoleAct
from mulligan.interfaces.dashboard.access import DashboardKey
from mulligan.interfaces.dashboard.api import find_issue
from mulligan.interfaces.dashboard.state import DashboardState
from mulligan.interfaces.dashboard.views import WITH_TEXT, offers, page_of
from mulligan.interfaces.event_text import BY_DASHBOARD
from mulligan.text.commands import command

MAX_FORM_BYTES = 16 * 1024

STALE_FORM = "This form is not from this server, or its key was replaced. Load the page again."


async def read_form(request: Request) -> dict[str, str]:
    """Read a form of short fields, the first value of each; UsageError if it is too large."""
    form = await read_body(request, MAX_FORM_BYTES)
    if form is None:
        raise UsageError(
            f"The form is too large. Write at most {MAX_FORM_BYTES // 2:,} characters."
        )
    fields = parse_qs(form.decode(errors="replace"))
    return {name: values[0] for name, values in fields.items()}


async def read_body(request: Request, limit: int) -> bytes | None:
    """Read the body of a request; None if it has more than `limit` bytes, or does not arrive."""
    body = bytearray()
    with suppress(ClientDisconnect):
        async for chunk in request.stream():
            body += chunk
            if len(body) > limit:
                return None
        return bytes(body)
    return None


async def give(state: DashboardState, key: DashboardKey, request: Request) -> Response:
    """Record a command by the operator; a worker carries it out within one poll."""
    form = await read_form(request)
    if not key.is_bearer(request) and not key.matches_form(form.get("token", "")):
        raise UsageError(STALE_FORM)
    return await run_in_threadpool(_record, state, request, form)


def _record(state: DashboardState, request: Request, form: dict[str, str]) -> Response:
    status, _, _ = find_issue(state, request)
    offered = {each.verb for each in offers(status)}
    if form.get("command") not in offered:
        raise UsageError(
            f"This command is not possible now. Load the page of {status.issue} again."
        )
    verb = Verb(form["command"])
    order = command(verb, form.get("text", "") if verb in WITH_TEXT else "")
    if order.verb is Verb.MISTYPED:
        raise UsageError(order.text)
    stores = state.stores
    now = stores.clock.now()
    act = ConsoleAct(f"{BY_DASHBOARD} {now.isoformat()}")
    received = CommandReceived(key=str(act), command=order.verb, text=order.text, at=now)
    stores.ledger.append(status.issue, received)
    return RedirectResponse(page_of(status.issue), 303)
