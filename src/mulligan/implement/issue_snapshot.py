"""Read an issue's current facts from GitHub, the ledger and the policy."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path

from mulligan.config.policy import Learnings
from mulligan.domain.eligibility import (
    Facts,
    cycle_reason,
    dependency_reason,
    find_cycle,
    ignored_reason,
    is_newer_request,
    with_line,
)
from mulligan.domain.errors import (
    DeniedError,
    GoneError,
    MisconfiguredError,
    RefusedError,
    UnconfirmedError,
    WorldError,
)
from mulligan.domain.events import Escalated
from mulligan.domain.feedback import describe_other_base
from mulligan.domain.in_hand import describe_in_hand, insists
from mulligan.domain.issue import (
    Act,
    AuthorisingAct,
    Comment,
    CommentAct,
    Edit,
    Issue,
    IssueRef,
    Objection,
    Stage,
)
from mulligan.domain.issue_context import IssueContext
from mulligan.domain.learning import Learning, in_force
from mulligan.domain.meanwhile import Missed, changed_parts, find_missed, given_to
from mulligan.domain.outcome import Outcome
from mulligan.domain.recorded_effects import (
    CommandAnswered,
    LabelRequested,
    ReviewAnswered,
    StatusWritten,
)
from mulligan.domain.result import WorkerResultMeta
from mulligan.domain.status import IssueStatus
from mulligan.domain.verification import Verification
from mulligan.implement.agent_selection import missing_agent, rests_until
from mulligan.implement.budget_meter import spent_today
from mulligan.implement.decide import (
    AttemptsLeft,
    BaseDropped,
    ClosedByOthers,
    CommitLost,
    LostWork,
    PublicationRefused,
    RetryPolicy,
    Situation,
    StartFacts,
    TakenElsewhere,
    Withdrawn,
    count_spent,
    epoch_of,
    is_foreign,
    round_of,
)
from mulligan.implement.ports import (
    Artifacts,
    LedgerReader,
    ReadContext,
    Tracker,
    Worktrees,
)
from mulligan.implement.prompt.outcome_text import verification_text
from mulligan.implement.prompt.patterns import find_patterns
from mulligan.implement.result import base_dropped
from mulligan.text.commands import parse
from mulligan.text.dependencies import (
    MAX_DEPENDENCIES,
    Dependency,
    dependencies,
    depends_on_itself,
)

# The facts for the rules of domain/eligibility.py.


def collect_facts(ref: IssueRef, context: ReadContext, act: AuthorisingAct | None = None) -> Facts:
    """Read the facts that decide whether an issue may be worked on (domain/eligibility.py).

    `act` is an operator's command; without one, the request is read from GitHub. The text is read
    before its edits, so that no edit is missed in between.
    """
    with context.tracker.cached_reads():
        return _collect_facts(ref, context, act)


def _collect_facts(ref: IssueRef, context: ReadContext, act: AuthorisingAct | None) -> Facts:
    issue = context.tracker.read(ref, with_comments=True)
    labels = context.policies.in_force(ref.repository).labels
    ready = labels.ready
    before = context.ledger.status(ref)
    replaces_label = act is not None and before.request.by_label
    withdrawn = replaces_label and bool(withdrawal(ref, context))
    if act is None and not issue.is_pull_request:
        act = _request(ref, ready, context)
    archived = context.tracker.repository(ref.repository).archived
    left_to = pull_request_elsewhere(ref, context) if before.elsewhere else ""
    return Facts(
        issue=issue,
        status=context.ledger.status(ref),
        act=act,
        ready_label=ready,
        now=context.clock.now(),
        archived=archived,
        policy_fault=context.policies.fault(ref.repository),
        withdrawn=withdrawn,
        waits_for=_waits_for(issue, context),
        elsewhere=left_to,
        other_base=other_base(ref, context),
        in_hand=in_hand(ref, act.act if act else None, context),
        other_labels=labels.others,
    )


def in_hand(ref: IssueRef, act: Act | None, context: ReadContext) -> str:
    """Say which open pull requests of others close the issue; empty if a person insists.

    Once Mulligan has opened its own, people choose between the two.
    """
    status = context.ledger.status(ref)
    if act is None or insists(act, status) or status.pull.number is not None:
        return ""
    found = context.tracker.closers(ref.repository, [ref.number])
    return describe_in_hand(found[ref.number].pulls) if ref.number in found else ""


def _request(ref: IssueRef, ready: str, context: ReadContext) -> AuthorisingAct | None:
    """Return the request: the label, or the command that opened the epoch if that is newer."""
    status = context.ledger.status(ref)
    labelled = context.tracker.authorising_act(ref, ready)
    if not status.request.by_command or (
        labelled and labelled.trusted and is_newer_request(labelled, status)
    ):
        return labelled
    return context.tracker.reauthorise(ref, status)


# The facts for the start of an attempt.


def read_start(facts: Facts, context: ReadContext, *, has_kept_commit: bool) -> StartFacts:
    """Read agent, disk, budget and key for an attempt at an admitted issue."""
    ref, case = facts.issue.ref, load_context(facts.issue, context)
    short, spent = context.disk_shortage(), spent_today(ref, context)
    last = case.last if has_kept_commit else None
    return StartFacts(
        status=context.ledger.status(ref),
        at_once=facts.at_once,
        has_kept_commit=has_kept_commit,
        verification=verification_text(Verification.of(last)) if last else "",
        disk_shortage=short,
        has_worktree=bool(short) and context.worktrees.exists(ref),
        budget_used_up=spent.reason if spent else "",
        agent_unavailable=rests_until(case, context),
        agent_missing=missing_agent(case, context),
    )


def bundle_of(ref: IssueRef, attempt: WorkerResultMeta, artifacts: Artifacts) -> Path:
    """Return the file that stores the verified commit of an attempt."""
    return artifacts.path(ref, attempt.number, "verified.bundle")


def find_commit(
    ref: IssueRef, attempt: WorkerResultMeta, bundle: Path, worktrees: Worktrees
) -> str | LostWork:
    """Return the verified commit of an attempt, from here or its bundle, or how it was lost."""
    head = attempt.head_sha if attempt.outcome is Outcome.SUCCEEDED else None
    if head and worktrees.ensure_commit(ref, head, bundle):
        return head
    # A bundle needs the commit it is based on, which a force-push may have removed elsewhere.
    is_based = base_has_start(ref, attempt, worktrees)
    return CommitLost(attempt) if is_based else BaseDropped(attempt)


def find_kept_commit(ref: IssueRef, context: ReadContext) -> str | LostWork | None:
    """Return the verified commit that an earlier attempt kept, if one did."""
    if not context.ledger.status(ref).is_kept:
        return None
    last = context.ledger.history(ref)[-1]
    return find_commit(ref, last, bundle_of(ref, last, context.artifacts), context.worktrees)


# The context for the steps and their texts.


def load_context(issue: Issue, context: ReadContext) -> IssueContext:
    """Combine the issue with its status, its attempts and the limits of its policy."""
    policy = context.policies.in_force(issue.ref.repository)
    status = context.ledger.status(issue.ref)
    history = context.ledger.history(issue.ref)
    epoch = [meta for meta in history if meta.epoch == status.epoch]
    limits = RetryPolicy.of(policy, context.limits)
    return IssueContext(
        issue=_without_own_comments(issue, status, context.ledger),
        status=status,
        history=history,
        max_attempts=limits.max_issue_attempts,
        counted=count_spent(round_of(status, history), limits),
        verifies=bool(policy.checks),
        observed=find_patterns(epoch),
        ready_label=policy.labels.ready,
        learnings=learnings_of(issue.ref.repository, context),
    )


def learnings_of(repository: str, context: ReadContext) -> tuple[Learning, ...] | None:
    """List the facts for agents at any issue of a repository; None if the policy is off.

    The policy is the base branch's, so that no change can enable it for itself.
    """
    if context.policies.in_force(repository).learnings is Learnings.ISSUE:
        return None
    return in_force(context.ledger.learnings(repository), context.clock.now())


def attempts_left(status: IssueStatus, context: ReadContext) -> AttemptsLeft:
    """Count the spent and allowed attempts of the epoch, also those before a review."""
    policy = RetryPolicy.of(context.policies.in_force(status.issue.repository), context.limits)
    spent = count_spent(epoch_of(status, context.ledger.history(status.issue)), policy)
    return AttemptsLeft(spent, policy.max_issue_attempts)


def _without_own_comments(issue: Issue, status: IssueStatus, ledger: LedgerReader) -> Issue:
    """Drop Mulligan's own comments, by the ids in the ledger (TRUST-3).

    Also drop the comment with the epoch's guidance, which has its own section in the prompt.
    """
    if not issue.comments:
        return issue
    own = {*_own_comments(issue.ref, ledger), *_guidance_comment(status)}
    kept = tuple(comment for comment in issue.comments if str(comment.id) not in own)
    return replace(issue, comments=kept)


def _guidance_comment(status: IssueStatus) -> tuple[str, ...]:
    act = status.request.act
    return (str(act.comment),) if isinstance(act, CommentAct) and status.request.guidance else ()


def _own_comments(ref: IssueRef, ledger: LedgerReader) -> Iterator[str]:
    for recorded in ledger.events(ref):
        match recorded.event:
            case StatusWritten(comment=comment) | LabelRequested(comment=comment):
                yield comment
            case CommandAnswered(comment=comment) | ReviewAnswered(comment=comment):
                yield comment
            case Escalated(comment=url):
                yield url.rpartition("#issuecomment-")[2]
            case _:
                continue


# What people wrote during an attempt.


def read_missed(case: IssueContext, context: ReadContext) -> Missed | None:
    """Return what trusted people wrote on an issue since its last attempt began (PR-9).

    None if that is unknown. Costs no request while the issue has only Mulligan's status comment,
    and the text that the attempt was given.
    """
    issue, last = case.issue, case.last
    events = (recorded.event for recorded in context.ledger.events(issue.ref))
    given = given_to(events, last.number) if last else None
    if given is None:
        return None
    edits: Sequence[Edit] = ()
    if changed_parts(given, issue):
        with suppress(WorldError):
            edits = context.tracker.edits(issue.ref, case.status)
    words = [
        each
        for each in _comments_of_people(case, context)
        if str(each.id) in given.comments or parse(each.body) is None
    ]
    return find_missed(given, issue, words, edits)


def _comments_of_people(case: IssueContext, context: ReadContext) -> Sequence[Comment]:
    issue, own = case.issue, 1 if case.status.effects.status_comment else 0
    if issue.comment_count is not None and issue.comment_count <= own:
        return ()
    found = context.tracker.read(issue.ref, with_comments=True)
    return _without_own_comments(found, case.status, context.ledger).comments


# Dependencies on other issues.


def _waits_for(issue: Issue, context: ReadContext) -> str:
    """Return which open issue or pull request this issue must wait for; empty if none."""
    opened = dict[IssueRef, Issue | None]()

    def named(ref: IssueRef) -> tuple[IssueRef, ...]:
        if ref not in opened:
            opened[ref] = _read_open(ref, context.tracker)
        found = opened[ref]
        return tuple(each.ref for each in _named_in(found, context.tracker)) if found else ()

    opened[issue.ref] = issue
    for ref, line in _named_in(issue, context.tracker):
        try:
            other = context.tracker.read(ref)
        except GoneError:
            continue
        except DeniedError as error:
            return with_line(f"It depends on {ref}, which cannot be read: {error}", line)
        opened[ref] = other if other.is_open else None
        if other.is_open:
            way = find_cycle(issue.ref, named)
            reason = (
                cycle_reason(issue.ref, way)
                if way
                else _wait_reason(issue.ref, other, context.ledger)
            )
            return with_line(reason, line)
    return ""


def _read_open(ref: IssueRef, tracker: Tracker) -> Issue | None:
    """Read a dependency; None if it is closed or must not be read."""
    try:
        found = tracker.read(ref)
    except (DeniedError, UnconfirmedError):
        return None
    return found if found.is_open else None


def _wait_reason(ref: IssueRef, other: Issue, ledger: LedgerReader) -> str:
    status = ledger.status(other.ref)
    left = status.reason if status.stage is Stage.RESOLVED else ""
    return dependency_reason(other.ref, ref, is_pull_request=other.is_pull_request, left=left)


def ignored_dependencies(issue: Issue, tracker: Tracker) -> str:
    """Return the dependencies that are ignored because they do not exist; for `explain`."""
    gone = [ref for ref, _ in dependencies(issue) if _is_gone(ref, tracker)]
    return ignored_reason(issue.ref, gone, itself=depends_on_itself(issue))


def _is_gone(ref: IssueRef, tracker: Tracker) -> bool:
    try:
        tracker.read(ref)
    except GoneError:
        return True
    except (DeniedError, UnconfirmedError):
        return False
    return False


def _named_in(issue: Issue, tracker: Tracker) -> Iterator[Dependency]:
    """Yield the dependencies in the text, then those on GitHub's list if it is not empty."""
    yield from dependencies(issue)
    if issue.blockers:
        blockers = islice(tracker.blockers(issue.ref), MAX_DEPENDENCIES)
        yield from (Dependency(ref, "") for ref in blockers)


# Checks right before a write.


def withdrawal(ref: IssueRef, context: ReadContext) -> str:
    """Check the request again (LABEL-5); return why it is withdrawn, "" if it is not."""
    status = context.ledger.status(ref)
    if status.ending_reason:
        return status.ending_reason
    labels = context.policies.in_force(ref.repository).labels
    return context.tracker.withdrawal(ref, status, labels)


def objection(ref: IssueRef, context: ReadContext) -> Objection | None:
    """Check trust and text again, as before the work began (TRUST-1, TRUST-2)."""
    return context.tracker.objection(ref, context.ledger.status(ref))


def check_request(ref: IssueRef, context: ReadContext) -> Withdrawn | None:
    """Check again whether the work may continue (LABEL-5, TRUST-1, TRUST-2)."""
    with context.tracker.cached_reads():
        if why := withdrawal(ref, context):
            return Withdrawn(why)
        found = objection(ref, context)
    if found is None:
        return None
    return Withdrawn(f"{found.reason}.", found.reason if found.by_edit else "")


def check_publication(
    ref: IssueRef, last: WorkerResultMeta, context: ReadContext
) -> Situation | None:
    """Check base, people and text right before a push; people and text last."""
    with context.tracker.cached_reads():
        # Without a push of ours, another installation's branch would refuse the push.
        is_pushed = context.ledger.status(ref).effects.pushed is not None
        elsewhere = pull_request_elsewhere(ref, context) if is_pushed else ""
        try:
            if not base_has_start(ref, last, context.worktrees):
                return BaseDropped(last)
            if why := other_base(ref, context) or others_pull_request(ref, context):
                return PublicationRefused(why)
        except RefusedError:
            raise
        except (DeniedError, MisconfiguredError) as error:
            return PublicationRefused(str(error))
        if found := check_request(ref, context):
            return found
        if elsewhere:
            return TakenElsewhere(elsewhere)
        reason = in_hand(ref, context.ledger.status(ref).request.act, context)
        return ClosedByOthers(reason) if reason else None


def other_base(ref: IssueRef, context: ReadContext) -> str:
    """Say that somebody changed the base of the issue's pull request; empty if not (PR-8)."""
    number = context.ledger.status(ref).pull.number
    if number is None:
        return ""
    pull = context.tracker.pulls.state(ref, number)
    wanted = context.worktrees.base_branch(ref.repository)
    return describe_other_base(pull.base, wanted) if pull.is_open else ""


def others_pull_request(ref: IssueRef, context: ReadContext) -> str:
    """Say that a person's open pull request comes from the issue's branch; empty if none does.

    A push would replace the commits in it (PR-7).
    """
    status = context.ledger.status(ref)
    if status.pull.number is not None or status.effects.pushed is None:
        return ""
    theirs = " and ".join(f"#{number}" for number in context.tracker.pulls.of_people(ref))
    if not theirs:
        return ""
    return f"The pull request {theirs} of a person comes from {ref.branch}. Merge or close it."


def is_taken(ref: IssueRef, last: WorkerResultMeta, context: ReadContext) -> bool:
    """Return whether there is a pull request that unverified work must not replace."""
    status = context.ledger.status(ref)
    if status.pull.number is None:
        return bool(others_pull_request(ref, context))
    pull = context.tracker.pulls.state(ref, status.pull.number)
    if not (status.pull.draft_of and pull.is_open and pull.is_draft):
        return True
    if describe_other_base(pull.base, context.worktrees.base_branch(ref.repository)):
        return True
    return is_foreign(context.worktrees.remote_head(ref), status, last)


def check_shown_work(ref: IssueRef, last: WorkerResultMeta, context: ReadContext) -> str:
    """Check base, people and text right before pushing unverified work; return the refusal."""
    if not base_has_start(ref, last, context.worktrees):
        return base_dropped(last)
    wrong = objection(ref, context)
    return f"{wrong.reason}." if wrong else ""


def base_has_start(ref: IssueRef, meta: WorkerResultMeta, worktrees: Worktrees) -> bool:
    """Fetch, and return whether the base branch still contains the base of an attempt's work."""
    return worktrees.is_in_base(ref, meta.start_sha, meta.base_sha)


def pull_request_elsewhere(ref: IssueRef, context: ReadContext) -> str:
    """Return another installation's open pull request for the request; "" for none."""
    status = context.ledger.status(ref)
    if status.pull.number is not None:
        return ""
    return context.tracker.pull_request_elsewhere(ref, status)


def settled_elsewhere(ref: IssueRef, context: ReadContext) -> str:
    """Return how another installation settled the request; "" if none did (RECOVERY-3)."""
    labels = context.policies.in_force(ref.repository).labels
    try:
        return context.tracker.settled_elsewhere(ref, context.ledger.status(ref), labels)
    except DeniedError:
        return ""  # An issue that cannot be read is not held by another installation.
