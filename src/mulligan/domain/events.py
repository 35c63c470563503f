"""The events that the ledger records, one record for each kind (LEDGER-1). Pure."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal, Self, get_args

from pydantic import ConfigDict, Field, JsonValue, TypeAdapter

from mulligan.domain.command import Verb
from mulligan.domain.issue import AuthorisingAct, IssueRef
from mulligan.domain.outcome import Decision, Record
from mulligan.domain.recorded_effects import CommentsRead, Effect, Obstacle, WrittenEffect
from mulligan.domain.result import (
    CheckResult,
    Proof,
    SkippedCheck,
    VerifierOutcome,
    WorkerResultMeta,
)

EVENT_SCHEMA_VERSION = 2
"""Version 1 had other names and fields of effects; storage/old_events.py reads it."""


# The issue and its requests.


class IssueSeen(Record):
    """Mulligan read an issue with a request for the first time, or its text changed.

    `text_sha256` is the hash of title and body. `act` is the authorising act at that time, and
    `labels` are those of the issue.
    """

    kind: Literal["issue_seen"] = "issue_seen"
    title: str
    author: str = ""
    url: str = ""
    text_sha256: str = ""
    act: str = ""
    labels: tuple[str, ...] = ()


class Authorised(Record):
    """A trusted person requested work (TRUST-1).

    It opens a new epoch, with the maintainer's instruction in `guidance` (CONTEXT-12).
    """

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
    """A trusted person or the operator gave a command.

    `key` names the comment, or the time for a command from the shell. The command is in force from
    here on. A HumanResponded with the same `key` follows when Mulligan has carried it out.
    """

    kind: Literal["command_received"] = "command_received"
    key: str
    command: Verb
    text: str = ""
    actor: str = ""
    at: datetime
    actor_id: int | None = None


class HumanResponded(Record):
    """Mulligan carried out or answered a command; one for each `key`."""

    kind: Literal["human_responded"] = "human_responded"
    key: str
    command: Verb
    actor: str = ""
    answer: str


# One attempt, from start to decision.


class AttemptStarted(Record):
    """An attempt starts; the ledger has this before anything else happens (ATTEMPT-1).

    `position` counts the attempts of the epoch that cost one, this one included; `most` is their
    limit. `comments` are digests of the comments that were read for it, by their ids.
    """

    kind: Literal["attempt_started"] = "attempt_started"
    attempt: int
    number: int
    worker: str
    position: int | None = None
    most: int | None = None
    comments: dict[str, str] | None = None


class WorktreeReset(Record):
    """The worktree was reset to `start_sha` and verified."""

    kind: Literal["worktree_reset"] = "worktree_reset"
    base_sha: str
    start_sha: str
    recreated: bool = False


class RetryContextAssembled(Record):
    """The retry context for the next prompt is ready.

    `section_bytes` has the size of each section that it has, with the heading.
    """

    kind: Literal["retry_context_assembled"] = "retry_context_assembled"
    prior_attempts_count: int
    context_size_bytes: int
    feedback_sources: tuple[str, ...]
    section_bytes: dict[str, int] = Field(default_factory=dict)


class AttemptContextTruncated(Record):
    """Parts of the retry context were over a limit of their own or of the whole; sizes in bytes."""

    kind: Literal["attempt_context_truncated"] = "attempt_context_truncated"
    budget: int
    original: int
    truncated: int
    sections: tuple[str, ...]
    reasons: tuple[str, ...]


class AttemptContextAssembled(Record):
    """The manifest of everything that one run of the agent receives; hashes are SHA-256 in hex.

    `context_hash` is of the retry context, `context_window_hash` of the prompt's sections by name,
    and `rendered_prompt_hash` of the prompt that was written from them.
    """

    kind: Literal["attempt_context_assembled"] = "attempt_context_assembled"
    manifest: dict[str, JsonValue]
    manifest_hash: str
    inputs_hash: str
    context_hash: str | None = None
    fix_round: int = 0
    context_window_hash: str | None = None
    rendered_prompt_hash: str | None = None


class AttemptContextDelivered(Record):
    """The agent received its prompt; hashes are SHA-256 in hex."""

    kind: Literal["attempt_context_delivered"] = "attempt_context_delivered"
    delivered_hash: str
    context_hash: str | None = None
    manifest_hash: str
    prior_manifest_hashes: tuple[str, ...] = ()
    prompt_artifact: str
    fix_round: int = 0


class AgentStarted(Record):
    """The agent's process starts now."""

    kind: Literal["agent_started"] = "agent_started"
    agent: str


class AgentFinished(Record):
    """The agent's process and all its children ended."""

    kind: Literal["agent_finished"] = "agent_finished"
    exit_code: int | None
    stopped_by: str | None = None
    duration_ms: int


class CheckFinished(Record):
    """A check finished."""

    kind: Literal["check_finished"] = "check_finished"
    check: CheckResult


class CheckSkipped(Record):
    """A check did not run, because the change touches none of its paths (CHECK-8)."""

    kind: Literal["check_skipped"] = "check_skipped"
    check: SkippedCheck


class BaselineRecorded(Record):
    """The result of a check on the unchanged start tree (BASELINE-1).

    After two `runs`, `check` has only the failures that both have in common; it is null if the
    check could not run. `key` is a hash of the start tree, the check, the setup commands, the
    installed programs and the day; all issues share it. The last event with a key counts. `tests`
    is the artifact with the names of the tests that ran, empty if there was no report.
    """

    kind: Literal["baseline_recorded"] = "baseline_recorded"
    key: str
    start_sha: str
    name: str
    check: CheckResult | None
    runs: int = 0
    """How often the check ran, at most twice; 0 in records of earlier versions."""
    tests: str = ""


class FixRoundStarted(Record):
    """The agent runs again in the same worktree, with the failed checks (ATTEMPT-3)."""

    kind: Literal["fix_round_started"] = "fix_round_started"
    number: int
    most: int
    failed: tuple[str, ...]


class ReviewFinished(Record):
    """The reviewer command ended (REVIEWER-1).

    Without a verdict, `unreadable` is the reason, and a person decides. In older records, such an
    answer counted as PASS.
    """

    kind: Literal["review_finished"] = "review_finished"
    verdict: VerifierOutcome | None
    feedback: str = ""
    unreadable: str = ""
    vetoes: bool = False


class ProofFinished(Record):
    """The tests of the change ran without its other files, if they can (PROOF-1)."""

    kind: Literal["proof_finished"] = "proof_finished"
    proof: Proof


class AttemptCompleted(Record):
    """The attempt has an outcome."""

    kind: Literal["attempt_completed"] = "attempt_completed"
    meta: WorkerResultMeta


class Decided(Record):
    """The decision after an attempt."""

    kind: Literal["decided"] = "decided"
    decision: Decision


# Decisions that are carried out.


class PublishStarted(Record):
    """The push of the verified commit starts."""

    kind: Literal["publish_started"] = "publish_started"
    head_sha: str


class Published(Record):
    """The pull request is open.

    `left_draft` is the reason why it is still a draft, if GitHub didn't make it ready for review.
    """

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
    """The next attempt may start at `due`; `obstacle` is set if others would fail as well."""

    kind: Literal["retry_scheduled"] = "retry_scheduled"
    due: datetime
    reason: str
    obstacle: Obstacle | None = None


class Waiting(Record):
    """The issue waits until `until`; null means until a maintainer has fixed the cause."""

    kind: Literal["waiting"] = "waiting"
    until: datetime | None
    reason: str
    obstacle: Obstacle | None = None


class Escalated(Record):
    """The issue needs human review; `comment` is the address of the escalation comment."""

    kind: Literal["escalated"] = "escalated"
    reason: str
    comment: str


class StoodDown(Record):
    """Mulligan stopped work on the issue; `elsewhere`: another installation has settled it.

    `keeps_pull`: the pull request stays open as it is, and the issue waits with it.
    """

    kind: Literal["stood_down"] = "stood_down"
    reason: str
    elsewhere: bool = False
    keeps_pull: bool = False


# What happens to the pull request.


class Remark(Record):
    """A change that a trusted person requests; with a `path`, on that line of that file.

    It belongs to the review `review`. `code` is the line with its context, and `thread` the comment
    to answer, 0 for none.
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
    """Trusted people requested changes on the pull request (PR-2).

    `reviews` has the ids of the reviews, `at` is the time of the last one. `opens_epoch` is true if
    no attempt was left. `refused` is the reason why the issue needs human review instead.
    """

    kind: Literal["review_received"] = "review_received"
    reviews: tuple[int, ...]
    author: str
    author_id: int | None = None
    at: datetime
    remarks: tuple[Remark, ...]
    opens_epoch: bool = False
    refused: str = ""


class ReviewsWithdrawn(Record):
    """Reviews no longer request changes: an approval came later, or they were dismissed (PR-2).

    `ends_work`: the attempt that was due or running was for these reviews only.
    """

    kind: Literal["reviews_withdrawn"] = "reviews_withdrawn"
    reviews: tuple[int, ...]
    ends_work: bool = False


class Conflicted(Record):
    """The base branch moved, and the pull request now has conflicts (PR-4)."""

    kind: Literal["conflicted"] = "conflicted"
    base_sha: str
    head_sha: str
    files: tuple[str, ...] = ()


class FailedCheck(Record):
    """A check that failed on GitHub, with the digest of its log.

    `long_digest` has more if the findings do not explain the failure or do not fit; else empty.
    """

    name: str
    digest: str = ""
    long_digest: str = ""


class CiFailed(Record):
    """Checks of a head failed on GitHub, and not on its base commit (PR-3).

    `refused` is the reason why the issue needs human review instead of another attempt.
    """

    kind: Literal["ci_failed"] = "ci_failed"
    head_sha: str
    checks: tuple[FailedCheck, ...]
    refused: str = ""


class CiPassed(Record):
    """All checks of a head have finished on GitHub; `count` passed, and none failed."""

    kind: Literal["ci_passed"] = "ci_passed"
    head_sha: str
    count: int


class BroughtUpToDate(Record):
    """Mulligan merged the base branch, at `base_sha`, into the pull request and pushed `head_sha`.

    One event records both the merge and the push, so that a crash cannot separate them.
    """

    kind: Literal["brought_up_to_date"] = "brought_up_to_date"
    base_sha: str
    head_sha: str


# What agents noted about the repository.


class NotedFact(Record):
    """A fact about the repository, as the attempt `number` over all epochs noted it."""

    text: str
    number: int
    noted_at: datetime


class LearningsAccepted(Record):
    """Facts that agents at other issues of the repository get from now on (LEARNING-2).

    The merge of `pull_request` accepts them, or an operator if `by_operator`.
    """

    kind: Literal["learnings_accepted"] = "learnings_accepted"
    facts: tuple[NotedFact, ...]
    pull_request: str = ""
    by_operator: bool = False


class LearningsDropped(Record):
    """Facts that an operator dropped, so that agents do not get them any more (LEARNING-2)."""

    kind: Literal["learnings_dropped"] = "learnings_dropped"
    facts: tuple[str, ...]


# The end of an issue.


class Resolution(StrEnum):
    """What ended the work: its pull request was merged or closed, or a maintainer skipped it."""

    MERGED = "merged"
    CLOSED = "closed"
    SKIPPED = "skipped"


class Resolved(Record):
    """The work on the issue has ended; `reason` is a sentence for people."""

    kind: Literal["resolved"] = "resolved"
    resolution: Resolution
    reason: str
    total_attempts: int
    total_duration_ms: int

    @property
    def ends_pull(self) -> bool:
        """Return whether the pull request was merged or closed."""
        return self.resolution is not Resolution.SKIPPED


class Forgotten(Record):
    """The ledger removed the events of an issue, except for what a new request needs.

    There were `number` attempts in `epochs` epochs, and `act` is the last request. `known_since` is
    the time of the first event. `heard` lists the last comments and reviews that Mulligan acted on.
    """

    kind: Literal["forgotten"] = "forgotten"
    reason: str
    number: int
    act: str
    known_since: datetime | None
    pull_request: str | None = None
    effects: tuple[WrittenEffect, ...] = ()
    epochs: int = 0
    heard: tuple[str, ...] = ()


class Restored(Record):
    """The events before this one rebuilt the status from GitHub, after the ledger was lost.

    `source` names where their facts came from. There were `number` attempts, and `epochs` epochs
    before the last one. `handled` has the highest ids of the comments and reviews that Mulligan
    acted on. `review_start` counts the attempts of the epoch before the review that the last ones
    are for.
    """

    kind: Literal["restored"] = "restored"
    source: str = ""
    number: int = 0
    epochs: int = 0
    rounds: int = 0
    ci_attempts: int = 0
    review_start: int | None = None
    paused_by: str = ""
    effects: tuple[WrittenEffect, ...] = ()
    handled: tuple[str, ...] = ()


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
    | CheckSkipped
    | BaselineRecorded
    | FixRoundStarted
    | ReviewFinished
    | ProofFinished
    | AttemptCompleted
    | Decided
    | Effect
    | PublishStarted
    | Published
    | Drafted
    | BroughtUpToDate
    | ReviewReceived
    | ReviewsWithdrawn
    | Conflicted
    | CiFailed
    | CiPassed
    | RetryScheduled
    | Waiting
    | Escalated
    | StoodDown
    | CommandReceived
    | HumanResponded
    | LearningsAccepted
    | LearningsDropped
    | Resolved
    | Forgotten
    | Restored,
    Field(discriminator="kind"),
]

EVENT_TYPES: tuple[type[Event], ...] = get_args(get_args(Event)[0])

EVENTS: TypeAdapter[Event] = TypeAdapter(Event, config=ConfigDict(defer_build=True))
"""Reads and writes any event as JSON."""


STEP_ENDS = (Published, Drafted, Escalated, RetryScheduled, StoodDown, Waiting, Resolved)
"""After these events, no step of an attempt is under way."""


def comments_read_to(event: Event) -> int:
    """Return the comment id up to which an event says that comments were read; else 0."""
    match event:
        case CommentsRead(read_to=read_to):
            return read_to
        case Forgotten(effects=effects):
            kept = (each.read_to for each in effects if isinstance(each, CommentsRead))
            return max(kept, default=0)
        case _:
            return 0


class RecordedEvent(Record):
    """An event as the ledger holds it: `seq` orders all events of one ledger."""

    seq: int
    at: datetime
    issue: IssueRef
    epoch: int
    attempt: int | None
    event: Event
