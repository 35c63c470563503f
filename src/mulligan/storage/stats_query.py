"""Read only the data for statistics from the ledger's rows."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from pydantic import Field, ValidationError
from sqlalchemy import Connection, select

from mulligan.domain.errors import ConfigError
from mulligan.domain.events import Resolution
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.outcome import Outcome, Record
from mulligan.domain.result import AttemptTimes, OnBase
from mulligan.domain.stats import (
    AttemptEntry,
    Failure,
    LedgerHistory,
    Milestone,
    MilestoneKind,
    RetryContextEntry,
)
from mulligan.storage.database import Database
from mulligan.storage.schema import COMPLETED, EVENT, ISSUE

RESOLVED, CONTEXT, SEEN = "resolved", "retry_context_assembled", "issue_seen"
MILESTONES = {
    "authorised": MilestoneKind.ASKED,
    "published": MilestoneKind.PUBLISHED,
    "stood_down": MilestoneKind.LEFT,
    "escalated": MilestoneKind.ESCALATED,
}
ENDS = {
    Resolution.MERGED: MilestoneKind.MERGED,
    Resolution.CLOSED: MilestoneKind.CLOSED,
    Resolution.SKIPPED: MilestoneKind.SKIPPED,
}


class _Finding(Record):
    summary: str


class _Check(Record):
    name: str
    required: bool = True
    passed: bool
    preexisting: bool = False
    on_base: OnBase | None = None
    fingerprint: str = ""
    findings: tuple[_Finding, ...] = ()

    @property
    def failure(self) -> Failure | None:
        """Return the check that failed the attempt, by the same rule as CheckResult.fails."""
        if not self.required or self.passed or self.preexisting:
            return None
        if self.on_base is OnBase.CANNOT_RUN:
            return None
        first = self.findings[0].summary if self.findings else ""
        return Failure(self.name, self.fingerprint, first)


class _Usage(Record):
    kind: str
    name: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None

    @property
    def tokens(self) -> int | None:
        """Return the sum of the reported tokens; None if none were reported."""
        counts = [each for each in (self.input_tokens, self.output_tokens) if each is not None]
        return sum(counts) if counts else None


class _Round(Record):
    usage: _Usage | None = None


class _Meta(Record):
    epoch: int
    number: int
    outcome: Outcome
    checks: tuple[_Check, ...] = ()
    fix_rounds: tuple[_Round, ...] = ()
    agent: _Usage | None = None
    duration_ms: int = 0
    times: AttemptTimes | None = None

    def tried(self, issue: IssueRef, at: datetime) -> AttemptEntry:
        """Return the attempt as counted in statistics."""
        found = (self.agent, *(each.usage for each in self.fix_rounds))
        runs = [each for each in found if each]
        return AttemptEntry(
            issue=issue,
            epoch=self.epoch,
            number=self.number,
            at=at,
            outcome=self.outcome,
            agent=(runs[0].name or runs[0].kind) if runs else "",
            runs=len(runs),
            costs=tuple(each.cost_usd for each in runs if each.cost_usd is not None),
            tokens=tuple(each.tokens for each in runs if each.tokens is not None),
            failures=tuple(each.failure for each in self.checks if each.failure),
            took=timedelta(milliseconds=self.duration_ms) if self.duration_ms else None,
            steps=_steps_of(self.times) if self.times else {},
        )


def _steps_of(times: AttemptTimes) -> dict[str, timedelta]:
    steps = {
        "wait": times.waited_ms,
        "setup": times.set_up_ms,
        "agent": times.agent_ms,
        "checks": times.checks_ms,
        "reviewer": times.reviewer_ms,
        "other": times.worktree_ms + times.other_ms,
    }
    return {name: timedelta(milliseconds=ms) for name, ms in steps.items() if ms}


class _Completed(Record):
    meta: _Meta


class _Context(Record):
    context_size_bytes: int
    section_bytes: dict[str, int] = Field(default_factory=dict)
    feedback_sources: tuple[str, ...] = ()


class _Labels(Record):
    labels: tuple[str, ...] = ()


class _MilestoneBody(Record):
    act_at: datetime | None = None
    resolution: Resolution = Resolution.SKIPPED


def read_ledger_history(database: Database) -> LedgerHistory:
    """Read the whole history; ConfigError if a newer version wrote it."""
    wanted = (
        select(EVENT.repository, EVENT.number, EVENT.at, EVENT.kind, EVENT.body)
        .where(EVENT.kind.in_([COMPLETED, RESOLVED, CONTEXT, SEEN, *MILESTONES]))
        .order_by(EVENT.seq)
    )
    tries, moments = dict[tuple[IssueRef, int], AttemptEntry](), list[Milestone]()
    contexts, labels = dict[IssueRef, RetryContextEntry](), dict[IssueRef, tuple[str, ...]]()
    with database.read() as connection:
        for row in connection.execute(wanted.execution_options(yield_per=1000)):
            issue, at = IssueRef(row.repository, row.number), datetime.fromisoformat(row.at)
            found = _read(issue, at, row.kind, row.body)
            match found:
                case Milestone():
                    moments.append(found)
                case RetryContextEntry():
                    contexts[issue] = found
                case _Labels():
                    labels[issue] = found.labels
                case AttemptEntry():
                    # An attempt may be recorded again; the last record counts.
                    before = tries.get((issue, found.number))
                    context = before.context if before else contexts.pop(issue, None)
                    tries[issue, found.number] = replace(found, context=context)
        stages = [*_stages(connection)]
        return LedgerHistory(_first(connection), [*tries.values()], moments, stages, labels)


def _read(
    issue: IssueRef, at: datetime, kind: str, body: str
) -> AttemptEntry | RetryContextEntry | Milestone | _Labels:
    try:
        if kind == COMPLETED:
            return _Completed.model_validate_json(body).meta.tried(issue, at)
        if kind == CONTEXT:
            context = _Context.model_validate_json(body)
            return RetryContextEntry(
                context.context_size_bytes, context.section_bytes, context.feedback_sources
            )
        if kind == SEEN:
            return _Labels.model_validate_json(body)
        milestone = _MilestoneBody.model_validate_json(body)
    except ValidationError as error:
        raise ConfigError(
            f"This version cannot read an event of {issue}; install a newer version."
        ) from error
    turn = ENDS[milestone.resolution] if kind == RESOLVED else MILESTONES[kind]
    return Milestone(issue, turn, at, milestone.act_at)


def _first(connection: Connection) -> datetime | None:
    found = connection.execute(select(EVENT.at).order_by(EVENT.seq).limit(1)).scalar()
    return datetime.fromisoformat(found) if found else None


def _stages(connection: Connection) -> Iterator[tuple[IssueRef, Stage]]:
    wanted = select(ISSUE.repository, ISSUE.number, ISSUE.stage)
    for repository, number, stage in connection.execute(wanted):
        yield IssueRef(repository, number), Stage(stage)
