"""The commands under `mulligan state`."""

from pathlib import Path
from typing import Annotated

import typer

from mulligan.surfaces.cli.application import Config, in_one_sentence
from mulligan.surfaces.cli.exits import Exit


@in_one_sentence
def pull(*, config: Config = None) -> Exit:
    """Take over from the GitHub Action: its counts and history go into this ledger."""
    from mulligan.surfaces.cli import state

    return state.pull(config)


@in_one_sentence
def push(*, config: Config = None) -> Exit:
    """Hand over to the GitHub Action: this ledger's counts and history go to the repositories."""
    from mulligan.surfaces.cli import state

    return state.push(config)


@in_one_sentence
def copy(
    *,
    source: Annotated[
        Path, typer.Option("--from", metavar="FILE", help="A configuration with the other state.")
    ],
    config: Config = None,
) -> Exit:
    """Take over another ledger, such as a single worker's into a fleet's, or back."""
    from mulligan.surfaces.cli import state

    return state.copy(config, source)
