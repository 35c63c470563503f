"""`mulligan stats`: what the work came to, on a terminal, as JSON or as a page."""

from datetime import datetime, timedelta
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from mulligan.config.settings import parse_duration
from mulligan.domain.figures import AgentFigures, Cost, Figures, Frequent, Stats
from mulligan.domain.stats import summarise
from mulligan.errors import UnavailableError, UsageError
from mulligan.surfaces.cli.exits import Exit
from mulligan.surfaces.cli.layout import fits, print_json
from mulligan.surfaces.cli.setup import make_console, read_configuration
from mulligan.surfaces.cli.sheets import Sheet, halves, points, sheets
from mulligan.wiring.clock import SystemClock
from mulligan.wiring.records import read_ledger

EMPTY = "Nothing has been recorded yet: no issue has asked for work."


def stats(config: Path | None, since: str | None, page: Path | None, *, json: bool) -> Exit:
    """Count what the ledger holds; write a page where one is asked for."""
    now = SystemClock().now()
    begin = before(now, since) if since is not None else None
    found = summarise(read_ledger(read_configuration(config, needs_token=False)), now, begin)
    if page:
        _write(page, found)
    if json:
        print_json(as_json(found))
        return Exit.DONE
    console = make_console()
    if page:
        console.print(escape(f"The page is written to {page}."))
    elif found.since is None:
        console.print(EMPTY)
    else:
        print_figures(found, console)
    return Exit.DONE


def before(now: datetime, span: str) -> datetime:
    """Give the moment so long ago; UsageError says how to write a span."""
    try:
        return now - parse_duration(span)
    except (ValueError, OverflowError) as error:
        message = f"{span!r} is no time span; write it like 12h or 30d."
        raise UsageError(message) from error


def _write(page: Path, found: Stats) -> None:
    # Imported here, since only a page needs a template.
    from mulligan.surfaces.cli.stats_page import write_page  # noqa: PLC0415

    try:
        page.write_text(write_page(found), encoding="utf-8")
    except OSError as error:
        message = f"{page} cannot be written ({error.strerror}); name another file."
        raise UnavailableError(message) from error


def print_figures(found: Stats, console: Console) -> None:
    """Print the figures and tables, none of them wider than the terminal if that can be."""
    console.print(period(found))
    table = Table(box=None, show_header=False, pad_edge=False)
    for each in points(found):
        table.add_row(each.name, f"[bold]{escape(each.value)}[/]", f"[dim]{escape(each.note)}[/]")
    console.print(table)
    for sheet in sheets(found):
        console.print(f"\n[bold]{sheet.title}[/]")
        for table in _tables(sheet, console):
            console.print(table)


def _tables(sheet: Sheet, console: Console) -> list[Table]:
    """Lay out a sheet; one with more figures than the terminal is wide for, in two tables."""
    table = _table(sheet)
    if sheet.words or fits(table, console):
        return [table]
    return [_table(half) for half in halves(sheet)]


def _table(sheet: Sheet) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for place, column in enumerate(sheet.columns):
        is_figure = place > sheet.words
        table.add_column(column, justify="right" if is_figure else "left", overflow="fold")
    for row in sheet.rows:
        table.add_row(*map(escape, row))
    return table


def period(found: Stats) -> str:
    """Say from when to when it was counted."""
    if found.since is None:
        return EMPTY
    return f"From {_minute(found.since)} to {_minute(found.until)} UTC."


def _minute(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M}"


def as_json(found: Stats) -> dict[str, object]:
    """Give it for other programs; times are in seconds, and null is unknown or none."""
    return {
        "since": found.since.isoformat() if found.since else None,
        "until": found.until.isoformat(),
        **_figures(found.overall),
        "outcomes": dict(found.outcomes),
        "by_attempt": [
            {"attempt": each.place, "made": each.made, "succeeded": each.succeeded}
            for each in found.places
        ],
        "failing_checks": [_frequent(each) for each in found.checks],
        "failures": [
            {**_frequent(each), "summary": each.summary, "fingerprint": each.fingerprint}
            for each in found.failures
        ],
        "repositories": {name: _figures(of) for name, of in found.repositories.items()},
        "agents": {each.agent: _agent(each) for each in found.agents},
    }


def _figures(of: Figures) -> dict[str, object]:
    return {
        "issues": {
            "taken": of.taken,
            "tried": of.tried,
            "published": of.published,
            "merged": of.merged,
            "closed": of.closed,
            "left": of.left,
        },
        "stages": dict(of.stages),
        "attempts": {"made": of.attempts, "counted": of.counted, "succeeded": of.succeeded},
        "spent": {
            **_cost(of.cost),
            "usd_per_attempt": of.cost.per(of.attempts),
            "usd_per_issue": of.cost.per(of.tried),
            "usd_per_merged_pull_request": of.cost.per(of.merged),
        },
        "median_seconds": {
            "to_pull_request": _seconds(of.to_pull_request),
            "to_merge": _seconds(of.to_merge),
        },
    }


def _cost(cost: Cost) -> dict[str, object]:
    return {
        "usd": cost.usd,
        "tokens": cost.tokens,
        "attempts_without_cost": cost.silent,
        "attempts_without_tokens": cost.wordless,
    }


def _agent(each: AgentFigures) -> dict[str, object]:
    return {
        "attempts": {"made": each.attempts, "counted": each.counted, "succeeded": each.succeeded},
        "spent": {**_cost(each.cost), "usd_per_attempt": each.cost.per(each.attempts)},
    }


def _frequent(each: Frequent) -> dict[str, object]:
    return {
        "repository": each.repository,
        "check": each.check,
        "attempts": each.attempts,
        "issues": each.issues,
    }


def _seconds(time: timedelta | None) -> float | None:
    return time.total_seconds() if time else None
