"""Turn what is known of an attempt into its record, and its change into a commit text. Pure."""

from datetime import datetime

from mulligan.domain.attempt import Evidence, classify
from mulligan.domain.case import Case
from mulligan.domain.issue import IssueRef
from mulligan.domain.outcome import Outcome
from mulligan.domain.result import FileChange, WorkerResultMeta
from mulligan.domain.status import IssueStatus
from mulligan.ports import CommitText
from mulligan.retry.words import error_line, failure_reason


def meta_of(case: Case, known: Evidence, worker: str, now: datetime) -> WorkerResultMeta:
    """Write the record of an attempt that ended at `now`."""
    outcome, status = classify(known), case.status
    started = status.started_at or now
    change, run = known.change, known.run
    return WorkerResultMeta(
        issue=str(case.issue.ref),
        epoch=status.epoch,
        attempt=status.attempt,
        number=status.number,
        outcome=outcome,
        error=error_line(outcome, known),
        failure_reason=failure_reason(outcome, known),
        base_sha=known.base_sha,
        start_sha=known.start_sha,
        head_sha=change.head_sha if change else None,
        branch=case.issue.ref.branch,
        commits=change.commits if change else 0,
        files_modified=change.files if change else (),
        diff_summary=summarise(change.files) if change else "",
        diff_artifact=known.diff_artifact,
        checks=known.checks,
        guard_violations=known.violations,
        agent=run.facts if run else None,
        agent_summary=run.summary if run else "",
        started_at=started,
        finished_at=now,
        duration_ms=round((now - started).total_seconds() * 1000),
        manifest_hash=known.manifest_hash,
        worker=worker,
    )


def interrupted(status: IssueStatus, now: datetime) -> WorkerResultMeta:
    """Write the record of an attempt whose worker died without one."""
    started = status.started_at or now
    return WorkerResultMeta(
        issue=str(status.issue),
        epoch=status.epoch,
        attempt=status.attempt,
        number=status.number,
        outcome=Outcome.INTERRUPTED,
        error="Mulligan died during the attempt.",
        failure_reason="Mulligan died during the attempt.",
        branch=status.issue.branch,
        started_at=started,
        finished_at=now,
        duration_ms=round((now - started).total_seconds() * 1000),
    )


def summarise(files: tuple[FileChange, ...]) -> str:
    """Say how much changed, as `git diff --shortstat` does."""
    if not files:
        return "no files changed"
    plus = sum(file.insertions or 0 for file in files)
    minus = sum(file.deletions or 0 for file in files)
    noun = "file" if len(files) == 1 else "files"
    return f"{len(files)} {noun} changed, {plus} insertions(+), {minus} deletions(-)"


def commit_text(case: Case) -> CommitText:
    """Word the commit: the issue's title on one line, and the issue it is for."""
    title = " ".join(case.issue.title.split()) or f"Work on {case.issue.ref}"
    return CommitText(
        subject=_shortened(f"{title} (#{case.issue.ref.number})", case.issue.ref),
        body=f"Issue: {case.issue.ref}\nMulligan-Attempt: {case.status.number}",
        co_author=case.status.actor,
    )


def _shortened(subject: str, ref: IssueRef) -> str:
    tail = f"… (#{ref.number})"
    return subject if len(subject) <= 100 else subject[: 100 - len(tail)] + tail
