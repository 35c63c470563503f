"""How strongly a line speaks of failure: the words and shapes that tools share. Pure."""

import re
from enum import IntEnum
from functools import lru_cache

from mulligan.verification.digest.locations import DIAGNOSTIC, HAS_PLACE


class Weight(IntEnum):
    """What a line is worth to somebody who has to mend the failure."""

    NOTHING = 0
    MENTION = 1
    WARNING = 3
    WORD = 5
    PHRASE = 6
    PLACE = 7
    ERROR = 8
    CRASH = 9
    TEST = 10


STRONG = Weight.PHRASE
CACHED = 16384
SAME_DIGITS = str.maketrans("23456789", "1" * 8)
"""Numbers matter only by being nought or not."""

STEMS = (
    *("err", "fail", "fatal", "panic", "except", "traceback", "assert", "expect", "undef"),
    *("unres", "cannot", "not ", "no such", "unable", "invalid", "missing", "denied", "refused"),
    *("abort", "killed", "fault", "timed", "timeout", "warn", "memory", "saniti", "diff"),
    *("no module", "unbound", "syntax", "locate ", "reformat", "mismatch", "unknown", "uncaught"),
    *(
        "junit jupiter:",
        "junit vintage:",
        "***",
        "+++ ",
        "stdout --",
        "[e]",
        "✗",
        "✖",
        "✘",
        "✕",
        "×",
        "❌",
        "⨯",
        "●",
    ),
)
"""Parts of words, in lower case: a line without one, and without a shape, weighs nothing."""
PLACE_SHAPES = (r"\.[A-Za-z]{1,9}[:(\[]{1,2}\d", r"line \d")
CODED = re.compile(r"(?<![\w-])[A-Z]{1,5}\d{3,5}(?=[\s:\])(]|$)|^E: \S")
"""A code such as linters give to their rules: E302, SC2086, TS2304; and how apt opens an error."""

HARMLESS = re.compile(
    r"\b(?:0|no|zero)\s+(?:\w+ )?"
    r"(?:errors?|failures?|failed|failing|warnings?|problems?|issues?)\b"
    r"|\b(?:errors?|failures?|failed|warnings?)\s*[:=]\s*0\b",
    re.IGNORECASE,
)
PASSING = re.compile(
    r"^\s*(?:✓|✔|√|☑|ok\b|PASS(?:ED)?\b|\[\s*(?:OK|PASSED|RUN)\s*\])"
    r"|^\s*(?:#\s*Subtest|=== RUN|Start +\d+: )"
    r"|(?:\.\.\.|[\])\w]) +(?:ok|OK|PASS(?:ED)?|passed|✓|✔)"
    r"\s*(?:\[[^\]]*\]|\([^)]*\)|[\d.]+ ?m?s)?$"
    r"|(?<!\.)\.{3,}(?:\(.*\))?(?:Passed|Skipped)$"
    r"|^\[gw\d+\] \[ *\d+%\] PASSED |^\s*\d+/\d+ Test +#\d+: .* Passed "
)
QUIET = re.compile(
    r"^\W{0,20}(?:\S+ ){0,3}\[?(?:INFO|DEBUG|TRACE|NOTICE|note|help|hint)\b", re.IGNORECASE
)

_FREE = r"(?<![\w./\\-])"
_END = r"(?![\w/\\-]|\.\w)"

TEST = re.compile(
    r"^\s*(?:--- FAIL|not ok\b(?!.*#\s*(?:TODO|SKIP))|\[\s*(?:FAILED|FAIL)\s*\])"
    r"|^\s*(?:\d+\) )?[✗✖✘✕×❌⨯●]\s+\S|^\s+JUnit (?:Jupiter|Vintage):"
    r"|\*\*\*\s?(?:Failed|Exception|Timeout|Not Run)|<<< (?:FAILURE|ERROR)!"
    r"|\[E\]$|^---- .+ stdout ----$|(?<!\.)\.{3,}Failed$"
    r"|^(?:SUB)?FAILED\S*\s|^ERROR:? +\S+(?:::|\.py|\()"
    rf"|(?:\.\.\.|\s-|:)\s*(?:FAILED|FAIL|ERROR|failed)\b{_END}"
    rf"|{_FREE}(?:FAILED|FAIL)\b{_END}"
)
CRASH = re.compile(
    r"panicked at|^\s*panic:|Traceback \(most recent|egmentation fault|core dumped"
    r"|(?:Address|Leak|Thread|Memory|UndefinedBehavior)Sanitizer|DATA RACE"
    r"|\bSIG(?:SEGV|ABRT|KILL|BUS|ILL|FPE)\b|OutOfMemory|out of memory|oom-kill"
    r"|\b(?:Killed|Aborted)\b|undefined (?:reference|symbol)|unresolved external"
    r"|multiple definition|\b(?:Uncaught|Unhandled)\b|Fatal Python error|^Caused by:"
)
EXCEPTION = re.compile(
    r"^(?:E\s+|\W{0,20})(?:Exception in thread \S+ |Uncaught |thread '[^']*' )?"
    r"(?:[\w$]+(?:\.|::|/))*[A-Z]\w*(?:Error|Exception|Failure|Fault|Exit|Interrupt|Timeout)\b"
    r"(?:\s*[:(\[]|\s*$)"
)
ERROR = re.compile(
    r"^(?:\W{0,20}(?:\S+:? ){0,2}?)\[?(?:fatal error|fatal|error|err!|err|critical|panic)\b"
    r"(?:\s?\[[\w:-]+\]|\(\w+\)|\s[A-Z]+\d+)?\s*(?:[:!\]│|]|\s-\s|in\s|at\s|$)"
    rf"|{_FREE}(?:fatal )?errors?(?:\[[\w:-]+\])?(?: [A-Z]+\d+)?:\s",
    re.IGNORECASE,
)
FAULT = re.compile(
    r"(?:command|: ) ?not found$|No such file or directory|Permission denied|No module named"
    r"|^\S*sh: (?:line )?\d+: |unbound variable|\*\*\* .*Stop\.$|^Diff in \S"
    r"|cannot (?:access|stat|open|find|execute|resolve|import|load)"
    r"|[Cc]an't (?:open|find|load|resolve|locate)"
)
PHRASE = re.compile(
    r"not found|no such|cannot|can't|could ?n[o']t|unable to|undefined|undeclared|unresolved"
    r"|unexpected|mismatch|invalid|missing|denied|refused|timed out|time-?out|expected|assert"
    r"|uncaught|violat|conflict|unknown|unsupported|illegal|corrupt|would (?:be )?reformat"
    r"|not formatted|differs?\b|rejected|obsolete|deadlock|unused|broken|\bbad\b"
    r"|(?:must|should) not|not (?:equal|match|allowed|defined|permitted|supported|valid)"
    r"|^\s*\*\*\*|^\s*failures:|^\s*\d+ failing|^There (?:was|were) \d+ |^\+\+\+ \S",
    re.IGNORECASE,
)
WORD = re.compile(
    rf"{_FREE}(?:errors?|fail(?:s|ed|ures?|ing)?|fatal|panic|exception|abort(?:ed|ing)?){_END}",
    re.IGNORECASE,
)
WARNING = re.compile(rf"{_FREE}warn(?:ings?)?{_END}", re.IGNORECASE)

RULES = (
    (Weight.TEST, TEST),
    (Weight.CRASH, CRASH),
    (Weight.CRASH, EXCEPTION),
    (Weight.ERROR, ERROR),
    (Weight.ERROR, FAULT),
    (Weight.WARNING, WARNING),
    (Weight.PHRASE, PHRASE),
    (Weight.PHRASE, CODED),
    (Weight.WORD, WORD),
)
"""By the first that matches."""

SPEAKS = re.compile("|".join([*map(re.escape, STEMS), *PLACE_SHAPES]))


def weigh(line: str) -> Weight:
    """Say how strongly one line speaks of failure, by itself."""
    return _weigh(line.translate(SAME_DIGITS))


@lru_cache(maxsize=CACHED)
def _weigh(line: str) -> Weight:
    if not (SPEAKS.search(line.lower()) or CODED.search(line)) or PASSING.search(line):
        return Weight.NOTHING
    line = HARMLESS.sub("", line)
    weight = next((weight for weight, rule in RULES if rule.search(line)), Weight.NOTHING)
    if weight < Weight.PLACE and weight != Weight.WARNING and _opens_with_place(line):
        return Weight.PLACE
    if weight < Weight.CRASH and QUIET.search(line):
        return min(weight, Weight.MENTION)
    return weight


def _opens_with_place(line: str) -> bool:
    return bool(HAS_PLACE.search(line) and DIAGNOSTIC.search(line))
