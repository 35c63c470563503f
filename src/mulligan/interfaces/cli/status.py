"""`mulligan status`: the stage of every issue, for people and programs."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from mulligan.domain.explanation import describe_restoration, describe_review
from mulligan.domain.hold import Pause
from mulligan.domain.issue import Stage
from mulligan.domain.status import IssueStatus
from mulligan.interfaces.bootstrap.fast_status import read_all_statuses
from mulligan.interfaces.cli.exit_codes import Exit
from mulligan.interfaces.cli.setup import make_console, read_configuration
from mulligan.interfaces.cli.terminal import fits, print_json, print_point, with_program_name
from mulligan.interfaces.json_output import status_rows
from mulligan.text.escape import one_line


def status(config: Path | None, *, json: bool) -> Exit:
    """List the issues of the ledger."""
    statuses, held = read_all_statuses(read_configuration(config, needs_token=False))
    if json:
        pauses = [each for each in held if isinstance(each, Pause)]
        print_json(status_rows(statuses, pauses))
        return Exit.DONE
    console = make_console()
    for each in held:
        console.print(f"[yellow]{escape(with_program_name(each.sentence))}[/]", soft_wrap=True)
    print_statuses(statuses, console)
    return Exit.DONE


def print_statuses(statuses: Sequence[IssueStatus], console: Console) -> None:
    """Print a table; if it would break an address, print the reasons below their rows."""
    if not statuses:
        console.print("No issues yet. Add the label to one, then run `mulligan once`.")
        return
    rows = [("issue", "stage", "attempt", "outcome", "reason"), *map(_row, statuses)]
    table = _table(rows)
    if fits(table, console):
        console.print(table)
        return
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)][:-1]
    for style, (*cells, why) in zip(["bold", *[""] * len(statuses)], rows, strict=True):
        padded = [cell.ljust(width) for cell, width in zip(cells, widths, strict=True)]
        console.print(Text("  ".join(padded).rstrip(), style))
        for line in () if style else why.splitlines():
            print_point(console, Text(" "), line)


def _table(rows: Sequence[tuple[str, ...]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in rows[0]:
        table.add_column(column, overflow="fold")
    for row in rows[1:]:
        table.add_row(*map(escape, row))
    return table


def _row(found: IssueStatus) -> tuple[str, ...]:
    is_open = found.stage in {Stage.REVIEW, Stage.RUNNING}
    first, second = found.pull.url or "", found.reason
    why = (first or second) if is_open else (second or first)
    return (
        str(found.issue),
        found.stage,
        f"{found.attempt}" if found.epoch < 2 else f"{found.attempt} (epoch {found.epoch})",  # noqa: PLR2004
        found.outcome or "",
        "\n".join(filter(None, _reasons(found, why))),
    )


def _reasons(found: IssueStatus, why: str) -> tuple[str, ...]:
    return one_line(why, 200), describe_review(found), describe_restoration(found)
