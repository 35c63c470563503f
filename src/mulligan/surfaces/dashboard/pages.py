"""The pages for people; they only show, and work without a script."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC
from functools import reduce

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from mulligan.domain.issue import Stage
from mulligan.domain.result import WorkerResultMeta
from mulligan.domain.spending import Spent, spent_in
from mulligan.domain.status import IssueStatus
from mulligan.surfaces.dashboard.api import found
from mulligan.surfaces.dashboard.desk import Desk
from mulligan.surfaces.dashboard.health import ailments
from mulligan.surfaces.dashboard.recent import Recent
from mulligan.surfaces.dashboard.render import Render
from mulligan.surfaces.dashboard.texts import files_of
from mulligan.surfaces.dashboard.views import (
    Running,
    Try,
    address_of,
    asked_at,
    overview,
    used_today,
    why_waiting,
)
from mulligan.surfaces.shapes import decisions_of

MOST_EVENTS = 200
"""Events that the page of an issue lists; the API has all of them."""


@dataclass(frozen=True, slots=True)
class Pages:
    """Makes the pages of one server."""

    desk: Desk
    render: Render
    recent: Recent = field(default_factory=Recent)

    def home(self, _: Request) -> Response:
        """Show everything at a glance."""
        books = self.desk.books
        lately, now = self.recent.look(books.ledger), books.clock.now()
        statuses = books.ledger.statuses()

        def why(status: IssueStatus) -> str:
            return why_waiting(status, now)

        day = books.accounts.on(now.astimezone(UTC).date())
        return self._page(
            "home.html",
            {
                "seq": lately.seq,
                "all": overview(statuses),
                "why": why,
                "doing": lately.doing,
                "results": lately.results,
                "used": used_today(day, books.budget),
                "now": now,
            },
        )

    def issue(self, request: Request) -> Response:
        """Show one issue with all its attempts, the last one first."""
        books = self.desk.books
        status, history, events = found(self.desk, request)
        lately = self.recent.look(books.ledger)
        last = history[-1] if history else None
        tries = [self._tried(status, meta, is_last=meta is last) for meta in reversed(history)]
        return self._page(
            "issue.html",
            {
                "seq": lately.seq,
                "status": status,
                "tries": tries,
                "running": self._running(status, history, lately.doing.get(status.issue, "")),
                "decisions": {row["number"]: row for row in decisions_of(events)},
                "address": address_of(events),
                "asked_at": asked_at(events),
                "events": events[-MOST_EVENTS:],
            },
        )

    def plain(self, name: str, status: int, **values: object) -> Response:
        """Show a page that says one thing: that a key is asked for, or what is wrong."""
        return HTMLResponse(self.render(name, values), status)

    def _page(self, name: str, values: Mapping[str, object]) -> Response:
        around = {"ailments": ailments(self.desk), "vitals": self.desk.pulse.vitals}
        return HTMLResponse(self.render(name, {**around, **values}))

    def _tried(self, status: IssueStatus, meta: WorkerResultMeta, *, is_last: bool) -> Try:
        kept = files_of(status.issue, meta.number, meta, self.desk.books.artifacts)
        return Try(meta, kept, is_last)

    def _running(
        self, status: IssueStatus, history: Sequence[WorkerResultMeta], doing: str
    ) -> Running | None:
        """Find the attempt that has no record yet."""
        if status.stage is not Stage.RUNNING or status.number in {each.number for each in history}:
            return None
        books = self.desk.books
        used = map(spent_in, books.accounts.of(status.issue, status.number).values())
        return Running(
            number=status.number,
            attempt=status.attempt,
            since=status.started_at,
            doing=doing,
            spent=reduce(Spent.plus, used, Spent()),
            files=files_of(status.issue, status.number, None, books.artifacts),
        )
