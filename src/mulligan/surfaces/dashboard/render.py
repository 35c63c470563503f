"""Fill in the pages' templates: everything is escaped, and nothing secret or unseen gets there."""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.outcome import FREE, Outcome
from mulligan.domain.result import WorkerResultMeta
from mulligan.domain.spending import spent_by
from mulligan.retry.words import TITLES, counted, span, verdict
from mulligan.surfaces.dashboard.views import page_of
from mulligan.text.escape import one_line, visible
from mulligan.text.redact import Redactor

TEMPLATES = Path(__file__).with_name("templates")
WEB = re.compile(r"https?://[!-~]+")
"""What a link may lead to; anything else is shown as text."""

STAGES = {
    Stage.READY: "waiting",
    Stage.RUNNING: "running",
    Stage.REVIEW: "in review",
    Stage.HITL: "with a person",
    Stage.RESOLVED: "done with",
}
LINE = 200
"""Characters of a title or a reason that a list shows."""

Render = Callable[[str, Mapping[str, object]], str]


def renderer(find_redactor: Callable[[], Redactor]) -> Render:
    """Give what makes a page of a template and its values; the secrets are those of the moment."""

    def shown(value: object) -> object:
        # What is Markup was made by a template, of values that came through here.
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
    """Write a time for a person who is told that it is UTC."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def web(url: str | None) -> str:
    """Give an address that a link may lead to; empty for anything else."""
    return url if url and WEB.fullmatch(url) else ""


def tone(outcome: Outcome) -> str:
    """Name how an outcome is coloured."""
    if outcome is Outcome.SUCCEEDED:
        return "good"
    return "calm" if outcome in FREE else "bad"


def _iso(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="seconds")


def _line(text: object) -> str:
    return one_line(str(text), LINE)


def _path_of(meta: WorkerResultMeta) -> str:
    return page_of(IssueRef.parse(meta.issue))


def _usd(meta: WorkerResultMeta) -> float:
    return spent_by([meta]).usd


def _dollars(usd: float) -> str:
    return f"${usd:.2f}"


def _grouped(count: int) -> str:
    return f"{count:,}"


FILTERS: Mapping[str, Callable[..., object]] = {
    "clock": clock,
    "iso": _iso,
    "span": span,
    "line": _line,
    "web": web,
    "title_of": TITLES.__getitem__,
    "tone": tone,
    "verdict": verdict,
    "counted": counted,
    "page_of": page_of,
    "path_of": _path_of,
    "usd": _usd,
    "stage_name": STAGES.__getitem__,
    "dollars": _dollars,
    "grouped": _grouped,
}
"""What the templates may do with a value."""
