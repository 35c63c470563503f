"""What a status remembers so that nothing is done twice, within bounds. Pure."""

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
"""The effect that GitHub was told of the stage; it lasts until the stage changes."""

DEFERRED = "later"
"""What that effect holds while the status comment is still to be written, for the sake of pace."""

STATUS_EDIT_INTERVAL = timedelta(seconds=15)
"""How long the status comment stays as it is, once it was changed (SPEC H5)."""

READ_TO = "comments_read"
"""The effect that holds, on any issue of a repository, how far its comments were read."""

PUSH = "push"
"""The effect that the issue's branch was pushed; its commit."""

PUSHED_WORK = "pushed_work"
"""The effect that the work of an attempt can be fetched, by its number; its ref."""

MERGE = "merge"
"""The effect that the base branch was merged into the pull request's, by both; the commit."""

REVIEWS_SETTLING = "settling"
"""The effect that a review came, of which there is one: its number, and until when it waits."""


# The status.


class Phase(StrEnum):
    """What has to be done next for an issue, whatever was killed (DESIGN 1)."""

    IDLE = "idle"
    ATTEMPTING = "attempting"
    COMPLETED = "completed"
    DECIDED = "decided"


@dataclass(frozen=True, slots=True)
class IssueStatus:
    """Where one issue stands. `attempt` counts within `epoch`, `number` over all epochs.

    `act` names the authorising act of the epoch; `due` is when the next attempt may start;
    `text_sha256` is the text as it was seen last under the act `text_act` (SPEC T2);
    `guidance` is what the person who opened the epoch says is to be done (SPEC C14);
    `effects` maps `<effect>:<key>` to the id or SHA that GitHub or git gave it. `is_kept` tells
    that the last attempt's commit is verified, and waits for a person to mend why it could not be
    published. `feedback` is what the open pull request `pull_number` brought back, until an attempt
    at it is published; `rounds` counts the epochs that reviews have opened since a person asked.
    `ci_attempts` counts the attempts of the epoch that checks on GitHub asked for, and `ci_passed`
    how many of those passed on the head that is in review.
    `draft_of` is the attempt whose work the pull request shows as a draft, 0 where it is none;
    `left_draft` says why it is still one although its work is verified. `updated_to` is the commit
    of the base branch that Mulligan has merged into the work in review.
    `pending` are the commands that are still to be answered; `heard` names the commands, reviews,
    conflicts and failing heads that were acted on (domain/status.py). `paused_by` names who has
    it rest, if anybody does, and `known_since` is when this ledger heard of the issue first.
    `asked_at` is the address of the comment that asked a person last. `forgotten_epochs` counts
    those of which retention has left nothing. `elsewhere` is whether the issue was left to another
    installation; `labelled` whether a label of review or hitl that it carries is of this ledger.
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
        """Tell whether a command opened the epoch, so that no label has to be on."""
        return self.act.startswith(("comment:", "command:"))

    @property
    def epochs(self) -> int:
        """Count the epochs there ever were; what GitHub has of each tells it from all others."""
        return self.forgotten_epochs + self.epoch

    @property
    def ending_reason(self) -> str | None:
        """Say which command ends the work that is going on; None where none does."""
        found = (each for each in self.pending if each.verb in STOPPING and each.key != self.act)
        return next((each.as_withdrawal for each in found), None)

    @property
    def is_asked_anew(self) -> bool:
        """Tell whether a command that is still to be answered asks for new attempts."""
        return any(each.verb in OPENING for each in self.pending)

    @property
    def instance(self) -> str:
        """Name the installation: no other ledger heard of the issue in the same microsecond."""
        told = f"{self.issue} {self.known_since.isoformat() if self.known_since else ''}"
        return sha256(told.encode()).hexdigest()[:12]

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
        """Say until when further reviews are waited for, once one has come; None for not at all."""
        number, _, until = (self.effect(REVIEWS_SETTLING, "issue") or "").partition(" ")
        if not until or is_handled(self.heard, f"review:{number}"):
            return None
        return None if self.stage is Stage.RESOLVED else datetime.fromisoformat(until)

    @property
    def merged_since(self) -> dict[str, str]:
        """Map each merge into what was pushed last to its base: one may have been pushed since."""
        into = f":{self.effect(PUSH, self.issue.branch)}"
        return {
            sha: key.split(":")[1]
            for key, sha in self.effects
            if key.startswith(f"{MERGE}:") and key.endswith(into)
        }

    @property
    def is_shown(self) -> bool:
        """Tell whether GitHub was told of the stage since it changed last."""
        return self.effect(SHOWN_STAGE, "issue") == self.stage

    @property
    def has_deferred_comment(self) -> bool:
        """Tell whether the status comment is still to be written."""
        return self.effect(SHOWN_STAGE, "issue") == DEFERRED


# The keys of what was handled, and of effects: how many are kept.

MAX_KEYS_PER_KIND = 100
"""How many keys of a kind are kept; more than one review can have threads."""

UP_TO_MARK = "<="
"""Stands in a key for all of its kind with that number or a lower one."""

NUMBERED = re.compile(r"(comment|review):([0-9]+)")
"""Keys whose numbers GitHub gives in order."""


def is_handled(heard: Iterable[str], key: str) -> bool:
    """Tell whether something was acted on; of comments and reviews also what was left out since."""
    named = NUMBERED.fullmatch(key)
    return any(each == key or (named and _covers(each, named)) for each in heard)


def _covers(mark: str, named: re.Match[str]) -> bool:
    kind, found, number = mark.partition(UP_TO_MARK)
    return bool(found) and kind == named[1] and int(named[2]) <= int(number)


def add_handled(heard: tuple[str, ...], *keys: str) -> tuple[str, ...]:
    """Add what was acted on; what goes for it is the oldest of its kind.

    Of comments and reviews a mark stays, below which all count as heard.
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
    """Give the mark that stands for what goes; the one before goes with it."""
    if not _is_numbered(kind):
        return ()
    before = {each for each in kept if each.startswith(f"{kind}{UP_TO_MARK}")}
    highest = max(_numbers(each)[-1] for each in gone | before)
    gone |= before
    return (f"{kind}{UP_TO_MARK}{highest}",)


def summarise_handled(heard: Iterable[str]) -> tuple[str, ...]:
    """Give for comments, and for reviews, one mark below which all count as heard."""
    highest = dict[str, int]()
    for key in heard:
        if _is_numbered(kind := _kind(key)):
            highest[kind] = max(highest.get(kind, 0), _numbers(key)[-1])
    return tuple(f"{kind}{UP_TO_MARK}{number}" for kind, number in sorted(highest.items()))


def trim_effects(effects: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """Keep of each effect those that were done last; `effects` are in the order of their doing."""
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
