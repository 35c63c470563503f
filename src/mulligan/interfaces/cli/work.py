"""`mulligan once` and `mulligan work`, and the progress log: one line for each event."""

import threading
from contextlib import AbstractContextManager
from pathlib import Path
from typing import assert_never

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from mulligan.config.operator import Operator
from mulligan.daemon.once import PassLimits, PassResult, problem_line
from mulligan.daemon.once import run_once as make_pass
from mulligan.daemon.recovery import recover, write_deferred_comments
from mulligan.daemon.worker import Worker
from mulligan.domain.command import Verb
from mulligan.domain.events import (
    AgentFinished,
    AttemptCompleted,
    AttemptContextTruncated,
    AttemptStarted,
    BaselineRecorded,
    BroughtUpToDate,
    CheckFinished,
    CheckSkipped,
    CiFailed,
    CiPassed,
    Conflicted,
    Decided,
    Drafted,
    Escalated,
    Event,
    FixRoundStarted,
    HumanResponded,
    Published,
    Resolved,
    Restored,
    RetryContextAssembled,
    RetryScheduled,
    ReviewFinished,
    ReviewReceived,
    ReviewsWithdrawn,
    StoodDown,
    Waiting,
    WorktreeReset,
)
from mulligan.domain.issue import AuthorisingAct, IssueRef, OperatorAct
from mulligan.domain.outcome import (
    Decision,
    Escalate,
    OpenPullRequest,
    Retry,
    StandDown,
    WaitForBudget,
    WaitForPullRequest,
)
from mulligan.domain.result import CheckResult, VerifierOutcome, WorkerResultMeta
from mulligan.domain.status import IssueStatus
from mulligan.implement.ports import Listener
from mulligan.implement.prompt.outcome_text import (
    NOT_RUN,
    pluralize,
    run_text,
    seconds_text,
    status_title,
    times_text,
    verdict,
)
from mulligan.interfaces.bootstrap.container import (
    Container,
    OwnerOptions,
    build,
    build_dry,
)
from mulligan.interfaces.bootstrap.sandbox import warn_of_root
from mulligan.interfaces.bootstrap.stores import lock_state
from mulligan.interfaces.cli.exit_codes import Exit
from mulligan.interfaces.cli.issue_argument import issue_of
from mulligan.interfaces.cli.issue_commands import ensure_issue_exists, is_in_ledger
from mulligan.interfaces.cli.live import LiveLines, Look, looking
from mulligan.interfaces.cli.setup import (
    as_configured,
    environment,
    make_console,
    read_configuration,
    start_logs,
    stop_on_signals,
)
from mulligan.interfaces.cli.summary import PassSummary, print_exit
from mulligan.interfaces.cli.terminal import print_error, print_text, with_program_name
from mulligan.sandbox.cancellation import stopping
from mulligan.text.escape import one_line

# The commands

READING = "Reading GitHub"
"""The text of the live line while no issue is worked on."""


def once(
    config: Path | None,
    attempts: int | None,
    limit: int | None,
    *,
    take_over: bool = False,
    diff: bool = False,
) -> Exit:
    """Make one pass over all repositories; `take_over` those of another installation.

    With `diff`, print the last change of each issue.
    """
    operator, console = read_configuration(config), make_console()
    start_logs()
    warn_of_root()
    stop_on_signals()
    limits = PassLimits(attempts, limit, operator.poll.interval)
    progress, summary = ProgressLog(console, READING), PassSummary()
    listener = heard_by(progress.on_event, summary.on_event)
    with (
        lock_state(operator, "once"),
        build(operator, environment(), listener, OwnerOptions(take_over)) as built,
    ):
        with progress.live.shown(look_of(built)):
            result = make_pass(built.repositories, built.context, limits)
        summarise(result, console)
        if diff:
            summary.print_diffs(console, built.context)
        summary.print_issues(console, built.context)
        write_deferred_comments(built.context, Worker(built.context), built.repositories)
    code = exit_code_of(result)
    print_exit(console, code)
    return code


def work(issue: str, config: Path | None, *, dry_run: bool, take_over: bool = False) -> Exit:
    """Make one attempt at one issue, requested by the operator.

    `take_over` its repository if another installation owns it.
    """
    operator, console = read_configuration(config), make_console()
    ref = as_configured(issue_of(issue, operator), operator)
    start_logs()
    warn_of_root()
    if dry_run or not is_in_ledger(ref, operator):
        # A mistyped number would stay in the ledger.
        ensure_issue_exists(ref, operator, is_known=False)
    stop_on_signals()
    progress, summary = ProgressLog(console, READING), PassSummary()
    listener = heard_by(progress.on_event, summary.on_event)
    options = None if dry_run else OwnerOptions(take_over)
    with (
        lock_state(operator, "work"),
        _container(operator, console, listener, options) as container,
    ):
        worker = Worker(container.context, max_attempts=1)
        with progress.live.shown(look_of(container)):
            failed = recover(container.context, worker, container.repositories).failed
            container.context.worktrees.fetch_base(ref.repository)
            visit = worker.visit(ref, operator_act(container))
        problems = [problem_line(ref, why) for ref, why in failed.items()]
        problems += [problem_line(ref, visit.problem)] if visit.problem else []
        result = PassResult((visit,), tuple(problems), visit.escalated)
        if dry_run:
            console.print("Dry run: nothing was written to GitHub, the remote or the ledger.")
        summarise(result, console)
        summary.print_issues(console, container.context)
        write_deferred_comments(container.context, worker, container.repositories)
    code = Exit.FAILED if visit.skipped else exit_code_of(result)
    if summary.attempts:
        print_exit(console, code)
    return code


def heard_by(*listeners: Listener) -> Listener:
    """Return a listener that passes each event to all of them, in order."""

    def on_event(status: IssueStatus, event: Event) -> None:
        for each in listeners:
            each(status, event)

    return on_event


def _container(
    operator: Operator, console: Console, listener: Listener, options: OwnerOptions | None
) -> AbstractContextManager[Container]:
    """Build for work, or without options for a dry run."""
    if options:
        return build(operator, environment(), listener, options)

    def say(what: str) -> None:
        headline, *text = what.splitlines()
        console.print(f"    [cyan]{escape(headline)}[/]", emoji=False)
        for line in text[1:]:
            console.print(f"    [dim]│[/] {escape(line)}".rstrip(), emoji=False)

    return build_dry(operator, environment(), listener, say)


def look_of(built: Container) -> Look:
    """Return the input of the live lines: the files and the usage of running attempts."""
    return looking(built.context.artifacts, built.context.usage)


def operator_act(container: Container) -> AuthorisingAct:
    """Return the operator's authorising act for `mulligan work`."""
    now = container.context.clock.now()
    return AuthorisingAct(OperatorAct(now.isoformat()), "", now, trusted=True)


RUN_AGAIN = "Run `mulligan once` again then, or let `mulligan run` continue."


def summarise(result: PassResult, console: Console, after: str = RUN_AGAIN) -> None:
    """Print the skipped issues of a pass, and its problems as errors.

    For an issue that waits, whose cause its own lines have, say `after` what to do then.
    """
    for each in result.visits:
        if each.skipped:
            print_text(console, f"{each.issue}  skipped: {each.skipped}")
    for reason in result.paused:
        print_text(console, reason)
    if not (result.visits or result.problems or result.paused):
        console.print("No issue is due.")
    for sentence in result.waiting:
        print_text(console, sentence)
    waits = {
        problem_line(each.issue, each.problem): f"{each.issue} waits until {each.due:%H:%M:%S} UTC."
        for each in result.visits
        if each.problem and each.due
    }
    for problem in result.problems:
        print_error(f"{waits[problem]} {after}" if problem in waits else problem)


def exit_code_of(result: PassResult) -> Exit:
    """Return the exit code of a pass."""
    if stopping():
        return Exit.INTERRUPTED
    if result.problems:
        return Exit.FAILED
    return Exit.ESCALATED if result.escalated else Exit.DONE


# The progress log: one line for each event

INDENT = 2


class ProgressLog:
    """Prints each issue's lines below its title; while several run, each line names its issue.

    `live` follows the same events. In its `shown` block it shows what runs now, and `idle` between
    issues.
    """

    def __init__(self, console: Console, idle: str = "") -> None:
        self.console = console
        self.live = LiveLines(console, idle)
        self._lock = threading.Lock()
        self._issue: IssueRef | None = None
        self._titled = set[IssueRef]()

    def on_event(self, status: IssueStatus, event: Event) -> None:
        """Print the line of an event, if it has one."""
        self.live.on_event(status, event)
        if line := event_line(status, event):
            self.print_line(status, with_program_name(line))

    def print_line(self, status: IssueStatus, line: str) -> None:
        """Print a line of Rich markup; indent wrapped lines."""
        issue = status.issue
        with self._lock:
            is_named = issue in self._titled and len({*self.live.active, issue}) > 1
            if not is_named and issue != self._issue:
                name, title = escape(str(issue)), _plain(status.text.title)
                self.console.print(f"\n[bold cyan]{name}[/]  [bold]{title}[/]", emoji=False)
            self._titled.add(issue)
            self._issue = issue
            text = Text.from_markup(line, emoji=False)
            depth = len(text.plain) - len(text.plain.lstrip())
            start = Text(" " * INDENT) + Text(f"{issue}  " if is_named else "", "cyan")
            room = max(20, self.console.width - len(start) - depth - INDENT)
            for part in text[depth:].wrap(self.console, room):
                part.rstrip()
                self.console.print(start + Text(" " * depth) + part)
                start = Text(" " * 2 * INDENT)


WIDTH, REASON_WIDTH = 200, 300
OPERATOR = "operator"


def event_line(status: IssueStatus, event: Event) -> str | None:  # noqa: C901 - one flat match
    """Return an event's line in Rich markup, or None if the event has none."""
    match event:
        case AttemptStarted(position=position, most=most):
            place = f"{position} of {most}" if position else f"{status.attempt}"
            return f"[bold]attempt {place}[/]"
        case WorktreeReset(start_sha=sha, base_sha=base) if sha != base:
            return f"  worktree reset to the pull request, at {sha[:10]}"
        case WorktreeReset(start_sha=sha) if status.attempt > 1:
            return f"  worktree reset to the base branch, at {sha[:10]}"
        case RetryContextAssembled(prior_attempts_count=count, context_size_bytes=size):
            earlier = pluralize(count, "earlier attempt")
            return f"  the prompt includes {earlier} ({size:,} bytes)"
        case AttemptContextTruncated(sections=sections, reasons=reasons):
            cuts = zip(sections, reasons, strict=True)
            omitted = "; ".join(f"{name.replace('_', ' ')}, {reason}" for name, reason in cuts)
            return f"  the prompt omits {_plain(omitted)}"
        case AgentFinished():
            return _agent_line(event)
        case FixRoundStarted(number=number, most=most):
            return f"  fix round {number} of {most}"
        case (
            CheckFinished(check=check)
            | AttemptCompleted(meta=WorkerResultMeta(set_up=CheckResult() as check))
        ):
            return _check_line(check)
        case CheckSkipped(check=skipped):
            return f"  – {_plain(skipped.name)} ({NOT_RUN})"
        case BaselineRecorded(name=name, check=None):
            return f"  check '{_plain(name)}' could not run without the change"
        case BaselineRecorded(name=name, check=CheckResult(passed=passed)):
            return f"  check '{_plain(name)}' {'passes' if passed else 'fails'} without the change"
        case ReviewFinished(unreadable=why) if why:
            return f"  [yellow]{_plain(why)}[/]"
        case ReviewFinished(verdict=VerifierOutcome() as verdict, feedback=feedback):
            return f"  the reviewer answered {verdict.value}: {_plain(feedback)}".rstrip(": ")
        case ReviewReceived(author=author):
            return f"[yellow]changes are requested[/] by {_plain(author)}"
        case Conflicted():
            return "[yellow]the pull request has conflicts[/]"
        case CiFailed(checks=checks):
            names = ", ".join(check.name for check in checks)
            return f"[yellow]fails on GitHub[/]  {_plain(names)}"
        case CiPassed(count=count):
            return f"[green]{pluralize(count, 'check')} passed on GitHub[/]"
        case HumanResponded(command=Verb.MISTYPED, actor=actor, answer=answer):
            return f"[cyan]{_plain(actor)}:[/] {_plain(answer)}"
        case HumanResponded(command=Verb.SKIP, actor=actor):
            return f"[cyan]{_plain(actor or OPERATOR)}: /mulligan skip[/]"
        case HumanResponded(command=command, actor=actor, answer=answer):
            who = _plain(actor or OPERATOR)
            return f"[cyan]{who}: /mulligan {command}[/]  {_plain(answer)}"
        case AttemptCompleted(meta=meta) if times := times_text([meta]):
            return f"  [dim]{times}[/]"
        case Decided(decision=decision):
            return _decision_line(status, decision)
        case RetryScheduled(due=due):
            waits = isinstance(status.decision, Retry) and status.decision.backoff_step
            return f"  not before {due:%H:%M:%S} UTC" if waits else None
        case Waiting(until=until) if until:
            return f"  not before {until:%Y-%m-%d %H:%M} UTC"
        case Escalated(comment=url):
            return f"  [magenta]→ {_plain(url)}[/]"
        case StoodDown(reason=reason) if not isinstance(status.decision, StandDown):
            return f"  [yellow]→ stopped:[/] {_plain(reason)}"
        case Restored(source=source):
            return f"[yellow]the ledger was lost:[/] restored from {_plain(source)}"
        case Resolved(reason=reason):
            return f"[green]finished:[/] {_plain(reason)}"
        case Published(pull_request=url):
            return f"  [green]→ pull request {_plain(url)}[/]"
        case Drafted(pull_request=url):
            return f"  [yellow]→ draft, not verified:[/] {_plain(url)}"
        case ReviewsWithdrawn():
            return "a review no longer requests changes"
        case BroughtUpToDate(base_sha=sha):
            return f"the base branch, at {sha[:10]}, is merged into the pull request"
        case _:
            return None


def _agent_line(event: AgentFinished) -> str:
    took = seconds_text(event.duration_ms)
    if event.stopped_by:
        return f"  agent stopped by {_plain(event.stopped_by)} after {took}"
    ended = "" if event.exit_code == 0 else f", exit code {event.exit_code}"
    return f"  agent worked for {took}{ended}"


def _check_line(check: CheckResult) -> str:
    took = run_text(check)
    if check.passed:
        flaky = ", [yellow]flaky[/]" if check.flaky else ""
        return f"  [green]✓[/] {_plain(check.name)} ({took}){flaky}"
    if check.is_proof:
        return f"  [red]✗[/] {_plain(verdict(check))}"
    said = [each.summary for each in (*check.findings, *check.known)]
    if check.is_broken:
        said += check.digest.splitlines()
    text = f": {_plain(said[0])}" if said else ""
    if check.is_set_up:
        text = f": {_plain(check.command)}{_output(check)}"
    return f"  {_mark_of_failure(check)} {_plain(check.name)} ({took}){text}"


def _mark_of_failure(check: CheckResult) -> str:
    if check.is_broken:
        return "[red]✗ (cannot run without the change either)[/]"
    if check.preexisting:
        return "[yellow]✗ (as before the change)[/]"
    return "[red]✗[/]" if check.required else "[yellow]✗ (not required)[/]"


def _output(failed: CheckResult) -> str:
    """Return the lines of a failed setup command below its own."""
    return "".join(f"\n[dim]│[/] {escape(line)}" for line in failed.digest.split("\n"))


def _decision_line(status: IssueStatus, decision: Decision) -> str:
    """Describe the outcome of an attempt and the next step; the reason includes the error."""
    ended = status_title(status) or "Over"
    why = escape(one_line(decision.reason, REASON_WIDTH))
    match decision:
        case OpenPullRequest() if status.is_unverified:
            return f"  [yellow]{ended}:[/] {why}"
        case OpenPullRequest():
            return f"  [green]{ended}:[/] {why}"
        case Retry():
            return f"  [yellow]{ended} → retry:[/] {why}"
        case Escalate():
            return f"  [magenta]{ended} → needs human review (HITL):[/] {why}"
        case StandDown():
            return f"  [yellow]{ended} → stopped:[/] {why}"
        case WaitForBudget() | WaitForPullRequest():
            return f"  [yellow]{ended} → waits:[/] {why}"
        case _:
            assert_never(decision)


def _plain(text: str) -> str:
    return escape(one_line(text, WIDTH))
