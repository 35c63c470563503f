"""How the tokens of well-known services look. Pure.

Sources: each service's own documentation, and GitHub's list of secret scanning patterns.
"""

import re
from dataclasses import dataclass

ALONE = rb"(?<![A-Za-z0-9_])"
"""What stands before a token: not the middle of a word."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A pattern: its first group is the secret, else all of it; one of `hints` is always there."""

    hints: tuple[bytes, ...]
    pattern: re.Pattern[bytes]


def _token(pattern: bytes, *hints: bytes) -> Shape:
    return Shape(hints, re.compile(ALONE + pattern))


def _after(pattern: bytes, *hints: bytes) -> Shape:
    return Shape(hints, re.compile(pattern))


PRIVATE_KEY = (
    rb"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    rb"(?:[ \t]*(?:\r?\n|\\r|\\n)[+ \t]*(?:Proc-Type|DEK-Info|Version|Comment):[^\r\n\\]*)*"
    rb"(?:[\s\"',]|\\[nr]|[A-Za-z0-9+/=]{20,}|[A-Za-z0-9+/=]{1,76}(?=[\s\"'+\\nr]{0,12}-----END))*"
    rb"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?"
)
"""A block as ssh-keygen, OpenSSL and GnuPG write it, in a file, a diff or a quoted string."""

SHAPES = (
    _token(rb"gh[pousr]_[A-Za-z0-9_]{20,}", b"ghp_", b"gho_", b"ghu_", b"ghs_", b"ghr_"),
    _token(rb"github_pat_[A-Za-z0-9_]{20,}", b"github_pat_"),
    # Anthropic, OpenAI and those that write their keys like them.
    _token(rb"sk-(?=[A-Za-z_-]{0,200}[0-9])[A-Za-z0-9_-]{20,}", b"sk-"),
    _token(rb"AIza[A-Za-z0-9_-]{35}", b"AIza"),
    _token(rb"ya29\.[A-Za-z0-9_-]{20,}", b"ya29."),
    _token(rb"GOCSPX-[A-Za-z0-9_-]{20,}", b"GOCSPX-"),
    _token(rb"(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])", b"AKIA", b"ASIA"),
    _after(
        rb"(?i:aws_?secret_?(?:access_?)?key)[\"']?\s{0,4}[:=]\s{0,4}[\"']?([A-Za-z0-9/+]{40})",
        *(b"secret", b"Secret", b"SECRET"),
    ),
    _token(rb"xox[abeoprs]-[A-Za-z0-9-]{10,}", b"xox"),
    _token(rb"xapp-[A-Za-z0-9-]{10,}", b"xapp-"),
    _after(rb"hooks\.slack\.com/services/([A-Za-z0-9/_-]{20,})", b"hooks.slack.com"),
    _token(rb"npm_[A-Za-z0-9]{30,}", b"npm_"),
    _token(rb"pypi-[A-Za-z0-9_-]{30,}", b"pypi-"),
    _token(rb"glpat-[A-Za-z0-9_-]{20,}", b"glpat-"),
    _token(rb"hf_[A-Za-z0-9]{30,}", b"hf_"),
    _token(rb"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}", b"eyJ"),
    _after(rb"://[^\s/:@\"'<>]{0,128}:([^\s/@\"'<>]{1,256})@", b"://"),
    _after(
        rb"(?i:authorization)[\"']?\s{0,4}[:=]\s{0,4}[\"']?"
        rb"(?i:bearer|basic|token)\s{1,4}([^\s\"',;]{8,})",
        *(b"uthorization", b"UTHORIZATION"),
    ),
    _after(PRIVATE_KEY, b"PRIVATE KEY"),
)
