"""`mulligan rehearse`: real attempts at an issue from a file, in a local repository."""

import shlex
import tempfile
from collections.abc import Sequence
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
from mulligan.interfaces.bootstrap.rehearsal import (
    RehearsalSetup,
    build_rehearsal,
    mirror_of,
    read_rehearsal_setup,
    submodules_note,
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
from mulligan.interfaces.cli.terminal import print_command, print_text, program, show_comment
from mulligan.interfaces.cli.work import (
    ProgressLog,
    exit_code_of,
    look_of,
    operator_act,
    summarise,
)

REHEARSE_AGAIN = "A rehearsal does not wait: fix the cause, then run `mulligan rehearse` again."

SETTINGS: TypeAdapter[dict[str, JsonValue]] = TypeAdapter(dict[str, JsonValue])


def rehearse(
    file: Path, directory: Path, agent: str | None, given: Path | None, attempts: int | None
) -> Exit:
    """Make attempts until the issue would rest; print where the change is.

    `agent` is a built-in kind or a command line; `given` is the operator's file.
    """
    console = make_console()
    setup = read_rehearsal_setup(file, directory.absolute())
    start_logs()
    stop_on_signals()
    config = _write_configuration(setup, agent, given)
    operator = load_operator(config, environment(), needs_token=False)
    console.print(f"From the last commit on {setup.branch} of {setup.clone}.", markup=False)
    if note := submodules_note(setup.clone, environment()):
        print_text(console, note)
    comments = list[str]()
    progress = ProgressLog(console)
    with (
        lock_state(operator, "rehearse"),
        build_rehearsal(
            operator, environment(), progress.on_event, setup, comments.append
        ) as container,
    ):
        with progress.live.shown(look_of(container)):
            visit = Worker(container.context, attempts).visit(
                setup.issue.ref, operator_act(container)
            )
        history = container.context.ledger.history(setup.issue.ref)
        waits = container.context.ledger.status(setup.issue.ref).stage is Stage.READY
    problems = (problem_line(visit.issue, visit.problem),) if visit.problem else ()
    done = PassResult((visit,), problems, visit.escalated)
    summarise(done, console, REHEARSE_AGAIN)
    if waits and attempts and not visit.problem:
        console.print(f"This was the limit of {pluralize(attempts, 'attempt')} (`--attempts`).")
    for comment in comments:
        console.print("\nThe comment on the issue would be:")
        show_comment(console, comment)
    if history:
        _say_where(console, operator, setup, config, history)
    # No pass follows that could make the next attempt.
    return Exit.FAILED if visit.skipped or waits else exit_code_of(done)


def _write_configuration(setup: RehearsalSetup, agent: str | None, config: Path | None) -> Path:
    """Write the configuration of the rehearsal, so that later commands can use it."""
    given, policy = settings_for(setup.clone, agent, config)
    place = Path(tempfile.mkdtemp(prefix="mulligan-rehearsal-"))
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
        console.print(f"\nThe last change: {diff}", markup=False, soft_wrap=True)
        mirror = shlex.quote(str(mirror_of(operator, setup)))
        console.print("To fetch it as a branch:")
        fetch = f"git -C {shlex.quote(str(setup.clone))} fetch {mirror} {ref.branch}:{ref.branch}"
        print_command(console, fetch)
    console.print("\nTo see more:")
    inspect = f"{program()} inspect '{ref}'"
    print_command(console, f"{inspect} --config {config}")
    seen = "--log setup" if history[-1].set_up else "--prompt"
    print_command(console, f"{inspect} {seen} --config {config}")
