"""Poll the repositories for due issues, commands and pull requests, each on its own."""

import time
from collections import defaultdict
from collections.abc import Generator, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from threading import BoundedSemaphore, Lock

import structlog

from mulligan.daemon.commands import execute_commands, record_commands
from mulligan.daemon.pull_requests import PullRequestCache, follow_pull_requests
from mulligan.daemon.recovery import end_closed, recover, stand_down_unlabelled
from mulligan.daemon.restoration import may_be_lost, restore_repository
from mulligan.daemon.worker import (
    BUG_MESSAGE,
    Visit,
    Worker,
    agents_fail,
    hold_on,
    is_queued,
    waits_for_answer,
)
from mulligan.domain.errors import (
    GoneError,
    MisconfiguredError,
    MulliganError,
    ShutdownError,
    StandsBackError,
    WorldError,
)
from mulligan.domain.hold import Hold
from mulligan.domain.in_hand import CHECK_INTERVAL, waits_in_hand
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.order import in_order, is_due, may_start
from mulligan.domain.status import IssueStatus
from mulligan.implement.phase import resume
from mulligan.implement.ports import BotContext, LedgerReader, ReadContext, WriteContext
from mulligan.sandbox.cancellation import sleep_until_cancelled, stopping

REQUESTS_PER_MINUTE = 600
"""Requests that one token may send; GitHub's secondary limit counts unchanged answers as well."""

REQUESTS_PER_POLL = 3
"""Requests for one repository: its list, and room for further pages and for issues at work."""

POLLED_AT_ONCE = 4
"""Repositories that are polled at a time: the poll of an idle one waits for git and for GitHub."""

SPREAD = 0.8
"""The part of the interval that the polls of many repositories are spread over.

So the requests stay below REQUESTS_PER_MINUTE, and the pass ends before the next one is due.
"""

BURST = timedelta(seconds=5)
"""How far the polls may be ahead of that, so that a few repositories do not wait for their turn."""

MAX_ASKED = 100
"""Issues in one query; further ones are visited."""

MAX_POLICY_AGE = timedelta(minutes=5)
"""The most that the policy of a repository without work is out of date; a fetch costs 20 ms."""

MAX_AGE_BEFORE_WORK = timedelta(seconds=5)
"""The most that the base branch and policy are out of date when work starts."""

log = structlog.get_logger()

KnownIssues = dict[IssueRef, IssueStatus]
"""The statuses of one repository's issues."""

Polled = tuple[list[IssueRef], dict[str, str]]
"""The issues that may be due, and an error for each failure."""


def poll_interval(
    interval: timedelta, repositories: int, requests: int = REQUESTS_PER_POLL
) -> timedelta:
    """Return the time between two polls: `interval`, or more to stay within REQUESTS_PER_MINUTE."""
    return max(interval, timedelta(minutes=1) * repositories * requests / REQUESTS_PER_MINUTE)


@dataclass(frozen=True, slots=True)
class InHandCache:
    """When each repository's issues that wait for others' pull requests were last asked about.

    `seen` is when each of these issues had changed last.
    """

    asked: dict[str, datetime] = field(default_factory=dict[str, datetime])
    seen: dict[IssueRef, datetime] = field(default_factory=dict[IssueRef, datetime])

    def due(
        self, repository: str, due: list[IssueRef], known: KnownIssues, context: ReadContext
    ) -> list[IssueRef]:
        """Keep only those waiting issues that are free or have changed; ask every CHECK_INTERVAL.

        One query asks for all of them (HAND-1).
        """
        waiting = [ref for ref in due if (status := known.get(ref)) and waits_in_hand(status)]
        if not waiting:
            return due
        now, last = context.clock.now(), self.asked.get(repository)
        free = set[IssueRef]()
        if last is None or not last <= now < last + CHECK_INTERVAL:
            self.asked[repository] = now
            free = self._free(repository, waiting, context)
        return [ref for ref in due if ref in free or ref not in waiting]

    def _free(
        self, repository: str, waiting: Sequence[IssueRef], context: ReadContext
    ) -> set[IssueRef]:
        try:
            found = context.tracker.closers(repository, [ref.number for ref in waiting[:MAX_ASKED]])
        except WorldError as error:
            # One issue that was deleted fails the query; each visit asks for its own issue.
            log.warning("waiting_issues_not_read", repository=repository, reason=str(error))
            return set(waiting)
        free = set[IssueRef]()
        for ref in waiting:
            closers = found.get(ref.number)
            if closers is None or not closers.pulls or self.seen.get(ref) != closers.updated_at:
                free.add(ref)
            if closers:
                self.seen[ref] = closers.updated_at
        return free


@dataclass(frozen=True, slots=True)
class FetchCache:
    """When each repository was last fetched, and the pull requests last read.

    `restored` are the repositories whose ledger was checked for a loss; `contested` are those that
    another installation owned at the last poll. `polling` has a lock for each repository, which one
    thread at a time polls. The `threads` keep their connections to GitHub between polls.
    """

    fetched: dict[str, datetime] = field(default_factory=dict[str, datetime])
    pull_request_cache: PullRequestCache = field(default_factory=PullRequestCache)
    in_hand_cache: InHandCache = field(default_factory=InHandCache)
    restored: set[str] = field(default_factory=set[str])
    contested: set[str] = field(default_factory=set[str])
    polling: dict[str, Lock] = field(default_factory=dict[str, Lock])
    threads: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(POLLED_AT_ONCE, thread_name_prefix="poll")
    )

    def fetch_if_older(self, repository: str, context: ReadContext, oldest: timedelta) -> str:
        """Fetch the base branch and its policy, unless the last fetch is newer than `oldest`.

        Return what is wrong with a missing base branch, or "". It does not stop the poll: each
        attempt reports it on its issue.
        """
        now, last = context.clock.now(), self.fetched.get(repository)
        if last is not None and last <= now < last + oldest:
            return ""
        wrong = ""
        try:
            context.worktrees.fetch_base(repository)
        except MisconfiguredError as error:
            wrong = str(error)
        self.fetched[repository] = now
        return wrong


def poll(
    repositories: Iterable[str],
    context: BotContext,
    worker: Worker,
    freshness: FetchCache | None = None,
    *,
    is_for_others: bool = False,
) -> Polled:
    """Poll every repository; return the issues that may be due, and an error for each failure.

    Those with due issues are fetched again, unless other workers, with their own mirrors, visit
    them.

    A failed repository does not stop the others. One that another installation owns is skipped;
    `context.owners` lists it. domain/eligibility.py decides later, on fresh
    facts, whether an issue may be worked on. `freshness` keeps the fetch times between polls.
    """
    freshness = freshness or FetchCache()
    known = _known(context.ledger)
    polled, free = list[Future[Polled]](), BoundedSemaphore(POLLED_AT_ONCE)
    for repository in _in_turn(repositories):
        free.acquire()
        call = partial(_poll_safely, repository, known[repository], context, worker, freshness)
        started = freshness.threads.submit(copy_context().run, call, is_for_others=is_for_others)
        started.add_done_callback(lambda _: free.release())
        polled.append(started)
    found, failed = list[IssueRef](), dict[str, str]()
    for each in polled:
        due, problems = each.result()
        found += due
        failed |= problems
    return found, failed


def _in_turn(repositories: Iterable[str]) -> Generator[str]:
    """Yield each repository when it may be polled; end when Mulligan is stopping."""
    spacing, began = poll_interval(timedelta(), 1) * SPREAD, time.monotonic()
    for number, repository in enumerate(repositories):
        turn = began + (number * spacing - BURST).total_seconds()
        try:
            sleep_until_cancelled(turn - time.monotonic())
        except ShutdownError:
            return
        if stopping():
            return
        yield repository


def _poll_safely(
    repository: str,
    known: KnownIssues,
    context: BotContext,
    worker: Worker,
    freshness: FetchCache,
    *,
    is_for_others: bool,
) -> Polled:
    """Poll a repository, and fetch it again if it has due issues; return what failed."""
    try:
        with freshness.polling.setdefault(repository, Lock()):
            if stopping():
                return [], {}
            polled = _poll_one(repository, known, context, worker, freshness)
            if polled[0] and not is_for_others:
                freshness.fetch_if_older(repository, context, MAX_AGE_BEFORE_WORK)
            return polled
    except ShutdownError:
        return [], {}
    except MulliganError as error:
        return [], {repository: str(error)}
    except Exception:
        log.exception("poll_failed", repository=repository)
        return [], {repository: BUG_MESSAGE}


def _poll_one(
    repository: str,
    known: KnownIssues,
    context: BotContext,
    worker: Worker,
    freshness: FetchCache,
) -> Polled:
    """Fetch and poll a repository, unless another installation owns it."""
    wrong = freshness.fetch_if_older(repository, context, MAX_POLICY_AGE)
    failed = {repository: wrong} if wrong else {}
    try:
        _own(repository, known, context, freshness)
        _restore(repository, known, context, worker, freshness)
        due, problems = _poll_repository(
            *(repository, known, context, worker),
            *(freshness.pull_request_cache, freshness.in_hand_cache),
        )
        if due:
            context.owners.require(repository, fresh=False)
    except StandsBackError:
        freshness.contested.add(repository)
        return [], failed
    return due, failed | problems


MAX_ADMITTED = 10
"""Issues that one poll admits: each takes some requests and a comment, which GitHub limits."""


def admit_waiting(
    due: Sequence[IssueRef], context: BotContext, worker: Worker, places: int
) -> None:
    """Record and show the new issues that must wait, since the others take all `places`.

    `places` is how many attempts may run at a time. The rest is admitted by the next polls.
    """
    known = {each.issue: each for each in context.ledger.statuses()}
    running = {ref for ref, each in known.items() if each.stage is Stage.RUNNING}
    idle = [ref for ref in due if ref not in running]
    first = {*may_start(idle, running, places, context.limits.per_repository)}
    shown = {ref for ref, each in known.items() if each.epoch or each.reason}
    for ref in [ref for ref in idle if ref not in first and ref not in shown][:MAX_ADMITTED]:
        if problem := worker.admit(ref).problem:
            log.warning("not_admitted", issue=str(ref), reason=problem)


def holds_on(refs: Iterable[IssueRef], context: BotContext) -> dict[str, Hold]:
    """Return the repositories of these issues in which no attempt may begin now."""
    found = {name: hold_on(name, context) for name in {ref.repository for ref in refs}}
    return {name: hold for name, hold in sorted(found.items()) if hold}


def show_holds(
    refs: Iterable[IssueRef], held: Mapping[str, Hold], context: BotContext, worker: Worker
) -> None:
    """Show on waiting issues, once and some in each poll, that no attempt can start (OUTCOME-6)."""
    shown = {name: context.redactor.text(hold.on_issues) for name, hold in held.items()}
    reasons = {ref: reason for ref in refs if (reason := shown.get(ref.repository))}
    if not reasons:
        return
    known, now = {each.issue: each for each in context.ledger.statuses()}, context.clock.now()

    def is_unshown(ref: IssueRef) -> bool:
        status = known.get(ref)
        if status is None or not (status.epoch or status.reason):
            return True
        return status.reason != reasons[ref] and status.may_show_hold(now)

    for ref in [ref for ref in reasons if is_unshown(ref)][:MAX_ADMITTED]:
        if problem := worker.hold(ref, reasons[ref]).problem:
            log.warning("hold_not_shown", issue=str(ref), reason=problem)


def _end_holds(
    repository: str, known: KnownIssues, context: BotContext, worker: Worker
) -> KnownIssues:
    """Queue the issues again that waited for an agent, once one of its runs got through."""
    held = [ref for ref, status in known.items() if status.is_held]
    if not held or agents_fail(repository, context):
        return {}
    for ref in held[:MAX_ADMITTED]:
        if problem := worker.end_hold(ref).problem:
            log.warning("hold_not_ended", issue=str(ref), reason=problem)
    return {ref: context.ledger.status(ref) for ref in held}


def _known(ledger: LedgerReader) -> defaultdict[str, KnownIssues]:
    """Read the ledger once for all repositories."""
    known = defaultdict[str, KnownIssues](dict)
    for status in ledger.statuses():
        known[status.issue.repository][status.issue] = status
    return known


def _own(repository: str, known: KnownIssues, context: BotContext, freshness: FetchCache) -> None:
    """Own a repository with open work, or raise StandsBackError (OWNER-1).

    Without work, nothing is claimed until there is something to write.
    """
    is_contested = context.owners.is_contested(repository)
    if is_contested:
        freshness.contested.add(repository)
    is_open = any(each.epoch and each.stage is not Stage.RESOLVED for each in known.values())
    if is_contested or is_open:
        context.owners.require(repository, fresh=False)


def _restore(
    repository: str,
    known: KnownIssues,
    context: BotContext,
    worker: Worker,
    freshness: FetchCache,
) -> None:
    """Rebuild a repository's issues if the ledger may not know them: once, and after a takeover.

    Escalate where that fails.
    """
    is_lost = repository not in freshness.restored and may_be_lost(
        repository, known, context.ledger
    )
    if is_lost or repository in freshness.contested:
        found = restore_repository(repository, known, context)
        if found:
            recover(context, worker, [repository])
        known |= {ref: context.ledger.status(ref) for ref in found}
    freshness.restored.add(repository)
    freshness.contested.discard(repository)


def _poll_repository(
    repository: str,
    known: KnownIssues,
    context: BotContext,
    worker: Worker,
    pull_request_cache: PullRequestCache,
    in_hand_cache: InHandCache,
) -> Polled:
    """List the due issues of a repository, in the order in which they are worked on.

    Return also an error for each pull request that could not be read. Commands are read first and
    executed last, so that a closed pull request does not end a request made after it.
    """
    known |= _end_holds(repository, known, context, worker)
    commanded = _read_commands(repository, known, context, worker)
    labelled = _labelled(repository, known, context, worker)
    followed = follow_pull_requests(repository, known.values(), context, worker, pull_request_cache)
    known |= {done.issue: context.ledger.status(done.issue) for done in followed}
    _execute_all(commanded, known, context, worker)
    stand_down_unlabelled((status for ref, status in known.items() if ref not in labelled), worker)
    _end_closed(repository, known, labelled, context, worker)
    requested = (
        ref for ref, status in known.items() if status.request.by_command and is_queued(status)
    )
    now = context.clock.now()
    wanted = (ref for ref in labelled if not _is_ended(ref, commanded, known))
    due = in_order(
        (ref for ref in wanted if is_due(known.get(ref), now)),
        (ref for ref in requested if is_due(known.get(ref), now)),
        _with_feedback(known, context),
    )
    due = in_hand_cache.due(repository, due, known, context)
    return due, {str(done.issue): done.problem for done in followed if done.problem}


def _read_commands(
    repository: str, known: KnownIssues, context: WriteContext, worker: Worker
) -> list[IssueRef]:
    """Record new commands, stop the attempts that they end, and return their issues."""
    recorded = record_commands(repository, known, context)
    pending = [ref for ref, status in known.items() if status.pending]
    commanded = list(dict.fromkeys([*pending, *recorded]))
    worker.cancel_commanded(commanded)
    return commanded


def _labelled(
    repository: str, known: KnownIssues, context: ReadContext, worker: Worker
) -> Sequence[IssueRef]:
    """List the labelled issues; if the repository is gone, stand down from all queued ones."""
    labels = context.policies.in_force(repository).labels
    try:
        return context.tracker.list_labelled(repository, labels.ready, labels.priority)
    except GoneError:
        stand_down_unlabelled(known.values(), worker)
        raise


def _end_closed(
    repository: str,
    known: KnownIssues,
    labelled: Sequence[IssueRef],
    context: ReadContext,
    worker: Worker,
) -> None:
    """End the issues that wait for a maintainer and were closed: one list, free if unchanged."""
    waiting = [status for status in known.values() if waits_for_answer(status)]
    if waiting:
        label = context.policies.in_force(repository).labels.hitl
        listed = {*labelled, *context.tracker.list_labelled(repository, label)}
        end_closed((status for status in waiting if status.issue not in listed), worker)


def _execute_all(
    refs: Sequence[IssueRef], known: KnownIssues, context: ReadContext, worker: Worker
) -> None:
    """Answer queries, and execute the pending commands of each issue under its lease."""
    for ref in refs:
        worker.answer_queries(ref)
        done = worker.run_leased(ref, partial(_execute_commands, ref))
        if done.problem:
            log.warning("command_not_carried_out", issue=str(ref), reason=done.problem)
        known[ref] = context.ledger.status(ref)


def _execute_commands(ref: IssueRef, context: BotContext) -> Visit:
    resume(ref, context)
    execute_commands(ref, context)
    return Visit(ref)


def _with_feedback(known: KnownIssues, context: ReadContext) -> list[IssueRef]:
    """List the issues whose pull request needs another attempt, whatever their labels."""
    pending = [ref for ref, status in known.items() if status.feedback]
    fresh, now = map(context.ledger.status, pending), context.clock.now()
    ready = (each for each in fresh if each.feedback and each.stage is Stage.READY)
    return [each.issue for each in ready if is_due(each, now)]


def _is_ended(ref: IssueRef, commanded: Sequence[IssueRef], known: KnownIssues) -> bool:
    """Return whether a command of this poll ended an issue, which was labelled before."""
    status = known.get(ref)
    return ref in commanded and status is not None and status.stage is Stage.RESOLVED
