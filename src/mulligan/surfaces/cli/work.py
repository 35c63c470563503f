"""`mulligan once` and `mulligan work`: run agents, and tell what happens as it happens."""

from contextlib import AbstractContextManager
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from mulligan.config.operator import Operator
from mulligan.domain.issue import AuthorisingAct, IssueRef
from mulligan.engine.once import Extent, Pass, told
from mulligan.engine.once import once as make_pass
from mulligan.engine.recovery import catch_up, recover
from mulligan.engine.watch import Listener
from mulligan.engine.worker import Worker
from mulligan.stop import stopping
from mulligan.surfaces.cli.exits import Exit
from mulligan.surfaces.cli.setup import (
    environment,
    make_console,
    read_configuration,
    served,
    start_logs,
    stop_on_signals,
)
from mulligan.surfaces.cli.story import Story
from mulligan.wiring.bench import Bench, build, build_dry
from mulligan.wiring.confinement import warn_of_root
from mulligan.wiring.records import lock_state


def once(config: Path | None, attempts: int | None, limit: int | None) -> Exit:
    """Make one pass over all repositories."""
    operator, console = read_configuration(config), make_console()
    start_logs()
    warn_of_root()
    stop_on_signals()
    extent = Extent(attempts, limit, operator.poll.interval)
    with lock_state(operator, "once"), build(operator, environment(), teller(console)) as bench:
        done = make_pass(bench.repositories, bench.tools, extent)
        summarise(done, console)
        catch_up(bench.tools, Worker(bench.tools), bench.repositories)
    return code_of(done)


def work(issue: str, config: Path | None, *, dry_run: bool) -> Exit:
    """Make one attempt at one issue, at the operator's word."""
    operator, console = read_configuration(config), make_console()
    ref = served(IssueRef.parse(issue), operator)
    start_logs()
    warn_of_root()
    stop_on_signals()
    with lock_state(operator, "work"), _bench(operator, console, dry_run=dry_run) as bench:
        worker = Worker(bench.tools, most=1)
        failed = recover(bench.tools, worker, bench.repositories).failed
        bench.tools.worktrees.refresh(ref.repository)
        visit = worker.visit(ref, _operators_act(bench))
        problems = [told(ref, why) for ref, why in failed.items()]
        problems += [told(ref, visit.problem)] if visit.problem else []
        done = Pass((visit,), tuple(problems), visit.escalated)
        if dry_run:
            console.print("A dry run: nothing was written to GitHub, the remote or the ledger.")
        summarise(done, console)
        catch_up(bench.tools, worker, bench.repositories)
    return Exit.FAILED if visit.skipped else code_of(done)


def teller(console: Console) -> Listener:
    """Give a listener that prints the story of every issue."""
    return Story(console).hear


def _bench(operator: Operator, console: Console, *, dry_run: bool) -> AbstractContextManager[Bench]:
    if not dry_run:
        return build(operator, environment(), teller(console))

    def say(what: str) -> None:
        headline, *text = what.splitlines()
        console.print(f"    [cyan]{escape(headline)}[/]", emoji=False)
        for line in text[1:]:
            console.print(f"    [dim]│[/] {escape(line)}".rstrip(), emoji=False)

    return build_dry(operator, environment(), teller(console), say)


def _operators_act(bench: Bench) -> AuthorisingAct:
    now = bench.tools.clock.now()
    return AuthorisingAct(f"operator:{now.isoformat()}", "", now, trusted=True)


def summarise(done: Pass, console: Console) -> None:
    """Say what was skipped, and what failed."""
    for each in done.visits:
        if each.skipped:
            console.print(f"[cyan]{escape(str(each.issue))}[/]  skipped: {escape(each.skipped)}")
    if not done.visits and not done.problems:
        console.print("No issue asks for work.")
    for problem in done.problems:
        console.print(f"[red]failed[/]  {escape(problem)}")


def code_of(done: Pass) -> Exit:
    """Give the exit code of a pass."""
    if stopping():
        return Exit.INTERRUPTED
    if done.problems:
        return Exit.FAILED
    return Exit.ESCALATED if done.escalated else Exit.DONE
