"""`mulligan retry`, `fix`, `skip`, `abort`, `pause`, `resume`: commands by the operator."""

from pathlib import Path

from rich.markup import escape

from mulligan.config.operator import Operator
from mulligan.domain.command import Verb
from mulligan.domain.errors import GoneError, UsageError, WorldError
from mulligan.domain.events import CommandReceived
from mulligan.domain.issue import IssueRef
from mulligan.interfaces.bootstrap.clock_and_backoff import SystemClock
from mulligan.interfaces.bootstrap.container import QUICK_RETRIES, open_github
from mulligan.interfaces.bootstrap.redaction import redactor_of
from mulligan.interfaces.bootstrap.stores import at_work, open_ledger
from mulligan.interfaces.cli.exit_codes import Exit
from mulligan.interfaces.cli.setup import (
    as_configured,
    environment,
    make_console,
    read_configuration,
)
from mulligan.interfaces.cli.terminal import print_json, typed
from mulligan.text.commands import command


def record_command(config: Path | None, verb: Verb, issue: str, text: str, *, json: bool) -> Exit:
    """Record a command; the worker on this state executes it, now or when it starts."""
    operator = read_configuration(config)
    ref = as_configured(IssueRef.parse(issue), operator)
    order = command(verb, text)
    if order.verb is Verb.MISTYPED:
        raise UsageError(order.text)
    with open_ledger(operator) as ledger:
        _ensure_issue_exists(
            ref, operator, is_known=ref in {each.issue for each in ledger.statuses()}
        )
    now = SystemClock().now()
    received = CommandReceived(
        key=f"command:{now.isoformat()}", command=order.verb, text=order.text, at=now
    )
    with open_ledger(operator, redactor_of(operator, environment())) as ledger:
        ledger.append(ref, received)
    worker = at_work(operator)
    if json:
        row = {"issue": str(ref), "command": order.verb, "key": received.key, "at_work": worker}
        print_json(row)
        return Exit.DONE
    when = f"{worker} carries it out within one poll." if worker else _no_worker_note(config)
    make_console().print(escape(f"{ref}: recorded `{order.verb}`. {when}"), soft_wrap=True)
    return Exit.DONE


def _ensure_issue_exists(ref: IssueRef, operator: Operator, *, is_known: bool) -> None:
    """Check that the issue exists on GitHub; a known one works without GitHub, too."""
    with open_github(operator, redactor_of(operator, environment()), QUICK_RETRIES) as github:
        try:
            found = github.tracker.read(ref)
        except GoneError as error:
            message = (
                f"Issue {ref} not found on GitHub. Check its number; it may have"
                " been deleted or transferred."
            )
            raise GoneError(message) from error
        except WorldError:
            if is_known:
                return
            raise
    if found.is_pull_request:
        message = f"{ref} is a pull request. Give the number of its issue."
        raise UsageError(message)


def _no_worker_note(config: Path | None) -> str:
    return f"Mulligan is not running. To carry the command out: {typed('once', config)}"
