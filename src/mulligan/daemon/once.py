"""One pass: recover, publish what is pending, then work each due issue until it rests."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from mulligan.daemon.commands import known_of, record_commands
from mulligan.daemon.daemon import run_periodically
from mulligan.daemon.poll import poll
from mulligan.daemon.recovery import recover
from mulligan.daemon.worker import PoolDispatcher, Visit, Worker
from mulligan.domain.issue import IssueRef
from mulligan.implement.ports import BotContext


@dataclass(frozen=True, slots=True)
class PassResult:
    """What one pass came to: the visits, and a sentence for everything that failed."""

    visits: tuple[Visit, ...] = ()
    problems: tuple[str, ...] = ()
    escalated: bool = False


@dataclass(frozen=True, slots=True)
class PassLimits:
    """How far a pass goes: attempts for each issue, and issues; None for no limit of its own."""

    attempts: int | None = None
    issues: int | None = None
    watch_interval: timedelta = timedelta(seconds=30)


def run_once(
    repositories: Sequence[str], context: BotContext, extent: PassLimits | None = None
) -> PassResult:
    """Make one pass over the repositories."""
    extent = extent or PassLimits()
    worker, visits = Worker(context, extent.attempts), list[Visit]()
    recovered = recover(context, worker, repositories)
    found, failed = poll(repositories, context, worker)
    failed = {**_invalid(repositories, context), **failed}
    due = [ref for ref in found if ref not in recovered.failed][: extent.issues]

    def work(ref: IssueRef) -> None:
        visits.append(worker.visit(ref))

    limits = context.limits

    def watch() -> None:
        for repository in {ref.repository for ref in worker.running}:
            record_commands(repository, known_of(repository, context), context)
        worker.watch()
        for ref in worker.running:
            worker.answer_queries(ref)

    ticks = {"watch": (watch, lambda: extent.watch_interval)}
    with (
        run_periodically(ticks, context.clock.now()),
        PoolDispatcher(work, limits.concurrency, limits.per_repository) as dispatcher,
    ):
        dispatcher.wake(due)
        dispatcher.drain()
    problems = [
        *(f"{repository}: {problem}" for repository, problem in failed.items()),
        *(problem_line(ref, problem) for ref, problem in recovered.failed.items()),
        *(problem_line(done.issue, done.problem) for done in visits if done.problem),
    ]
    escalated = recovered.escalated or any(done.escalated for done in visits)
    return PassResult(
        tuple(sorted(visits, key=lambda done: done.issue)), tuple(problems), escalated
    )


def problem_line(ref: IssueRef, problem: str) -> str:
    """Say of which issue a problem is, unless it says so itself."""
    return problem if problem.startswith(f"{ref} ") else f"{ref}: {problem}"


def _invalid(repositories: Sequence[str], context: BotContext) -> dict[str, str]:
    """Say which policies keep all issues of their repository waiting (SPEC 17)."""
    faults = {name: context.policies.fault(name) for name in repositories}
    return {name: f"Its policy is invalid: {wrong}" for name, wrong in faults.items() if wrong}
