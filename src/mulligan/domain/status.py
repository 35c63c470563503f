"""The status of an issue, and the keys that keep anything from being done twice. Pure."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import sha256

from mulligan.domain.command import OPENING, STOPPING, PendingCommand
from mulligan.domain.feedback import Feedback
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.outcome import Decision, Outcome

# The effects that a status stores; each is recorded as `<effect>:<key>`.

SHOWN_STAGE = "shown_stage"
"""The effect that GitHub shows the stage; it is dropped when the stage changes."""

DEFERRED = "later"
"""The value of SHOWN_STAGE while the edit of the status comment is delayed."""

STATUS_EDIT_INTERVAL = timedelta(seconds=15)
"""The least time between two edits of the status comment (SPEC H5)."""

READ_TO = "comments_read"
"""The effect with the last comment id read; it stands on any issue of a repository."""

PUSH = "push"
"""The effect that the issue's branch was pushed; its value is the commit."""

PUSHED_WORK = "pushed_work"
"""The effect that an attempt's work was pushed, by number; its value is the ref."""

MERGE = "merge"
"""The effect that the base was merged into a head, keyed by both; its value is the commit."""

REVIEWS_SETTLING = "settling"
"""The effect that a review waits for further ones; its value is `<review id> <until>`."""


# The status.


class Phase(StrEnum):
    """The next step of an issue after a restart (DESIGN 1)."""

    IDLE = "idle"
    ATTEMPTING = "attempting"
    COMPLETED = "completed"
    DECIDED = "decided"


@dataclass(frozen=True, slots=True)
class IssueStatus:
    """The status of one issue, folded from its events (domain/fold.py).

    - `attempt` counts within `epoch`, `number` over all epochs. `forgotten_epochs` counts the
      epochs deleted by retention.
    - `act` is the authorising act of the epoch, `guidance` its instructions (SPEC C14).
    - `text_sha256` is the hash of the text last seen under the act `text_act` (SPEC T2).
    - `due` is when the next attempt may start.
    - `effects` maps `<effect>:<key>` to the id or SHA from GitHub or git.
    - `is_kept`: the last attempt's commit is verified, but waits to be published until a maintainer
      has fixed the obstacle.
    - `feedback` is the feedback of the pull request `pull_number`, until an attempt that answers it
      is published. `rounds` counts the epochs opened by reviews since the last request.
    - `ci_attempts` counts the epoch's attempts because of failed checks on GitHub; `ci_passed` the
      checks that passed on the head in review.
    - `draft_of` is the attempt that the pull request shows as a draft, 0 for none; `left_draft`
      says why the pull request is still a draft although its work is verified.
    - `updated_to` is the base branch's commit that Mulligan merged into the pull request.
    - `pending` are the unanswered commands; `heard` are the keys of the handled commands, reviews,
      conflicts and failed heads.
    - `paused_by` names who paused the issue; `known_since` is when this ledger first recorded it.
    - `asked_at` is the URL of the last escalation comment.
    - `elsewhere`: the issue was left to another installation. `labelled`: this ledger set the
      review or hitl label that the issue carries.
    """

    issue: IssueRef
    title: str = ""
    stage: Stage = Stage.READY
    phase: Phase = Phase.IDLE
    epoch: int = 0
    attempt: int = 0
    number: int = 0
    act: str = ""
    actor: str = ""
    act_at: datetime | None = None
    outcome: Outcome | None = None
    decision: Decision | None = None
    reason: str = ""
    due: datetime | None = None
    pull_request: str | None = None
    effects: tuple[tuple[str, str], ...] = ()
    started_at: datetime | None = None
    is_kept: bool = False
    actor_id: int | None = None
    text_sha256: str = ""
    text_act: str = ""
    guidance: str = ""
    pull_number: int | None = None
    feedback: Feedback | None = None
    heard: tuple[str, ...] = ()
    rounds: int = 0
    ci_attempts: int = 0
    ci_passed: int = 0
    pending: tuple[PendingCommand, ...] = ()
    paused_by: str = ""
    known_since: datetime | None = None
    draft_of: int = 0
    left_draft: str = ""
    updated_to: str = ""
    asked_at: str = ""
    forgotten_epochs: int = 0
    elsewhere: bool = False
    labelled: bool = False

    @property
    def by_command(self) -> bool:
        """Tell whether a command opened the epoch, so that it needs no label."""
        return self.act.startswith(("comment:", "command:"))

    @property
    def epochs(self) -> int:
        """Count all epochs, including those deleted by retention."""
        return self.forgotten_epochs + self.epoch

    @property
    def ending_reason(self) -> str | None:
        """Say which pending command ends the running work; None for none."""
        found = (each for each in self.pending if each.verb in STOPPING and each.key != self.act)
        return next((each.as_withdrawal for each in found), None)

    @property
    def is_asked_anew(self) -> bool:
        """Tell whether a pending command requests new attempts."""
        return any(each.verb in OPENING for each in self.pending)

    @property
    def instance(self) -> str:
        """Name the installation, by when its ledger first recorded the issue."""
        seen = f"{self.issue} {self.known_since.isoformat() if self.known_since else ''}"
        return sha256(seen.encode()).hexdigest()[:12]

    def effect(self, name: str, key: str) -> str | None:
        """Give the remote id of an effect that was done, if it was."""
        return dict(self.effects).get(f"{name}:{key}")

    @property
    def merges(self) -> frozenset[str]:
        """Name the commits by which Mulligan has merged the base branch into the pull request."""
        return frozenset(sha for name, sha in self.effects if name.startswith(f"{MERGE}:"))

    @property
    def merged_bases(self) -> frozenset[str]:
        """Name the commits of the base branch that Mulligan has merged into the pull request."""
        keys = (name.split(":") for name, _ in self.effects if name.startswith(f"{MERGE}:"))
        return frozenset(key[1] for key in keys)

    @property
    def reviews_settle_at(self) -> datetime | None:
        """Give until when Mulligan waits for further reviews; None if no review waits."""
        number, _, until = (self.effect(REVIEWS_SETTLING, "issue") or "").partition(" ")
        if not until or is_handled(self.heard, f"review:{number}"):
            return None
        return None if self.stage is Stage.RESOLVED else datetime.fromisoformat(until)

    @property
    def merged_since(self) -> dict[str, str]:
        """Map each merge into the last pushed commit to its base commit."""
        into = f":{self.effect(PUSH, self.issue.branch)}"
        return {
            sha: key.split(":")[1]
            for key, sha in self.effects
            if key.startswith(f"{MERGE}:") and key.endswith(into)
        }

    @property
    def is_shown(self) -> bool:
        """Tell whether GitHub shows the current stage."""
        return self.effect(SHOWN_STAGE, "issue") == self.stage

    @property
    def has_deferred_comment(self) -> bool:
        """Tell whether an edit of the status comment is delayed."""
        return self.effect(SHOWN_STAGE, "issue") == DEFERRED


# The keys of what was handled, and of effects: how many are kept.

MAX_KEYS_PER_KIND = 100
"""How many keys of a kind are stored; more than one review can have threads."""

UP_TO_MARK = "<="
"""In a key: covers every key of its kind with this number or a lower one."""

NUMBERED = re.compile(r"(comment|review):([0-9]+)")
"""Keys with ids that GitHub assigns in ascending order."""


def is_handled(heard: Iterable[str], key: str) -> bool:
    """Tell whether a key was handled, by itself or by a mark that covers it."""
    named = NUMBERED.fullmatch(key)
    return any(each == key or (named and _covers(each, named)) for each in heard)


def _covers(mark: str, named: re.Match[str]) -> bool:
    kind, found, number = mark.partition(UP_TO_MARK)
    return bool(found) and kind == named[1] and int(named[2]) <= int(number)


def add_handled(heard: tuple[str, ...], *keys: str) -> tuple[str, ...]:
    """Add handled keys, and drop the oldest of a kind beyond MAX_KEYS_PER_KIND.

    Dropped comments and reviews are replaced by a mark that covers them.
    """
    kept = tuple(dict.fromkeys((*heard, *keys)))
    for kind in dict.fromkeys(map(_kind, keys)):
        of_kind = [each for each in kept if _kind(each) == kind and UP_TO_MARK not in each]
        if len(of_kind) > MAX_KEYS_PER_KIND:
            oldest = sorted(of_kind, key=_numbers) if _is_numbered(kind) else of_kind
            gone = set(oldest[:-MAX_KEYS_PER_KIND])
            mark = _marked(kind, kept, gone)
            kept = (*mark, *(each for each in kept if each not in gone))
    return kept


def _marked(kind: str, kept: tuple[str, ...], gone: set[str]) -> tuple[str, ...]:
    """Give the mark that covers the dropped keys; drop the mark before it."""
    if not _is_numbered(kind):
        return ()
    before = {each for each in kept if each.startswith(f"{kind}{UP_TO_MARK}")}
    highest = max(_numbers(each)[-1] for each in gone | before)
    gone |= before
    return (f"{kind}{UP_TO_MARK}{highest}",)


def summarise_handled(heard: Iterable[str]) -> tuple[str, ...]:
    """Give one mark for comments and one for reviews that covers all handled ones."""
    highest = dict[str, int]()
    for key in heard:
        if _is_numbered(kind := _kind(key)):
            highest[kind] = max(highest.get(kind, 0), _numbers(key)[-1])
    return tuple(f"{kind}{UP_TO_MARK}{number}" for kind, number in sorted(highest.items()))


def trim_effects(effects: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """Keep the last MAX_KEYS_PER_KIND of each effect; `effects` are ordered, oldest first."""
    by_name = dict[str, list[str]]()
    for key in effects:
        by_name.setdefault(key.partition(":")[0], []).append(key)
    gone = {key for keys in by_name.values() for key in keys[:-MAX_KEYS_PER_KIND]}
    return tuple((key, given) for key, given in effects.items() if key not in gone)


def _kind(key: str) -> str:
    return re.split(r":|<=", key, maxsplit=1)[0]


def _is_numbered(kind: str) -> bool:
    return kind in {"comment", "review"}


def _numbers(key: str) -> tuple[int, ...]:
    """Give the numbers in a key, the last one first: that of the attempt, where it has one."""
    return tuple(int(number) for number in reversed(re.findall(r"[0-9]+", key)))
