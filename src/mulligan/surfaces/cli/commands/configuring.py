"""The commands under `mulligan config`."""

from typing import Annotated, Literal

import typer

from mulligan.surfaces.cli.application import Config, Json, PolicyFile, Repository, in_one_sentence
from mulligan.surfaces.cli.exits import Exit


@in_one_sentence
def check(
    *,
    config: Config = None,
    policy: PolicyFile = None,
    repository: Repository = None,
    json: Json = False,
) -> Exit:
    """Say that the configuration holds, or name every mistake with its line."""
    from mulligan.surfaces.cli import config as module

    return module.check(config, policy, repository, json=json)


@in_one_sentence
def show(
    *,
    config: Config = None,
    policy: PolicyFile = None,
    repository: Repository = None,
    json: Json = False,
) -> Exit:
    """Print what is in force, with every default; what comes from the environment is hidden."""
    from mulligan.surfaces.cli import config as module

    return module.show(config, policy, repository, json=json)


@in_one_sentence
def schema(
    file: Annotated[
        Literal["operator", "policy"],
        typer.Argument(help="mulligan.yml, or a repository's .github/mulligan.yml."),
    ] = "operator",
) -> Exit:
    """Print the JSON Schema of a configuration file, for editors."""
    from mulligan.surfaces.cli import config as module

    return module.schema(file)
