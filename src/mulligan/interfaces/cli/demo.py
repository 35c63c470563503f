"""`mulligan demo` and `mulligan simulate`: a simulated GitHub with six issues."""

import signal
import sys
import tempfile
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import groupby, repeat
from pathlib import Path
from types import FrameType

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from github_simulator.app import running
from github_simulator.bare_repository import SimulatorError
from github_simulator.seed import MAINTAINER, READY, SCRIPTED_AGENT, Seeded, seed
from github_simulator.world import Fault, Faults, World
from mulligan.config.load import load_operator
from mulligan.daemon.once import PassLimits, run_once
from mulligan.daemon.recovery import write_deferred_comments
from mulligan.daemon.worker import Worker
from mulligan.domain.errors import UnavailableError, UsageError
from mulligan.domain.events import AgentStarted, Event, PublishStarted
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.outcome import FREE
from mulligan.domain.result import WorkerResultMeta
from mulligan.domain.status import IssueStatus
from mulligan.implement.ports import BotContext, Listener
from mulligan.implement.prompt.outcome_text import TITLES, pluralize
from mulligan.interfaces.bootstrap.container import build
from mulligan.interfaces.bootstrap.sandbox import disk_shortage_of, why_no_sandbox
from mulligan.interfaces.cli.exit_codes import Exit
from mulligan.interfaces.cli.setup import (
    DEFAULT,
    environment,
    make_console,
    start_logs,
    stop_on_signals,
    wait_for_signal,
)
from mulligan.interfaces.cli.terminal import (
    is_attended,
    print_command,
    print_point,
    print_text,
    program,
    show_comment,
    wait_for_key,
)
from mulligan.interfaces.cli.work import ProgressLog, look_of
from mulligan.sandbox.cancellation import stopping

# `mulligan demo`

PASSES = 6
"""Enough for every issue to reach its final stage, even on a slow machine."""

WATCH_INTERVAL = timedelta(seconds=1)


@contextmanager
def _simulator_errors_reported() -> Generator[None]:
    """Raise errors of the simulated GitHub as Mulligan's, which the command reports."""
    try:
        yield
    except SimulatorError as error:
        raise UnavailableError(str(error)) from error


@_simulator_errors_reported()
def demo(directory: Path | None, *, wait: bool = True) -> Exit:
    """Work on the six issues, and print the progress.

    With `wait`, keep the simulated GitHub running on a terminal until a key is pressed.
    """
    console, place = make_console(), _place(directory)
    start_logs()
    stop_on_signals()
    world = World()
    seeded = seed(world, place, TOKEN)
    world.viewer = world.add_user(MAINTAINER, token=MAINTAINER)
    with running(world) as url:
        config = _configure(console, place, url, seeded)
        operator = load_operator(config, environment())
        if short := disk_shortage_of(operator, with_paths=True):
            raise UnavailableError(short)
        _open_story(console, world, seeded)
        progress = ProgressLog(console)
        listener = _listener(world, seeded, progress)
        with build(operator, environment(), listener) as container:
            with progress.live.shown(look_of(container)):
                rest = _make_passes(container.context, seeded, console)
            if stopping():
                return Exit.INTERRUPTED
            if rest:
                _show_comment(console, world, seeded)
            _close_story(console, seeded, container.context)
        keeps = wait and is_attended(environment())
        _name_commands(console, seeded, config, url if keeps else "")
        if keeps:
            request = "Press any key here to stop the simulated GitHub."
            wait_for_key(console, request, stopping)
    if stopping():
        return Exit.INTERRUPTED
    return Exit.DONE if rest else Exit.FAILED


def _listener(world: World, seeded: Seeded, progress: ProgressLog) -> Listener:
    """Combine what prints the progress with what causes the faults."""
    *_, withdrawn, unlucky = _refs(seeded)
    faults, labels = DemoFaults(world, progress, withdrawn, unlucky), LabelMoves(world, progress)

    def on_event(status: IssueStatus, event: Event) -> None:
        labels.on_event(status, event)
        progress.on_event(status, event)
        faults.on_event(status, event)

    return on_event


def _refs(seeded: Seeded) -> list[IssueRef]:
    """List the issues as Mulligan's references."""
    return [IssueRef(each.repository, each.number) for each in seeded.issues]


def _make_passes(context: BotContext, seeded: Seeded, console: Console) -> bool:
    """Make passes until every issue rests; return whether they all do."""
    for number in range(PASSES):
        if number:
            console.print(
                "    The next pass publishes the finished work, without another agent run."
            )
        done = run_once((seeded.repository,), context, PassLimits(watch_interval=WATCH_INTERVAL))
        for problem in done.problems:
            message = problem.removeprefix(f"{seeded.issues[-1]}: ")
            print_point(console, Text("   "), message)
        rest = STAGE_LABELS.keys() >= {context.ledger.status(ref).stage for ref in _refs(seeded)}
        if rest or stopping():
            write_deferred_comments(context, Worker(context), (seeded.repository,))
            return rest
    return False


# `mulligan simulate`


@dataclass(frozen=True, slots=True)
class OwnClone:
    """A clone whose copy `simulate` shows; `agent` and `config` as `rehearse` has them."""

    path: Path
    agent: str | None
    config: Path | None


@_simulator_errors_reported()
def simulate(port: int, directory: Path | None, clone: OwnClone | None = None) -> Exit:
    """Run a simulated GitHub until SIGINT or SIGTERM, with the demo's repository or a clone's."""
    console, world, stop, codes = make_console(), World(), threading.Event(), [Exit.DONE]

    def end(number: int, _frame: FrameType | None) -> None:
        codes.append(Exit.INTERRUPTED if number == signal.SIGINT else Exit.DONE)
        stop.set()

    signal.signal(signal.SIGINT, end)
    signal.signal(signal.SIGTERM, end)
    # A port that is taken is found out before anything is written.
    with running(world, port) as url:
        place = _place(directory)
        world.viewer = world.add_user(MAINTAINER, token=MAINTAINER)
        if clone:
            _simulate_clone(console, world, place, url, clone)
        else:
            seeded = seed(world, place, TOKEN)
            console.print(f"{RUNNING} To work on its issues, run in another terminal:")
            _announce(console, url, seeded.repository, _configure(console, place, url, seeded))
        console.print("Press Ctrl-C to stop it.")
        wait_for_signal(stop)
    return codes[-1]


RUNNING = "The simulated GitHub is running."


def _simulate_clone(console: Console, world: World, place: Path, url: str, clone: OwnClone) -> None:
    # Imported here: the demo does not need it.
    from mulligan.interfaces.cli import simulate_clone  # noqa: PLC0415

    directory = clone.path.absolute()
    name, bare = simulate_clone.seed_clone(world, place, directory, TOKEN)
    _write_token(place)
    config = simulate_clone.write_settings(
        place, url, (name, bare), directory, clone.agent, clone.config
    )
    print_text(console, f"{RUNNING} It has a copy of {directory}. Open an issue and label it:")
    print_command(console, f"{url}/{name}/issues/new")
    console.print("Then run in another terminal:")
    _announce(console, url, name, config)
    console.print("To fetch the branches that Mulligan pushed:")
    print_command(console, simulate_clone.fetch_command(bare, directory))


def _announce(console: Console, url: str, repository: str, config: Path) -> None:
    config = config.relative_to(Path.cwd()) if config.is_relative_to(Path.cwd()) else config
    print_command(console, f"{program()} once --config {config}")
    console.print(f"Then comment, review and merge in a browser. There you are {MAINTAINER}:")
    print_command(console, f"{url}/{repository}")


# The directory and its configuration


def _place(directory: Path | None) -> Path:
    """Create the directory for everything; UsageError if it is not empty."""
    if directory is None:
        return Path(tempfile.mkdtemp(prefix="mulligan-demo-"))
    if directory.exists() and any(directory.iterdir()):
        raise UsageError(f"{directory} is not empty; name a new directory, or remove that one.")
    directory.mkdir(parents=True, exist_ok=True)
    return directory.absolute()


CONFIGURATION = """# Made by Mulligan for its own GitHub on this machine.
github: {{api_url: "{url}", token_file: "{directory}/token"}}
repositories:
  - name: {repository}
    clone_url: "{bare}"
    policy:
      review: {{settle: 0s}}  # answer a review at once; the default waits until nobody adds to it
agent: {{kind: command, command: ["{python}", "{agent}"], timeout: 1m}}
state: {{url: "sqlite:///{directory}/mulligan.db"}}
workspace: {{root: "{directory}/work"}}
limits: {{concurrency: 1, free_mib: 64}}
"""

TOKEN = "a-token-of-the-simulated-github"  # noqa: S105 - of the simulated GitHub


def _write_token(place: Path) -> None:
    token = place / "token"
    token.touch(mode=0o600)
    token.write_text(TOKEN)


def _configure(console: Console, place: Path, url: str, seeded: Seeded) -> Path:
    """Write the configuration; without a sandbox where none works, which the console says."""
    config = place / DEFAULT
    _write_token(place)
    text = CONFIGURATION.format(
        url=url,
        directory=place,
        repository=seeded.repository,
        bare=seeded.bare,
        python=sys.executable,
        agent=SCRIPTED_AGENT,
    )
    config.write_text(text)
    if problem := why_no_sandbox(load_operator(config, environment()), environment()):
        # The agent is the demo's own script, which is safe without a sandbox.
        console.print(
            f"No sandbox works on this machine, so this runs without one. {problem}", markup=False
        )
        config.write_text(f"{text}sandbox: off\n")
    return config


# Faults that the demo shows

FAILURES = 1


def failing_pull_requests() -> Faults:
    """Answer the next FAILURES requests for a pull request with 502, without effect."""
    left = repeat(Fault(502, body='{"message": "Server Error"}'), FAILURES)
    return lambda method, path: (
        next(left, None) if method == "POST" and path.endswith("/pulls") else None
    )


WITHDRAWAL_DELAY = 1.0
"""Seconds until the label is removed; the agent would work several times as long."""


@dataclass(frozen=True, slots=True)
class DemoFaults:
    """Receives the events of the issues, and causes the faults of the demo."""

    world: World
    progress: ProgressLog
    withdrawn: IssueRef
    unlucky: IssueRef

    def on_event(self, status: IssueStatus, event: Event) -> None:
        """Withdraw one issue once its agent works, and fail to publish another."""
        match event:
            case AgentStarted() if status.issue == self.withdrawn:
                timer = threading.Timer(WITHDRAWAL_DELAY, self._withdraw, [status])
                timer.daemon = True
                timer.start()
            case PublishStarted() if status.issue == self.unlucky and self.world.faults is None:
                self.world.faults = failing_pull_requests()
                self.progress.print_line(status, "  the simulated GitHub fails for a moment")
            case _:
                return

    def _withdraw(self, status: IssueStatus) -> None:
        self.world.unlabel(status.issue, READY, MAINTAINER)
        self.progress.print_line(
            status, f"  [bold]{MAINTAINER}[/] changes their mind and removes the label"
        )


# The demo's output


@dataclass(frozen=True, slots=True)
class LabelMoves:
    """Prints Mulligan's labels of an issue whenever they have changed."""

    world: World
    progress: ProgressLog
    shown: dict[IssueRef, list[str]] = field(default_factory=dict[IssueRef, list[str]])

    def on_event(self, status: IssueStatus, _event: Event) -> None:
        """Compare the labels with those printed last."""
        now = [name for name in self.world.labels_of(status.issue) if name.startswith(READY)]
        before = self.shown.setdefault(status.issue, [READY])
        if now != before:
            self.shown[status.issue] = now
            names = escape(", ".join(now)) or "none"
            self.progress.print_line(status, f"  labels: [blue]{names}[/]")


STAGE_LABELS = {
    Stage.REVIEW: ("in review", "green"),
    Stage.HITL: ("needs human review (HITL)", "magenta"),
    Stage.RESOLVED: ("stopped", "yellow"),
}
"""The name and colour of each final stage."""


def _open_story(console: Console, world: World, seeded: Seeded) -> None:
    who = f"[bold]{MAINTAINER}[/]"
    console.print(f"{who} has added the label to six issues of {seeded.repository}:")
    for ref in seeded.issues:
        console.print(f"  [cyan]#{ref.number}[/]  {world.issue_of(ref).title}")
    console.print("A scripted agent works on them. It fixes only what its prompt names.")


def _close_story(console: Console, seeded: Seeded, context: BotContext) -> None:
    console.print("\nResults:")
    for ref in _refs(seeded):
        where, colour = STAGE_LABELS.get(context.ledger.status(ref).stage, ("not finished", "red"))
        runs = [each for each in context.ledger.events(ref) if isinstance(each.event, AgentStarted)]
        ran, ended = pluralize(len(runs), "agent run"), _ended(context.ledger.history(ref))
        console.print(
            f"  [cyan]#{ref.number}[/]  [{colour}]{where:25}[/]  {ran:12}  {ended}", soft_wrap=True
        )


def _ended(history: Sequence[WorkerResultMeta]) -> str:
    """Return the outcomes of the attempts in order; repeated ones once."""
    parts = list[str]()
    for outcome, row in groupby(meta.outcome for meta in history):
        times = len(list(row))
        title = TITLES[outcome] if times == 1 else f"{times} × {TITLES[outcome]}"
        parts.append(f"{title} (costs no attempt)" if outcome in FREE else title)
    return " → ".join(parts)


def _show_comment(console: Console, world: World, seeded: Seeded) -> None:
    escalated = seeded.issues[2]
    body = world.comments_of(escalated)[-1].body
    console.print(f"\nMulligan's comment on [cyan]{escalated}[/], shortened:")
    show_comment(console, body)


def _name_commands(console: Console, seeded: Seeded, config: Path, url: str) -> None:
    """Print what to do next; `url` is the simulated GitHub, if it keeps running."""
    mulligan = program()
    second = f"{mulligan} inspect {seeded.issues[1]}"
    console.print("\nTo see more:")
    for line in (
        f"{mulligan} status -c {config}",
        f"{second} -c {config}",
        f"{second} --prompt -c {config}",
        f"git -C {seeded.bare} log --oneline --all --graph",
    ):
        print_command(console, line)
    if not url:
        console.print(
            "The simulated GitHub has stopped. To label, review and merge on one in a browser:"
        )
        print_command(console, f"{mulligan} simulate --directory practice")
        return
    console.print(f"To label, review and merge as {MAINTAINER}, open the simulated GitHub:")
    print_command(console, f"{url}/{seeded.repository}")
    console.print("To have Mulligan answer, run in another terminal:")
    print_command(console, f"{mulligan} once -c {config}")
