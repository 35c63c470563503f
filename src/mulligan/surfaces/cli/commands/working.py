"""The commands that work on issues."""

from typing import Annotated

import typer

from mulligan.surfaces.cli.application import Config, Issue, in_one_sentence
from mulligan.surfaces.cli.exits import Exit


@in_one_sentence
def once(
    *,
    config: Config = None,
    attempts: Annotated[
        int | None, typer.Option(min=1, help="The most attempts for each issue in this pass.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="The most issues in this pass.")] = None,
) -> Exit:
    """Make one pass: recover, then work each labelled issue until it rests."""
    from mulligan.surfaces.cli import work

    return work.once(config, attempts, limit)


@in_one_sentence
def run(*, config: Config = None) -> Exit:
    """Serve until told to stop: poll, work every labelled issue, watch for withdrawals."""
    from mulligan.surfaces.cli import run as module

    return module.run(config)


@in_one_sentence
def work(
    issue: Issue,
    *,
    config: Config = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Change nothing on GitHub; say what would be done.")
    ] = False,
) -> Exit:
    """Make one attempt at an issue now; your command is the request, no label is needed."""
    from mulligan.surfaces.cli import work as module

    return module.work(issue, config, dry_run=dry_run)


@in_one_sentence
def action() -> Exit:
    """Make one pass within a workflow of GitHub; its inputs are environment variables."""
    from mulligan.surfaces.cli import action as module

    return module.action()
