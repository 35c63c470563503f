"""The events of an issue as sentences. Pure."""

from collections.abc import Mapping
from datetime import datetime
from typing import assert_never

from mulligan.domain.events import (
    AgentFinished,
    AgentStarted,
    AttemptCompleted,
    AttemptContextAssembled,
    AttemptContextDelivered,
    AttemptContextTruncated,
    AttemptStarted,
    Authorised,
    BaselineRecorded,
    BroughtUpToDate,
    CheckFinished,
    CheckSkipped,
    CiFailed,
    CiPassed,
    CommandReceived,
    Conflicted,
    Decided,
    Drafted,
    Escalated,
    Event,
    FixRoundStarted,
    Forgotten,
    HumanResponded,
    IssueSeen,
    LearningsAccepted,
    LearningsDropped,
    ProofFinished,
    Published,
    PublishStarted,
    Resolved,
    Restored,
    RetryContextAssembled,
    RetryScheduled,
    ReviewFinished,
    ReviewReceived,
    ReviewsWithdrawn,
    StoodDown,
    Waiting,
    WorktreeReset,
)
from mulligan.domain.issue import ConsoleAct, parse_act
from mulligan.domain.outcome import Outcome
from mulligan.domain.recorded_effects import (
    BaseMerged,
    BlockShown,
    CommandAnswered,
    CommentsRead,
    EscalationAnswered,
    InHand,
    LabelRequested,
    MergeRefused,
    NotFoundSince,
    PublicationDelayed,
    PullNote,
    Pushed,
    ReviewAnswered,
    ReviewsSettling,
    StageShown,
    StatusWritten,
    WorkPushed,
)
from mulligan.domain.result import CheckResult, WorkerResultMeta
from mulligan.domain.verification import Verification
from mulligan.implement.prompt.outcome_text import (
    NOT_RUN,
    attempt_error,
    duration_text,
    pluralize,
    proof_text,
    title_of,
    verification_text,
)
from mulligan.text.escape import one_line

WORDS = 200
UNNAMED_AGENT = "command"
"""The name of an agent that the configuration gives as a command, without a name."""

BY_DASHBOARD = "dashboard"
"""The start of the time in the key of a command that was given on the dashboard."""


def sentence_of(event: Event) -> str:
    """Describe an event in one sentence or line."""
    return one_line(_sentence(event), 2 * WORDS)


def _sentence(event: Event) -> str:  # noqa: C901 - one flat match
    match event:
        case IssueSeen(title=title):
            return f"Mulligan read the issue: {title}"
        case Authorised(actor=actor, guidance=guidance):
            asked = f", with the instruction: {guidance}" if guidance else "."
            return f"{actor or 'The operator'} requested the work{asked}"
        case CommandReceived(command=command, actor=actor, text=text, key=key):
            return f"{actor or _operator(key)} gave the command `{f'{command} {text}'.strip()}`."
        case HumanResponded(command=command, answer=answer):
            return f"Mulligan carried out `{command}`. {answer}"
        case AttemptStarted(attempt=attempt, position=position, most=most):
            place = f"{position} of {most}" if position else f"{attempt}"
            return f"Attempt {place} started."
        case WorktreeReset(start_sha=sha, recreated=recreated):
            how = "created again" if recreated else "reset"
            return f"The worktree was {how}, at {sha[:10]}."
        case FixRoundStarted(number=number, most=most, failed=failed):
            return f"Fix round {number} of {most} started for: {', '.join(failed)}."
        case AgentStarted(agent=agent):
            return "The agent started." if agent == UNNAMED_AGENT else f"The agent {agent} started."
        case AttemptCompleted(meta=meta):
            return f"Attempt {meta.attempt} ended. {title_of(meta)}{_why(meta)}"
        case Decided(decision=decision):
            return decision_text(decision.decision, decision.reason)
        case RetryContextAssembled(prior_attempts_count=count, context_size_bytes=size):
            return f"The prompt includes {pluralize(count, 'earlier attempt')}, {size:,} bytes."
        case AttemptContextTruncated(sections=sections, original=before, truncated=after):
            names = ", ".join(name.replace("_", " ") for name in sections)
            return f"The retry context was cut from {before:,} to {after:,} bytes: {names}."
        case AttemptContextAssembled():
            return "The prompt was written, and its hashes were recorded."
        case AttemptContextDelivered():
            return "The agent received its prompt."
        case AgentFinished(stopped_by=stopped, exit_code=code, duration_ms=took):
            why = f"was stopped by {stopped}" if stopped else f"ended with exit code {code}"
            return f"The agent {why} after {duration_text(took)}."
        case CheckFinished(check=check):
            took = duration_text(check.duration_ms)
            return f"The check '{check.name}' {_how(check)} after {took}."
        case CheckSkipped(check=skipped):
            return f"The check '{skipped.name}' was {NOT_RUN}."
        case BaselineRecorded(name=name, check=check):
            how = _how(check) if check else "could not run"
            return f"Without the change, the check '{name}' {how}."
        case ProofFinished(proof=proof):
            return proof_text(proof) or "The change adds and alters no test."
        case ReviewFinished(unreadable=why) if why:
            return why
        case ReviewFinished(verdict=verdict, feedback=feedback):
            return f"The reviewer answered {verdict}. {feedback}"
        case StageShown(stage=None):
            return "The edit of the status comment is delayed."
        case StageShown(stage=stage):
            return f"GitHub shows the stage {stage}."
        case StatusWritten():
            return "Mulligan wrote the status comment."
        case LabelRequested():
            return "Mulligan asked for the label again, because the text was changed."
        case CommandAnswered():
            return "Mulligan answered a command in a comment."
        case EscalationAnswered():
            return "The comment that asked for human review says who answered."
        case BlockShown():
            return "The issue shows why it cannot be worked on."
        case Pushed(head_sha=sha):
            return f"Mulligan pushed the commit {sha[:10]}."
        case WorkPushed(git_ref=ref):
            return f"Mulligan pushed unverified work to {ref}."
        case BaseMerged(base_sha=sha):
            return f"Mulligan merged the base branch, at {sha[:10]}."
        case MergeRefused(base_sha=sha):
            return f"A merge of the base branch, at {sha[:10]}, could not be pushed."
        case ReviewsSettling(until=datetime() as until):
            return f"A review waits for further ones until {_time(until)}."
        case ReviewsSettling():
            return "No review waits for further ones."
        case PullNote(topic=topic, text=text):
            return text or f"The note about the pull request ({topic}) was removed."
        case ReviewAnswered():
            return "Mulligan answered a review."
        case CommentsRead(read_to=read_to):
            return f"The comments of the repository were read, up to {read_to}."
        case NotFoundSince(what=what, since=since):
            return f"GitHub {'does not find' if since else 'finds'} {what}."
        case InHand():
            return "An open pull request of somebody else closes the issue."
        case PublicationDelayed(reason=reason):
            return f"The publication failed: {reason}"
        case PublishStarted(head_sha=sha):
            return f"Mulligan pushes the commit {sha[:10]}."
        case RetryScheduled(due=due, reason=reason):
            return f"The next attempt may start at {_time(due)}. {reason}"
        case Waiting(until=until, reason=reason):
            when = f"until {_time(until)}" if until else "for a maintainer"
            return f"The issue waits {when}. {reason}"
        case Escalated(reason=reason):
            return f"The issue needs human review. {reason}"
        case StoodDown(reason=reason, keeps_pull=keeps):
            stopped = "Mulligan stopped work on the issue."
            return f"{'The pull request waits for a review.' if keeps else stopped} {reason}"
        case Published(number=number):
            return f"Pull request #{number} is open."
        case Drafted(number=number):
            return f"Pull request #{number} is a draft with unverified work."
        case BroughtUpToDate(base_sha=sha):
            return f"Mulligan merged the base branch, at {sha[:10]}, into the pull request."
        case ReviewReceived(author=author, remarks=remarks):
            asked = pluralize(len(remarks), "change")
            return f"{author or 'A reviewer'} requested {asked} on the pull request."
        case ReviewsWithdrawn(reviews=reviews):
            return f"{pluralize(len(reviews), 'review')} no longer requested changes."
        case Conflicted(files=files):
            return f"The pull request has conflicts with its base branch: {', '.join(files)}."
        case CiFailed(checks=checks):
            names = ", ".join(each.name for each in checks)
            return f"Checks failed on GitHub: {names}."
        case CiPassed(count=count):
            return f"On GitHub, {pluralize(count, 'check')} passed."
        case LearningsAccepted(facts=facts):
            return f"Accepted {pluralize(len(facts), 'note')} about the repository."
        case LearningsDropped(facts=facts):
            return f"Dropped {pluralize(len(facts), 'note')} about the repository."
        case Resolved(reason=reason):
            return f"The work has ended. {reason}"
        case Forgotten(reason=reason):
            return f"Older events were removed. {reason}"
        case Restored(source=source):
            return f"The ledger was lost; the status was restored from {source or 'GitHub'}."
        case _:
            assert_never(event)


def _time(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def _operator(key: str) -> str:
    act = parse_act(key)
    on_dashboard = isinstance(act, ConsoleAct) and act.at.startswith(BY_DASHBOARD)
    return "The operator, on the dashboard," if on_dashboard else "The operator"


def _why(meta: WorkerResultMeta) -> str:
    succeeded = meta.outcome is Outcome.SUCCEEDED
    why = verification_text(Verification.of(meta)) if succeeded else attempt_error(meta)
    return f": {why}" if why else "."


def _how(check: CheckResult) -> str:
    return "passed" if check.passed else "failed"


DECISIONS: Mapping[str, str] = {
    "open_pull_request": "open the pull request",
    "retry": "make another attempt",
    "escalate": "ask a maintainer",
    "wait": "wait",
    "wait_for_pull_request": "wait for another pull request",
    "stand_down": "stop",
}
"""The decisions in words for people."""


def decision_text(decision: str, reason: str) -> str:
    """Return a decision and its reason as a sentence."""
    return f"Decision: {DECISIONS[decision]}. {reason}"
