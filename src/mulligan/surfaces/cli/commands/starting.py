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
    workflow: Annotated[bool, typer.Option(help="Propose the workflow of the Action too.")] = True,
    action: Annotated[
        str | None,
        typer.Option(metavar="OWNER/NAME@COMMIT", help="Mulligan itself, for the workflow."),
    ] = None,
    app: Annotated[
        bool, typer.Option("--app", help="Make a GitHub App for Mulligan instead, in a browser.")
    ] = False,
    organization: Annotated[
        str | None, typer.Option(help="The organisation that owns the App; default: you.")
    ] = None,
    app_name: Annotated[str | None, typer.Option(help="The name of the App.")] = None,
    key_file: Annotated[Path | None, typer.Option(help="Where its private key is kept.")] = None,
) -> Exit:
    """Propose the configuration files for a clone, with real checks; and create the labels."""
    from mulligan.surfaces.cli import init as module

    asked = module.Asked(directory, yes, repository, config, workflow, action)
    if app:
        return module.init_app(asked, module.Wanted(organization, app_name, key_file))
    return module.init(asked)


@in_one_sentence
def rehearse(
    file: Annotated[
        Path, typer.Argument(metavar="ISSUE.md", help="The issue; its first heading is the title.")
    ],
    directory: Annotated[Path, DIRECTORY] = Path(),
    *,
    agent: Annotated[
        str | None,
        typer.Option(help="claude, codex, gemini, opencode, aider, mini, or a command line."),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="The operator's file, for the agent and its limits.")
    ] = None,
    attempts: Annotated[int | None, typer.Option(min=1, help="The most attempts.")] = None,
) -> Exit:
    """Let an agent work on an issue from a file, in a local repository; no GitHub at all."""
    from mulligan.surfaces.cli import rehearse as module

    return module.rehearse(module.Asked(file, directory, agent, config, attempts))
