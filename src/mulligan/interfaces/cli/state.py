"""`mulligan state`: move counts and history between ledgers, and the GitHub Action."""

from collections.abc import Callable
from pathlib import Path

from rich.markup import escape

from mulligan.config.operator import Operator
from mulligan.domain.errors import UsageError
from mulligan.implement.prompt.outcome_text import pluralize
from mulligan.interfaces.bootstrap.action_state import pull_state, push_state
from mulligan.interfaces.bootstrap.container import Environment
from mulligan.interfaces.bootstrap.stores import at_work, copy_state, lock_state
from mulligan.interfaces.cli.exit_codes import Exit
from mulligan.interfaces.cli.setup import environment, make_console, read_configuration, start_logs


def pull(config: Path | None) -> Exit:
    """Import the state refs of all repositories into the ledger."""
    return _move(config, pull_state, "state pull", "taken over")


def push(config: Path | None) -> Exit:
    """Export the ledger to the state refs of all repositories."""
    return _move(config, push_state, "state push", "handed over")


def copy(config: Path | None, source: Path) -> Exit:
    """Import another ledger, from the configuration `source`."""
    operator, other = (read_configuration(each, needs_token=False) for each in (config, source))
    start_logs()
    return _told(copy_state(operator, other), "taken over")


def _move(
    config: Path | None,
    move: Callable[[Operator, Environment], list[str]],
    what: str,
    done: str,
) -> Exit:
    operator = read_configuration(config)
    start_logs()
    if worker := at_work(operator):
        message = f"{worker} is running. Stop it, then repeat this command."
        raise UsageError(message)
    with lock_state(operator, what):
        moved = move(operator, environment())
    return _told(moved, done)


def _told(moved: list[str], done: str) -> Exit:
    console = make_console()
    for issue in moved:
        console.print(f"[cyan]{escape(issue)}[/]  {done}")
    console.print(f"{pluralize(len(moved), 'issue')} {done}.")
    return Exit.DONE
