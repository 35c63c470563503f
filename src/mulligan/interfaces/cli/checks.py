"""`mulligan digest` and `mulligan check`: show the results of checks as an agent gets them."""

import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from mulligan.config.policy import Check
from mulligan.domain.errors import ConfigError, MisconfiguredError, UsageError
from mulligan.domain.result import CheckResult
from mulligan.implement.prompt.outcome_text import pluralize, verdict
from mulligan.interfaces.bootstrap.local_checks import (
    MAX_CHARS,
    Digest,
    LocalChecks,
    open_local_checks,
    read_policy,
)
from mulligan.interfaces.bootstrap.local_checks import digest as condense
from mulligan.interfaces.cli.exit_codes import Exit
from mulligan.interfaces.cli.live import step_shown
from mulligan.interfaces.cli.setup import environment, make_console, start_logs
from mulligan.interfaces.cli.terminal import print_json, print_point


def digest(command: str, exit_code: int | None, report: Path | None, *, json: bool) -> Exit:
    """Condense a log from standard input."""
    if sys.stdin.isatty():
        raise UsageError("No log on standard input. Give one: mulligan digest < build.log")
    found = condense(
        sys.stdin.buffer,
        command=command,
        exit_code=exit_code,
        max_chars=MAX_CHARS,
        report=_content(report),
    )
    if json:
        print_json(_row(found))
    else:
        sys.stdout.write(f"{found.text}\n")
    return Exit.DONE


def _content(report: Path | None) -> bytes | None:
    try:
        return report.read_bytes() if report else None
    except OSError as error:
        raise UsageError(
            f"{report} could not be read ({error.strerror}). Name a readable"
            " report with --report FILE."
        ) from error


def _row(found: Digest) -> dict[str, object]:
    return {
        "passed": found.passed,
        "count": found.count,
        "fingerprint": found.fingerprint,
        "findings": [each.model_dump(mode="json") for each in found.findings],
        "text": found.text,
    }


NO_CHECKS = (
    "The policy has no checks, so Mulligan would publish every change without verification. Add the"
    " repository's test commands under `checks`."
)

NOT_SET_UP = "The setup commands did not run. To run them here first: `mulligan check --setup`."


def check(policy: Path | None, *, setup: bool, json: bool) -> Exit:
    """Run every check of a policy in the current directory, optionally after its setup commands."""
    start_logs()
    directory, console = Path.cwd(), None if json else make_console()
    chosen = read_policy(policy, directory)
    results, missing = list[CheckResult](), list[str]()
    with open_local_checks(directory, environment()) as place:
        lines = chosen.setup.run
        ready = _set_up(lines, place, console) if setup and lines else place
        for each in chosen.checks:
            try:
                results.append(_run(each, ready, console))
            except MisconfiguredError as error:
                missing.append(str(error))
    if console:
        console.print(_sum_up(results, len(missing)) if chosen.checks else NO_CHECKS)
    else:
        print_json([result.model_dump(mode="json") for result in results])
    if missing:
        raise ConfigError("\n".join([*missing, *([NOT_SET_UP] if lines and not setup else [])]))
    return Exit.FAILED if any(result.fails for result in results) else Exit.DONE


def _set_up(lines: Sequence[str], place: LocalChecks, console: Console | None) -> LocalChecks:
    with step_shown(console, "setup commands", place.private):
        ready = place.set_up(lines)
    if console:
        ran = pluralize(len(lines), "setup command")
        console.print(Text.assemble(("✓ ", "green"), f"{ran} finished."))
    return ready


def _run(wanted: Check, place: LocalChecks, console: Console | None) -> CheckResult:
    with step_shown(console, wanted.name, place.private):
        result = place.run(wanted)
    if console:
        _print(result, console)
    return result


def _print(result: CheckResult, console: Console) -> None:
    colour = "green" if result.passed else "red" if result.required else "yellow"
    mark = Text("✓ " if result.passed else "✗ ", colour)
    asked = "" if result.passed or result.required else " It is not required."
    took = Text(f"  {result.duration_ms / 1000:.1f} s", "dim")
    console.print(Text.assemble(mark, verdict(result), asked, took))
    if not result.passed:
        print_point(console, Text(" "), result.digest)


def _sum_up(results: list[CheckResult], missing: int) -> str:
    if missing:
        ran = f"; {len(results)} did" if results else ""
        return f"{pluralize(missing, 'check')} could not run{ran}."
    failed = [result for result in results if result.fails]
    if failed:
        return f"{len(failed)} of {pluralize(len(results), 'check')} would fail an attempt."
    return f"{pluralize(len(results), 'check')}, and none would fail an attempt."
