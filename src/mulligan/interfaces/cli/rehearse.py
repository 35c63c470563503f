"""`mulligan rehearse`: real attempts at an issue from a file, in a local repository."""

import shlex
import shutil
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import yaml
from pydantic import JsonValue, TypeAdapter
from rich.console import Console

from mulligan.config.load import load_operator
from mulligan.config.operator import Operator
from mulligan.daemon.once import PassResult, problem_line
from mulligan.daemon.worker import Worker
from mulligan.domain.issue import Stage
from mulligan.domain.result import WorkerResultMeta
from mulligan.implement.prompt.outcome_text import pluralize
from mulligan.implement.set_up import SET_UP_LOG
from mulligan.interfaces.bootstrap.checkout_notes import checkout_notes, committed_checkout
from mulligan.interfaces.bootstrap.rehearsal import (
    RehearsalSetup,
    build_rehearsal,
    mirror_of,
    read_rehearsal_setup,
    worktree_of,
)
from mulligan.interfaces.bootstrap.stores import lock_state, open_artifacts
from mulligan.interfaces.cli.exit_codes import Exit
from mulligan.interfaces.cli.local_settings import settings_for
from mulligan.interfaces.cli.setup import (
    DEFAULT,
    environment,
    make_console,
    start_logs,
    stop_on_signals,
)
from mulligan.interfaces.cli.summary import PassSummary, print_exit
from mulligan.interfaces.cli.terminal import (
    OUTPUT_FILTER,
    print_command,
    print_text,
    program,
    show_comment,
)
from mulligan.interfaces.cli.work import (
    ProgressLog,
    exit_code_of,
    heard_by,
    look_of,
    operator_act,
    summarise,
)

REHEARSAL_MEANINGS = {
    Exit.FAILED: "the rehearsal ended without a change that would be published.",
    Exit.INTERRUPTED: "the rehearsal was interrupted.",
}

REHEARSE_AGAIN = "A rehearsal does not wait: fix the cause, then run `mulligan rehearse` again."

SETTINGS: TypeAdapter[dict[str, JsonValue]] = TypeAdapter(dict[str, JsonValue])


def rehearse(
    file: Path,
    directory: Path,
    agent: str | None,
    given: Path | None,
    attempts: int | None,
    *,
    diff: bool = False,
) -> Exit:
    """Make attempts until the issue would rest; print where the change is.

    `agent` is a built-in kind or a command line; `given` is the operator's file. With `diff`, print
    the last change.
    """
    console = make_console()
    setup = read_rehearsal_setup(file, directory.absolute())
    start_logs()
    stop_on_signals()
    with _place_for_files() as place:
        config = _write_configuration(setup, agent, given, place)
        operator = load_operator(config, environment(), needs_token=False)
        OUTPUT_FILTER.config = config
        console.print(f"From the last commit on {setup.branch} of {setup.clone}.", markup=False)
        overrides = operator.repositories[0].policy
        checkout = committed_checkout(setup.clone, environment(), overrides)
        for note in checkout_notes(setup.clone, environment(), checkout):
            print_text(console, note)
        return _rehearse(console, operator, setup, config, attempts, diff=diff)


def _rehearse(
    console: Console,
    operator: Operator,
    setup: RehearsalSetup,
    config: Path,
    attempts: int | None,
    *,
    diff: bool,
) -> Exit:
    ref, comments = setup.issue.ref, list[str]()
    progress, summary = ProgressLog(console), PassSummary()
    listener = heard_by(progress.on_event, summary.on_event)
    with (
        lock_state(operator, "rehearse"),
        build_rehearsal(operator, environment(), listener, setup, comments.append) as container,
    ):
        context = container.context
        with progress.live.shown(look_of(container)):
            visit = Worker(context, attempts).visit(ref, operator_act(container))
        problems = (problem_line(ref, visit.problem),) if visit.problem else ()
        done = PassResult((visit,), problems, visit.escalated)
        summarise(done, console, REHEARSE_AGAIN)
        waits = context.ledger.status(ref).stage is Stage.READY
        if waits and attempts and not visit.problem:
            console.print(f"This was the limit of {pluralize(attempts, 'attempt')} (`--attempts`).")
        for comment in comments:
            console.print("\nThe comment on the issue would be:")
            show_comment(console, comment)
        if diff:
            summary.print_diffs(console, context)
        summary.print_issues(console, context)
        history = context.ledger.history(ref)
    if history:
        _say_where(console, operator, setup, config, history)
    code = exit_code_of(done)
    if code is Exit.DONE and (visit.skipped or waits):
        # No pass follows that could make the next attempt.
        code = Exit.FAILED
    print_exit(console, code, REHEARSAL_MEANINGS.get(code, ""))
    return code


@contextmanager
def _place_for_files() -> Generator[Path]:
    """Yield a new temporary directory; remove it at the end, unless it has an attempt's files."""
    place = Path(tempfile.mkdtemp(prefix="mulligan-rehearsal-"))
    try:
        yield place
    finally:
        if not any(place.glob("work/artifacts/*")):
            shutil.rmtree(place, ignore_errors=True)


def _write_configuration(
    setup: RehearsalSetup, agent: str | None, config: Path | None, place: Path
) -> Path:
    """Write the configuration of the rehearsal, so that later commands can use it."""
    given, policy = settings_for(setup.clone, agent, config)
    settings = {
        **given,
        "repositories": [
            {
                "name": setup.issue.ref.repository,
                "clone_url": str(setup.clone),
                "base_branch": setup.branch,
                "policy": policy,
            }
        ],
        "state": {"url": f"sqlite:///{place}/mulligan.db"},
        "workspace": {"root": str(place / "work")},
    }
    written = place / DEFAULT
    written.write_text(yaml.safe_dump(settings, sort_keys=False, allow_unicode=True))
    return written


def _say_where(
    console: Console,
    operator: Operator,
    setup: RehearsalSetup,
    config: Path,
    history: Sequence[WorkerResultMeta],
) -> None:
    """Print the commands that show the result."""
    changed = [meta.number for meta in history if meta.head_sha]
    ref, artifacts = setup.issue.ref, open_artifacts(operator)
    if changed:
        diff = artifacts.path(ref, changed[-1], "changes.diff")
        tree = worktree_of(operator, setup)
        console.print(f"\nThe last change: {diff}", markup=False, soft_wrap=True)
        console.print(f"Its worktree: {tree}", markup=False, soft_wrap=True)
        mirror = shlex.quote(str(mirror_of(operator, setup)))
        console.print("To fetch it as a branch:")
        fetch = f"git -C {shlex.quote(str(setup.clone))} fetch {mirror} {ref.branch}:{ref.branch}"
        print_command(console, fetch)
    if history[-1].set_up:
        log = artifacts.path(ref, history[-1].number, SET_UP_LOG)
        console.print(f"\nThe output of the setup commands: {log}", markup=False, soft_wrap=True)
    console.print("\nTo see more:")
    inspect = f"{program()} inspect '{ref}'"
    print_command(console, f"{inspect} --config {config}")
    seen = "--log setup" if history[-1].set_up else "--prompt"
    print_command(console, f"{inspect} {seen} --config {config}")
    console.print("To remove the files of this rehearsal:")
    print_command(console, f"rm -rf {shlex.quote(str(config.parent))}")
