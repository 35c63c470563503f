"""What the ledger records, one small record per kind of event (SPEC 14). Pure."""

from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, JsonValue, TypeAdapter

from mulligan.domain.decision import Decision
from mulligan.domain.feedback import MERGED, NOT_MERGED, Returned
from mulligan.domain.issue import AuthorisingAct, IssueRef
from mulligan.domain.people import CommandReceived, HumanResponded
from mulligan.domain.proposed import BroughtUpToDate, Drafted, Published, PublishStarted
from mulligan.domain.record import Record
from mulligan.domain.result import CheckResult, VerifierOutcome, WorkerResultMeta
from mulligan.domain.retention import Forgotten

EVENT_SCHEMA_VERSION = 1


class IssueSeen(Record):
    """An issue asked for work for the first time, or its text changed.

    `text_sha256` is the hash of title and body; `act` is the authorising act that they were seen
    under.
    """

    kind: Literal["issue_seen"] = "issue_seen"
    title: str
    author: str = ""
    url: str = ""
    text_sha256: str = ""
    act: str = ""


class Authorised(Record):
    """A trusted person asked for work; opens an epoch, in which `guidance` holds (T1, C14)."""

    kind: Literal["authorised"] = "authorised"
    act: str
    actor: str
    act_at: datetime
    actor_id: int | None = None
    guidance: str = ""

    @classmethod
    def of(cls, act: AuthorisingAct) -> Self:
        """Record an act that was found to be trusted."""
        return cls(
            act=act.act,
            actor=act.actor,
            act_at=act.at,
            actor_id=act.actor_id,
            guidance=act.guidance,
        )


class AttemptStarted(Record):
    """Durable before anything else of the attempt happens (SPEC A1).

    `position` is its place among the `most` attempts of the epoch, those that cost none left out.
    """

    kind: Literal["attempt_started"] = "attempt_started"
    attempt: int
    number: int
    worker: str
    position: int | None = None
    most: int | None = None


class WorktreeReset(Record):
    """The worktree equals `start_sha`, and was verified to."""

    kind: Literal["worktree_reset"] = "worktree_reset"
    base_sha: str
    start_sha: str
    recreated: bool = False


class RetryContextAssembled(Record):
    """The earlier attempts were put together for the next prompt."""

    kind: Literal["retry_context_assembled"] = "retry_context_assembled"
    prior_attempts_count: int
    context_size_bytes: int
    feedback_sources: tuple[str, ...]


class AttemptContextTruncated(Record):
    """Something did not fit the budget and was cut; sizes are bytes."""

    kind: Literal["attempt_context_truncated"] = "attempt_context_truncated"
    budget: int
    original: int
    truncated: int
    sections: tuple[str, ...]
    reasons: tuple[str, ...]


class AttemptContextAssembled(Record):
    """All that a run of the agent is given, as a manifest; hashes are SHA-256 in hex."""

    kind: Literal["attempt_context_assembled"] = "attempt_context_assembled"
    manifest: dict[str, JsonValue]
    manifest_hash: str
    inputs_hash: str
    context_hash: str | None = None
    fix_round: int = 0


class AttemptContextDelivered(Record):
    """The prompt went to the agent; hashes are SHA-256 in hex."""

    kind: Literal["attempt_context_delivered"] = "attempt_context_delivered"
    delivered_hash: str
    context_hash: str | None = None
    manifest_hash: str
    prior_manifest_hashes: tuple[str, ...] = ()
    prompt_artifact: str
    fix_round: int = 0


class AgentStarted(Record):
    """The agent's process is about to run."""

    kind: Literal["agent_started"] = "agent_started"
    agent: str


class AgentFinished(Record):
    """The agent's process ended, and nothing of it is left."""

    kind: Literal["agent_finished"] = "agent_finished"
    exit_code: int | None
    stopped_by: str | None = None
    duration_ms: int


class CheckFinished(Record):
    """One check gave its verdict."""

    kind: Literal["check_finished"] = "check_finished"
    check: CheckResult


class BaselineRecorded(Record):
    """What a check says of an untouched start tree; None where it could not run (SPEC A4).

    `key` is a hash of the start tree, all that defines the check, and the day, whichever issue
    asked. Only what failed in both of two runs is in it.
    """

    kind: Literal["baseline_recorded"] = "baseline_recorded"
    key: str
    start_sha: str
    name: str
    check: CheckResult | None


class FixRoundStarted(Record):
    """The agent runs again in the same worktree, given the checks that failed (SPEC A12)."""

    kind: Literal["fix_round_started"] = "fix_round_started"
    number: int
    most: int
    failed: tuple[str, ...]


class ReviewFinished(Record):
    """The reviewer command answered; `unreadable` says why an answer counts as PASS (SPEC 10)."""

    kind: Literal["review_finished"] = "review_finished"
    verdict: VerifierOutcome
    feedback: str = ""
    unreadable: str = ""
    vetoes: bool = False


class AttemptCompleted(Record):
    """The attempt has an outcome."""

    kind: Literal["attempt_completed"] = "attempt_completed"
    meta: WorkerResultMeta


class Decided(Record):
    """What follows the last attempt."""

    kind: Literal["decided"] = "decided"
    decision: Decision


class EffectDone(Record):
    """Something was done on GitHub, under its natural key; it may be done again and shows once."""

    kind: Literal["effect_done"] = "effect_done"
    effect: str
    key: str
    remote_id: str


class RetryScheduled(Record):
    """The next attempt may start at `due`."""

    kind: Literal["retry_scheduled"] = "retry_scheduled"
    due: datetime
    reason: str


class Waiting(Record):
    """The issue is not worked on before `until`; None: before a person has mended something."""

    kind: Literal["waiting"] = "waiting"
    until: datetime | None
    reason: str


class Escalated(Record):
    """The issue was handed to a person."""

    kind: Literal["escalated"] = "escalated"
    reason: str
    comment: str


class StoodDown(Record):
    """The issue is left alone; `elsewhere`: to another installation, which has settled it."""

    kind: Literal["stood_down"] = "stood_down"
    reason: str
    elsewhere: bool = False


class Resolved(Record):
    """The issue is done with."""

    kind: Literal["resolved"] = "resolved"
    resolution: str
    total_attempts: int
    total_duration_ms: int

    @property
    def ends_pull(self) -> bool:
        """Tell whether its pull request was merged or closed; it was not if a person left it."""
        return self.resolution in {MERGED, NOT_MERGED}


Event = Annotated[
    IssueSeen
    | Authorised
    | AttemptStarted
    | WorktreeReset
    | RetryContextAssembled
    | AttemptContextTruncated
    | AttemptContextAssembled
    | AttemptContextDelivered
    | AgentStarted
    | AgentFinished
    | CheckFinished
    | BaselineRecorded
    | FixRoundStarted
    | ReviewFinished
    | AttemptCompleted
    | Decided
    | EffectDone
    | PublishStarted
    | Published
    | Drafted
    | BroughtUpToDate
    | Returned
    | RetryScheduled
    | Waiting
    | Escalated
    | StoodDown
    | CommandReceived
    | HumanResponded
    | Resolved
    | Forgotten,
    Field(discriminator="kind"),
]

EVENTS: TypeAdapter[Event] = TypeAdapter(Event, config=ConfigDict(defer_build=True))
"""Reads and writes any event as JSON."""


class Recorded(Record):
    """An event as the ledger holds it: `seq` orders all events of one ledger."""

    seq: int
    at: datetime
    issue: IssueRef
    epoch: int
    attempt: int | None
    event: Event
