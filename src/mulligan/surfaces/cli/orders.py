"""`mulligan retry`, `fix`, `skip`, `abort`, `pause`, `resume`: commands by the operator."""

from pathlib import Path

from rich.markup import escape

from mulligan.domain.command import Verb
from mulligan.domain.issue import IssueRef
from mulligan.domain.people import CommandReceived
from mulligan.errors import UsageError
from mulligan.surfaces.cli.exits import Exit
from mulligan.surfaces.cli.layout import print_json
from mulligan.surfaces.cli.setup import (
    environment,
    make_console,
    read_configuration,
    served,
)
from mulligan.text.commands import command
from mulligan.wiring.clock import SystemClock
from mulligan.wiring.records import at_work, open_ledger
from mulligan.wiring.redaction import redactor_of


def give(config: Path | None, verb: Verb, issue: str, text: str, *, json: bool) -> Exit:
    """Record a command; whoever works with this state carries it out, now or when it starts."""
    operator = read_configuration(config)
    ref = served(IssueRef.parse(issue), operator)
    typed = command(verb, text)
    if typed.verb is Verb.MISTYPED:
        raise UsageError(typed.text)
    now = SystemClock().now()
    received = CommandReceived(
        key=f"command:{now.isoformat()}", command=typed.verb, text=typed.text, at=now
    )
    with open_ledger(operator, redactor_of(operator, environment())) as ledger:
        ledger.append(ref, received)
    worker = at_work(operator)
    if json:
        row = {"issue": str(ref), "command": typed.verb, "key": received.key, "at_work": worker}
        print_json(row)
        return Exit.DONE
    when = f"{worker} carries it out within one poll." if worker else NOBODY
    make_console().print(escape(f"{ref}: {typed.verb} is recorded; {when}"))
    return Exit.DONE


NOBODY = "`mulligan run` or `mulligan once` carries it out as soon as one is started."
