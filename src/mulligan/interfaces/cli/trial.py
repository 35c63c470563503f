"""Show the proposed commands, and run each once in the sandbox, before `mulligan init` asks."""

import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.text import Text

from mulligan.domain.errors import MulliganError, ShutdownError
from mulligan.implement.prompt.outcome_text import seconds_text
from mulligan.interfaces.bootstrap.trial import NO_TIME, SET_UP, TRIAL_LIMIT, Trial, try_proposal
from mulligan.interfaces.cli.live import step_shown
from mulligan.interfaces.cli.setup import environment, start_logs, stopping_on_signals
from mulligan.interfaces.cli.terminal import print_point, print_text
from mulligan.interfaces.onboarding.plans import Plan, joined, missing
from mulligan.interfaces.onboarding.proposal import Proposal, ProposedCheck

INTRODUCTION = (
    "These commands run once in the sandbox now, on the last commit of this clone. To skip this,"
    " press Ctrl-C and add --no-try."
)

LEFT_OUT = "The checks that did not pass are comments in the file, each with the reason."

NONE_KEPT = (
    "No check passes here, so nothing would verify a change. Edit the commands in the file, then"
    " run `mulligan check`."
)


def try_plan(console: Console, plan: Plan, clone: Path, config: Path) -> Proposal:
    """Run the plan, then spare checks for the kinds of which none passed; print the results.

    If nothing can run here, such as without a sandbox, say so, and return the proposal as it is.
    """
    _show_commands(console, plan.proposal)
    console.print()
    print_text(console, INTRODUCTION)
    start_logs()
    settings = config if config.exists() else None
    ends = time.monotonic() + TRIAL_LIMIT.total_seconds()
    try:
        with stopping_on_signals(running="the running command"):
            tried = _try_both(console, plan, _Trials(console, clone, settings, ends))
    except ShutdownError:
        raise
    except MulliganError as error:
        print_text(console, f"Nothing was tried: {error}")
        return plan.proposal
    kept = sum(check.is_kept for check in tried.checks)
    if kept < len(tried.checks):
        print_text(console, LEFT_OUT if kept else NONE_KEPT)
    return tried


def _show_commands(console: Console, proposal: Proposal) -> None:
    """Print the setup commands and checks, each check with the file that it is from."""
    console.print()
    if proposal.set_up:
        console.print(Text("setup commands", "bold"))
        for line in proposal.set_up:
            print_point(console, Text(" "), f"`{line}`")
    for check in proposal.checks:
        console.print(Text.assemble((check.name, "bold"), f" (from {check.source})"))
        print_point(console, Text(" "), f"`{check.run}`")
        if check.not_tried:
            print_point(console, Text(" "), f"It is not tried: {check.not_tried}.")


@dataclass(frozen=True, slots=True)
class _Trials:
    """What two trials of a clone have in common."""

    console: Console
    clone: Path
    config: Path | None
    ends: float

    def run(self, proposal: Proposal) -> Trial:
        """Try a proposal, and print each result as it is known."""
        began = time.monotonic()

        @contextmanager
        def shown(name: str, logs: Path) -> Generator[None]:
            nonlocal began
            began = time.monotonic()
            with step_shown(self.console, name, logs):
                yield
            if name == SET_UP:
                self._say("The setup commands pass here", began, passed=True)

        def report(check: ProposedCheck) -> None:
            text = f"{check.name}: {check.found or check.fails}"
            self._say(text, began, passed=check.is_kept and check.found != NO_TIME)

        self.console.print()
        trial = try_proposal(
            proposal, self.clone, self.config, environment(), self.ends, shown, report
        )
        if trial.set_up_failed:
            print_point(self.console, Text("✗", "red"), trial.set_up_failed)
        return trial

    def _say(self, text: str, began: float, *, passed: bool) -> None:
        mark = Text("✓", "green") if passed else Text("–", "yellow")
        took = seconds_text(round((time.monotonic() - began) * 1000))
        print_point(self.console, mark, f"{text}, {took}.")


def _try_both(console: Console, plan: Plan, trials: _Trials) -> Proposal:
    trial = trials.run(plan.proposal)
    spare = missing(trial.proposal, plan.spare)
    if not spare.checks:
        return trial.proposal
    kept = any(check.is_kept for check in trial.proposal.checks)
    first = trial.proposal if kept else replace(trial.proposal, setup=())
    console.print()
    print_text(console, INSTEAD)
    _show_commands(console, spare)
    second = trials.run(joined(replace(first, checks=()), spare))
    if not any(check.is_kept for check in second.proposal.checks):
        return trial.proposal
    return joined(first, second.proposal)


INSTEAD = "What the repository's manifests say is tried instead:"
