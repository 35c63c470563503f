"""The facts that agents note about a repository, and which attempts get them (LEARNING-1). Pure."""

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from mulligan.domain.events import (
    Drafted,
    LearningsAccepted,
    LearningsDropped,
    NotedFact,
    Published,
    RecordedEvent,
)
from mulligan.domain.issue import IssueRef
from mulligan.domain.result import WorkerResultMeta

# What a fact is.

MOST = 20
"""How many facts are kept of a run, and shown to an attempt."""

MOST_CHARS = 200
"""A longer fact is dropped: half of a sentence may say the opposite."""

FOREIGN = re.compile(
    r"://|www\.|@|\b\d{1,3}(?:\.\d{1,3}){3}\b|\[[0-9a-f:]{3,}\]"
    r"|\b[a-z0-9-]+\.(?:com|net|org|io|dev|app|ai|xyz|me|co|info|ru|cn|example|local)\b",
    re.IGNORECASE,
)
"""Addresses: of the web, of mail, of machines."""

COMMAND = re.compile(
    r"[`$|;&<>{}\\]|\b(?:curl|wget|sudo|eval|exec|bash|chmod|chown|nc|ssh|scp|rm|dd|git push)\b"
    r"|\b(?:pip3?|npm|npx|apt|apt-get|brew|cargo|gem|go) (?:i|install|add|get|run|exec)\b",
    re.IGNORECASE,
)
"""Commands, and characters that only they need."""

ORDER = re.compile(
    r"\b(?:ignore|disregard|forget|override|instructions?|system prompt|you must)\b",
    re.IGNORECASE,
)
"""Words of an order to an agent, which is no fact about a repository."""


def learnable(noted: Iterable[object]) -> tuple[str, ...]:
    """Keep the facts of an agent's notes: one line each, without addresses, commands and orders."""
    facts = (_fact(each) for each in noted)
    return tuple(dict.fromkeys(filter(None, facts)))[:MOST]


def _fact(noted: object) -> str:
    if not isinstance(noted, str) or len(noted) > 4 * MOST_CHARS:
        return ""
    text = " ".join(unicodedata.normalize("NFKC", noted).split())
    hidden = any(unicodedata.category(character)[0] == "C" for character in text)
    unfit = any(kind.search(text) for kind in (FOREIGN, COMMAND, ORDER))
    return "" if hidden or unfit or len(text) > MOST_CHARS else text


# The facts of one issue.


def learned_in(history: Iterable[WorkerResultMeta]) -> tuple[str, ...]:
    """List the facts that attempts noted, newest last; a repeated fact counts as newer."""
    noted = dict[str, None]()
    for meta in history:
        for fact in meta.learned:
            noted.pop(fact, None)
            noted[fact] = None
    return tuple(noted)[-MOST:]


def noted_in(history: Iterable[WorkerResultMeta]) -> tuple[NotedFact, ...]:
    """List what `learned_in` lists, each with the attempt that noted it last."""
    attempts = [*history]
    last = {fact: meta for meta in attempts for fact in meta.learned}
    return tuple(
        NotedFact(text=fact, number=last[fact].number, noted_at=last[fact].finished_at)
        for fact in learned_in(attempts)
    )


def merged_facts(
    history: Sequence[WorkerResultMeta],
    events: Iterable[RecordedEvent],
    known: Iterable["Learning"],
) -> tuple[NotedFact, ...]:
    """List the facts that the merge of an issue's pull request accepts (LEARNING-2).

    These are the facts that the pull request lists: of its round, up to its work; none for a draft.
    A `known` fact is omitted, so that an agent that repeats it does not renew it.
    """
    shown = [each.event for each in events if isinstance(each.event, Published | Drafted)][-1:]
    heads = {event.head_sha for event in shown if isinstance(event, Published)}
    merged = [meta for meta in history if meta.head_sha in heads][-1:]
    listed = [
        meta
        for last in merged
        for meta in history
        if meta.epoch == last.epoch and meta.number <= last.number
    ]
    texts = {each.text for each in known}
    return tuple(fact for fact in noted_in(listed) if fact.text not in texts)


# The facts of a repository.

LIFETIME = timedelta(days=90)
"""How long prompts contain a fact after it was accepted."""


@dataclass(frozen=True, slots=True)
class Learning:
    """A fact for agents at later issues of a repository, with its source.

    `number` is the attempt at `issue` that noted it, over all epochs. The merge of `pull_request`
    accepted it, or an operator if `by_operator`.
    """

    text: str
    issue: IssueRef
    number: int
    noted_at: datetime
    accepted_at: datetime
    pull_request: str = ""
    by_operator: bool = False

    @property
    def key(self) -> str:
        """Name the fact on the command line."""
        return key_of(self.issue.repository, self.text)

    @property
    def expires_at(self) -> datetime:
        """Return until when agents are told it."""
        return self.accepted_at + LIFETIME


def key_of(repository: str, text: str) -> str:
    """Name a fact of a repository: the same on every machine."""
    return hashlib.sha256(f"{repository.casefold()}\n{text}".encode()).hexdigest()[:8]


def in_force(events: Iterable[RecordedEvent], now: datetime) -> tuple[Learning, ...]:
    """List the facts for prompts, newest last, from the events of one repository.

    A dropped fact returns only if an operator accepts it. Texts are checked again, since earlier
    versions had weaker rules.
    """
    accepted, dropped = dict[str, Learning](), set[str]()
    for recorded in events:
        match recorded.event:
            case LearningsAccepted() as event:
                for fact in event.facts:
                    each = Learning(
                        text=fact.text,
                        issue=recorded.issue,
                        number=fact.number,
                        noted_at=fact.noted_at,
                        accepted_at=recorded.at,
                        pull_request=event.pull_request,
                        by_operator=event.by_operator,
                    )
                    if event.by_operator or each.text not in dropped:
                        dropped.discard(each.text)
                        accepted.pop(each.text, None)
                        accepted[each.text] = each
            case LearningsDropped(facts=texts):
                dropped.update(texts)
            case _:
                continue
    alive = [
        each
        for each in accepted.values()
        if each.text not in dropped and now < each.expires_at and learnable([each.text])
    ]
    return tuple(alive[-MOST:])


def issues_of(events: Iterable[RecordedEvent], text: str) -> tuple[IssueRef, ...]:
    """List the issues whose ledger holds the acceptance of a fact."""
    found = (
        recorded.issue
        for recorded in events
        if isinstance(recorded.event, LearningsAccepted)
        and any(fact.text == text for fact in recorded.event.facts)
    )
    return tuple(dict.fromkeys(found))


def notes_for(history: Iterable[WorkerResultMeta], known: Iterable[Learning]) -> tuple[str, ...]:
    """List the facts for an attempt: those of other issues with their source, then its issue's."""
    own = learned_in(history)
    foreign = [
        f"{each.text} (#{each.issue.number}, {each.noted_at:%Y-%m-%d})"
        for each in known
        if each.text not in own
    ]
    return (*foreign, *own)[-MOST:]
