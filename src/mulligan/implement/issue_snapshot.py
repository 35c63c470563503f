"""Read all that is known of an issue now: from the tracker, the ledger and the policy."""

from collections.abc import Iterator
from dataclasses import replace

from mulligan.domain.eligibility import (
    FOR_NOW,
    Facts,
    dependencies,
    depends_on_itself,
    first_broken,
    in_a_circle,
    newer,
    opens_epoch,
    overlooked,
    waiting_for,
    way_back,
)
from mulligan.domain.errors import DeniedError, GoneError
from mulligan.domain.events import EffectDone, Escalated
from mulligan.domain.issue import AuthorisingAct, Issue, IssueRef, Objection, Stage
from mulligan.domain.issue_context import IssueContext
from mulligan.domain.result import WorkerResultMeta
from mulligan.domain.status import IssueStatus
from mulligan.implement.decide import EndedAttempt, RetryPolicy, count_spent
from mulligan.implement.ports import Tools
from mulligan.implement.prompt.patterns import observe
from mulligan.text.visible import seen_in


def collect_facts(ref: IssueRef, tools: Tools, act: AuthorisingAct | None = None) -> Facts:
    """Read afresh what decides whether an issue may be worked on (domain/eligibility.py).

    `act` is an operator's command; without one, the labelling is looked up. The text is read
    before what was done to it, so that no change falls between the two.
    """
    issue = tools.tracker.read(ref)
    ready = tools.policies.current(ref.repository).labels.ready
    withdrawn = bool(act) and _was_labelled(ref, tools) and withdrawal(ref, tools) is not None
    act = act or _request(ref, ready, tools)
    archived = tools.tracker.repository(ref.repository).archived
    return Facts(
        issue=issue,
        status=tools.ledger.status(ref),
        act=act,
        ready_label=ready,
        now=tools.clock.now(),
        archived=archived,
        policy_fault=tools.policies.fault(ref.repository) or "",
        withdrawn=withdrawn,
        waits_for=_waits_for(issue, tools),
        elsewhere=_elsewhere(ref, tools),
    )


def _elsewhere(ref: IssueRef, tools: Tools) -> str:
    """Say that the other installation, to which the issue was left, has a pull request open."""
    if not tools.ledger.status(ref).elsewhere:
        return ""
    return proposed_elsewhere(ref, tools) or ""


def _was_labelled(ref: IssueRef, tools: Tools) -> bool:
    return tools.ledger.status(ref).act.startswith("labeled:")


def _waits_for(issue: Issue, tools: Tools) -> str:
    """Name what this issue says it depends on and has to wait for, and why it may be for long."""
    opened = dict[IssueRef, Issue | None]()

    def named(ref: IssueRef) -> tuple[IssueRef, ...]:
        if ref not in opened:
            opened[ref] = _opened(ref, tools)
        found = opened[ref]
        return _named_in(found) if found else ()

    opened[issue.ref] = issue
    for ref in _named_in(issue):
        try:
            other = tools.tracker.read(ref)
        except GoneError:
            continue
        except DeniedError as error:
            return f"It depends on {ref}, which cannot be read: {error}"
        opened[ref] = other if other.is_open else None
        if other.is_open:
            way = way_back(issue.ref, named)
            return in_a_circle(issue.ref, way) if way else _open_still(issue.ref, other, tools)
    return ""


def _open_still(ref: IssueRef, other: Issue, tools: Tools) -> str:
    status = tools.ledger.status(other.ref)
    left = status.reason if status.stage is Stage.RESOLVED else ""
    return waiting_for(other.ref, ref, is_pull_request=other.is_pull_request, left=left)


def unmet(issue: Issue, tools: Tools) -> str:
    """Say what an issue names that it cannot wait for, and does not; for people who ask."""
    gone = [ref for ref in _named_in(issue) if _is_gone(ref, tools)]
    itself = depends_on_itself(seen_in(issue.body).text, issue.ref)
    return overlooked(issue.ref, gone, itself=itself)


def _is_gone(ref: IssueRef, tools: Tools) -> bool:
    try:
        tools.tracker.read(ref)
    except GoneError:
        return True
    except DeniedError:
        return False
    return False


def _opened(ref: IssueRef, tools: Tools) -> Issue | None:
    """Read an issue that others wait for; None where nobody does, or it may not be read."""
    try:
        found = tools.tracker.read(ref)
    except DeniedError:
        return None
    return found if found.is_open else None


def _named_in(issue: Issue) -> tuple[IssueRef, ...]:
    return dependencies(seen_in(issue.body).text, issue.ref)


def _request(ref: IssueRef, ready: str, tools: Tools) -> AuthorisingAct | None:
    """Find what asks for the work: the label, or the command that opened the epoch after it."""
    status = tools.ledger.status(ref)
    labelled = tools.tracker.authorising_act(ref, ready)
    if not status.by_command or (labelled and labelled.trusted and newer(labelled, status)):
        return labelled
    return tools.tracker.standing(ref, status)


def renewal(ref: IssueRef, tools: Tools) -> AuthorisingAct | None:
    """Find a trusted request that came after the one that was ended, if there is one (SPEC L6)."""
    try:
        facts = collect_facts(ref, tools)
    except GoneError:
        return None
    broken = first_broken(facts)
    stands = broken is None or broken.rule in FOR_NOW
    return facts.act if stands and opens_epoch(facts) else None


def load_context(issue: Issue, tools: Tools) -> IssueContext:
    """Put together all that is known of an issue now."""
    policy = tools.policies.current(issue.ref.repository)
    status = tools.ledger.status(issue.ref)
    history = tools.ledger.history(issue.ref)
    epoch = [meta for meta in history if meta.epoch == status.epoch]
    return IssueContext(
        issue=_without_own_comments(issue, status, tools),
        status=status,
        history=history,
        max_attempts=policy.max_issue_attempts,
        counted=count_spent(
            [EndedAttempt.of(meta) for meta in epoch], RetryPolicy.of(policy, tools.limits)
        ),
        verifies=bool(policy.checks),
        observed=observe(epoch),
        ready_label=policy.labels.ready,
    )


def _without_own_comments(issue: Issue, status: IssueStatus, tools: Tools) -> Issue:
    """Leave out what Mulligan wrote itself, by the ids in the ledger (SPEC T3).

    And the comment that guides the epoch: its words have a place of their own.
    """
    if not issue.comments:
        return issue
    own = {*_own_comments(issue.ref, tools), *_guiding(status)}
    kept = tuple(said for said in issue.comments if str(said.id) not in own)
    return replace(issue, comments=kept)


def _guiding(status: IssueStatus) -> tuple[str, ...]:
    kind, _, number = status.act.partition(":")
    return (number,) if kind == "comment" and status.guidance else ()


def _own_comments(ref: IssueRef, tools: Tools) -> Iterator[str]:
    for recorded in tools.ledger.events(ref):
        match recorded.event:
            case EffectDone(remote_id=remote_id):
                yield remote_id
            case Escalated(comment=url):
                yield url.rpartition("#issuecomment-")[2]
            case _:
                continue


def withdrawal(ref: IssueRef, tools: Tools) -> str | None:
    """Ask again whether the work is still wanted (SPEC L5); give the reason where it is not."""
    status = tools.ledger.status(ref)
    if status.ending:
        return status.ending
    labels = tools.policies.current(ref.repository).labels
    return tools.tracker.withdrawal(ref, status, labels)


def has_base(ref: IssueRef, meta: WorkerResultMeta, tools: Tools) -> bool:
    """Fetch, and tell whether the base branch still has what an attempt's work stands on."""
    return tools.worktrees.is_in_base(ref, meta.start_sha, meta.base_sha)


def proposed_elsewhere(ref: IssueRef, tools: Tools) -> str | None:
    """Say that another installation has a pull request open for the request, if one has."""
    status = tools.ledger.status(ref)
    if status.pull_number is not None:
        return None
    return tools.tracker.proposed_elsewhere(ref, status)


def handed_over(ref: IssueRef, tools: Tools) -> str | None:
    """Say by what another installation has settled the request, if one has (SPEC E4)."""
    labels = tools.policies.current(ref.repository).labels
    try:
        return tools.tracker.handed_over(ref, tools.ledger.status(ref), labels)
    except DeniedError:
        return None  # What cannot be read, as of an issue that is gone, nobody else holds.


def objection(ref: IssueRef, tools: Tools) -> Objection | None:
    """Check again what was checked before the work began: trust, and the text (SPEC T1, T2)."""
    return tools.tracker.objection(ref, tools.ledger.status(ref))
