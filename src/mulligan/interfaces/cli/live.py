"""The live lines of a terminal: what each issue is doing, since when, its last output and cost."""

import os
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from mulligan.domain.errors import MulliganError
from mulligan.domain.events import (
    STEP_ENDS,
    AgentFinished,
    AgentStarted,
    AttemptContextAssembled,
    AttemptStarted,
    CheckFinished,
    CheckSkipped,
    Decided,
    Event,
    FixRoundStarted,
    ProofFinished,
    PublishStarted,
    ReviewFinished,
    WorktreeReset,
)
from mulligan.domain.issue import IssueRef
from mulligan.domain.result import AgentFacts
from mulligan.domain.spending import UNREPORTED, Spent, spending_text, spent_in
from mulligan.domain.status import IssueStatus
from mulligan.implement.ports import Artifacts, UsageStore
from mulligan.implement.prompt.outcome_text import duration_text
from mulligan.interfaces.cli.terminal import OUTPUT_FILTER
from mulligan.text.escape import one_line

# What an issue is doing


@dataclass(frozen=True, slots=True)
class Activity:
    """The current step of an attempt, and the Unix time at which it began."""

    issue: IssueRef
    number: int
    attempt: str
    phase: str
    since: float


PHASES: dict[type[Event], str] = {
    AttemptStarted: "worktree",
    WorktreeReset: "setup",
    AttemptContextAssembled: "prompt",
    AgentStarted: "agent",
    AgentFinished: "checks",
    CheckFinished: "checks",
    CheckSkipped: "checks",
    ProofFinished: "checks",
    ReviewFinished: "checks",
    FixRoundStarted: "prompt",
    Decided: "reporting to GitHub",
    PublishStarted: "publishing",
}
"""The step that follows an event."""


def after(now: Activity | None, status: IssueStatus, event: Event, at: float) -> Activity | None:
    """Return the step of an issue after an event; None for a step that takes no time."""
    if isinstance(event, STEP_ENDS):
        return None
    phase = PHASES.get(type(event))
    if phase is None:
        return now
    attempt = now.attempt if now else f"attempt {status.attempt}"
    if isinstance(event, AttemptStarted) and event.position:
        attempt = f"attempt {event.position} of {event.most}"
    if isinstance(event, FixRoundStarted):
        attempt = f"{attempt.partition(',')[0]}, fix round {event.number} of {event.most}"
    return Activity(status.issue, status.number, attempt, phase, at)


# What it shows


@dataclass(frozen=True, slots=True)
class Glimpse:
    """The last line of an output, and what the agent has used so far."""

    last: str = ""
    spent: Spent = UNREPORTED


def describe(now: Activity, seen: Glimpse, at: float) -> str:
    """Describe an activity in one line: issue, attempt, step, elapsed time, usage, output."""
    step = f"{now.phase} {duration_text(round((at - now.since) * 1000))}"
    used = spending_text(seen.spent)
    return "  ".join(
        [str(now.issue), " · ".join(filter(None, [now.attempt, step, used, seen.last]))]
    )


TAIL_BYTES = 4096

LINE = 300


def last_line(directory: Path, since: float) -> str:
    """Return the last line of the output that was written last in a directory; cleaned."""
    newest, at = None, since
    for file in directory.glob("*.log*"):
        with suppress(OSError):
            changed = file.stat().st_mtime
            if "egress" not in file.name and changed >= at:
                newest, at = file, changed
    if newest is None:
        return ""
    with suppress(OSError), newest.open("rb") as log:
        log.seek(max(0, log.seek(0, os.SEEK_END) - TAIL_BYTES))
        lines = log.read().decode(errors="replace").splitlines()
        shown = (one_line(OUTPUT_FILTER.clean(line), LINE) for line in reversed(lines))
        return next((line for line in shown if line.strip()), "")
    return ""


Look = Callable[[Activity], Glimpse]


def looking(artifacts: Artifacts, usage: UsageStore) -> Look:
    """Return a function that looks at the files and the usage of an attempt."""

    def look(now: Activity) -> Glimpse:
        try:
            directory = artifacts.path(now.issue, now.number, "agent.log").parent
            runs = usage.usage_of_attempt(now.issue, now.number).values()
        except MulliganError:
            return Glimpse()
        printed = last_line(directory, now.since)
        # An agent that streams JSON says what it does in its usage reports.
        printed = _activity_of(list(runs)) if printed.startswith("{") else printed
        return Glimpse(printed, reduce(Spent.plus, map(spent_in, runs), UNREPORTED))

    return look


def _activity_of(runs: list[AgentFacts]) -> str:
    last = runs[-1].last_activity if runs else None
    return one_line(OUTPUT_FILTER.clean(last), LINE) if last else ""


# The lines on the terminal

SHOWN_AFTER = 1.0
"""Seconds that a step lasts before it gets a line."""

REFRESHES_PER_SECOND = 4

CTRL_C = "^C"

FRAMES, PLAIN_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "|/-"

Clock = Callable[[], float]


@dataclass
class LiveLines:
    """One line for each running issue, below everything that is printed; none without a terminal.

    `idle` is shown while no issue is worked on; empty for nothing.
    """

    console: Console
    idle: str = ""
    clock: Clock = time.time
    look: Look = lambda _: Glimpse()
    active: dict[IssueRef, Activity] = field(default_factory=dict[IssueRef, Activity])
    idle_since: float = 0.0

    def on_event(self, status: IssueStatus, event: Event) -> None:
        """Follow an event of an issue."""
        now = after(self.active.get(status.issue), status, event, self.clock())
        if now:
            self.active[status.issue] = now
        elif self.active.pop(status.issue, None):
            self.idle_since = self.clock()

    @contextmanager
    def shown(self, look: Look | None = None) -> Generator[None]:
        """Show the lines while the block lasts."""
        self.look, self.idle_since = look or self.look, self.clock()
        with shown_below(self.console, self.rendered):
            yield

    def rendered(self) -> Group:
        """Return the current lines, cut to the width of the terminal."""
        return Group(*self._lines())

    def _lines(self) -> Iterator[Text]:
        at = self.clock()
        for now in list(self.active.values()):
            if at - now.since >= SHOWN_AFTER:
                yield cut(self.console, at, describe(now, self.look(now), at))
        if self.idle and not self.active and at - self.idle_since >= SHOWN_AFTER:
            yield cut(self.console, at, self.idle)


@contextmanager
def step_shown(console: Console | None, name: str, directory: Path) -> Generator[None]:
    """Show a line for one step while the block lasts, with the output written to a directory."""
    began = time.time()

    def rendered() -> Group:
        at = time.time()
        if console is None or at - began < SHOWN_AFTER:
            return Group()
        took, printed = duration_text(round((at - began) * 1000)), last_line(directory, began)
        return Group(cut(console, at, " · ".join(filter(None, [f"{name} {took}", printed]))))

    with shown_below(console, rendered) if console else nullcontext():
        yield


@contextmanager
def shown_below(console: Console, rendered: Callable[[], Group]) -> Generator[None]:
    """Show lines below everything that is printed while the block lasts; on a terminal only."""
    if not (console.is_interactive and sys.stdout.isatty()):
        yield
        return
    live = Live(
        console=console,
        get_renderable=rendered,
        refresh_per_second=REFRESHES_PER_SECOND,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=sys.stderr.isatty(),
    )
    with live:
        yield


def cut(console: Console, at: float, line: str) -> Text:
    """Return a line with a mark that moves, cut to the width of the terminal.

    The terminal shows Ctrl-C at its end; a line break there would leave a part of it.
    """
    frames = PLAIN_FRAMES if console.options.ascii_only else FRAMES
    frame = frames[int(at * REFRESHES_PER_SECOND) % len(frames)]
    text = Text(f"{frame} {line}", "dim", no_wrap=True)
    text.truncate(console.width - len(CTRL_C), overflow="ellipsis")
    return text
