"""The commands for a start: on a repository of one's own."""

from pathlib import Path
from typing import Annotated

import typer

from mulligan.surfaces.cli.application import in_one_sentence
from mulligan.surfaces.cli.exits import Exit

DIRECTORY = typer.Argument(help="A clone of the repository.", show_default="here")


@in_one_sentence
def init(
    directory: Annotated[Path, DIRECTORY] = Path(),
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Write without asking.")] = False,
    repository: Annotated[
        str | None,
        typer.Option(metavar="OWNER/NAME", help="Its name on GitHub; default: as origin says."),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="The operator's file: read if there, else proposed.")
    ] = None,
) -> Exit:
    """Propose both configuration files for a clone, with real checks; and create the labels."""
    from mulligan.surfaces.cli import init as module

    return module.init(module.Asked(directory, yes, repository, config))
