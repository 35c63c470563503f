"""Refuse added lines with Mulligan's own secrets or keys of known services. Pure.

Of detect-secrets, only detectors for keys with a distinct format are used. Its pragmas are ignored,
since the agent could write them.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache

from detect_secrets.plugins.aws import AWSKeyDetector
from detect_secrets.plugins.azure_storage_key import AzureStorageKeyDetector
from detect_secrets.plugins.base import BasePlugin
from detect_secrets.plugins.discord import DiscordBotTokenDetector
from detect_secrets.plugins.github_token import GitHubTokenDetector
from detect_secrets.plugins.gitlab_token import GitLabTokenDetector
from detect_secrets.plugins.mailchimp import MailchimpDetector
from detect_secrets.plugins.private_key import PrivateKeyDetector
from detect_secrets.plugins.pypi_token import PypiTokenDetector
from detect_secrets.plugins.sendgrid import SendGridDetector
from detect_secrets.plugins.slack import SlackDetector
from detect_secrets.plugins.square_oauth import SquareOAuthDetector
from detect_secrets.plugins.stripe import StripeDetector
from detect_secrets.plugins.telegram_token import TelegramBotTokenDetector
from detect_secrets.plugins.twilio import TwilioKeyDetector

from mulligan.config.policy import Scope
from mulligan.domain.globs import globs
from mulligan.domain.patterns import expression
from mulligan.domain.result import GuardKind, GuardViolation
from mulligan.text.diff import Patch
from mulligan.text.redact import Redactor

MAX_LINE_CHARS = 10_000
"""Characters of a line to search at a time; the pieces overlap by `OVERLAP`."""
OVERLAP = 500
CANDIDATE = re.compile(r"[\w/+=.:-]{20}|KEY-----")
"""A part of every key, which most lines of code lack."""
KEY_BODY = re.compile(r"[A-Za-z0-9+/]{40}")
KEY_LINES = 4
"""A private key has a line of Base64 within this many lines of its heading."""
PRIVATE_KEY = "private key"
EXTRA_PATTERNS = {
    "GitHub token": re.compile(r"github_pat_\w{60,}"),
    "Anthropic key": re.compile(r"sk-ant-[\w-]{40,}"),
    "Google API key": re.compile(r"AIza[\w-]{35}"),
    "OpenAI key": expression(r"sk-[A-Za-z0-9_-]*[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}"),
    "npm token": re.compile(r"\bnpm_[A-Za-z0-9]{30,}|_authToken=[A-Fa-f0-9-]{36}"),
}
"""Keys that detect-secrets does not know, or finds in quadratic time only."""


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
        yield from (name for name, pattern in EXTRA_PATTERNS.items() if pattern.search(piece))
        for name, detector in _detectors():
            is_named = any(detector.analyze_string(piece))
            if is_named and (name != PRIVATE_KEY or _has_body(lines, at)):
                yield name


def _pieces(line: str) -> Iterator[str]:
    for start in range(0, len(line), MAX_LINE_CHARS - OVERLAP):
        yield line[start : start + MAX_LINE_CHARS]


def _has_body(lines: Sequence[str], at: int) -> bool:
    return any(KEY_BODY.search(line) for line in lines[at : at + KEY_LINES])


@cache
def _detectors() -> tuple[tuple[str, BasePlugin], ...]:
    return (
        ("AWS key", AWSKeyDetector()),
        ("Azure storage key", AzureStorageKeyDetector()),
        ("Discord bot token", DiscordBotTokenDetector()),
        ("GitHub token", GitHubTokenDetector()),
        ("GitLab token", GitLabTokenDetector()),
        ("Mailchimp key", MailchimpDetector()),
        (PRIVATE_KEY, PrivateKeyDetector()),
        ("PyPI token", PypiTokenDetector()),
        ("SendGrid key", SendGridDetector()),
        ("Slack token", SlackDetector()),
        ("Square token", SquareOAuthDetector()),
        ("Stripe key", StripeDetector()),
        ("Telegram bot token", TelegramBotTokenDetector()),
        ("Twilio key", TwilioKeyDetector()),
    )
