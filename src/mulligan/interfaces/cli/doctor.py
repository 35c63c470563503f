"""`mulligan doctor`: check that everything Mulligan needs is there."""

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import Never

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from mulligan.config.document import split_mistakes
from mulligan.daemon.doctor import Probes, diagnose
from mulligan.domain.errors import ConfigError
from mulligan.domain.host import Diagnosis, Level, fault, fine
from mulligan.implement.prompt.outcome_text import pluralize
from mulligan.interfaces.bootstrap.doctor import build_probes, look_around, try_agents
from mulligan.interfaces.cli.exit_codes import Exit
from mulligan.interfaces.cli.setup import (
    configuration_path,
    describe_configuration,
    environment,
    make_console,
    read_configuration,
    start_logs,
)
from mulligan.interfaces.cli.terminal import print_json, print_point

CONFIGURATION = "configuration"
TRIES = (
    "Each agent runs twice in a temporary repository, with short tasks. This costs a little money"
    " and counts towards the budget of the day."
)
MARKS = {
    Level.OK: ("✓", "green"),
    Level.NOTE: ("·", "cyan"),
    Level.WARNING: ("!", "yellow"),
    Level.FAULT: ("✗", "red"),
}


def doctor(config: Path | None, *, json: bool, agent: bool = False) -> Exit:
    """Check everything, or try the agents; print each problem with its fix."""
    start_logs()
    found = list[Diagnosis]()
    console = None if json else make_console()
    if console and agent:
        console.print(TRIES)
    with console.status("Checking …") if console else nullcontext():
        for each in _findings(config, agent=agent):
            if console:
                heading = not found or found[-1].area != each.area
                _print(each, console, heading=heading)
            found.append(each)
    if console:
        console.print(f"\n{_sum_up(found)}")
    else:
        print_json([{**asdict(each), "fix": each.fix or None} for each in found])
    return Exit.FAILED if any(each.level is Level.FAULT for each in found) else Exit.DONE


def _findings(config: Path | None, *, agent: bool) -> Iterator[Diagnosis]:
    refused: ConfigError | None = None
    try:
        try:
            operator = read_configuration(config)
        except ConfigError as error:
            # Only the token's variable is missing, if this can be read.
            operator, refused = read_configuration(config, needs_token=False), error
        path = configuration_path(config).absolute()
        yield fine(CONFIGURATION, describe_configuration(path, operator))
        if agent:
            yield from try_agents(operator, environment())
            return
        with build_probes(operator, environment()) as probes:
            yield from diagnose(operator, _without_account(probes, refused) if refused else probes)
    except ConfigError as error:
        for mistake in split_mistakes(error):
            yield fault(
                CONFIGURATION,
                str(mistake),
                _fix_of(config),
            )
        yield from look_around(environment())


def _fix_of(config: Path | None) -> str:
    """Return what to do about a configuration that cannot be read."""
    if not configuration_path(config).is_file():
        return "Write or name a configuration first; then run this command again."
    return "Fix the file; docs/configuration.md describes every key."


def _without_account(probes: Probes, refused: ConfigError) -> Probes:
    """Return the probes for a token that is missing: GitHub is not asked, but all else is found."""

    def refuse() -> Never:
        raise refused

    return replace(probes, account=refuse)


def _print(found: Diagnosis, console: Console, *, heading: bool) -> None:
    if heading:
        console.print(f"[bold]{escape(found.area)}[/]")
    mark, style = MARKS[found.level]
    print_point(console, Text(f"  {mark}", style), found.message)
    if found.fix:
        print_point(console, Text("    →", style), found.fix)


def _sum_up(found: list[Diagnosis]) -> str:
    faults = sum(each.level is Level.FAULT for each in found)
    warnings = sum(each.level is Level.WARNING for each in found)
    counted = [
        pluralize(count, word)
        for count, word in ((faults, "fault"), (warnings, "warning"))
        if count
    ]
    if not counted:
        return "No problems found."
    return f"{' and '.join(counted)}{'' if faults else '; nothing stops the work'}."
