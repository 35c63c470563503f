"""The JSON that the commands and the dashboard share. Pure."""

from collections.abc import Sequence

from mulligan.domain.events import EVENT_SCHEMA_VERSION, Decided, RecordedEvent
from mulligan.domain.hold import EVERYTHING, Pause
from mulligan.domain.result import WorkerResultMeta
from mulligan.domain.status import IssueStatus

Row = dict[str, object]


def status_rows(statuses: Sequence[IssueStatus], pauses: Sequence[Pause]) -> list[Row]:
    """Return what `mulligan status --json` prints: every issue, and the pause that holds it."""
    return [{**status_row(each), "paused": _paused(each, pauses)} for each in statuses]


def status_row(found: IssueStatus) -> Row:
    """Return the status of one issue."""
    return {
        "issue": str(found.issue),
        "stage": found.stage,
        "epoch": found.epoch,
        "attempt": found.attempt,
        "outcome": found.outcome,
        "reason": found.reason,
        "pull_request": found.pull.url,
        "review_until": found.reviews_settle_at.isoformat() if found.reviews_settle_at else None,
        "notes": [*found.effects.pull_notes],
        **({"restored": found.restored} if found.restored else {}),
    }


def _paused(found: IssueStatus, pauses: Sequence[Pause]) -> Row | None:
    """Describe the widest pause that holds an issue: by the operator, or on the issue itself."""
    for pause in pauses:
        if pause.repository in {EVERYTHING, found.issue.repository}:
            scope = "repository" if pause.repository else "everything"
            return {"scope": scope, "by": "operator", "since": pause.since.isoformat()}
    return {"scope": "issue", "by": found.paused_by, "since": None} if found.paused_by else None


def inspection(
    found: IssueStatus, history: Sequence[WorkerResultMeta], decisions: Sequence[Row]
) -> Row:
    """Return the history of one issue, as in `mulligan inspect --json`."""
    return {
        **status_row(found),
        "title": found.text.title,
        "attempts": [meta.model_dump(mode="json") for meta in history],
        "decisions": [*decisions],
    }


def decisions_of(events: Sequence[RecordedEvent]) -> list[Row]:
    """List the decisions with their attempts; `number` counts over all epochs."""
    rows, number = list[Row](), 0
    for recorded in events:
        event = recorded.event
        if event.kind == "attempt_started":
            number = event.number
        if isinstance(event, Decided):
            rows.append(
                {
                    "attempt": recorded.attempt,
                    "number": number,
                    "epoch": recorded.epoch,
                    "decision": event.decision.decision,
                    "reason": event.decision.reason,
                }
            )
    return rows


def event_row(recorded: RecordedEvent) -> Row:
    """Return one event of the ledger; `payload` has its fields by name."""
    return {
        "seq": recorded.seq,
        "time": recorded.at.isoformat(timespec="microseconds"),
        "schema_version": EVENT_SCHEMA_VERSION,
        "name": recorded.event.kind,
        "issue": str(recorded.issue),
        "epoch": recorded.epoch,
        "attempt": recorded.attempt,
        "payload": recorded.event.model_dump(mode="json", exclude={"kind"}),
    }


def pause_row(pause: Pause) -> Row:
    """Describe a pause; the repository is null where everything is paused."""
    return {"repository": pause.repository or None, "since": pause.since.isoformat()}
