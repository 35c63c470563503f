"""Run one pass for `mulligan once`: recover, poll, then visit each due issue until it rests."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from mulligan.daemon.commands import known_of, record_commands
from mulligan.daemon.daemon import run_periodically
from mulligan.daemon.poll import admit_waiting, holds_on, poll, show_holds
from mulligan.daemon.recovery import recover
from mulligan.daemon.worker import PoolDispatcher, Visit, Worker
from mulligan.domain.eligibility import describe_wait
from mulligan.domain.explanation import describe_review
from mulligan.domain.issue import IssueRef, Stage
from mulligan.implement.ports import BotContext, Policies


@dataclass(frozen=True, slots=True)
class PassResult:
    """The result of one pass: its visits, and a sentence for each failure, pause and owner.

    `waiting` has a sentence for each issue that waits for a time, if nothing was due.
    """

    visits: tuple[Visit, ...] = ()
    problems: tuple[str, ...] = ()
    escalated: bool = False
    paused: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PassLimits:
    """The limits of a pass: attempts for each issue, and issues; None for no limit."""

    attempts: int | None = None
    issues: int | None = None
    watch_interval: timedelta = timedelta(seconds=30)


def run_once(
    repositories: Sequence[str], context: BotContext, extent: PassLimits | None = None
) -> PassResult:
    """Make one pass over the repositories, within the limits of `extent`."""
    extent = extent or PassLimits()
    worker, visits = Worker(context, extent.attempts), list[Visit]()
    recovered = recover(context, worker, repositories)
    found, failed = poll(repositories, context, worker)
    failed = {**_invalid(repositories, context.policies), **failed}
    held = holds_on(found, context)
    due = [ref for ref in found if ref not in recovered.failed and ref.repository not in held]
    admit_waiting(due, context, worker, min(context.limits.concurrency, extent.issues or len(due)))
    due = due[: extent.issues]

    def work(ref: IssueRef) -> None:
        visits.append(worker.visit(ref))

    limits = context.limits

    def watch() -> None:
        for repository in {ref.repository for ref in worker.running}:
            record_commands(repository, known_of(repository, context.ledger), context)
        worker.watch()
        for ref in worker.running:
            worker.answer_queries(ref)

    jobs = {"watch": (watch, lambda: extent.watch_interval)}
    with (
        run_periodically(jobs, context.clock.now()),
        PoolDispatcher(work, limits.concurrency, limits.per_repository) as dispatcher,
    ):
        dispatcher.wake(due)
        dispatcher.drain()
    show_holds(found, holds_on(found, context), context, worker)
    problems = [
        *dict.fromkeys(hold.reason for hold in held.values() if hold.is_fault),
        *(f"{repository}: {problem}" for repository, problem in failed.items()),
        *(problem_line(ref, problem) for ref, problem in recovered.failed.items()),
        *(problem_line(done.issue, done.problem) for done in visits if done.problem),
    ]
    escalated = recovered.escalated or any(done.escalated for done in visits)
    return PassResult(
        tuple(sorted(visits, key=lambda done: done.issue)),
        tuple(problems),
        escalated,
        (
            *(back.sentence for back in context.owners.standing_back()),
            *dict.fromkeys(hold.reason for hold in held.values() if not hold.is_fault),
        ),
        () if visits else tuple(_waiting(repositories, context)),
    )


def _waiting(repositories: Sequence[str], context: BotContext) -> Iterator[str]:
    """Describe the issues whose next attempt, or the answer to a review, waits for a time."""
    now = context.clock.now()
    for status in context.ledger.statuses():
        settles = status.reviews_settle_at
        message = (
            describe_review(status) if settles and settles > now else describe_wait(status, now)
        )
        if (
            message
            and status.issue.repository in repositories
            and status.stage is not Stage.RESOLVED
        ):
            yield f"{status.issue}: {message}"


def problem_line(ref: IssueRef, problem: str) -> str:
    """Prefix a problem with its issue, unless it begins with it."""
    return problem if problem.startswith(f"{ref} ") else f"{ref}: {problem}"


def _invalid(repositories: Sequence[str], policies: Policies) -> dict[str, str]:
    """Return the repositories whose invalid policy blocks all their issues (CONFIG-3)."""
    faults = {name: policies.fault(name) for name in repositories}
    return {name: f"Its policy is invalid: {wrong}" for name, wrong in faults.items() if wrong}
