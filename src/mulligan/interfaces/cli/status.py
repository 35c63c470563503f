"""`mulligan status`: the stage of every issue, for people and programs."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from mulligan.config.operator import Operator
from mulligan.domain.explanation import (
    STAGE_TITLES,
    describe_attempt,
    describe_publication,
    describe_queue,
    describe_restoration,
    describe_review,
)
from mulligan.domain.hold import Pause
from mulligan.domain.issue import Stage
from mulligan.domain.ownership import StandBack
from mulligan.domain.status import IssueStatus
from mulligan.implement.prompt.outcome_text import status_title
from mulligan.interfaces.bootstrap.fast_status import github_address, read_all_statuses
from mulligan.interfaces.cli.exit_codes import Exit
from mulligan.interfaces.cli.setup import environment, make_console, read_configuration
from mulligan.interfaces.cli.terminal import (
    OUTPUT_FILTER,
    fits,
    is_attended,
    print_json,
    print_point,
    print_text,
    typed,
    with_program_name,
)
from mulligan.interfaces.json_output import status_rows
from mulligan.text.escape import one_line

NO_ISSUES = "No issues yet. Add the label to one, then run `mulligan once`."

Seen = tuple[Sequence[IssueStatus], Sequence[Pause | StandBack]]


def status(config: Path | None, *, json: bool, watch: bool) -> Exit:
    """List the issues of the ledger; with `watch`, on a terminal, until a key ends it."""
    operator = read_configuration(config, needs_token=False)
    seen = read_all_statuses(operator)
    if json:
        pauses = [each for each in seen[1] if isinstance(each, Pause)]
        print_json(status_rows(seen[0], pauses))
        return Exit.DONE
    console = make_console()
    if watch and console.is_interactive and is_attended(environment()):
        return _watch(operator)
    _print(seen, console)
    return Exit.DONE


def _print(seen: Seen, console: Console) -> None:
    statuses, held = seen
    for each in held:
        message = escape(with_program_name(each.sentence))
        console.print(f"[yellow]{message}[/]", soft_wrap=True)
    print_statuses(statuses, console)


# The screen of a terminal


@dataclass(frozen=True, slots=True)
class ScreenRow:
    """One issue: the cells of its row, and the lines and addresses of its details."""

    issue: str
    cells: tuple[str, ...]
    details: tuple[str, ...]
    addresses: tuple[str, ...]

    def has(self, words: str) -> bool:
        """Return whether the row or its details have each of the words, in any case."""
        text = " ".join((*self.cells, *self.details)).casefold()
        return all(word in text for word in words.casefold().split())


@dataclass(frozen=True, slots=True)
class ScreenContent:
    """What the screen shows at one time: sentences above the list, and the issues."""

    notices: tuple[str, ...]
    rows: tuple[ScreenRow, ...]


def _watch(operator: Operator) -> Exit:
    """Show the list on a screen of its own until a key ends it; then print it."""
    # Imported here: only a terminal needs it.
    from mulligan.interfaces.cli.status_screen import StatusScreen  # noqa: PLC0415

    github = github_address(operator)
    screen = StatusScreen(lambda: screen_content(read_all_statuses(operator), github))
    screen.run()
    if screen.fault:
        raise screen.fault
    _print(read_all_statuses(operator), make_console())
    return Exit(screen.return_code or 0)


def screen_content(seen: Seen, github: str) -> ScreenContent:
    """Return what the screen shows; `github` is the address of GitHub's pages."""
    statuses, held = seen
    clean = OUTPUT_FILTER.clean
    return ScreenContent(
        tuple(clean(with_program_name(each.sentence)) for each in held),
        tuple(_screen_row(each, github) for each in statuses),
    )


def _screen_row(found: IssueStatus, github: str) -> ScreenRow:
    clean, ref = OUTPUT_FILTER.clean, found.issue
    issue, stage, attempt, outcome, why = map(clean, _row(found))
    pages = (found.pull.url, found.asked_at, f"{github}/{ref.repository}/issues/{ref.number}")
    title = clean(one_line(found.text.title, 200))
    lines = (line for line in why.splitlines() if line not in pages)
    return ScreenRow(
        issue,
        (issue, stage, attempt, outcome, title),
        (title, *lines, "To see its attempts:", typed(f"inspect {ref}", OUTPUT_FILTER.config)),
        tuple(clean(page) for page in pages if page),
    )


# The list


def print_statuses(statuses: Sequence[IssueStatus], console: Console) -> None:
    """Print a table; if it would break an address, print the reasons below their rows."""
    if not statuses:
        print_text(console, NO_ISSUES)
        return
    rows = [("issue", "stage", "attempt", "outcome", "reason"), *map(_row, statuses)]
    table = _table(rows)
    if fits(table, console, wraps=True):
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
    described = (
        describe_queue(found, datetime.now(UTC)),
        describe_attempt(found),
        describe_publication(found),
        describe_review(found),
        describe_restoration(found),
        *found.effects.pull_notes,
    )
    # An address says nothing of what was verified.
    verified = one_line(second, 200) if first and found.stage is Stage.REVIEW else ""
    reasons = (one_line(why, 200), verified, *described)
    return (
        str(found.issue),
        STAGE_TITLES[found.stage],
        f"{found.attempt}" if found.epoch < 2 else f"{found.attempt} (round {found.epoch})",  # noqa: PLR2004
        status_title(found),
        "\n".join(filter(None, reasons)),
    )
