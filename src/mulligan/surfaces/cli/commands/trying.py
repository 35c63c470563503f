"""The commands that need no GitHub: checks, digests, the demo and the simulator."""

from pathlib import Path
from typing import Annotated

import typer

from mulligan.surfaces.cli.application import Json, in_one_sentence
from mulligan.surfaces.cli.exits import Exit


@in_one_sentence
def check_here(
    *,
    policy: Annotated[
        Path | None, typer.Option(help="The policy file; default: .github/mulligan.yml here.")
    ] = None,
    json: Json = False,
) -> Exit:
    """Run a repository's checks here; show what an agent would be told."""
    from mulligan.surfaces.cli import verification

    return verification.check(policy, json=json)


@in_one_sentence
def digest(
    *,
    command: Annotated[str, typer.Option(help="What printed the log, such as 'pytest -q'.")] = "",
    exit_code: Annotated[int | None, typer.Option(help="What it exited with.")] = None,
    report: Annotated[
        Path | None, typer.Option(help="The structured report that it wrote, such as JUnit XML.")
    ] = None,
    json: Json = False,
) -> Exit:
    """Condense a log from standard input to what an agent would be told of it."""
    from mulligan.surfaces.cli import verification

    return verification.digest(command, exit_code, report, json=json)


@in_one_sentence
def demo(
    *,
    directory: Annotated[
        Path | None, typer.Option(help="Where to put it; default: a new temporary directory.")
    ] = None,
) -> Exit:
    """Watch the life of six issues on this machine: no account, no network."""
    from mulligan.surfaces.cli import demo as module

    return module.demo(directory)


@in_one_sentence
def simulate(
    *,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 4901,
    directory: Annotated[
        Path | None, typer.Option(help="Where to put it; default: a new temporary directory.")
    ] = None,
) -> Exit:
    """Run a GitHub of your own on this machine, with the demo's repository."""
    from mulligan.surfaces.cli import demo as module

    return module.simulate(port, directory)
