"""The program `mulligan`: what its commands share, and how each of them ends."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, ParamSpec

import typer

from mulligan import __version__
from mulligan.errors import ConfigError, MulliganError, ShutdownError, UsageError
from mulligan.surfaces.cli.exits import Exit

P = ParamSpec("P")

app = typer.Typer(
    name="mulligan",
    help="A labelled GitHub issue becomes a pull request, or reaches a person.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

config_app = typer.Typer(
    name="config", help="Check and show the configuration.", no_args_is_help=True
)
app.add_typer(config_app)

state_app = typer.Typer(
    name="state",
    help="Move counts and history between ledgers, and the GitHub Action.",
    no_args_is_help=True,
)
app.add_typer(state_app)

Config = Annotated[
    Path | None,
    typer.Option("--config", help="The configuration; default: ./mulligan.yml, $MULLIGAN_CONFIG."),
]
PolicyFile = Annotated[
    Path | None, typer.Option("--policy", help="The policy file of a repository, too or alone.")
]
Repository = Annotated[
    str | None,
    typer.Option(
        "--repository", metavar="OWNER/NAME", help="Whose it is; the operator's keys go over it."
    ),
]
Issue = Annotated[str, typer.Argument(help="OWNER/NAME#NUMBER", metavar="ISSUE")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for other programs.")]


def in_one_sentence(command: Callable[P, Exit]) -> Callable[P, None]:
    """Turn a command's errors into one sentence on standard error, and its end into a code."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            code = command(*args, **kwargs)
        except (ConfigError, UsageError) as error:
            code = _refused(error, Exit.USAGE)
        except ShutdownError:
            code = Exit.INTERRUPTED
        except MulliganError as error:
            code = _refused(error, Exit.FAILED)
        raise typer.Exit(code)

    return run


def _refused(error: MulliganError, code: Exit) -> Exit:
    from mulligan.surfaces.cli.terminal import say_error

    say_error(str(error))
    return code


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - Typer calls it with the flag
    if wanted:
        typer.echo(f"mulligan {__version__}")
        raise typer.Exit


@app.callback()
def start(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Say which it is."),
    ] = False,
) -> None:
    """A labelled GitHub issue becomes a pull request, or reaches a person."""
    del version
