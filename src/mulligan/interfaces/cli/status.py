"""`mulligan status`: the stage of every issue, for people and programs."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console, Group
from rich.markup import escape
from rich.table import Table
from rich.text import Text

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
from mulligan.implement.prompt.outcome_text import TITLES
from mulligan.interfaces.bootstrap.fast_status import read_all_statuses
from mulligan.interfaces.cli.exit_codes import Exit
from mulligan.interfaces.cli.setup import environment, make_console, read_configuration
from mulligan.interfaces.cli.terminal import (
    END_OF_INPUT,
    fits,
    is_attended,
    print_json,
    print_point,
    print_text,
    single_keys,
    with_program_name,
)
from mulligan.interfaces.json_output import status_rows
from mulligan.text.escape import one_line

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
        seen = _watch(console, seen, lambda: read_all_statuses(operator))
    _print(seen, console)
    return Exit.DONE


def _print(seen: Seen, console: Console) -> None:
    statuses, held = seen
    for each in held:
        message = escape(with_program_name(each.sentence))
        console.print(f"[yellow]{message}[/]", soft_wrap=True)
    print_statuses(statuses, console)


# The live view

REFRESH_SECONDS = 1.0

QUIT_KEYS = frozenset({"q", "Q", "\x1b", END_OF_INPUT})


def _watch(console: Console, seen: Seen, read: Callable[[], Seen]) -> Seen:
    """Show the list on an alternate screen until a key ends it; return the last state."""
    # Imported here: only a terminal needs it.
    from rich.live import Live  # noqa: PLC0415

    # A console that shows something live adds that to everything that it prints.
    sheet = make_console()
    with (
        suppress(KeyboardInterrupt),
        single_keys() as read_key,
        Live(console=console, screen=True, auto_refresh=False) as live,
    ):
        while True:
            live.update(screenful(seen, sheet, datetime.now(UTC)), refresh=True)
            if QUIT_KEYS & {*read_key(REFRESH_SECONDS)}:
                break
            seen = read()
    return seen


def screenful(seen: Seen, console: Console, now: datetime) -> Group:
    """Return the list as far as it fits on the screen, and a line about keys and the time."""
    with console.capture() as captured:
        _print(seen, console)
    lines = Text.from_ansi(captured.get().removesuffix("\n")).wrap(console, console.width)
    room = max(1, console.height - 2)
    more = f"{len(lines) - room} more lines; press q to see all · " if len(lines) > room else ""
    keys = Text(f"{more}{now:%H:%M:%S} UTC · press q to quit", "dim")
    keys.truncate(console.width, overflow="ellipsis")
    return Group(*lines[:room], Text(), keys)


# The list


def print_statuses(statuses: Sequence[IssueStatus], console: Console) -> None:
    """Print a table; if it would break an address, print the reasons below their rows."""
    if not statuses:
        print_text(console, "No issues yet. Add the label to one, then run `mulligan once`.")
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
        TITLES[found.outcome] if found.outcome else "",
        "\n".join(filter(None, reasons)),
    )
