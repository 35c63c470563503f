"""`mulligan debug state`: back up, check, restore and move the ledger."""

from collections.abc import Callable
from pathlib import Path

from rich.markup import escape

from mulligan.config.operator import Operator
from mulligan.domain.errors import UsageError
from mulligan.implement.prompt.outcome_text import pluralize
from mulligan.interfaces.bootstrap.action_state import pull_state, push_state
from mulligan.interfaces.bootstrap.container import QUICK_RETRIES, Environment, open_github
from mulligan.interfaces.bootstrap.redaction import redactor_of
from mulligan.interfaces.bootstrap.stores import (
    LedgerCheck,
    at_work,
    back_up_state,
    check_state,
    copy_state,
    lock_state,
    restore_state,
)
from mulligan.interfaces.cli.exit_codes import Exit
from mulligan.interfaces.cli.setup import environment, make_console, read_configuration, start_logs
from mulligan.interfaces.cli.terminal import print_error


def pull(config: Path | None) -> Exit:
    """Import the state refs of all repositories into the ledger."""
    return _move(config, pull_state, "state pull", "taken over")


def push(config: Path | None) -> Exit:
    """Export the ledger to the state refs of all repositories."""
    return _move(config, push_state, "state push", "handed over")


def copy(config: Path | None, source: Path) -> Exit:
    """Import another ledger, from the configuration `source`."""
    other, operator = (read_configuration(each, needs_token=False) for each in (source, config))
    start_logs()
    return _told(copy_state(operator, other), "taken over")


def backup(config: Path | None, target: Path) -> Exit:
    """Write a backup of the ledger to a new file."""
    operator = read_configuration(config, needs_token=False)
    start_logs()
    back_up_state(operator, target)
    make_console().print(f"The ledger is backed up to {escape(str(target))}.", soft_wrap=True)
    return Exit.DONE


def check(config: Path | None, file: Path | None) -> Exit:
    """Check the ledger, or a backup, and print each fault as an error."""
    operator = read_configuration(config, needs_token=False)
    start_logs()
    found = check_state(operator, file)
    for fault in found.faults:
        print_error(fault)
    if found.faults:
        print_error("Restore a backup: mulligan debug state restore FILE")
        return Exit.FAILED
    old = f"; {pluralize(found.unsummed, 'old event')} had no checksum" if found.unsummed else ""
    make_console().print(f"Sound: {_counts(found)}{old}.")
    return Exit.DONE


def restore(config: Path | None, file: Path) -> Exit:
    """Replace the ledger by a backup, and say what Mulligan will read from GitHub."""
    operator = read_configuration(config)
    start_logs()
    with open_github(
        operator, environment(), redactor_of(operator, environment()), QUICK_RETRIES
    ) as github:
        done = restore_state(operator, file, github.tracker.list_updated)
    console = make_console()
    console.print(f"Restored {_counts(done.found)} from {escape(str(file))}.", soft_wrap=True)
    for ref in done.forgotten:
        console.print(f"[cyan]{ref}[/]  changed since; the next run restores it from GitHub")
    if done.aside:
        console.print(f"The earlier ledger is kept as {escape(str(done.aside))}.", soft_wrap=True)
    return Exit.DONE


def _counts(found: LedgerCheck) -> str:
    return f"{pluralize(found.issues, 'issue')}, {pluralize(found.events, 'event')}"


def _move(
    config: Path | None,
    move: Callable[[Operator, Environment], list[str]],
    what: str,
    done: str,
) -> Exit:
    operator = read_configuration(config)
    start_logs()
    if worker := at_work(operator):
        raise UsageError(f"{worker} is running. Stop it, then repeat this command.")
    with lock_state(operator, what):
        moved = move(operator, environment())
    return _told(moved, done)


def _told(moved: list[str], done: str) -> Exit:
    console = make_console()
    for issue in moved:
        console.print(f"[cyan]{escape(issue)}[/]  {done}")
    console.print(f"{pluralize(len(moved), 'issue')} {done}.")
    return Exit.DONE
