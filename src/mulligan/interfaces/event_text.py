"""The events of an issue as sentences. Pure."""

from collections.abc import Mapping
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
    CiFailed,
    CiPassed,
    CommandReceived,
    Conflicted,
    Decided,
    Drafted,
    EffectDone,
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
    Returned,
    ReviewFinished,
    ReviewReceived,
    ReviewsWithdrawn,
    StoodDown,
    Waiting,
    WorktreeReset,
)
from mulligan.domain.issue import ConsoleAct, parse_act
from mulligan.domain.outcome import Outcome
from mulligan.domain.recorded_effects import FOUND, InHand, NotFoundSince, PublicationDelayed
from mulligan.domain.result import CheckResult, WorkerResultMeta
from mulligan.domain.verification import Verification
from mulligan.implement.prompt.outcome_text import (
    TITLES,
    duration_text,
    pluralize,
    proof_text,
    verification_text,
)
from mulligan.text.escape import one_line

WORDS = 200
BY_DASHBOARD = "dashboard"
"""The start of the time in the key of a command that was given on the dashboard."""


_Request = IssueSeen | Authorised | CommandReceived | HumanResponded
_Step = AttemptStarted | WorktreeReset | FixRoundStarted | AgentStarted | AttemptCompleted | Decided
_Result = AgentFinished | CheckFinished | BaselineRecorded | ReviewFinished | ProofFinished
_Context = (
    RetryContextAssembled
    | AttemptContextTruncated
    | AttemptContextAssembled
    | AttemptContextDelivered
)
_Effect = EffectDone | PublishStarted | RetryScheduled | Waiting | Escalated | StoodDown
_Pull = Published | Drafted | Returned | BroughtUpToDate
_End = LearningsAccepted | LearningsDropped | Resolved | Forgotten | Restored


def sentence_of(event: Event) -> str:
    """Describe an event in one sentence or line."""
    return one_line(_sentence(event), 2 * WORDS)


def _sentence(event: Event) -> str:
    if isinstance(event, _Request):
        return _request(event)
    if isinstance(event, _Step):
        return _step(event)
    if isinstance(event, _Result):
        return _result(event)
    if isinstance(event, _Context):
        return _context(event)
    if isinstance(event, _Effect):
        return _effect(event)
    if isinstance(event, _Pull):
        return _pull(event)
    return _end(event)


def _request(event: _Request) -> str:
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
        case _:
            assert_never(event)


def _operator(key: str) -> str:
    act = parse_act(key)
    on_dashboard = isinstance(act, ConsoleAct) and act.at.startswith(BY_DASHBOARD)
    return "The operator, on the dashboard," if on_dashboard else "The operator"


def _step(event: _Step) -> str:
    match event:
        case AttemptStarted(attempt=attempt, position=position, most=most):
            place = f"{position} of {most}" if position else f"{attempt}"
            return f"Attempt {place} started."
        case WorktreeReset(start_sha=sha, recreated=recreated):
            how = "created again" if recreated else "reset"
            return f"The worktree was {how}, at {sha[:10]}."
        case FixRoundStarted(number=number, most=most, failed=failed):
            return f"Fix round {number} of {most} started for: {', '.join(failed)}."
        case AgentStarted(agent=agent):
            return f"The agent {agent} started."
        case AttemptCompleted(meta=meta):
            return f"Attempt {meta.attempt} ended. {TITLES[meta.outcome]}{_why(meta)}"
        case Decided(decision=decision):
            return decision_text(decision.decision, decision.reason)
        case _:
            assert_never(event)


def _why(meta: WorkerResultMeta) -> str:
    succeeded = meta.outcome is Outcome.SUCCEEDED
    why = verification_text(Verification.of(meta)) if succeeded else meta.error
    return f": {why}" if why else "."


def _result(event: _Result) -> str:
    match event:
        case AgentFinished(stopped_by=stopped, exit_code=code, duration_ms=took):
            why = f"was stopped by {stopped}" if stopped else f"ended with exit code {code}"
            return f"The agent {why} after {duration_text(took)}."
        case CheckFinished(check=check):
            took = duration_text(check.duration_ms)
            return f"The check '{check.name}' {_how(check)} after {took}."
        case BaselineRecorded(name=name, check=check):
            how = _how(check) if check else "could not run"
            return f"Without the change, the check '{name}' {how}."
        case ProofFinished(proof=proof):
            return proof_text(proof) or "The change adds and alters no test."
        case ReviewFinished(unreadable=why) if why:
            return why
        case ReviewFinished(verdict=verdict, feedback=feedback):
            return f"The reviewer answered {verdict}. {feedback}"
        case _:
            assert_never(event)


def _how(check: CheckResult) -> str:
    return "passed" if check.passed else "failed"


def _context(event: _Context) -> str:
    match event:
        case RetryContextAssembled(prior_attempts_count=count, context_size_bytes=size):
            return f"The prompt includes {pluralize(count, 'earlier attempt')}, {size:,} bytes."
        case AttemptContextTruncated(sections=sections, original=before, truncated=after):
            names = ", ".join(name.replace("_", " ") for name in sections)
            return f"The retry context was cut from {before:,} to {after:,} bytes: {names}."
        case AttemptContextAssembled():
            return "The prompt was written, and its hashes were recorded."
        case AttemptContextDelivered():
            return "The agent received its prompt."
        case _:
            assert_never(event)


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


def _effect(event: _Effect) -> str:
    match event:
        case EffectDone(effect=NotFoundSince.kind, key=what, remote_id=since):
            return f"GitHub {'finds' if since == FOUND else 'does not find'} {what}."
        case EffectDone(effect=InHand.kind):
            return "An open pull request of somebody else closes the issue."
        case EffectDone(effect=PublicationDelayed.kind, remote_id=written):
            return f"The publication failed: {written.partition(' ')[2]}"
        case EffectDone(effect=effect):
            return f"Mulligan wrote to GitHub: {effect.replace('_', ' ')}."
        case PublishStarted(head_sha=sha):
            return f"Mulligan pushes the commit {sha[:10]}."
        case RetryScheduled(due=due, reason=reason):
            return f"The next attempt may start at {due:%Y-%m-%d %H:%M:%S} UTC. {reason}"
        case Waiting(until=until, reason=reason):
            when = f"until {until:%Y-%m-%d %H:%M:%S} UTC" if until else "for a maintainer"
            return f"The issue waits {when}. {reason}"
        case Escalated(reason=reason):
            return f"The issue needs human review. {reason}"
        case StoodDown(reason=reason, keeps_pull=keeps):
            stopped = "Mulligan stopped work on the issue."
            return f"{'The pull request waits for a review.' if keeps else stopped} {reason}"
        case _:
            assert_never(event)


def _pull(event: _Pull) -> str:
    match event:
        case Published(number=number):
            return f"Pull request #{number} is open."
        case Drafted(number=number):
            return f"Pull request #{number} is a draft with unverified work."
        case BroughtUpToDate(base_sha=sha):
            return f"Mulligan merged the base branch, at {sha[:10]}, into the pull request."
        case _:
            return _returned(event)


def _returned(event: Returned) -> str:
    match event:
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
        case _:
            assert_never(event)


def _end(event: _End) -> str:
    match event:
        case LearningsAccepted(facts=facts):
            return f"Accepted {pluralize(len(facts), 'note')} about the repository."
        case LearningsDropped(facts=facts):
            return f"Dropped {pluralize(len(facts), 'note')} about the repository."
        case Resolved(resolution=resolution):
            return f"The work has ended. {resolution}"
        case Forgotten(reason=reason):
            return f"Older events were removed. {reason}"
        case Restored(source=source):
            return f"The ledger was lost; the status was restored from {source or 'GitHub'}."
        case _:
            assert_never(event)
