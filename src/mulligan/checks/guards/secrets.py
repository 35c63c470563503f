"""Refuse added lines with Mulligan's own secrets or keys of known services. Pure.

`text/secret_shapes.py` has the shapes of keys. detect-secrets adds four formats that other text has
too often to redact it. Its pragmas are ignored, since the agent could write them.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache

from detect_secrets.plugins.base import BasePlugin
from detect_secrets.plugins.discord import DiscordBotTokenDetector
from detect_secrets.plugins.mailchimp import MailchimpDetector
from detect_secrets.plugins.telegram_token import TelegramBotTokenDetector
from detect_secrets.plugins.twilio import TwilioKeyDetector

from mulligan.config.policy import Scope
from mulligan.domain.globs import globs
from mulligan.domain.patterns import Expression, expression
from mulligan.domain.result import GuardKind, GuardViolation
from mulligan.text.diff import Patch
from mulligan.text.redact import Redactor
from mulligan.text.secret_shapes import KEY_BODY, KEY_HEADING, refused_patterns

MAX_LINE_CHARS = 10_000
"""Characters of a line to search at a time; the pieces overlap by `OVERLAP`."""
OVERLAP = 500
CANDIDATE = re.compile(r"[\w/+=.:-]{20}|(?:KEY|BLOCK)-----")
"""A part of every key, which most lines of code lack."""
KEY_LINES = 5
"""A private key has a line of Base64 within this many lines of its heading."""
PRIVATE_KEY = "private key"


def secret_violations(
    patches: Sequence[Patch], scope: Scope, redactor: Redactor
) -> Iterator[GuardViolation]:
    """Yield the files whose added lines or names contain a secret; messages never show it."""
    allowed = globs(scope.allow_secrets)
    for patch in patches:
        lines = patch.added
        if redactor.contains_secret("\n".join((patch.path, *lines)).encode(errors="replace")):
            message = (
                f"{redactor.text(patch.path)} contains a secret of Mulligan's configuration; "
                "remove it."
            )
            yield GuardViolation(kind=GuardKind.SECRET, path=patch.path, message=message)
        elif not allowed.match(patch.path):
            yield from _kinds_in(patch.path, lines)


def _kinds_in(path: str, lines: Sequence[str]) -> Iterator[GuardViolation]:
    found = dict.fromkeys(kind for at in range(len(lines)) for kind in _found(lines, at))
    for kind in found:
        message = (
            f"{path} adds a probable secret ({kind}); remove it "
            "(scope.allow_secrets lists paths that may have one)."
        )
        yield GuardViolation(kind=GuardKind.SECRET, path=path, message=message)


def _found(lines: Sequence[str], at: int) -> Iterator[str]:
    """Yield the kinds of secrets in a line."""
    if not CANDIDATE.search(lines[at]):
        return
    for piece in _pieces(lines[at]):
        yield from refused_kinds(piece)
        yield from (name for name, known in _detectors() if any(known.analyze_string(piece)))
        if KEY_HEADING.search(piece) and _has_body(lines, at):
            yield PRIVATE_KEY


def refused_kinds(line: str) -> Iterator[str]:
    """Yield the kinds of tokens that a line contains, one perhaps twice."""
    yield from (kind for kind, pattern in _refused() if pattern.search(line))


@cache
def _refused() -> tuple[tuple[str, Expression], ...]:
    return tuple((kind, expression(pattern)) for kind, pattern in refused_patterns())


def _pieces(line: str) -> Iterator[str]:
    for start in range(0, len(line), MAX_LINE_CHARS - OVERLAP):
        yield line[start : start + MAX_LINE_CHARS]


def _has_body(lines: Sequence[str], at: int) -> bool:
    return any(KEY_BODY.search(line) for line in lines[at : at + KEY_LINES])


@cache
def _detectors() -> tuple[tuple[str, BasePlugin], ...]:
    return (
        ("Discord bot token", DiscordBotTokenDetector()),
        ("Mailchimp key", MailchimpDetector()),
        ("Telegram bot token", TelegramBotTokenDetector()),
        ("Twilio key", TwilioKeyDetector()),
    )
