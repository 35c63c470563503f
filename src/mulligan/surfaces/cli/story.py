"""Tell an issue's life as it happens: one short line for each event that a person cares for."""

from rich.markup import escape

from mulligan.domain.decision import Escalate, Retry
from mulligan.domain.events import (
    AgentFinished,
    AgentStarted,
    AttemptCompleted,
    AttemptContextTruncated,
    AttemptStarted,
    CheckFinished,
    Decided,
    Escalated,
    Event,
    IssueSeen,
    Published,
    RetryContextAssembled,
    RetryScheduled,
    StoodDown,
    Waiting,
    WorktreeReset,
)
from mulligan.domain.outcome import Outcome
from mulligan.domain.result import CheckResult
from mulligan.domain.status import IssueStatus
from mulligan.retry.words import TITLES
from mulligan.text.escape import one_line

WIDTH = 160


def tell(status: IssueStatus, event: Event) -> str | None:
    """Give the line for an event in Rich markup, or None where there is nothing to tell."""
    said = _start_line(status, event) or _work_line(event) or _result_line(event)
    if said is None:
        return None
    return f"[cyan]{escape(str(status.issue))}[/]  {said}"


def _start_line(status: IssueStatus, event: Event) -> str | None:
    match event:
        case IssueSeen(title=title):
            return f"[bold]{_plain(title)}[/]"
        case AttemptStarted():
            return f"[bold]attempt {status.attempt}[/]"
        case WorktreeReset(start_sha=sha, recreated=recreated):
            how = ", made anew" if recreated else ""
            return f"  worktree equals the base branch at {sha[:10]}{how}"
        case RetryContextAssembled(prior_attempts_count=count, context_size_bytes=size):
            attempts = "1 earlier attempt" if count == 1 else f"{count} earlier attempts"
            return f"  the prompt tells of {attempts} ({size:,} bytes)"
        case AttemptContextTruncated(sections=sections):
            return f"  cut to fit: {_plain(', '.join(sections))}"
        case _:
            return None


def _work_line(event: Event) -> str | None:
    match event:
        case AgentStarted(agent=agent):
            return f"  agent {_plain(agent)} works …"
        case AgentFinished():
            return _agent_line(event)
        case CheckFinished(check=check):
            return _check_line(check)
        case _:
            return None


def _result_line(event: Event) -> str | None:
    match event:
        case AttemptCompleted(meta=meta):
            good = meta.outcome is Outcome.SUCCEEDED
            colour = "green" if good else "yellow"
            why = "" if good else f": {_plain(meta.error)}"
            return f"  [{colour}]{TITLES[meta.outcome]}[/]{why}"
        case Decided(decision=Retry(reason=reason)):
            return f"  → retry: {_plain(reason)}"
        case Decided(decision=Escalate(reason=reason)):
            return f"  → a person is asked: {_plain(reason)}"
        case RetryScheduled(due=due) | Waiting(until=due):
            return f"  due {due:%H:%M:%S} UTC"
        case Published(pull_request=url):
            return f"  [green]→ pull request {_plain(url)}[/]"
        case Escalated(comment=url):
            return f"  [magenta]→ handed to a person: {_plain(url)}[/]"
        case StoodDown(reason=reason):
            return f"  → left alone: {_plain(reason)}"
        case _:
            return None


def _agent_line(event: AgentFinished) -> str:
    took = _seconds(event.duration_ms)
    if event.stopped_by:
        return f"  agent stopped by {event.stopped_by} after {took}"
    ended = "" if event.exit_code == 0 else f", exit code {event.exit_code}"
    return f"  agent ended after {took}{ended}"


def _check_line(check: CheckResult) -> str:
    took = _seconds(check.duration_ms)
    if check.passed:
        return f"    [green]✓[/] {_plain(check.name)} ({took})"
    mark = "[red]✗[/]" if check.required else "[yellow]✗ (not required)[/]"
    first = f": {_plain(check.findings[0].summary)}" if check.findings else ""
    return f"    {mark} {_plain(check.name)} ({took}){first}"


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds / 1000:.1f} s"


def _plain(text: str) -> str:
    return escape(one_line(text, WIDTH))
