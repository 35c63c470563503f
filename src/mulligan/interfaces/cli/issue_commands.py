"""`mulligan retry`, `fix`, `skip`, `abort`, `pause`, `resume`: commands by the operator."""

from pathlib import Path

from rich.markup import escape

from mulligan.config.operator import Operator
from mulligan.domain.command import Verb
from mulligan.domain.errors import GoneError, UnconfirmedError, UsageError, WorldError
from mulligan.domain.events import CommandReceived
from mulligan.domain.hold import EVERYTHING
from mulligan.domain.issue import IssueRef
from mulligan.interfaces.bootstrap.clock_and_backoff import SystemClock
from mulligan.interfaces.bootstrap.container import QUICK_RETRIES, open_github
from mulligan.interfaces.bootstrap.redaction import redactor_of
from mulligan.interfaces.bootstrap.stores import at_work, open_ledger, set_pause
from mulligan.interfaces.cli.exit_codes import Exit
from mulligan.interfaces.cli.issue_argument import issue_of, not_found
from mulligan.interfaces.cli.setup import (
    as_configured,
    environment,
    make_console,
    read_configuration,
    repository_as_configured,
)
from mulligan.interfaces.cli.terminal import print_json, typed, with_program_name
from mulligan.interfaces.json_output import pause_row
from mulligan.text.commands import command


def pause(config: Path | None, what: str, *, json: bool) -> Exit:
    """Pause everything, a repository or an issue."""
    if "#" in what:
        return record_command(config, Verb.PAUSE, what, "", json=json)
    return _set_pause(config, what, paused=True, json=json)


def resume(config: Path | None, what: str, *, json: bool) -> Exit:
    """Resume everything, a repository or an issue."""
    if "#" in what:
        return record_command(config, Verb.RESUME, what, "", json=json)
    return _set_pause(config, what, paused=False, json=json)


def _set_pause(config: Path | None, what: str, *, paused: bool, json: bool) -> Exit:
    operator = read_configuration(config, needs_token=False)
    repository = repository_as_configured(what, operator) if what else EVERYTHING
    left = set_pause(operator, repository, paused=paused)
    if json:
        print_json([pause_row(each) for each in left])
        return Exit.DONE
    console = make_console()
    for each in left:
        console.print(escape(with_program_name(each.sentence)), soft_wrap=True)
    if paused:
        console.print("No new attempt starts until you resume. Running attempts continue.")
    elif not left:
        console.print("Nothing is paused. Single issues keep their own pauses.")
    return Exit.DONE


def record_command(config: Path | None, verb: Verb, issue: str, text: str, *, json: bool) -> Exit:
    """Record a command; the worker on this state executes it, now or when it starts."""
    operator = read_configuration(config)
    ref = as_configured(issue_of(issue, operator), operator)
    order = command(verb, text)
    if order.verb is Verb.MISTYPED:
        raise UsageError(order.text)
    ensure_issue_exists(ref, operator, is_known=is_in_ledger(ref, operator))
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
    when = f"{worker} carries it out within one poll."
    if not worker:
        when = f"Mulligan is not running. To carry the command out: {typed('once', config)}"
    make_console().print(escape(f"{ref}: recorded `{order.verb}`. {when}"), soft_wrap=True)
    return Exit.DONE


def is_in_ledger(ref: IssueRef, operator: Operator) -> bool:
    """Return whether the ledger has the issue."""
    with open_ledger(operator) as ledger:
        return ref in {each.issue for each in ledger.statuses()}


def ensure_issue_exists(ref: IssueRef, operator: Operator, *, is_known: bool) -> None:
    """Check that the issue exists on GitHub; a known one works without GitHub, too."""
    with open_github(
        operator, environment(), redactor_of(operator, environment()), QUICK_RETRIES
    ) as github:
        try:
            found = github.tracker.read(ref)
        except (GoneError, UnconfirmedError) as error:
            if is_known and isinstance(error, UnconfirmedError):
                return
            raise not_found(ref) from error
        except WorldError:
            if is_known:
                return
            raise
    if found.is_pull_request:
        raise UsageError(f"{ref} is a pull request. Give the number of its issue.")
