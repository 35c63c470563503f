"""`mulligan state`: move counts and history between this machine and the GitHub Action."""

from collections.abc import Callable
from pathlib import Path

from rich.markup import escape

from mulligan.config.operator import Operator
from mulligan.retry.words import counted
from mulligan.surfaces.cli.exits import Exit
from mulligan.surfaces.cli.setup import environment, make_console, read_configuration, start_logs
from mulligan.wiring.bench import Environment
from mulligan.wiring.records import lock_state
from mulligan.wiring.shared import pull_state, push_state


def pull(config: Path | None) -> Exit:
    """Read the refs of all repositories into the ledger."""
    return _move(config, pull_state, "state pull", "taken over")


def push(config: Path | None) -> Exit:
    """Write the ledger to the refs of all repositories."""
    return _move(config, push_state, "state push", "handed over")


def _move(
    config: Path | None,
    move: Callable[[Operator, Environment], list[str]],
    what: str,
    done: str,
) -> Exit:
    operator, console = read_configuration(config), make_console()
    start_logs()
    with lock_state(operator, what):
        moved = move(operator, environment())
    for issue in moved:
        console.print(f"[cyan]{escape(issue)}[/]  {done}")
    console.print(f"{counted(len(moved), 'issue')} {done}.")
    return Exit.DONE
