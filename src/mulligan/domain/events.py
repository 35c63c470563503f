"""The events that the ledger records, one record for each kind (LEDGER-1). Pure."""

from datetime import datetime
from typing import Annotated, Literal, Self, get_args

from pydantic import ConfigDict, Field, JsonValue, TypeAdapter

from mulligan.domain.command import Verb
from mulligan.domain.issue import AuthorisingAct, IssueRef
from mulligan.domain.outcome import Decision, Record
from mulligan.domain.result import CheckResult, VerifierOutcome, WorkerResultMeta

EVENT_SCHEMA_VERSION = 1


# The issue and its requests.


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
    """A trusted person asked for work (TRUST-1); opens an epoch with `guidance` (CONTEXT-12)."""

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
            act=str(act.act),
            actor=act.actor,
            act_at=act.at,
            actor_id=act.actor_id,
            guidance=act.guidance,
        )


class CommandReceived(Record):
    """A trusted person, or the operator, gave a command; `key` is the comment, or the moment.

    What it says holds from here on; that it was carried out is a HumanResponded.
    """

    kind: Literal["command_received"] = "command_received"
    key: str
    command: Verb
    text: str = ""
    actor: str = ""
    at: datetime
    actor_id: int | None = None


class HumanResponded(Record):
    """A command was carried out, or answered; there is one for each key."""

    kind: Literal["human_responded"] = "human_responded"
    key: str
    command: Verb
    actor: str = ""
    answer: str


# One attempt, from start to decision.


class AttemptStarted(Record):
    """Durable before anything else of the attempt happens (ATTEMPT-1).

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
    """What a check says of an untouched start tree; None where it could not run (BASELINE-1).

    `key` is a hash of the start tree, the check, the setup commands, the installed programs and the
    day; it is the same for every issue. Only what failed in both of two runs is in it.
    """

    kind: Literal["baseline_recorded"] = "baseline_recorded"
    key: str
    start_sha: str
    name: str
    check: CheckResult | None


class FixRoundStarted(Record):
    """The agent runs again in the same worktree, given the checks that failed (ATTEMPT-3)."""

    kind: Literal["fix_round_started"] = "fix_round_started"
    number: int
    most: int
    failed: tuple[str, ...]


class ReviewFinished(Record):
    """The reviewer command answered; `unreadable`: why the answer counts as PASS (REVIEWER-1)."""

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


# Decisions that are carried out.


class EffectDone(Record):
    """Something was done on GitHub, under its natural key; it may be done again and shows once."""

    kind: Literal["effect_done"] = "effect_done"
    effect: str
    key: str
    remote_id: str


class PublishStarted(Record):
    """The verified commit is about to be pushed."""

    kind: Literal["publish_started"] = "publish_started"
    head_sha: str


class Published(Record):
    """The pull request is open; `left_draft` says why it is still a draft, where it should not."""

    kind: Literal["published"] = "published"
    pull_request: str
    number: int
    head_sha: str
    left_draft: str = ""


class Drafted(Record):
    """The pull request is a draft with the unverified work of an attempt (ESCALATION-3).

    `attempt` is its number over all epochs.
    """

    kind: Literal["drafted"] = "drafted"
    pull_request: str
    number: int
    head_sha: str
    attempt: int


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


# What happens to the pull request.


class Remark(Record):
    """What a trusted person wants changed; on a line, where there is a `path`.

    `code` is what the line looked like in its surroundings; `thread` is the comment to be
    answered, `review` the review to be answered as a whole, 0 where there is none.
    """

    author: str
    body: str
    path: str = ""
    line: int | None = None
    side: str = "RIGHT"
    code: str = ""
    thread: int = 0
    review: int = 0


class ReviewReceived(Record):
    """Trusted people request changes (PR-2); `reviews` are the ids, `at` that of the last.

    `opens_epoch` where no attempt was left; `refused` says why a person is asked instead.
    """

    kind: Literal["review_received"] = "review_received"
    reviews: tuple[int, ...]
    author: str
    author_id: int | None = None
    at: datetime
    remarks: tuple[Remark, ...]
    opens_epoch: bool = False
    refused: str = ""


class Conflicted(Record):
    """The base branch moved, and the pull request does not merge any more (PR-4)."""

    kind: Literal["conflicted"] = "conflicted"
    base_sha: str
    head_sha: str
    files: tuple[str, ...] = ()


class FailedCheck(Record):
    """A check that failed on GitHub, and what it printed, condensed."""

    name: str
    digest: str = ""


class CiFailed(Record):
    """The checks of a head are complete, and some failed (PR-3).

    `refused` says why a person is asked, where no attempt is made.
    """

    kind: Literal["ci_failed"] = "ci_failed"
    head_sha: str
    checks: tuple[FailedCheck, ...]
    refused: str = ""


class CiPassed(Record):
    """The checks of a head are complete, and so many passed while none failed."""

    kind: Literal["ci_passed"] = "ci_passed"
    head_sha: str
    count: int


Returned = ReviewReceived | Conflicted | CiFailed | CiPassed
"""What a pull request brings back."""


class BroughtUpToDate(Record):
    """Mulligan merged the base branch, at `base_sha`, into the pull request; `head_sha` came of it.

    The push of that is in this event too, so that nothing can come between them.
    """

    kind: Literal["brought_up_to_date"] = "brought_up_to_date"
    base_sha: str
    head_sha: str


# The end of an issue.

MERGED = "Its pull request was merged."

NOT_MERGED = "Its pull request was closed without being merged."


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


class KeptEffect(Record):
    """An effect that must not be done again; `name` is `<effect>:<key>`."""

    name: str
    remote_id: str


class Forgotten(Record):
    """All that was recorded of an issue was removed, but for what a new request still needs.

    `number` is how many attempts there were, in how many `epochs`, and `act` the request that was
    met; `known_since` is when the ledger first heard of the issue, and `heard` says up to where
    comments and reviews were acted on.
    """

    kind: Literal["forgotten"] = "forgotten"
    reason: str
    number: int
    act: str
    known_since: datetime | None
    pull_request: str | None = None
    effects: tuple[KeptEffect, ...] = ()
    epochs: int = 0
    heard: tuple[str, ...] = ()


# All of them.

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

EVENT_TYPES: tuple[type[Event], ...] = get_args(get_args(Event)[0])

EVENTS: TypeAdapter[Event] = TypeAdapter(Event, config=ConfigDict(defer_build=True))
"""Reads and writes any event as JSON."""


class RecordedEvent(Record):
    """An event as the ledger holds it: `seq` orders all events of one ledger."""

    seq: int
    at: datetime
    issue: IssueRef
    epoch: int
    attempt: int | None
    event: Event
