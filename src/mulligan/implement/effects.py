"""What Mulligan does on GitHub. Each effect may happen twice and shows once; each is recorded."""

import hashlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

import structlog

from mulligan.config.policy import Labels
from mulligan.domain.errors import (
    DeniedError,
    GoneError,
    MisconfiguredError,
    UnavailableError,
    WorldError,
)
from mulligan.domain.events import (
    AttemptCompleted,
    Authorised,
    BroughtUpToDate,
    Drafted,
    EffectDone,
    Escalated,
    Published,
    PublishStarted,
    RetryScheduled,
    StoodDown,
    Waiting,
)
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.issue_context import IssueContext
from mulligan.domain.outcome import Escalate, Outcome, Retry, StandDown, WaitForBudget
from mulligan.domain.result import WorkerResultMeta
from mulligan.domain.status import LATER, PUSH, PUSHED_WORK, SHOWN_STAGE, IssueStatus
from mulligan.implement.budget_meter import spent_today
from mulligan.implement.issue_snapshot import (
    handed_over,
    has_base,
    load_context,
    objection,
    proposed_elsewhere,
    renewal,
    withdrawal,
)
from mulligan.implement.ports import Tools
from mulligan.implement.prompt.feedback import review_answer, thread_answer
from mulligan.implement.result import base_dropped, lost, pushed_over, without_base
from mulligan.sandbox.cancellation import rest

THE_ONE = "issue"
"""The key of what an issue has one of."""

NOT_VERIFIED = frozenset({Outcome.CHECKS_FAILED, Outcome.REJECTED})
"""Outcomes of work that the guards let pass, and that does not hold.

No guard has looked at what an agent left that ran out of time, or gave up.
"""

log = structlog.get_logger()

STATUS_COMMENT, LABEL_COMMENT, HELD, ANSWER = "status_comment", "label_comment", "held", "answer"

VERIFIED = "verified.bundle"

OPENED_BY = (0.0, 1.0, 2.0)
"""After how many seconds to look for the pull request of a branch that somebody has just pushed."""


def done(ref: IssueRef, effect: str, key: str, remote_id: str, tools: Tools) -> None:
    """Record an effect, unless the ledger says so already."""
    if tools.ledger.status(ref).effect(effect, key) != remote_id:
        tools.ledger.append(ref, EffectDone(effect=effect, key=key, remote_id=remote_id))


def expected_remote_head(status: IssueStatus, last: WorkerResultMeta | None) -> str | None:
    """Give the commit that the branch has to be at: what was built on, or was pushed last."""
    if last and last.start_sha != last.base_sha:
        return last.start_sha
    return status.effect(PUSH, status.issue.branch)


def push_work(ref: IssueRef, tools: Tools) -> None:
    """Push what the last attempt left, for people to look at; best effort.

    Never what no guard let pass: it may hold what must not leave this machine.
    """
    last = next(reversed(tools.ledger.history(ref)), None)
    if last is None or last.head_sha is None:
        return
    if last.outcome not in {*NOT_VERIFIED, Outcome.SUCCEEDED}:
        return
    try:
        if why := _unfit(ref, last, tools):
            log.warning("work_not_pushed", issue=str(ref), reason=why)
            return
        pushed = tools.worktrees.push_attempt(ref, last.head_sha, last.number)
    except WorldError as error:
        log.warning("work_not_pushed", issue=str(ref), reason=str(error))
        return
    done(ref, PUSHED_WORK, str(last.number), pushed, tools)


def draft_work(ref: IssueRef, tools: Tools) -> str:
    """Show what the last attempt left as a draft; say why not, where that is refused for good.

    Work that no guard let pass stays here, and so does what was asked for by somebody who may not
    any more, or on another text (SPEC T1), or made on what the base branch has no longer. A pull
    request that is no draft of Mulligan's stays as it is, since what was not verified never takes
    the place of what was; so does one that somebody pushed to.
    """
    last = next(reversed(tools.ledger.history(ref)), None)
    if last is None or last.head_sha is None or last.outcome not in NOT_VERIFIED:
        return ""
    try:
        if _is_taken(ref, last, tools):
            return ""
        case = load_context(tools.tracker.read(ref), tools)
        if why := _unfit(ref, last, tools):
            return why
        _show(case, last, last.head_sha, tools)
    except (DeniedError, MisconfiguredError) as error:
        log.warning("not_drafted", issue=str(ref), reason=str(error))
        _take_back(ref, tools)
        return str(error)
    return ""


def _unfit(ref: IssueRef, last: WorkerResultMeta, tools: Tools) -> str:
    """Check base, people and text once more, right before a push; say why there may be none."""
    if not has_base(ref, last, tools):
        return base_dropped(last)
    wrong = objection(ref, tools)
    return f"{wrong.reason}." if wrong else ""


def _is_taken(ref: IssueRef, last: WorkerResultMeta, tools: Tools) -> bool:
    """Tell whether there is a pull request that must not be changed."""
    status = tools.ledger.status(ref)
    if status.pull_number is None:
        return False
    pull = tools.tracker.pulls.state(ref, status.pull_number)
    if not (status.draft_of and pull.is_open and pull.is_draft):
        return True
    return tools.worktrees.tip(ref) not in {None, last.head_sha, expected_remote_head(status, last)}


def _show(case: IssueContext, last: WorkerResultMeta, head: str, tools: Tools) -> None:
    ref = case.issue.ref
    tools.worktrees.push(ref, head, expected_remote_head(case.status, last))
    done(ref, PUSH, ref.branch, head, tools)
    opened = tools.tracker.open_draft(case, tools.worktrees.base_branch(ref.repository))
    if opened.elsewhere:
        return
    shown = (case.status.draft_of, case.status.pull_number)
    if shown != (last.number, opened.number):
        drafted = Drafted(
            pull_request=opened.url, number=opened.number, head_sha=head, attempt=last.number
        )
        tools.ledger.append(ref, drafted)


def _take_back(ref: IssueRef, tools: Tools) -> None:
    """Remove the branch that no draft came of; best effort."""
    status = tools.ledger.status(ref)
    pushed = status.effect(PUSH, ref.branch)
    if status.pull_number is not None or pushed is None:
        return
    try:
        tools.worktrees.drop(ref, {pushed})
    except WorldError as error:
        log.warning("branch_left", issue=str(ref), reason=str(error))


def announce(case: IssueContext, tools: Tools) -> None:
    """Say on GitHub that an attempt runs; GitHub being away does not stop the attempt."""
    try:
        show(case.issue.ref, tools)
    except UnavailableError as error:
        log.warning("not_announced", issue=str(case.issue.ref), reason=str(error))


def show(ref: IssueRef, tools: Tools) -> None:
    """Make the labels and the status comment say what the ledger says (SPEC L4, H5).

    Where the issue is gone, or its repository archived, nothing can be shown (SPEC L7). A request
    that came while an earlier one was ended keeps its label, and opens its epoch (SPEC L6); a
    command that does so is carried out first.
    """
    if tools.ledger.status(ref).stage is Stage.RESOLVED:
        if tools.ledger.status(ref).is_asked_anew:
            return
        if act := renewal(ref, tools):
            tools.ledger.append(ref, Authorised.of(act))
    stage = tools.ledger.status(ref).stage
    labels = tools.policies.current(ref.repository).labels
    with suppress(GoneError):
        case = load_context(tools.tracker.read(ref), tools)
        if not tools.tracker.repository(ref.repository).archived:
            theirs = _is_theirs(case, labels, tools)
            if not theirs:
                tools.tracker.show_stage(ref, stage, labels)
            if not theirs or case.status.effect(STATUS_COMMENT, THE_ONE):
                update_status_comment(case, tools)
                return
    done(ref, SHOWN_STAGE, THE_ONE, stage, tools)


def _is_theirs(case: IssueContext, labels: Labels, tools: Tools) -> bool:
    """Tell whether the labels show what another installation came to, and are left to it (E4)."""
    status = case.status
    if status.elsewhere or status.stage in {Stage.REVIEW, Stage.HITL}:
        return status.elsewhere
    carried = {name.casefold() for name in case.issue.labels}
    if carried.isdisjoint({labels.review.casefold(), labels.hitl.casefold()}):
        return False
    return handed_over(case.issue.ref, tools) is not None


def tell_late(ref: IssueRef, tools: Tools) -> None:
    """Write the status comment that was put off; the labels were shown, and may be moved since."""
    with suppress(GoneError):
        case = load_context(tools.tracker.read(ref), tools)
        if not tools.tracker.repository(ref.repository).archived:
            update_status_comment(case, tools)
            return
    done(ref, SHOWN_STAGE, THE_ONE, tools.ledger.status(ref).stage, tools)


def update_status_comment(case: IssueContext, tools: Tools) -> None:
    """Write the status comment; where it was written a moment ago, leave that to the next pass."""
    ref, written = case.issue.ref, tools.tracker.update_status(case)
    if written:
        done(ref, STATUS_COMMENT, THE_ONE, written, tools)
    done(ref, SHOWN_STAGE, THE_ONE, case.status.stage if written else LATER, tools)


def ensure_commit_stored(ref: IssueRef, tools: Tools) -> str | None:
    """Keep the commit of a last attempt that succeeded where any worker finds it (SPEC A15).

    None where there is none. One that is gone makes the attempt count as interrupted.
    """
    *_, last = tools.ledger.history(ref)
    if last.outcome is not Outcome.SUCCEEDED:
        return None
    place = tools.artifacts.path(ref, last.number, VERIFIED)
    if last.head_sha and tools.worktrees.restore(ref, last.head_sha, place):
        tools.worktrees.keep(ref, last.head_sha, place)
        tools.artifacts.share(place)
        return last.head_sha
    # A bundle needs the base that it was made on, and so goes with that on another machine.
    again = lost(last) if has_base(ref, last, tools) else without_base(last)
    tools.ledger.append(ref, AttemptCompleted(meta=again))
    return None


def publish(ref: IssueRef, head: str, tools: Tools) -> Escalate | StandDown | None:
    """Push the verified commit and open the pull request; no agent runs, no attempt is spent.

    What GitHub refuses for good comes back as the escalation that follows (SPEC O5), and a
    request that was withdrawn, or is not trusted any more, as the standing down. Where a force-push
    took the base of the work away, nothing is pushed; the attempt is recorded as one that does not
    count, and what follows is to be decided anew.
    """
    try:
        case = load_context(tools.tracker.read(ref), tools)
    except GoneError as error:
        return StandDown(reason=str(error))
    base = tools.worktrees.base_branch(ref.repository)
    settings = tools.policies.current(ref.repository).pull_request
    tools.ledger.append(ref, PublishStarted(head_sha=head))
    elsewhere = proposed_elsewhere(ref, tools)
    # Base, people and text come last, so that nothing happens between them and the push.
    *_, last = case.history
    try:
        is_based = has_base(ref, last, tools)
    except (DeniedError, MisconfiguredError) as error:
        return _unpublished(error)
    if not is_based:
        _note_push(ref, head, tools)
        tools.ledger.append(ref, AttemptCompleted(meta=without_base(last)))
        return None
    if why := stopped(ref, tools) or elsewhere:
        _note_push(ref, head, tools)
        return StandDown(reason=why)
    try:
        tools.worktrees.push(ref, head, expected_remote_head(case.status, last))
        done(ref, PUSH, ref.branch, head, tools)
        opened = tools.tracker.open_pull_request(case, base, settings)
    except DeniedError as error:
        if why := _outrun(case, tools):
            return StandDown(reason=why)
        return _unpublished(error)
    if opened.elsewhere:
        return StandDown(reason=f"Another installation of Mulligan has opened {opened.url}")
    answer(case, head, tools)
    published = Published(
        pull_request=opened.url,
        number=opened.number,
        head_sha=head,
        left_draft=opened.left_draft,
    )
    tools.ledger.append(ref, published)
    show(ref, tools)
    return None


def _unpublished(error: WorldError) -> Escalate:
    fix = "Mend this, then write /mulligan retry; the verified commit is kept."
    return Escalate(reason=f"The verified work could not be published: {error}", fix=fix)


def _note_push(ref: IssueRef, head: str, tools: Tools) -> None:
    """Record a push that Mulligan was killed after, or the branch would pass for somebody else's.

    Best effort: where the branch cannot be read, nothing is recorded.
    """
    with suppress(WorldError):
        if tools.worktrees.tip(ref) == head:
            done(ref, PUSH, ref.branch, head, tools)


def _outrun(case: IssueContext, tools: Tools) -> str | None:
    """Tell whether the branch was taken by another installation, which now opens a pull request."""
    ref = case.issue.ref
    if expected_remote_head(case.status, case.last) is not None or tools.worktrees.tip(ref) is None:
        return None
    for wait in OPENED_BY:
        rest(wait)
        if why := proposed_elsewhere(ref, tools):
            return why
    return None


def has_foreign_push(ref: IssueRef, tools: Tools) -> bool:
    """Tell whether somebody pushed to the pull request while the attempt ran (SPEC P2).

    Its commit is not forced over theirs: the attempt counts as interrupted.
    """
    status, (*_, last) = tools.ledger.status(ref), tools.ledger.history(ref)
    if status.pull_number is None:
        return False
    tip = tools.worktrees.tip(ref)
    if tip and (base := status.merged_since.get(tip)):
        # Whoever merged the base branch was killed before that was on record.
        status = tools.ledger.append(ref, BroughtUpToDate(base_sha=base, head_sha=tip))
    if tip in {None, last.head_sha, expected_remote_head(status, last)}:
        return False
    tools.ledger.append(ref, AttemptCompleted(meta=pushed_over(last)))
    return True


def answer(case: IssueContext, head: str, tools: Tools) -> None:
    """Say what became of each comment on a line, and of each review that has none, once (P3)."""
    ref, status, last = case.issue.ref, case.status, case.last
    if status.feedback is None or status.pull_number is None or last is None:
        return
    pulls, number = tools.tracker.pulls, status.pull_number
    for thread in status.feedback.threads:
        path = next((each.path for each in status.feedback.remarks if each.thread == thread), "")
        text = thread_answer(ref, head, path, last)
        said = partial(pulls.answer, ref, number, thread, text)
        _answer(ref, f"{thread}:{last.number}", said, tools)
    for review, author in status.feedback.reviews.items():
        where = f"{status.pull_request}#pullrequestreview-{review}"
        text = review_answer(head, where, author, last)
        said = partial(pulls.answer_review, ref, number, review, text)
        _answer(ref, f"review:{review}", said, tools)


def _answer(ref: IssueRef, key: str, said: Callable[[], str], tools: Tools) -> None:
    """Answer what was not answered yet; a refusal stops nothing."""
    if tools.ledger.status(ref).effect(ANSWER, key):
        return
    try:
        done(ref, ANSWER, key, said(), tools)
    except DeniedError as error:
        log.warning("not_answered", issue=str(ref), to=key, reason=str(error))


def ask_for_label(ref: IssueRef, act: str, reason: str, tools: Tools) -> None:
    """Have a person look at a text that was changed, once for each act; best effort (SPEC T2)."""
    if tools.ledger.status(ref).effect(LABEL_COMMENT, act):
        return
    try:
        case = load_context(tools.tracker.read(ref), tools)
        done(ref, LABEL_COMMENT, act, tools.tracker.ask_for_label(case, act, reason), tools)
    except WorldError as error:
        log.warning("not_asked", issue=str(ref), reason=str(error))


def stopped(ref: IssueRef, tools: Tools) -> str | None:
    """Ask again whether the work may go on (SPEC L5, T1, T2); give the reason where it may not.

    Where the text is not the one any more that was asked for, a person is told so.
    """
    if why := withdrawal(ref, tools):
        return why
    found = objection(ref, tools)
    if found is None:
        return None
    if found.by_edit:
        ask_for_label(ref, tools.ledger.status(ref).act, found.reason, tools)
    return f"{found.reason}."


def retry(ref: IssueRef, decision: Retry, tools: Tools) -> None:
    """Let the next attempt start: at once, or after its wait."""
    now, step = tools.clock.now(), decision.backoff_step
    due = now + tools.clock.backoff(step) if step else now
    tools.ledger.append(ref, RetryScheduled(due=due, reason=decision.reason))
    if step:
        show(ref, tools)


def wait(ref: IssueRef, decision: WaitForBudget, tools: Tools) -> None:
    """Leave the issue until the next day begins in UTC; or not, where today's budget is there."""
    now = tools.clock.now().astimezone(UTC)
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    rest_until(ref, midnight if spent_today(ref, tools) else now, decision.reason, tools)


def rest_until(ref: IssueRef, until: datetime, reason: str, tools: Tools) -> None:
    """Leave an issue for a while, and say why; nothing is spent."""
    tools.ledger.append(ref, Waiting(until=until, reason=reason))
    show(ref, tools)


def report_blocked(ref: IssueRef, reason: str, tools: Tools) -> None:
    """Say on an issue, once, what keeps its repository from being worked on; nothing is spent."""
    status = tools.ledger.status(ref)
    told = f"{status.epoch}:{hashlib.sha256(reason.encode()).hexdigest()}"
    if status.reason == reason and status.effect(HELD, THE_ONE) == told:
        return
    if status.reason != reason:
        tools.ledger.append(ref, Waiting(until=None, reason=reason))
    show(ref, tools)
    done(ref, HELD, THE_ONE, told, tools)


def escalate(ref: IssueRef, decision: Escalate, tools: Tools) -> StandDown | None:
    """Hand the issue to a person: the comment first, then the label (SPEC H1).

    Nobody is asked about a request that was withdrawn; the standing down comes back.
    """
    if why := withdrawal(ref, tools) or proposed_elsewhere(ref, tools):
        return StandDown(reason=why)
    escalation = tools.policies.current(ref.repository).escalation
    no_draft = draft_work(ref, tools) if escalation.draft_pr else ""
    if escalation.push_work:
        push_work(ref, tools)
    case = replace(load_context(tools.tracker.read(ref), tools), no_draft=no_draft)
    comment = tools.tracker.ask_for_help(case, escalation)
    tools.ledger.append(ref, Escalated(reason=decision.reason, comment=comment))
    show(ref, tools)
    return None


def stand_down(ref: IssueRef, decision: StandDown, tools: Tools) -> None:
    """Leave an issue alone that was withdrawn, and take Mulligan's labels off it.

    Where another installation has settled it, the labels are left to that one.
    """
    elsewhere = handed_over(ref, tools) is not None
    tools.ledger.append(ref, StoodDown(reason=decision.reason, elsewhere=elsewhere))
    show(ref, tools)
