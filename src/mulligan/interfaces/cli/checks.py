"""`mulligan debug digest` and `mulligan check`: results as an agent gets them."""

import os
import sys
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.text import Text

from mulligan.config.policy import Check, Policy
from mulligan.domain.errors import ConfigError, MisconfiguredError, UsageError
from mulligan.domain.result import CheckKind, CheckResult
from mulligan.implement.prompt.outcome_text import (
    check_title,
    pluralize,
    run_text,
    seconds_text,
    verdict,
)
from mulligan.interfaces.bootstrap.checkout_notes import checkout_notes
from mulligan.interfaces.bootstrap.local_checks import (
    MAX_CHARS,
    AttemptChecks,
    Digest,
    LocalChecks,
    LocalCommit,
    command_here,
    open_attempt_checks,
    open_local_checks,
    read_local_commit,
    read_local_directory,
)
from mulligan.interfaces.bootstrap.local_checks import digest as condense
from mulligan.interfaces.cli.exit_codes import Exit
from mulligan.interfaces.cli.live import step_shown
from mulligan.interfaces.cli.setup import (
    environment,
    make_console,
    start_logs,
    stop_on_signals,
)
from mulligan.interfaces.cli.terminal import (
    print_error,
    print_json,
    print_point,
    print_text,
)


def digest(command: str, exit_code: int | None, report: Path | None, *, json: bool) -> Exit:
    """Condense a log from standard input."""
    if sys.stdin.isatty():
        raise UsageError("No log on standard input. Give one: mulligan debug digest < build.log")
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


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """The options of `mulligan check`: `here` is without a sandbox, in the directory as it is."""

    directory: Path
    config: Path | None = None
    policy: Path | None = None
    here: bool = False
    setup: bool = False
    json: bool = False


NO_CHECKS = (
    "The policy has no checks, so Mulligan would publish every change without verification. Add the"
    " repository's test commands under `checks`."
)

NO_TEST = "No check has `kind: test`, so no test verifies a change. Add the command of the tests."

SETUP_ALWAYS = (
    "`--setup` has no effect without `--here`: `mulligan check` always runs the setup commands."
)

MUST_NOT_CHANGE = (
    "A check must not change the files that it judges. Write the checking form of its command,"
    " such as `ruff check --no-fix` or `prettier --check`."
)

MAX_NAMED = 5


def check(options: CheckOptions) -> Exit:
    """Run every check of a policy as an attempt would, or in the directory as it is."""
    start_logs()
    stop_on_signals(running="the running command")
    report = Report(None if options.json else make_console())
    open_place = _checks_here if options.here else _attempt_checks
    with open_place(options, report) as place:
        ready = _set_up(place, report) if place.runs_set_up else place.checks
        missing = [error for each in place.policy.checks if (error := _run(each, ready, report))]
        for line in _sum_up(place, report.results, len(missing)):
            report.say(line)
    if report.changing:
        report.say(MUST_NOT_CHANGE)
    if options.json:
        print_json([result.model_dump(mode="json") for result in report.results])
    if missing:
        if place.policy.setup.run and not place.runs_set_up:
            command = command_here(options.directory.resolve(), "--setup")
            missing.append(f"The setup commands did not run. To run them here first: `{command}`.")
        raise ConfigError("\n".join(missing))
    return Exit.FAILED if any(result.fails for result in report.results) else Exit.DONE


@dataclass(frozen=True, slots=True)
class Report:
    """Prints for people; without a console, the results are printed as JSON at the end."""

    console: Console | None
    results: list[CheckResult] = field(default_factory=list[CheckResult])
    changing: list[str] = field(default_factory=list[str])

    def say(self, text: str) -> None:
        """Print a sentence; beside JSON, nothing."""
        if self.console:
            print_text(self.console, text)

    def warn(self, text: str) -> None:
        """Print a sentence indented below a check; beside JSON, to standard error."""
        if self.console:
            print_point(self.console, Text(" "), text)
        else:
            print_error(text)

    def done(self, mark: Text, text: str, took: str) -> None:
        """Print a line with the time it took."""
        if self.console:
            self.console.print(Text.assemble(mark, text, Text(f"  {took}", "dim")))


@dataclass(frozen=True, slots=True)
class CheckPlace:
    """Where the checks of a policy run, and whether the setup commands run first."""

    checks: LocalChecks
    policy: Policy
    runs_set_up: bool


@contextmanager
def _checks_here(options: CheckOptions, report: Report) -> Generator[CheckPlace]:
    given = (options.directory.resolve(), options.config, options.policy)
    place = read_local_directory(*given, environment())
    if place.settings:
        report.say(_name_settings(place.settings))
    with open_local_checks(place.path, environment(), place.operator) as checks:
        yield CheckPlace(checks, place.policy, options.setup and bool(place.policy.setup.run))


@contextmanager
def _attempt_checks(options: CheckOptions, report: Report) -> Generator[CheckPlace]:
    if options.setup:
        print_error(SETUP_ALWAYS)
    given = (options.directory.resolve(), options.config, options.policy)
    commit = read_local_commit(*given, environment())
    for line in _introduce(commit):
        report.say(line)
    with open_attempt_checks(commit, environment()) as opened:
        with step_shown(report.console, "image", opened.logs):
            checks = opened.in_image()
        if image := checks.tree.image:
            report.say(f"In the image {image.name}.")
        yield CheckPlace(checks, commit.policy, bool(commit.policy.setup.run))


def _introduce(commit: LocalCommit) -> Iterator[str]:
    """Say which commit is checked, where, and what is not part of it."""
    where = "in the sandbox" if commit.is_confined else "without a sandbox (`sandbox: off`)"
    yield (
        f"From the last commit on {commit.setup.branch} of {commit.setup.clone.name}"
        f" ({commit.sha[:8]}), {where}, as in an attempt."
    )
    if commit.settings:
        yield _name_settings(commit.settings)
    if not commit.is_policy_committed:
        yield "With the policy of your working tree, which is not committed yet."
    if commit.uncommitted:
        files = pluralize(commit.uncommitted, "uncommitted file")
        is_one = commit.uncommitted == 1
        yield (
            f"{files} {'is' if is_one else 'are'} not part of it. To check"
            f" {'it' if is_one else 'them'} too: `{command_here(commit.setup.clone)}`."
        )
    yield from checkout_notes(commit.setup.clone, environment(), commit.policy.checkout)


def _name_settings(file: Path) -> str:
    return f"With the settings of {os.path.relpath(file)}."


def _set_up(place: CheckPlace, report: Report) -> LocalChecks:
    lines = place.policy.setup.run
    began = time.monotonic()
    with step_shown(report.console, "setup commands", place.checks.logs):
        ready, ran = place.checks.set_up(lines)
    commands = pluralize(len(lines), "setup command")
    whose = "its" if len(lines) == 1 else "their"
    ended = "finished." if ran else f"did not run again: {whose} result of today was used."
    took = seconds_text(round((time.monotonic() - began) * 1000))
    report.done(Text("✓ ", "green"), f"{commands} {ended}", took)
    return ready


def _run(wanted: Check, place: LocalChecks, report: Report) -> str:
    """Run and show a check; return what is missing if it cannot run, else an empty string."""
    try:
        with step_shown(report.console, wanted.name, place.logs):
            result, changed = place.run_and_compare(wanted)
    except MisconfiguredError as error:
        return str(error)
    report.results.append(result)
    _show(result, report)
    if changed:
        files = pluralize(len(changed), "tracked file")
        report.warn(f"{check_title(result)} changed {files}: {_named(changed)}.")
        report.changing.append(result.name)
    return ""


def _named(paths: Sequence[str]) -> str:
    more = len(paths) - MAX_NAMED
    return ", ".join(paths[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


def _show(result: CheckResult, report: Report) -> None:
    colour = "green" if result.passed else "red" if result.required else "yellow"
    mark = Text("✓ " if result.passed else "✗ ", colour)
    optional = "" if result.passed or result.required else " It is not required."
    report.done(mark, f"{verdict(result)}{optional}", run_text(result))
    if report.console and not result.passed:
        print_point(report.console, Text(" "), result.long_digest or result.digest)


def _sum_up(place: CheckPlace, results: Sequence[CheckResult], missing: int) -> Iterator[str]:
    """Say what the results mean for attempts."""
    checks = place.policy.checks
    if not checks:
        yield NO_CHECKS
        return
    failed = [result for result in results if result.fails]
    if missing:
        ran = f"; {len(results)} did" if results else ""
        yield f"{pluralize(missing, 'check')} could not run{ran}."
    if failed and isinstance(place.checks, AttemptChecks):
        yield from _without_change(failed, place.checks, len(checks))
    elif failed:
        yield f"{len(failed)} of {pluralize(len(checks), 'check')} would fail an attempt."
    elif not missing:
        yield f"{pluralize(len(results), 'check')}, and none would fail an attempt."
    if all(each.kind is not CheckKind.TEST for each in checks):
        yield NO_TEST


def _without_change(
    failed: Sequence[CheckResult], place: AttemptChecks, count: int
) -> Iterator[str]:
    """Say what a failure on a commit without any change means (BASELINE-1, BASELINE-2)."""
    counted = [place.repeated(result) for result in failed]
    old = sum(result.preexisting for result in counted)
    broken = sum(result.is_broken for result in counted)
    new = sum(result.fails for result in counted)
    of_all = f"of {pluralize(count, 'check')}"
    if old:
        yield (
            f"{old} {of_all} {'fails' if old == 1 else 'fail'} on this commit, without any change."
            " In attempts, Mulligan reports these failures as pre-existing and ignores them. A"
            " check that always fails verifies nothing: fix it, or remove it."
        )
    if broken:
        yield (
            f"{broken} {of_all} cannot run on this commit: it does not start, or it times out."
            " Every attempt would end with a request for human review. Fix this first."
        )
    if new:
        why = (
            "it fails without any change, and its output does not identify each failure"
            if place.commit.policy.has_baseline
            else "it fails without any change, and `baseline` is off"
        )
        yield f"{new} {of_all} would fail every attempt: {why}. Fix this first."
