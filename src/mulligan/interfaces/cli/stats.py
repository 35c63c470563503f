"""`mulligan stats`: statistics on a terminal, as JSON or as an HTML page."""

from datetime import datetime
from pathlib import Path

from jinja2 import Environment, StrictUndefined, select_autoescape
from markupsafe import Markup
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from mulligan.config.settings import parse_duration
from mulligan.domain.errors import UnavailableError, UsageError
from mulligan.domain.stats import Stats, summarise
from mulligan.interfaces.bootstrap.clock_and_backoff import SystemClock
from mulligan.interfaces.bootstrap.stores import read_ledger
from mulligan.interfaces.cli.exit_codes import Exit
from mulligan.interfaces.cli.setup import make_console, read_configuration
from mulligan.interfaces.cli.terminal import OUTPUT_FILTER, fits, print_json
from mulligan.interfaces.stats_report import (
    EMPTY,
    StatsTable,
    as_json,
    period,
    points,
    split_table,
    stats_tables,
)

# `mulligan stats`


def stats(
    config: Path | None, since: str | None, label: str | None, page: Path | None, *, json: bool
) -> Exit:
    """Print the statistics of the ledger, or write them to `page`."""
    now = SystemClock().now()
    begin = time_ago(now, since) if since is not None else None
    history = read_ledger(read_configuration(config, needs_token=False))
    found = summarise(history, now, begin, label)
    if page:
        _write(page, found)
    if json:
        print_json(as_json(found))
        return Exit.DONE
    console = make_console()
    if page:
        console.print(escape(f"Wrote the page to {page}."))
    elif found.since is None:
        console.print(EMPTY)
    else:
        print_figures(found, console)
    return Exit.DONE


def time_ago(now: datetime, span: str) -> datetime:
    """Return the time `span` before `now`; UsageError if the span is invalid."""
    try:
        return now - parse_duration(span)
    except (ValueError, OverflowError) as error:
        raise UsageError(f"{span!r} is not a duration. Write it like 12h or 30d.") from error


def _write(page: Path, found: Stats) -> None:
    try:
        page.write_text(write_page(found), encoding="utf-8")
    except OSError as error:
        raise UnavailableError(
            f"{page} could not be written ({error.strerror}). Name another file with --html FILE."
        ) from error


TEMPLATE = Path(__file__).with_name("stats.html")


def write_page(found: Stats) -> str:
    """Return the page, without secrets; untrusted text is escaped."""
    # Imported here, since only the page needs it.
    from mulligan.interfaces.charts import draw  # noqa: PLC0415

    def plot(sheet: StatsTable, place: int) -> Markup:
        # What draws the plot escapes its labels.
        return Markup(draw(sheet, f"plot-{place}")) if sheet.plot else Markup()  # noqa: S704

    environment = Environment(
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
    page = template.render(
        period=period(found),
        points=points(found) if found.since else [],
        sheets=stats_tables(found) if found.since else [],
        plot=plot,
    )
    return OUTPUT_FILTER.clean(page)


# On the terminal


def print_figures(found: Stats, console: Console) -> None:
    """Print the figures and tables, no wider than the terminal if possible."""
    console.print(escape(period(found)))
    table = Table(box=None, show_header=False, pad_edge=False)
    for each in points(found):
        table.add_row(each.name, f"[bold]{escape(each.value)}[/]", f"[dim]{escape(each.note)}[/]")
    console.print(table)
    for sheet in stats_tables(found):
        console.print(f"\n[bold]{sheet.title}[/]")
        for table in _tables(sheet, console):
            console.print(table)


def _tables(sheet: StatsTable, console: Console) -> list[Table]:
    """Lay out a sheet; in two tables if the terminal is too narrow."""
    table = _table(sheet)
    if sheet.words or fits(table, console, wraps=False):
        return [table]
    return [_table(half) for half in split_table(sheet)]


def _table(sheet: StatsTable) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for place, column in enumerate(sheet.columns):
        is_figure = place > sheet.words
        table.add_column(column, justify="right" if is_figure else "left", overflow="fold")
    for row in sheet.rows:
        table.add_row(*map(escape, row))
    return table
