"""`mulligan action`: one pass in a GitHub workflow, reported to the runner."""

import secrets
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from mulligan.config.operator import Operator
from mulligan.daemon.once import PassLimits, PassResult, run_once
from mulligan.daemon.recovery import write_deferred_comments
from mulligan.daemon.worker import Worker
from mulligan.domain.errors import ConfigError, MulliganError
from mulligan.domain.events import Event
from mulligan.domain.issue import IssueRef
from mulligan.domain.status import IssueStatus
from mulligan.implement.issue_snapshot import attempts_left
from mulligan.implement.ports import ReadContext
from mulligan.interfaces.action.inputs import (
    Inputs,
    Runner,
    bootstrap_operator,
    inputs_of,
    operator_of,
    runner_of,
)
from mulligan.interfaces.action.report import (
    IssueReport,
    annotations,
    cleaned,
    outputs,
    summary,
    with_commands_stopped,
)
from mulligan.interfaces.bootstrap.action_state import build_shared, read_base_file
from mulligan.interfaces.bootstrap.sandbox import warn_of_root
from mulligan.interfaces.bootstrap.stores import publishing_redactor_of
from mulligan.interfaces.cli.exit_codes import Exit
from mulligan.interfaces.cli.setup import environment, make_console, start_logs, stop_on_signals
from mulligan.interfaces.cli.terminal import OUTPUT_FILTER
from mulligan.interfaces.cli.work import ProgressLog
from mulligan.sandbox.cancellation import stopping


def action() -> Exit:
    """Make one pass. The event only starts it; all facts are read from GitHub."""
    variables = {name: value for name, value in environment().items() if value}
    runner = runner_of(variables, secrets.token_hex(4))
    inputs = inputs_of(variables, runner)
    start_logs()
    warn_of_root()
    stop_on_signals()
    with _commands_stopped():
        try:
            reports, done = _work(inputs, runner, variables)
        except MulliganError as error:
            reports, done = [], PassResult(problems=(str(error),))
            code = Exit.USAGE if isinstance(error, ConfigError) else Exit.FAILED
        else:
            code = Exit.FAILED if done.problems else Exit.DONE
    _write_report(reports, done, runner)
    return Exit.INTERRUPTED if stopping() else code


@contextmanager
def _commands_stopped() -> Generator[None]:
    """Keep the runner from executing commands in printed untrusted text (SECURITY-4)."""
    before, after = with_commands_stopped(secrets.token_hex(16))
    _say(before)
    try:
        yield
    finally:
        sys.stderr.flush()
        _say(after)


def _work(
    inputs: Inputs, runner: Runner, variables: Mapping[str, str]
) -> tuple[list[IssueReport], PassResult]:
    operator = _operator(inputs, runner, variables)
    OUTPUT_FILTER.redactor = publishing_redactor_of(operator, variables)
    touched, progress = dict[IssueRef, None](), ProgressLog(make_console())

    def on_event(status: IssueStatus, event: Event) -> None:
        touched.pop(status.issue, None)
        touched[status.issue] = None
        progress.on_event(status, event)

    limits = PassLimits(inputs.attempts, inputs.limit, operator.poll.interval)
    with build_shared(operator, variables, on_event, runner.worker, inputs.lease) as built:
        done = run_once(built.repositories, built.context, limits)
        write_deferred_comments(built.context, Worker(built.context), built.repositories)
        left_alone = {each.issue for each in done.visits if each.skipped and not each.attempts}
        return [_issue_report(ref, built.context) for ref in touched if ref not in left_alone], done


def _operator(inputs: Inputs, runner: Runner, variables: Mapping[str, str]) -> Operator:
    """Read the operator's file from the base branch, never from the event's payload."""
    if not inputs.config:
        return operator_of(inputs, runner, variables, None)
    before = bootstrap_operator(inputs, runner, variables)
    OUTPUT_FILTER.redactor = publishing_redactor_of(before, variables)
    text = read_base_file(before, variables, inputs.config)
    if text is None:
        raise ConfigError(
            f"There is no file {inputs.config} on the base branch of {runner.repository}."
        )
    return operator_of(inputs, runner, variables, text)


def _issue_report(ref: IssueRef, context: ReadContext) -> IssueReport:
    status = context.ledger.status(ref)
    epoch = [meta for meta in context.ledger.history(ref) if meta.epoch == status.epoch]
    return IssueReport(status, epoch, attempts_left(status, context).used)


def _write_report(reports: Sequence[IssueReport], done: PassResult, runner: Runner) -> None:
    done = cleaned(done, OUTPUT_FILTER.clean)
    for line in annotations(reports, done.problems):
        _say(OUTPUT_FILTER.clean(line))
    artifacts = str(runner.place / "work" / "artifacts")
    _append(runner.output, outputs(reports, artifacts, f"mulligan-{secrets.token_hex(16)}"))
    _append(runner.summary, OUTPUT_FILTER.redactor.text(summary(reports, done, runner)))


def _append(place: Path | None, text: str) -> None:
    if place:
        with place.open("a", encoding="utf-8") as file:
            file.write(text)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
