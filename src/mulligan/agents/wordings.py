"""The wordings with which agents report that their account or machine fails (OUTCOME-2). Pure."""

import re
from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class LastWords:
    """The last lines of an output; `is_prose` if the model may have written them."""

    lines: tuple[str, ...] = ()
    is_prose: bool = False


LINE_CHARS = 2000


class Cause(StrEnum):
    """What the last words blame."""

    LIMITED = "limited"
    REFUSED = "refused"
    NO_MODEL = "no_model"
    UNREACHABLE = "unreachable"
    DISK_FULL = "disk_full"
    NOT_STARTED = "not_started"
    OVERLOADED = "overloaded"
    NEEDS_A_PERSON = "needs_a_person"


HAVE = r"you(?:['\u2019]ve| have)?"
YOUR = rf"(?:{HAVE} (?:hit|reached|exceeded) (?:your|the) )?"
PERIOD = r"session|usage|weekly|daily|hourly|monthly|requests?|tokens?|messages?|rate|\d+[ -]hours?"
PLAN = r"claude|ai|codex|gemini|pro|max|plan|opus|sonnet"
LIMIT = rf"(?:(?:{PLAN}) )*(?:(?:{PERIOD}|{PLAN})[ _-]?)+(?:limits?|quota)(?![\w-])"
AGAIN = r"(?:\bresets?\b|\bretry (?:in|after)\b|try again (?:at|in)\b)"
KEY = r"(?:x-)?(?:api|auth|access|bearer|refresh|oauth)[ _-]?(?:key|token)"
MUST = r"(?:must|need to|have to|please)(?: first)?"
IS = r"(?:has|has been|is|was)"
BAD = r"(?:expired|revoked|invalid|disabled|missing)"
API_ERROR = r"API Error: (?:Request rejected \()?"
OLD = r"(?:needs (?:an update|to be updated)|(?:is )?(?:too old|outdated|no longer supported))"

CERTAIN = (
    # A limit that ends by itself comes first; "quota exceeded" alone is a matter of money.
    (
        Cause.LIMITED,
        rf"{YOUR}(?:\w+ )?(?:quota|limit)\b[^\n]{{0,80}}{AGAIN}",
        rf"{YOUR}{LIMIT}[ :.,]*(?:reached|exceeded|hit|exhausted|[\u00b7\u2219|]|$)",
        rf"{YOUR}{LIMIT} (?:is|was|has been|have been) (?:reached|exceeded|hit|exhausted)",
        rf"{HAVE} (?:hit|reached|exceeded) your {LIMIT}",
        rf"you(?:['\u2019]re| are) out of (?:[\w-]+ )?(?:{PERIOD}|{PLAN})\b",
    ),
    (
        Cause.REFUSED,
        r"authentication_(?:error|failed)|failed to authenticate|API_KEY_INVALID|invalid_grant",
        rf"\b(?:invalid|incorrect|missing|expired|revoked|no|unknown)[ _]{KEY}",
        rf"API key (?:not valid|(?:(?:is|has|has been|was) )?{BAD})",
        r"(?:please )?(?:run|use) [`']?(?:/login|[\w-]+ (?:auth )?login)\b",
        r"not (?:logged|signed) in\b|(?:log|sign) in again|login (?:has )?expired",
        r"(?:re-?authentication|login) is (?:needed|required)",
        rf"\b(?:oauth|access|refresh|session|security|sso|id)[ _]?tokens?\b[^\n]{{0,40}}{BAD}",
        r"(?:(?:access|refresh) )?token could not be refreshed",
        r"ExpiredToken\w*|InvalidClientTokenId|UnrecognizedClient\w*|InvalidSignatureException",
        r"(?:unable to locate|could not load|no valid|expired) credentials",
        r"CredentialsProviderError|billing_(?:error|hard_limit)|plan and billing",
        r"insufficient[_ ](?:quota|credits?|funds|balance)|exceeded your current quota",
        r"(?:your )?credit balance|out of credits?|no credits? (?:left|remaining)",
        rf"{YOUR}(?:your )?(?:\w+ )?(?:spend|spending|billing) (?:limit|cap)",
        rf"(?:account|organi[sz]ation|subscription) {IS} (?:suspended|blocked|restricted|{BAD})",
        # The status tells it, whatever the message is.
        rf"{API_ERROR}40[123]\b|please set an auth(?:entication)? method",
    ),
    (Cause.LIMITED, rf"rate_limit(?:_error|_exceeded)?\b|{API_ERROR}429\b"),
    (Cause.OVERLOADED, rf"overloaded_error|{API_ERROR}529\b"),
    (Cause.NOT_STARTED, r"^[^\s:]+: error while loading shared libraries"),
)
"""The wordings that only an agent's account or program explains; the first match counts."""

OF_THE_PROGRAM = (
    (
        Cause.REFUSED,
        r"authentication (?:error|failed)|permission_error|UNAUTHENTICATED|AccessDeniedException",
        r"\b40[13]:? (?:unauthorized|forbidden)|invalid credentials|quota exceeded",
        r"credentials (?:(?:have|are|is) )?(?:expired|invalid|not found)|payment required",
    ),
    (
        Cause.LIMITED,
        r"rate[- ]limited|too many requests",
        r"RESOURCE_EXHAUSTED|\bThrottl(?:ed|ing)(?:Exception)?\b",
    ),
    (
        Cause.NO_MODEL,
        r"model_not_found|no such model|model not found|unknown model|invalid model",
        r"\bmodels?\b[^\n]{0,80}(?:(?:does|may) not exist|not have access)",
        r"\bmodels?\b[^\n]{0,80}(?:is )?not (?:supported|available|allowed)",
    ),
    (
        Cause.UNREACHABLE,
        r"ENOTFOUND|EAI_AGAIN|getaddrinfo|ENETUNREACH|EHOSTUNREACH|network is unreachable",
        r"could ?n[o']t resolve (?:host|proxy)|temporary failure in name resolution",
        r"name or service not known|no address associated with hostname|dns error",
        r"failed to lookup address|unable to connect to (?:the )?(?:API|Anthropic)\b",
    ),
    (
        Cause.NEEDS_A_PERSON,
        rf"{MUST} (?:accept|agree to) [^\n]{{0,40}}\b(?:terms|polic(?:y|ies))\b",
        rf"\b(?:code|cli|codex|opencode|(?:your|this) version of \S[^\n]{{0,40}}) {OLD}",
        r"^(?!.*\bdeprecated\b).*\bno longer supported\b.*\b(?:run|update|upgrade)\b",
        r"please run:? [`']?[\w-]+ (?:update|upgrade)\b",
    ),
    (Cause.OVERLOADED, r"\b(?:model|service|server)s? (?:is|are) (?:currently )?overloaded"),
    (Cause.DISK_FULL, r"ENOSPC|no space left on device|EDQUOT|disk quota exceeded"),
)
"""The wordings that tests and tools print, too; they count only in the program's own lines."""


def _compiled(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


WORDINGS = tuple(
    (cause, _compiled(*patterns), is_certain)
    for table, is_certain in ((CERTAIN, True), (OF_THE_PROGRAM, False))
    for cause, *patterns in table
)

ERROR_BEFORE = re.compile(
    r"\W*(?:(?:your|you|the|this|an?|sorry,?) )?"
    r"|\W*(?:\w+[ .]){0,2}[\w.]*(?:error|exception|failed|failure|fatal|status)"
    r"(?: occurred| code)?:? ?(?:\d{3}\b)?\s*[^\w\s].*"
    r"|\W*(?:HTTP )?[45]\d\d\b.{0,20}",
    re.IGNORECASE | re.DOTALL,
)
"""What stands before a wording in a line that is an error, and not about one."""

PROSE_AFTER = re.compile(
    r"[\w`'\"]*\s+(?:(?:is|are|was|were)\s+(?!too|reached|exceeded|expired|invalid)"
    r"|(?:now|and|or|handl\w+|cases?|paths?|branch\w*|tests?)\b)",
    re.IGNORECASE,
)
"""What follows a wording in a sentence about one."""


def cause_of(words: LastWords) -> tuple[Cause, str] | None:
    """Return what the last words of a failed run blame, and the line that does; None for nothing.

    A line that the model may have written counts only if it begins as an error does.
    """
    for cause, pattern, is_certain in WORDINGS:
        if words.is_prose and not is_certain:
            continue
        for line in (each[:LINE_CHARS] for each in words.lines):
            if any(not words.is_prose or _is_error(line, each) for each in pattern.finditer(line)):
                return cause, line
    return None


def _is_error(line: str, found: re.Match[str]) -> bool:
    before, after = line[: found.start()], line[found.end() :]
    return bool(ERROR_BEFORE.fullmatch(before)) and not PROSE_AFTER.match(after)
