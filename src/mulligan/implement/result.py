"""Write the record of an attempt. Pure."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from mulligan.domain.attempt import AttemptState, classify, zero_kind
from mulligan.domain.attempt_times import Copies, Part, attempt_times, time_waited
from mulligan.domain.issue_context import IssueContext
from mulligan.domain.learning import learnable
from mulligan.domain.outcome import Outcome
from mulligan.domain.result import AgentFacts, FileChange, FixRound, WorkerResultMeta
from mulligan.domain.status import IssueStatus
from mulligan.implement.prompt.outcome_text import (
    BASE_DROPPED,
    DIED,
    error_line,
    failure_reason,
    pluralize,
)
from mulligan.implement.prompt.patterns import sketch_of


def attempt_record(
    case: IssueContext,
    known: AttemptState,
    used: Mapping[int, AgentFacts],
    worker: str,
    now: datetime,
) -> WorkerResultMeta:
    """Write the record of an attempt that ended at `now`; `used` is the usage of its runs."""
    outcome, status, started = classify(known), case.status, case.status.started_at or now
    change, run, first = known.change, known.run, known.rounds[0].run
    return WorkerResultMeta(
        issue=str(case.issue.ref),
        epoch=status.epoch,
        attempt=status.attempt,
        number=status.number,
        outcome=outcome,
        error=error_line(outcome, known),
        failure_reason=failure_reason(outcome, known),
        zero_kind=zero_kind(known),
        base_sha=known.base_sha,
        start_sha=known.start_sha,
        image=known.image,
        head_sha=change.head_sha if change else None,
        branch=case.issue.ref.branch,
        commits=_commits(known),
        files_modified=change.files if change else (),
        nested=change.nested if change else (),
        leftovers=change.leftovers if change else (),
        diff_summary=diff_stat(change.files) if change else "",
        diff_artifact=known.diff_artifact,
        sketch=sketch_of(change.diff) if change else (),
        set_up=known.fault.set_up if known.fault else None,
        checks=known.checks,
        skipped_checks=known.skipped_checks,
        proof=known.proof,
        fix_rounds=_fix_rounds(known, used),
        guard_violations=known.violations,
        agent=first.facts if first else used.get(0),
        budget=known.ending_fault.budget if known.ending_fault else None,
        eats_budget=known.ending_fault.eats_budget if known.ending_fault else False,
        keeps_pull=known.ending_fault.keeps_pull if known.ending_fault else False,
        agent_summary=run.summary if run else "",
        title=known.title,
        learned=learnable(fact for each in known.rounds if each.run for fact in each.run.learned),
        verifier_outcome=known.review.verdict if known.review else None,
        verifier_feedback=(known.review.feedback or None) if known.review else None,
        unreviewed=known.review.unreadable if known.review else "",
        started_at=started,
        finished_at=now,
        duration_ms=round((now - started).total_seconds() * 1000),
        manifest_hash=known.rounds[0].manifest_hash,
        worker=worker,
    )


def with_times(
    meta: WorkerResultMeta,
    case: IssueContext,
    measured: Mapping[Part, timedelta],
    *,
    set_up_reused: bool = False,
    copies: Copies | None = None,
) -> WorkerResultMeta:
    """Add to a record how long its attempt waited, the parts of its duration, and its copies."""
    waited = time_waited(meta.started_at, case.status.request.at, case.epoch_history)
    whole = timedelta(milliseconds=meta.duration_ms)
    times = attempt_times(measured, whole, waited, set_up_reused=set_up_reused)
    files = copies.recorded if copies else None
    return meta.model_copy(update={"times": times, "set_up_files": files})


def _commits(known: AttemptState) -> int:
    """Count the commits of every round; an interrupted round repeats the change before it."""
    changes = dict.fromkeys(each.change for each in known.rounds if each.change)
    return sum(change.commits for change in changes)


def _fix_rounds(known: AttemptState, used: Mapping[int, AgentFacts]) -> tuple[FixRound, ...]:
    """List the rounds after the first; a duration adds up the agent and the checks."""
    return tuple(
        FixRound(
            number=number,
            checks=each.checks,
            skipped_checks=each.skipped_checks,
            duration_ms=sum(check.took_ms for check in each.checks)
            + (round(each.run.duration.total_seconds() * 1000) if each.run else 0),
            usage=each.run.facts if each.run else used.get(number),
            manifest_hash=each.manifest_hash,
        )
        for number, each in enumerate(known.rounds[1:], start=1)
    )


def diff_stat(files: tuple[FileChange, ...]) -> str:
    """Word how much changed, as `git diff --shortstat` does: it omits a count of zero."""
    if not files:
        return "no files changed"
    plus = sum(file.insertions or 0 for file in files)
    minus = sum(file.deletions or 0 for file in files)
    changed = f"{pluralize(len(files), 'file')} changed"
    added = f"{pluralize(plus, 'insertion')}(+)" if plus else ""
    removed = f"{pluralize(minus, 'deletion')}(-)" if minus else ""
    return ", ".join(filter(None, (changed, added, removed)))


def interrupted_record(
    status: IssueStatus, used: Mapping[int, AgentFacts], now: datetime
) -> WorkerResultMeta:
    """Write the record of an attempt whose worker was killed.

    `used` is the last reported usage of its runs, by fix round.
    """
    started = status.started_at or now
    rounds = tuple(FixRound(number=number, usage=usage) for number, usage in used.items() if number)
    return WorkerResultMeta(
        issue=str(status.issue),
        epoch=status.epoch,
        attempt=status.attempt,
        number=status.number,
        outcome=Outcome.INTERRUPTED,
        error=DIED,
        failure_reason=DIED,
        branch=status.issue.branch,
        agent=used.get(0),
        fix_rounds=rounds,
        started_at=started,
        finished_at=now,
        duration_ms=round((now - started).total_seconds() * 1000),
    )


def revised(meta: WorkerResultMeta, outcome: Outcome, reason: str) -> WorkerResultMeta:
    """Return the record of an attempt with another outcome."""
    return meta.model_copy(update={"outcome": outcome, "error": reason, "failure_reason": reason})


SHA_CHARS = 10


def base_dropped(meta: WorkerResultMeta) -> str:
    """Record that the base branch no longer contains the commit an attempt was based on."""
    return BASE_DROPPED.format(meta.base_sha[:SHA_CHARS])
