"""What agents note about a repository for later attempts (LEARNING-1). Pure."""

import re
import unicodedata
from collections.abc import Iterable

from mulligan.domain.result import WorkerResultMeta

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
    """Keep of what an agent noted the facts: one line each, no address, command or order."""
    facts = (_fact(each) for each in noted)
    return tuple(dict.fromkeys(filter(None, facts)))[:MOST]


def _fact(noted: object) -> str:
    if not isinstance(noted, str) or len(noted) > 4 * MOST_CHARS:
        return ""
    text = " ".join(unicodedata.normalize("NFKC", noted).split())
    hidden = any(unicodedata.category(character)[0] == "C" for character in text)
    unfit = any(kind.search(text) for kind in (FOREIGN, COMMAND, ORDER))
    return "" if hidden or unfit or len(text) > MOST_CHARS else text


def learned_in(history: Iterable[WorkerResultMeta]) -> tuple[str, ...]:
    """List what attempts noted, newest last; what was noted again counts as newer."""
    noted = dict[str, None]()
    for meta in history:
        for fact in meta.learned:
            noted.pop(fact, None)
            noted[fact] = None
    return tuple(noted)[-MOST:]
