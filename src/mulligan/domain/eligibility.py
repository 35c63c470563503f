"""Decide whether an issue may be worked on: the rules, new requests and dependencies. Pure."""

from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from itertools import chain

from mulligan.domain.issue import (
    AuthorisingAct,
    Issue,
    IssueRef,
    LabelAct,
    OperatorAct,
    Stage,
)
from mulligan.domain.status import IssueStatus, Phase


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts that the rules check; `act` is None if GitHub showed no authorising act.

    `withdrawn` is set if an operator's command replaces a label that was removed. `waits_for` is an
    open dependency. `elsewhere` is another installation's open pull request for the issue.
    `other_labels` are the labels that have another meaning for Mulligan than the ready label.
    `other_base` says that somebody changed the base of the issue's pull request, and `in_hand` that
    somebody's open pull request closes the issue.
    """

    issue: Issue
    status: IssueStatus
    act: AuthorisingAct | None
    ready_label: str
    now: datetime
    archived: bool = False
    policy_fault: str = ""
    withdrawn: bool = False
    waits_for: str = ""
    elsewhere: str = ""
    other_base: str = ""
    in_hand: str = ""
    other_labels: frozenset[str] = frozenset()

    @property
    def needs_label(self) -> bool:
        """Return whether the label must be on the issue; not after a command or a review."""
        return self.act is None or self.act.by_label

    @property
    def at_once(self) -> bool:
        """Return whether an operator requests one attempt now, without waiting."""
        return self.act is not None and isinstance(self.act.act, OperatorAct)


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: `refusal` gives the reason and the fix, "" if the rule is kept.

    `kept` is the sentence for a rule that is kept.
    """

    name: str
    kept: str
    refusal: Callable[[Facts], str]


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one rule for one issue."""

    rule: str
    kept: str
    refusal: str


POLICY = "policy"
"""The rule that an invalid policy breaks; a maintainer must fix it (CONFIG-3)."""

IN_HAND = "in_hand"
"""The rule that somebody's open pull request breaks (HAND-1)."""

DEPENDS = "dependencies"
"""The rule that an open dependency breaks."""

BASE = "base"
"""The rule that a changed base of the pull request breaks (PR-8)."""

UNCHANGED = "text"
"""The rule that a change of the text breaks (TRUST-2)."""

PAUSED = "paused"
"""The rule that a pause breaks (COMMAND-1)."""

TEMPORARY_RULES = frozenset({PAUSED, "due", POLICY})
"""The rules that only delay work; the request still holds."""


def refusal(facts: Facts) -> str:
    """Return the first reason not to work on the issue; "" if there is none."""
    broken = first_broken(facts)
    return broken.refusal if broken else ""


def first_broken(facts: Facts) -> Finding | None:
    """Return the first broken rule, in the order of `RULES`; None if all are kept."""
    return next((found for found in findings(facts) if found.refusal), None)


def findings(facts: Facts) -> tuple[Finding, ...]:
    """Check every rule, in the order of `RULES`."""
    return tuple(Finding(rule.name, rule.kept, rule.refusal(facts)) for rule in RULES)


# The rules, in the order of RULES.


def _pull_request(facts: Facts) -> str:
    if not facts.issue.is_pull_request:
        return ""
    return "It is a pull request; add the label to an issue."


def _unlabelled(facts: Facts) -> str:
    if not facts.needs_label or facts.status.feedback or facts.issue.carries(facts.ready_label):
        return ""
    wanted, known = facts.ready_label, {each.casefold() for each in facts.other_labels}
    unknown = [each for each in facts.issue.labels if each.casefold() not in known]
    if near := similar_label(wanted, unknown):
        return f"The label {wanted!r} is not on it; it has {near!r}. Add {wanted!r} instead."
    return f"The label {wanted!r} is not on it; add it."


MIN_SIMILARITY = 0.8
"""The ratio of difflib: one or two of eight letters may differ."""

MIN_PREFIX = 3


def similar_label(wanted: str, labels: Collection[str]) -> str | None:
    """Return the label that was probably meant by `wanted`; None if none is like it."""
    sought = wanted.casefold()
    names = {each.casefold(): each for each in sorted(labels)}
    longer = (name for name in names if sought in name)
    shorter = (name for name in names if len(name) >= MIN_PREFIX and sought.startswith(name))
    near = get_close_matches(sought, names, n=1, cutoff=MIN_SIMILARITY)
    found = next(chain(longer, near, shorter), None)
    return names[found] if found else None


def _unauthorised(facts: Facts) -> str:
    if facts.status.feedback:
        return ""  # Trust in the reviewer was checked when the review was read.
    if facts.act is None and not facts.issue.carries(facts.ready_label):
        return "Nobody has requested the work."
    if facts.act is None:
        return "GitHub does not yet report who added the label; wait, or add it again."
    return "" if facts.act.trusted else facts.act.reason


def _unconcluded(facts: Facts) -> str:
    if facts.status.phase is Phase.IDLE:
        return ""
    return "Its last attempt is not finished; the next pass continues it."


def _held_elsewhere(facts: Facts) -> str:
    if not facts.elsewhere or (facts.act and not (facts.act.by_label or facts.act.by_comment)):
        return ""  # An operator's command is for this installation only.
    return f"{facts.elsewhere}; it handles requests until that pull request is merged or closed."


SETTLED_STAGES = frozenset({Stage.REVIEW, Stage.HITL, Stage.RESOLVED})
"""Stages in which only a new authorising act starts work again (LABEL-6)."""

SETTLED_PHRASES = {
    Stage.REVIEW: "It is in review",
    Stage.HITL: "It needs human review",
    Stage.RESOLVED: "It is resolved",
}


def _settled(facts: Facts) -> str:
    if facts.status.stage not in SETTLED_STAGES or opens_epoch(facts):
        return ""
    carried = facts.issue.carries(facts.ready_label)
    how = "remove the label and add it again" if carried else "add the label"
    settled = SETTLED_PHRASES[facts.status.stage]
    return f"{settled}. For new attempts, {how}, or write `/mulligan retry`."


READ_AND_ASK = "review the text, remove the label and add it again."

CHANGED_BY_SOMEBODY = (
    "The text changed after Mulligan first read it, and this server does not report who changed it"
)


def _changed(facts: Facts) -> str:
    changed = changed_text(facts)
    return f"{changed}; {READ_AND_ASK}" if changed else ""


def changed_text(facts: Facts) -> str:
    """Return who changed title or text since the request; "" if nobody did (TRUST-2)."""
    if facts.act is None or not (facts.act.by_label or facts.act.by_comment):
        return ""
    edits = facts.act.edits
    if edits.by_strangers:
        return str(edits.by_strangers[-1])
    return "" if edits.names_authors or _as_seen_first(facts) else CHANGED_BY_SOMEBODY


def _as_seen_first(facts: Facts) -> bool:
    """Return whether the text equals the one first seen under this act; True without one."""
    status = facts.status
    seen = facts.act is not None and status.text.act == facts.act.act
    return not seen or status.text.sha256 == facts.issue.text_sha256


def _paused(facts: Facts) -> str:
    who = facts.status.paused_by
    if not who or facts.at_once:
        return ""
    return f"{who} paused it; write /mulligan resume to continue."


def describe_wait(status: IssueStatus, now: datetime) -> str:
    """Return until when the next attempt waits, and why; "" if it does not."""
    if status.due is None or status.due <= now:
        return ""
    return f"It waits until {status.due:%Y-%m-%d %H:%M:%S} UTC: {status.reason}"


def _misconfigured(facts: Facts) -> str:
    if not facts.policy_fault:
        return ""
    return (
        f"The repository's policy is invalid: {facts.policy_fault} Fix it on the base branch; "
        "work then starts by itself."
    )


RULES = (
    Rule(
        "open",
        "It is open.",
        lambda facts: "" if facts.issue.is_open else "The issue is closed; reopen it.",
    ),
    Rule("issue", "It is an issue, not a pull request.", _pull_request),
    Rule(
        "repository",
        "Its repository can be written to.",
        lambda facts: "The repository is archived; unarchive it." if facts.archived else "",
    ),
    Rule("labelled", "The label is on it, or it needs none now.", _unlabelled),
    Rule("authorised", "A trusted person requested the work.", _unauthorised),
    Rule("concluded", "No attempt at it is unfinished.", _unconcluded),
    Rule("elsewhere", "No other installation of Mulligan has it.", _held_elsewhere),
    Rule("stage", "It is not in review, waiting for human review, or resolved.", _settled),
    Rule(UNCHANGED, "No untrusted person changed its text since the request.", _changed),
    Rule(DEPENDS, "It waits for no other issue.", lambda facts: facts.waits_for),
    Rule(IN_HAND, "Nobody else's open pull request closes it.", lambda facts: facts.in_hand),
    Rule(
        BASE, "Its pull request, if any, goes to the base branch.", lambda facts: facts.other_base
    ),
    Rule(PAUSED, "Nobody has paused it.", _paused),
    Rule(
        "due",
        "It has nothing to wait for.",
        lambda facts: "" if facts.at_once else describe_wait(facts.status, facts.now),
    ),
    Rule(POLICY, "Its repository's policy is valid.", _misconfigured),
)


# New requests.


def opens_epoch(facts: Facts) -> bool:
    """Return whether the act is a new request (LABEL-6), which opens an epoch."""
    if facts.act is None or not facts.act.trusted or facts.act.act == facts.status.request.act:
        return False
    if facts.status.commanded.has_stopped(facts.act.at):
        return False
    if facts.status.epoch == 0:
        return True
    waits = facts.status.stage is Stage.READY and facts.status.phase is Phase.IDLE
    # A newer label event means that the label was removed and added again: a new request.
    asked = facts.status.request.by_command or facts.status.request.by_label
    again = waits and facts.act.by_label and asked
    instead = waits and facts.at_once and facts.withdrawn
    wanted = again or instead or facts.status.stage in SETTLED_STAGES
    return wanted and is_newer_request(facts.act, facts.status)


def is_newer_request(act: AuthorisingAct, status: IssueStatus) -> bool:
    """Return whether the act is newer than the epoch's; labels compare by id, others by time."""
    request = status.request
    if isinstance(act.act, LabelAct) and isinstance(request.act, LabelAct):
        return act.act.event > request.act.event
    return request.at is None or act.at > request.at


# Dependencies on other issues (COMMAND-2); text/dependencies.py reads them.

MAX_ON_CYCLE = 10
"""Limit of issues to read in search of a cycle."""


def find_cycle(of: IssueRef, named: Callable[[IssueRef], tuple[IssueRef, ...]]) -> list[IssueRef]:
    """Return the shortest dependency cycle through an issue; `named` gives an issue's dependencies.

    List the other issues on the cycle; empty if none is found within MAX_ON_CYCLE issues.
    """
    ways, seen = deque([[of]]), {of}
    while ways and len(seen) <= MAX_ON_CYCLE:
        way = ways.popleft()
        for ref in named(way[-1]):
            if ref == of:
                return way[1:]
            if ref not in seen:
                seen.add(ref)
                ways.append([*way, ref])
    return []


def dependency_reason(ref: IssueRef, of: IssueRef, *, is_pull_request: bool, left: str) -> str:
    """Say that an issue waits for an open one; `left` is why Mulligan skips that one."""
    name = _short(ref, of)
    if is_pull_request:
        return f"It waits until the pull request {name} is merged or closed."
    if left:
        return f"It waits for {name}, on which Mulligan stopped work ({left.rstrip('.')})."
    return f"It waits until {name} is closed."


def with_line(reason: str, line: str) -> str:
    """Add the line of the issue's text that a dependency was read from; GitHub's if empty."""
    if not line:
        return f"{reason} GitHub lists it as a blocker."
    return f'{reason} Its text says: "{line}".'


def cycle_reason(of: IssueRef, way: list[IssueRef]) -> str:
    """Say that the dependencies of an issue form a cycle."""
    names = ", which waits for ".join(_short(ref, of) for ref in way)
    return f"It waits for {names}, which waits for this one; remove `Depends on` from one of them."


def ignored_reason(of: IssueRef, missing: list[IssueRef], *, itself: bool) -> str:
    """Name the ignored dependencies; empty if there are none."""
    names = ", ".join(_short(ref, of) for ref in missing)
    reasons = [
        *(["it cannot wait for itself"] if itself else []),
        *([f"{names} was deleted or transferred"] if names else []),
    ]
    return f"Mulligan ignores a dependency: {'; '.join(reasons)}." if reasons else ""


def _short(ref: IssueRef, of: IssueRef) -> str:
    return f"#{ref.number}" if ref.repository == of.repository else str(ref)
