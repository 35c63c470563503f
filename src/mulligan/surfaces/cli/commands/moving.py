"""The commands under `mulligan state`."""

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
