"""What a pass did, issue by issue: what `once`, `work` and `rehearse` print at their end."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from rich.console import Console
from rich.text import Text

from mulligan.domain.events import (
    AttemptCompleted,
    Drafted,
    Escalated,
    Event,
    Published,
    Resolved,
    RetryScheduled,
    StoodDown,
    Waiting,
)
from mulligan.domain.explanation import STAGE_TITLES, describe_publication
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.outcome import Outcome
from mulligan.domain.result import WorkerResultMeta
from mulligan.domain.spending import spending_text, spent_by
from mulligan.domain.status import IssueStatus
from mulligan.domain.verification import Verification
from mulligan.implement.ports import ReadContext
from mulligan.implement.prompt.outcome_text import pluralize, seconds_text, unverified
from mulligan.interfaces.cli.exit_codes import Exit
from mulligan.interfaces.cli.terminal import print_diff, print_point
from mulligan.text.escape import one_line, visible

ENDINGS = (
    AttemptCompleted,
    Drafted,
    Escalated,
    Published,
    Resolved,
    RetryScheduled,
    StoodDown,
    Waiting,
)
"""The events after which an issue is part of the summary."""

LINE = 300

MEANINGS = {
    Exit.FAILED: "something failed; the messages above say what.",
    Exit.ESCALATED: "an issue needs human review.",
    Exit.INTERRUPTED: "interrupted; the next run continues.",
}


@dataclass(frozen=True, slots=True)
class PassSummary:
    """The issues that a pass worked on, each with the attempts that ended in it, by number."""

    attempts: dict[IssueRef, dict[int, WorkerResultMeta]] = field(
        default_factory=dict[IssueRef, dict[int, WorkerResultMeta]]
    )

    def on_event(self, status: IssueStatus, event: Event) -> None:
        """Note the end of an attempt, or what followed one."""
        if isinstance(event, ENDINGS):
            made = self.attempts.setdefault(status.issue, {})
            if isinstance(event, AttemptCompleted):
                made[event.meta.number] = event.meta

    def print_issues(self, console: Console, context: ReadContext) -> None:
        """Print for each issue what came of it; nothing if the pass worked on none."""
        if self.attempts:
            console.print("\n[bold]Summary[/]")
        for ref, made in sorted(self.attempts.items()):
            status = context.ledger.status(ref)
            title = Text.assemble((str(ref), "bold cyan"), f"  {one_line(status.text.title, LINE)}")
            console.print(title)
            for mark, line in lines_of(status, list(made.values()), context.clock.now()):
                print_point(console, mark, line)

    def print_diffs(self, console: Console, context: ReadContext) -> None:
        """Print the last change of each issue."""
        for ref, made in sorted(self.attempts.items()):
            changes = [each for each in made.values() if each.diff_artifact]
            if not changes:
                console.print(f"\n{ref}: no attempt changed a file.", markup=False)
                continue
            last = changes[-1]
            console.print(f"\nThe change of attempt {last.number} of {ref}:", markup=False)
            diff = context.artifacts.read(last.diff_artifact or "").decode(errors="replace")
            print_diff(console, visible(diff).removesuffix("\n").split("\n"))


def print_exit(console: Console, code: Exit, meaning: str = "") -> None:
    """Say what an exit code means, unless it is 0; by default, its usual meaning."""
    if code is not Exit.DONE:
        console.print(f"\nExit code {code.value}: {meaning or MEANINGS[code]}")


def lines_of(
    status: IssueStatus, made: Sequence[WorkerResultMeta], now: datetime
) -> Iterator[tuple[Text, str]]:
    """Yield the lines about an issue, each with its mark."""
    yield Text(" "), _standing(status, now)
    if status.pull.draft_of and status.pull.url:
        yield Text(" "), f"draft, not verified: {status.pull.url}"
    if not made:
        return
    yield Text(" "), _expense(made)
    if made[-1].outcome is Outcome.SUCCEEDED:
        for doubt in unverified(Verification.of(made[-1])):
            yield Text("  !", "yellow"), doubt


def _standing(status: IssueStatus, now: datetime) -> str:
    """Say what came of an issue, with the address of the pull request or comment."""
    reason = one_line(status.reason, LINE)
    if status.publication_delay:
        return describe_publication(status)
    match status.stage:
        case Stage.REVIEW if status.pull.url:
            return f"pull request {status.pull.url}"
        case Stage.HITL if status.asked_at.startswith("http"):
            return f"{STAGE_TITLES[Stage.HITL]}: {status.asked_at}"
        case Stage.READY if status.paused_by:
            return f"{status.paused_by} paused it"
        case Stage.READY if status.due and status.due > now:
            return f"waiting until {status.due:%Y-%m-%d %H:%M:%S} UTC: {reason}"
        case Stage.RUNNING:
            return f"not finished; the next run continues it: {reason}".removesuffix(": ")
        case _:
            return f"{STAGE_TITLES[status.stage]}: {reason}".removesuffix(": ")


def _expense(made: Sequence[WorkerResultMeta]) -> str:
    """Return the number of attempts, their time and their cost."""
    took = seconds_text(sum(each.duration_ms for each in made))
    cost = spending_text(spent_by(made), ", ") or "cost not reported"
    return f"{pluralize(len(made), 'attempt')}, {took}, {cost}"
