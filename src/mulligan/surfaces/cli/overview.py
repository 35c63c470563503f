"""`mulligan status`: where every issue stands, for people and programs."""

from collections.abc import Sequence
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from mulligan.domain.explanation import told_of_review
from mulligan.domain.issue import Stage
from mulligan.domain.status import IssueStatus
from mulligan.surfaces.cli.exits import Exit
from mulligan.surfaces.cli.layout import print_json
from mulligan.surfaces.cli.setup import make_console, read_configuration
from mulligan.surfaces.shapes import status_row
from mulligan.text.escape import one_line
from mulligan.wiring.glance import where_all_stand


def status(config: Path | None, *, json: bool) -> Exit:
    """List the issues of the ledger."""
    statuses = where_all_stand(read_configuration(config, needs_token=False))
    if json:
        print_json([status_row(each) for each in statuses])
        return Exit.DONE
    console = make_console()
    console.print(_status_table(statuses) if statuses else "No issue has asked for work yet.")
    return Exit.DONE


def _status_table(statuses: Sequence[IssueStatus]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("issue", "stage", "attempt", "outcome", "reason"):
        table.add_column(column, overflow="fold")
    for each in statuses:
        rests = each.stage is Stage.RESOLVED and each.reason
        why = rests or each.pull_request or each.reason
        table.add_row(
            escape(str(each.issue)),
            each.stage,
            f"{each.attempt}" if each.epoch < 2 else f"{each.attempt} (epoch {each.epoch})",  # noqa: PLR2004
            each.outcome or "",
            escape("\n".join(filter(None, (one_line(why, 200), told_of_review(each))))),
        )
    return table
