"""Decide which texts look like a token, key or password: one table for all uses. Pure.

Redaction removes what may be a secret from text that leaves Mulligan (`redact.py`). A guard refuses
a change that adds what must be one (`checks/guards/secrets.py`): a wrong guess costs an attempt.
Variables, addresses and configuration files have rules of their own, at the end.

Every pattern takes time that grows as its text does: what repeats is bounded, or possessive and
starts where a word starts, so that no text is read again from each of its places.
"""

import re
import string
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

Span = tuple[int, int]

# Tokens


@dataclass(frozen=True, slots=True)
class Token:
    """A kind of token: its beginning, and how it goes on where it is removed or refused.

    A text with one contains one of `hints`. To be removed, it must begin at a word boundary;
    `refused` needs the length of a real one.
    """

    kind: str
    hints: tuple[str, ...]
    begin: str
    removed: str
    refused: str


GITLAB_KINDS = ("pat", "dt", "ft", "soat", "rt", "cbt", "imt", "ptt", "agent", "oas")

TOKENS = (
    Token(
        "GitHub token",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
        "gh",
        r"[pousr]_[A-Za-z0-9_]{20,}+",
        r"[pousr]_[A-Za-z0-9_]{36}",
    ),
    Token(
        "GitHub token",
        ("github_pat_",),
        "github_pat_",
        r"[A-Za-z0-9_]{20,}+",
        r"[A-Za-z0-9_]{60}",
    ),
    # Keys of Anthropic, OpenAI (below) and services that use the same format.
    Token("Anthropic key", ("sk-",), "sk-", r"[A-Za-z0-9_-]{20,}+", r"ant-[A-Za-z0-9_-]{40}"),
    # Real keys have 35 characters; the next key may follow without a gap.
    Token("Google API key", ("AIza",), "AIza", r"[A-Za-z0-9_-]{35,}+", r"[A-Za-z0-9_-]{35}"),
    Token("Google token", ("ya29.",), "ya29", r"\.[A-Za-z0-9_-]{20,}+", r"\.[A-Za-z0-9_-]{40}"),
    Token("Google secret", ("GOCSPX-",), "GOCSPX-", r"[A-Za-z0-9_-]{20,}+", r"[A-Za-z0-9_-]{28}"),
    *(
        Token("AWS key", (begin,), begin, r"[A-Z0-9]{16}(?![A-Za-z0-9])", r"[A-Z0-9]{16}")
        for begin in ("AKIA", "ASIA", "ABIA", "ACCA")
    ),
    Token(
        "Slack token",
        ("xox",),
        "xox",
        r"[abeoprs]-[A-Za-z0-9-]{10,}+",
        r"[abeoprs]-(?:[0-9]+-)+[A-Za-z0-9]+",
    ),
    Token(
        "Slack token",
        ("xapp-",),
        "xapp-",
        r"[A-Za-z0-9-]{10,}+",
        r"[0-9]-[A-Z0-9]+-[0-9]+-[A-Za-z0-9]+",
    ),
    Token("npm token", ("npm_",), "npm_", r"[A-Za-z0-9]{30,}+", r"[A-Za-z0-9]{30}"),
    Token("npm token", ("_authToken=",), "_authToken=", r"[A-Fa-f0-9-]{36}", r"[A-Fa-f0-9-]{36}"),
    Token(
        "PyPI token",
        ("pypi-",),
        "pypi-",
        r"[A-Za-z0-9_-]{30,}+",
        r"Ag(?:EIcHlwaS5vcmc|ENdGVzdC5weXBpLm9yZw)[A-Za-z0-9_-]{70}",
    ),
    Token(
        "GitLab token",
        tuple(f"gl{kind}-" for kind in GITLAB_KINDS),
        "gl",
        rf"(?:{'|'.join(GITLAB_KINDS)})-[A-Za-z0-9_-]{{20,}}+",
        rf"(?:{'|'.join(GITLAB_KINDS)})-[A-Za-z0-9_-]{{20}}",
    ),
    Token(
        "GitLab token", ("GR1348941",), "GR1348941", r"[A-Za-z0-9_-]{20,}+", r"[A-Za-z0-9_-]{20}"
    ),
    Token("Hugging Face token", ("hf_",), "hf_", r"[A-Za-z0-9]{30,}+", r"[A-Za-z0-9]{30}"),
    *(
        Token("Stripe key", (begin,), begin, r"[A-Za-z0-9]{24,}+", r"[A-Za-z0-9]{24}")
        for begin in ("sk_live_", "rk_live_")
    ),
    Token(
        "SendGrid key",
        ("SG.",),
        "SG",
        r"\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}",
        r"\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}",
    ),
    Token("Square token", ("sq0csp-",), "sq0csp-", r"[A-Za-z0-9_-]{43}", r"[A-Za-z0-9_-]{43}"),
    Token(
        "Azure storage key",
        ("AccountKey=",),
        "AccountKey=",
        r"[A-Za-z0-9+/=]{88}",
        r"[A-Za-z0-9+/=]{88}",
    ),
)
"""The tokens with a beginning of their own.

Source: the documentation of each service, and detect-secrets 1.5, whose detectors a guard also uses
for keys without such a beginning.
"""

WORDY_KEY = b"sk-"
"""Many ordinary names begin like this; a key has a digit, too."""
DIGIT = re.compile(rb"[0-9]")


def _alone(token: Token) -> re.Pattern[bytes]:
    """Compile the pattern of a token at a word boundary.

    It checks the character before a token after the literal beginning: that search is faster.
    """
    return re.compile(f"{token.begin}(?<![A-Za-z0-9_]{token.begin}){token.removed}".encode())


ALONE = [(hint.encode(), _alone(token)) for token in TOKENS for hint in token.hints]

# Other secrets in a text


@dataclass(frozen=True, slots=True)
class Shape:
    """A pattern: its first group is the secret, else the whole match; it contains one of `hints`.

    With `is_lower`, the pattern is for the text in lower case: that is faster than a search that
    ignores case.
    """

    hints: tuple[bytes, ...]
    pattern: re.Pattern[bytes]
    is_lower: bool = False


JSON_WEB_TOKEN = re.compile(rb"\.(?=eyJ[A-Za-z0-9_-]{10,}+(\.[A-Za-z0-9_-]{10,}+))")
"""The second and third of three words with dots between them."""
JSON_WEB_TOKEN_START = re.compile(rb"(?<![A-Za-z0-9_])eyJ[A-Za-z0-9_-]{10}")
"""The first word contains this."""
JSON_WEB_TOKEN_HINT = b".eyJ"
WORD = f"{string.ascii_letters}{string.digits}_-".encode()

PRIVATE_KEYS = (
    rb"(?:-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    rb"(?:[ \t]*(?:\r?\n|\\r|\\n)[+ \t]*(?:Proc-Type|DEK-Info|Version|Comment):[^\r\n\\]*)*+"
    rb"(?:[\s\"',]|\\[nr]|[A-Za-z0-9+/=]{20,}|[A-Za-z0-9+/=]{1,76}(?=[\s\"'+\\nr]{0,12}-----END))*+"
    rb"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?)++"
)
"""Blocks as ssh-keygen, OpenSSL and GnuPG write it, in a file, a diff or a quoted string."""

SHAPES = (
    Shape(
        (b"secret", b"Secret", b"SECRET"),
        re.compile(rb"aws_?secret_?(?:access_?)?key[\"']?\s{0,4}[:=]\s{0,4}[\"']?([a-z0-9/+]{40})"),
        is_lower=True,
    ),
    Shape((b"hooks.slack.com",), re.compile(rb"hooks\.slack\.com/services/([A-Za-z0-9/_-]{20,}+)")),
    Shape((b"://",), re.compile(rb"://[^\s/:@\"'<>]{0,128}+:([^\s/@\"'<>]{1,256}+)@")),
    Shape(
        (b"uthorization", b"UTHORIZATION"),
        re.compile(
            rb"authorization[\"']?\s{0,4}[:=]\s{0,4}[\"']?"
            rb"(?:bearer|basic|token)\s{1,4}([^\s\"',;]{8,}+)"
        ),
        is_lower=True,
    ),
    Shape((b"PRIVATE KEY",), re.compile(PRIVATE_KEYS)),
)


def possible_tokens(content: bytes) -> list[re.Pattern[bytes]]:
    """List the patterns of tokens that may be in a text.

    Searching for a few letters is a hundred times faster than trying the pattern everywhere.
    """
    return [*{pattern: None for hint, pattern in ALONE if hint in content}]


def shaped(content: bytes, possible: Iterable[re.Pattern[bytes]]) -> Iterator[Span]:
    """Find what may be a secret by its shape; `possible` comes from `possible_tokens`."""
    for token in possible:
        yield from _tokens(token, content)
    if JSON_WEB_TOKEN_HINT in content:
        yield from _json_web_tokens(content)
    shapes = [shape for shape in SHAPES if any(hint in content for hint in shape.hints)]
    lowered = content.lower() if any(shape.is_lower for shape in shapes) else b""
    for shape in shapes:
        searched, group = lowered if shape.is_lower else content, shape.pattern.groups
        yield from [match.span(group) for match in shape.pattern.finditer(searched)]


def _tokens(pattern: re.Pattern[bytes], content: bytes) -> Iterator[Span]:
    for match in pattern.finditer(content):
        if not match[0].startswith(WORDY_KEY) or DIGIT.search(match[0]):
            yield match.span()


def _json_web_tokens(content: bytes) -> Iterator[Span]:
    done = 0
    for match in JSON_WEB_TOKEN.finditer(content):
        dot = match.start()
        if dot < done:
            continue
        # From the last dot on: no word is looked at twice.
        before = content[done:dot]
        word = done + len(before.rstrip(WORD))
        done = dot
        if first := JSON_WEB_TOKEN_START.search(content, word, dot):
            yield first.start(), match.end(1)
            done = match.end(1)


# Secrets that a change may not add

KEY_HEADING = re.compile(r"BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY|PuTTY-User-Key-File-[0-9]:")
"""The first line of a private key; it is one only with a line of `KEY_BODY` below."""
KEY_BODY = re.compile(r"[A-Za-z0-9+/]{40}")

REFUSED = (
    ("OpenAI key", r"sk-[A-Za-z0-9_-]*[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}"),
    ("AWS key", r"A3T[A-Z0-9]{17}"),
    (
        "AWS key",
        r"(?i)aws.{0,20}?(?:key|pwd|pw|password|pass|token).{0,20}?['\"][0-9a-z/+]{40}['\"]",
    ),
    ("Slack token", r"https://hooks\.slack\.com/services/T\w+/B\w+/\w+"),
)
"""Secrets without a beginning of their own, for RE2."""


def refused_patterns() -> Iterator[tuple[str, str]]:
    """Yield the kind and the pattern, for RE2, of each secret that a line may not have."""
    yield from ((token.kind, re.escape(token.begin) + token.refused) for token in TOKENS)
    yield from REFUSED


# Variables and addresses

SECRET_NAME = re.compile(
    r"KEY|TOKEN|SECRET|PASS(?:WORD|WD|PHRASE)?(?:_|$)|PWD$|CREDENTIAL|AUTH(?!OR)|COOKIE|PRIVATE|_PAT$|DSN",
    re.IGNORECASE,
)
"""Matches the names of variables that hold secrets."""

RANDOM = re.compile(r"(?=.*[0-9])(?=.*[a-z])(?=.*[A-Z])[A-Za-z0-9_.+/=-]{24,}")
"""Matches generated values, such as tokens; a path has more than one slash."""


def is_secret(name: str, value: str) -> bool:
    """Return whether a variable holds a secret, by its name or the shape of its value."""
    return bool(SECRET_NAME.search(name)) or (
        value.count("/") < 2 and RANDOM.fullmatch(value) is not None  # noqa: PLR2004
    )


def passwords_in(url: str) -> frozenset[str]:
    """Return the password in a URL, as it is written and decoded; nothing for another text."""
    try:
        parts = urlsplit(url)
        found = {parts.password or "", *map(_password_in, parts.query.split("&"))}
    except ValueError:
        return frozenset()
    return frozenset((found | set(map(unquote, found))) - {""})


def _password_in(setting: str) -> str:
    """Return the value of an address parameter, as in libpq, if it is a password."""
    name, _, value = setting.partition("=")
    return value if name in {"password", "sslpassword"} else ""


# Configuration files of programs

ASSIGNED = re.compile(
    r"^(?![ \t]*[#;]).*?(?:\b|_)(?:auth|authtoken|pass|passphrase|password|passwd|pwd|token|secret"
    r"|api[-_]?key|(?:access|private|secret)[-_]key|authorization|cookie)\"?"
    r"[ \t]*[=:][ \t]*(?![ \t]*(?:true|false|\$|\"\$|\"\"|$))",
    re.IGNORECASE | re.MULTILINE,
)
"""A line that gives a secret a value, as in npm's `//HOST/:_authToken=…`; not a variable."""

OTHER_SECRETS = re.compile(
    # `http.extraHeader` of git, `header` of wget: any header may authenticate.
    r"^[ \t]*(?:extra)?header[ \t]*=[ \t]*\S"
    # A token instead of a user name; Google's `oauth2accesstoken` is shorter, and no secret.
    r"|https?://[^\s/@:$]{18,256}:?@"
    # A channel of conda with a token.
    r"|https?://[^\s$]{1,256}?/t/\w[\w-]{7,}/"
    # netrc, and the file of cookies that curl and git write.
    r"|\b(?:login|account)\s{1,99}\S{1,256}\s{1,99}password\s{1,99}\S"
    r"|^\S{1,256}\t(?:TRUE|FALSE)\t/\S{0,256}\t(?:TRUE|FALSE)\t\d",
    re.IGNORECASE | re.MULTILINE,
)

XML_SECRET = re.compile(
    r"<[\w.:-]{0,99}?(?:password|passphrase|token|secret|key)[ \t]*>\s*[^<$\s/]"
    # A header of Maven, such as GitLab's Private-Token.
    r"|<name>[^<]{0,99}?(?:token|auth|password|secret|key|api|cookie)[^<]{0,99}</name>"
    r"\s*<value>\s*[^<$\s]",
    re.IGNORECASE,
)


def assigns_secret(text: str) -> bool:
    """Return whether a configuration file gives a password or token a value."""
    return any(pattern.search(text) for pattern in (ASSIGNED, OTHER_SECRETS, XML_SECRET))
