"""`mulligan doctor`: whether everything that the work needs is there."""

from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from mulligan.domain.diagnosis import TRY_AGAIN, Diagnosis, Level, failed
from mulligan.engine.doctor import CONFIGURATION, examine
from mulligan.errors import ConfigError
from mulligan.surfaces.cli.exits import Exit
from mulligan.surfaces.cli.layout import print_json, print_point
from mulligan.surfaces.cli.setup import environment, make_console, read_configuration, start_logs
from mulligan.wiring.examination import build_probes

MARKS = {
    Level.OK: ("✓", "green"),
    Level.NOTE: ("·", "cyan"),
    Level.WARNING: ("!", "yellow"),
    Level.FAULT: ("✗", "red"),
}


def doctor(config: Path | None, *, json: bool) -> Exit:
    """Look at everything, and say what is wrong with it and what mends it."""
    start_logs()
    found = list[Diagnosis]()
    console = None if json else make_console()
    for each in _findings(config):
        if console:
            _print(each, console, heading=not found or found[-1].area != each.area)
        found.append(each)
    if console:
        console.print(f"\n{_sum_up(found)}")
    else:
        print_json([_row(each) for each in found])
    return Exit.FAILED if any(each.level is Level.FAULT for each in found) else Exit.DONE


def _findings(config: Path | None) -> Iterator[Diagnosis]:
    try:
        operator = read_configuration(config)
        with build_probes(operator, environment()) as probes:
            yield from examine(operator, probes)
    except ConfigError as error:
        yield failed(CONFIGURATION, error, TRY_AGAIN)


def _print(found: Diagnosis, console: Console, *, heading: bool) -> None:
    if heading:
        console.print(f"[bold]{escape(found.area)}[/]")
    fix = [found.fix] if found.fix else []
    mark, style = MARKS[found.level]
    print_point(console, f"  {mark}", style, found.said, *fix)


def _sum_up(found: list[Diagnosis]) -> str:
    faults = sum(each.level is Level.FAULT for each in found)
    warnings = sum(each.level is Level.WARNING for each in found)
    counted = [
        f"{count} {word}{'' if count == 1 else 's'}"
        for count, word in ((faults, "fault"), (warnings, "warning"))
        if count
    ]
    if not counted:
        return "Nothing is in the way."
    return f"{' and '.join(counted)}{'' if faults else '; nothing stops the work'}."


def _row(found: Diagnosis) -> dict[str, str | None]:
    return {
        "area": found.area,
        "level": found.level,
        "said": found.said,
        "fix": found.fix or None,
    }
