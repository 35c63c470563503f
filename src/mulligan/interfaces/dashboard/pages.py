"""The HTML pages; they work without a script, and escape everything."""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import reduce
from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from mulligan.domain.errors import UsageError
from mulligan.domain.explanation import STAGE_TITLES
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.outcome import FREE, Outcome
from mulligan.domain.result import WorkerResultMeta
from mulligan.domain.spending import UNREPORTED, Spent, spending_text, spent_by, spent_in
from mulligan.domain.status import IssueStatus
from mulligan.domain.verification import is_unverified
from mulligan.implement.prompt.outcome_text import (
    NOT_RUN,
    attempt_error,
    duration_text,
    pluralize,
    status_title,
    times_text,
    title_of,
    took_text,
    verdict,
)
from mulligan.interfaces.dashboard.api import find_issue
from mulligan.interfaces.dashboard.diff_view import diff_view
from mulligan.interfaces.dashboard.files import (
    MAX_FILE_BYTES,
    attempt_in,
    content_of,
    end_of_log,
    files_of,
    readable,
)
from mulligan.interfaces.dashboard.metrics import readiness_problems
from mulligan.interfaces.dashboard.prompt_parts import parts_of
from mulligan.interfaces.dashboard.state import (
    DashboardState,
    RecentEvents,
    RecentEventsReader,
    StatsReader,
)
from mulligan.interfaces.dashboard.views import (
    LIST_TITLES,
    AttemptView,
    IssueList,
    ListName,
    RunningAttempt,
    address_of,
    asked_at,
    compared,
    matching,
    offers,
    overview,
    page_of,
    used_today,
    why_waiting,
)
from mulligan.interfaces.event_text import decision_text, sentence_of
from mulligan.interfaces.json_output import decisions_of
from mulligan.interfaces.stats_report import answers, period, points, stats_tables
from mulligan.text.escape import one_line, visible
from mulligan.text.redact import Redactor

TEMPLATES = Path(__file__).with_name("templates")

WEB = re.compile(r"https?://[!-~]+")
"""Addresses that may become links; anything else is shown as text."""

LINE = 200
"""Length of a title or a reason in a list."""

Render = Callable[[str, Mapping[str, object]], str]

PAGE_NUMBER = re.compile(r"[1-9][0-9]{0,5}")

FOLLOWED_BYTES, GLIMPSE_BYTES = 32 * 1024, 2 * 1024
"""Bytes from the end of a log to show on the page of its issue, and on the board."""

GLIMPSE_LINES = 5

SHOWN_CHARS, SHOWN_BYTES = 16_000, 80_000
"""Characters from the end of an agent's output to show on the page of its attempt; bytes to read
for them, with some before, so that no secret is cut."""

PERIODS: Mapping[str, timedelta | None] = {
    "": None,
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
    "90d": timedelta(days=90),
}
"""The periods of statistics that a page offers."""

PLOT_HEADERS = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}
"""A plot has its colours in itself; nothing in it can run."""

MAX_EVENTS = 200
"""Number of events on an issue's page; the API has all of them."""


def renderer(find_redactor: Callable[[], Redactor]) -> Render:
    """Return a function that renders a template; it redacts values with the current secrets."""

    def shown(value: object) -> object:
        # Markup comes from a template, and its values have passed through here.
        if not isinstance(value, str) or isinstance(value, Markup):
            return value
        return visible(find_redactor().text(str(value)))

    pages = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=shown,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    pages.filters.update(FILTERS)  # pyright: ignore[reportCallIssue, reportArgumentType] - any

    def render(name: str, values: Mapping[str, object]) -> str:
        return pages.get_template(name).render(values)

    return render


def clock(at: datetime) -> str:
    """Format a time in UTC for people."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def safe_url(url: str | None) -> str:
    """Return an address that may become a link; empty for anything else."""
    return url if url and WEB.fullmatch(url) else ""


def _title(ended: WorkerResultMeta | IssueStatus) -> str:
    return title_of(ended) if isinstance(ended, WorkerResultMeta) else status_title(ended)


def _colour(ended: WorkerResultMeta | IssueStatus) -> str:
    """Return the colour of the outcome of an attempt, or of an issue's last one."""
    unverified = (
        is_unverified(ended) if isinstance(ended, WorkerResultMeta) else ended.is_unverified
    )
    if ended.outcome is Outcome.SUCCEEDED and not unverified:
        return "good"
    return "calm" if unverified or ended.outcome in FREE else "bad"


def _iso(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="seconds")


def _line(text: object) -> str:
    return one_line(str(text), LINE)


def _path_of(meta: WorkerResultMeta) -> str:
    return page_of(IssueRef.parse(meta.issue))


def _cost(meta: WorkerResultMeta) -> str:
    return spending_text(Spent(spent_by([meta]).usd))


def _times(meta: WorkerResultMeta) -> str:
    return times_text([meta])


FILTERS: Mapping[str, Callable[..., object]] = {
    "clock": clock,
    "iso": _iso,
    "span": duration_text,
    "line": _line,
    "web": safe_url,
    "title_of": _title,
    "error_of": attempt_error,
    "tone": _colour,
    "verdict": verdict,
    "took": took_text,
    "times": _times,
    "sentence": sentence_of,
    "decided": decision_text,
    "counted": pluralize,
    "page_of": page_of,
    "path_of": _path_of,
    "cost": _cost,
    "stage_name": STAGE_TITLES.__getitem__,
    "spending": spending_text,
    "grouped": "{:,}".format,
}
"""The filters that templates may use."""


@dataclass(frozen=True, slots=True)
class Pages:
    """Renders the pages of one server."""

    state: DashboardState
    render: Render
    form_token: str
    figures: StatsReader
    recent: RecentEventsReader = field(default_factory=RecentEventsReader)

    def home(self, request: Request) -> Response:
        """Show the board: all issues by who must act."""
        stores = self.state.stores
        recent, now = self.recent.refresh(stores.ledger), stores.clock.now()
        board = overview(recent.statuses)

        def why(status: IssueStatus) -> str:
            return why_waiting(status, now)

        day = stores.accounts.used_on(now.astimezone(UTC).date())
        return self._page(
            "home.html",
            request,
            {
                "layout": "full",
                "seq": recent.seq,
                "all": board,
                "running": self._running_now(board[ListName.RUNNING], recent),
                "why": why,
                "results": recent.results,
                "used": used_today(day, stores.budget),
                "now": now,
                "held": [
                    *(each.sentence for each in stores.holds.pauses()),
                    *(each.sentence for each in stores.owners.standing_back()),
                ],
            },
        )

    def running(self, _: Request) -> Response:
        """Show the part of the board that changes without an event: logs, times and usage."""
        recent = self.recent.refresh(self.state.stores.ledger)
        running = self._running_now(overview(recent.statuses)[ListName.RUNNING], recent)
        return HTMLResponse(self.render("running.html", {"running": running}))

    def issues(self, request: Request) -> Response:
        """Show the issues of a list that have some words, fifty on a page."""
        recent, asked = self.recent.refresh(self.state.stores.ledger), request.query_params
        chosen, text = ListName.ALL, asked.get("text", "")
        with suppress(ValueError):
            chosen = ListName(asked.get("list", ""))
        number = asked.get("page", "1")
        page = int(number) if PAGE_NUMBER.fullmatch(number) else 1

        def turned(to: int) -> str:
            return str(request.url.include_query_params(page=to).query)

        return self._page(
            "issues.html",
            request,
            {
                "layout": "full",
                "seq": recent.seq,
                "list": matching(recent.statuses, chosen, text, page),
                "lists": LIST_TITLES,
                "chosen": chosen,
                "text": text,
                "page": page,
                "turned": turned,
            },
        )

    def issue(self, request: Request) -> Response:
        """Show one issue: its attempts side by side, and one of them in full."""
        stores = self.state.stores
        status, history, events = find_issue(self.state, request)
        recent = self.recent.refresh(stores.ledger)
        chosen = history[-1].number if history else 0
        if "attempt" in request.path_params:
            chosen = attempt_in(request, status)
        metas = [each for each in history if each.number == chosen]
        return self._page(
            "issue.html",
            request,
            {
                "layout": "narrow",
                "issue": str(status.issue),
                "seq": recent.seq,
                "status": status,
                "chosen": chosen,
                "attempts": compared(history),
                "tries": [self._tried(status, meta, history) for meta in metas],
                "running": self._running(status, history, recent.doing.get(status.issue, "")),
                "not_run": NOT_RUN,
                "decisions": {row["number"]: row for row in decisions_of(events)},
                "offers": offers(status),
                "form_token": self.form_token,
                "address": address_of(events),
                "asked_at": asked_at(events),
                "events": events[-MAX_EVENTS:],
            },
        )

    def stats(self, request: Request) -> Response:
        """Show the statistics of a period, with plots."""
        stores = self.state.stores
        chosen = request.query_params.get("since", "")
        span = PERIODS.get(chosen)
        found = self.figures.refresh(span, stores.clock.now())
        has_any = found is not None and found.since is not None
        return self._page(
            "stats.html",
            request,
            {
                "layout": "full",
                "seq": stores.ledger.last_seq(),
                "periods": PERIODS,
                "chosen": chosen if chosen in PERIODS else "",
                "period": period(found) if found else "Mulligan is computing the statistics.",
                "is_ready": found is not None,
                "answers": answers(found) if found and has_any else [],
                "points": points(found) if found and has_any else [],
                "sheets": stats_tables(found) if found and has_any else [],
            },
        )

    def plot(self, request: Request) -> Response:
        """Draw the plot of one table."""
        # Imported here, since a daemon whose statistics nobody opens does not need it.
        from mulligan.interfaces.charts import draw  # noqa: PLC0415

        span = PERIODS.get(request.query_params.get("since", ""))
        found = self.figures.refresh(span, self.state.stores.clock.now(), None)
        name = request.path_params["name"]
        sheets = {each.slug: each for each in stats_tables(found) if each.plot} if found else {}
        if name not in sheets:
            raise UsageError(f"There is no plot {name}.")
        drawn = visible(self.state.redactor.text(draw(sheets[name], name)))
        return Response(drawn, media_type="image/svg+xml", headers=PLOT_HEADERS)

    def plain(self, name: str, status: int, **values: object) -> Response:
        """Show a page with one message: the login form, or an error."""
        return HTMLResponse(self.render(name, {"status": status, **values}), status)

    def _page(self, name: str, request: Request, values: Mapping[str, object]) -> Response:
        path, query = request.url.path, request.url.query
        around = {
            "here": path,
            "location": f"{path}?{query}" if query else path,
            "ailments": readiness_problems(self.state),
            "vitals": self.state.pulse.snapshot,
        }
        return HTMLResponse(self.render(name, {**around, **values}))

    def _tried(
        self, status: IssueStatus, meta: WorkerResultMeta, history: Sequence[WorkerResultMeta]
    ) -> AttemptView:
        ref, number = status.issue, meta.number

        def content(part: str, most: int = MAX_FILE_BYTES) -> str:
            return content_of(self.state, ref, number, part, history, most) or ""

        diff, log = content("diff"), content("log", SHOWN_BYTES)[-SHOWN_CHARS:]
        return AttemptView(
            meta,
            files_of(ref, number, meta, self.state.stores.artifacts),
            diff_view(diff) if diff else None,
            parts_of(content("prompt")),
            readable(log, self.state.redactor),
        )

    def _running(
        self, status: IssueStatus, history: Sequence[WorkerResultMeta], doing: str
    ) -> RunningAttempt | None:
        """Return the attempt that has no record yet; None if there is none."""
        if status.stage is not Stage.RUNNING or status.number in {each.number for each in history}:
            return None
        return self._progress(status, doing, follows=True)

    def _running_now(self, issues: IssueList, recent: RecentEvents) -> list[RunningAttempt]:
        return [
            self._progress(each, recent.doing.get(each.issue, ""), follows=False)
            for each in issues.shown
        ]

    def _progress(self, status: IssueStatus, doing: str, *, follows: bool) -> RunningAttempt:
        """Read the usage and output of an attempt; with `follows`, everything that a page shows."""
        stores, ref, number = self.state.stores, status.issue, status.number
        used = stores.accounts.usage_of_attempt(ref, number).values()
        most = FOLLOWED_BYTES if follows else GLIMPSE_BYTES
        position, log = end_of_log(ref, number, self.state, most)
        return RunningAttempt(
            status=status,
            doing=doing,
            spent=reduce(Spent.plus, map(spent_in, used), UNREPORTED),
            log=log if follows else "\n".join(log.splitlines()[-GLIMPSE_LINES:]),
            follow=f"{page_of(ref)}/attempts/{number}/follow?after={quote(str(position))}",
            files=files_of(ref, number, None, stores.artifacts) if follows else (),
        )
