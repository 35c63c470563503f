"""How strongly a line speaks of failure: the words and shapes that tools share. Pure."""

import re
from enum import IntEnum

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

STEMS = (
    *("err", "fail", "fatal", "panic", "except", "traceback", "assert", "expect", "undef"),
    *("unres", "cannot", "not ", "no such", "unable", "invalid", "missing", "denied", "refused"),
    *("abort", "killed", "fault", "timed", "timeout", "warn", "memory", "saniti", "diff"),
    *(
        "no module",
        "unbound",
        "syntax",
        "locate ",
        "reformat",
        "mismatch",
        "unknown",
        "uncaught",
        "✗",
        "✖",
        "✘",
        "✕",
        "×",
        "❌",
        "⨯",
        "●",
        "***",
    ),
)
"""Parts of words, in lower case: a line without one, and without a place, weighs nothing."""
PLACE_STEMS = (r"\.[a-z]{1,9}[:(\[]{1,2}\d", r"line \d")

HARMLESS = re.compile(
    r"\b(?:0|no|zero)\s+(?:\w+ )?(?:errors?|failures?|failed|failing|warnings?|problems?|issues?)\b"
    r"|\b(?:errors?|failures?|failed|warnings?)\s*[:=]\s*0\b",
    re.IGNORECASE,
)
PASSING = re.compile(
    r"^\s*(?:✓|✔|√|☑|ok\b|PASS(?:ED)?\b|\[\s*(?:OK|PASSED|RUN)\s*\]|#\s*Subtest|=== RUN|Start +\d+: )"
    r"|(?:\.\.\.|[\])\w]) +(?:ok|OK|PASS(?:ED)?|passed|✓|✔)\s*(?:\[[^\]]*\]|\([^)]*\)|[\d.]+ ?m?s)?$"
    r"|^\[gw\d+\] \[ *\d+%\] PASSED "
    r"|^\s*\d+/\d+ Test +#\d+: .* Passed "
)
QUIET = re.compile(
    r"^\W*(?:\S+ ){0,3}\[?(?:INFO|DEBUG|TRACE|NOTICE|note|help|hint)\b", re.IGNORECASE
)

_FREE = r"(?<![\w./\\-])"
_END = r"(?![\w/\\-]|\.\w)"

TEST = re.compile(
    r"^\s*(?:--- FAIL|not ok\b(?!.*#\s*(?:TODO|SKIP))|\[\s*(?:FAILED|FAIL)\s*\])"
    r"|^\s*(?:\d+\) )?[✗✖✘✕×❌⨯●]\s+\S"
    r"|\*\*\*\s?(?:Failed|Exception|Timeout|Not Run)|<<< (?:FAILURE|ERROR)!"
    r"|^(?:SUB)?FAILED\S*\s|^ERROR:? +\S+(?:::|\.py|\()"
    rf"|(?:\.\.\.|\s-|:)\s*(?:FAILED|FAIL|ERROR|failed)\b{_END}"
    rf"|{_FREE}(?:FAILED|FAIL)\b{_END}"
)
CRASH = re.compile(
    r"panicked at|^\s*panic:|Traceback \(most recent|egmentation fault|core dumped|"
    r"(?:Address|Leak|Thread|Memory|UndefinedBehavior)Sanitizer|DATA RACE|"
    r"\bSIG(?:SEGV|ABRT|KILL|BUS|ILL|FPE)\b|OutOfMemory|out of memory|oom-kill|"
    r"\b(?:Killed|Aborted)\b|undefined (?:reference|symbol)|unresolved external|"
    r"multiple definition|\b(?:Uncaught|Unhandled)\b|Fatal Python error|^Caused by:"
)
EXCEPTION = re.compile(
    r"^(?:E\s+|\W*)(?:Exception in thread \S+ |Uncaught |Caused by: |thread '[^']*' )?"
    r"(?:[\w$]+(?:\.|::|/))*[A-Z]\w*(?:Error|Exception|Failure|Fault|Exit|Interrupt|Timeout)\b"
    r"(?:\s*[:(\[]|\s*$)"
)
ERROR = re.compile(
    r"^(?:\W*(?:\S+:? ){0,2}?)\[?(?:fatal error|fatal|error|err!|err|critical|panic)\b"
    r"(?:\[[\w:-]+\]|\(\w+\)|\s[A-Z]+\d+)?\s*(?:[:!\]│|]|\s-\s|in\s|at\s|$)"
    rf"|{_FREE}(?:fatal )?errors?(?:\[[\w:-]+\])?(?: [A-Z]+\d+)?:\s",
    re.IGNORECASE,
)
FAULT = re.compile(
    r"(?:command|: ) ?not found$|No such file or directory|Permission denied|No module named"
    r"|^\S*sh: (?:line )?\d+: |unbound variable|\*\*\* .*Stop\.$|^Diff in \S"
    r"|cannot (?:access|stat|open|find|execute|resolve|import|load)|[Cc]an't (?:open|find|load|resolve|locate)"
)
AFTERMATH = re.compile(
    r"^\W*(?:g?make(?:\[\d+\])?: (?:\*\*\* \[.*\] (?:Error|Segm|Killed|Abort)|Target)"
    r"|npm (?:ERR!|error)|error Command failed|error: (?:aborting due to|could not compile"
    r"|test failed|recipe|process didn't exit|build failed)|ERROR: InvocationError"
    r"|(?:script|command|process)?.{0,60}?\b(?:exited|failed|terminated|completed) with "
    r"(?:exit )?(?:code|status)|exit status \d+$|BUILD FAILED|FAILURE: Build failed|> Task \S+ FAILED|\* What went wrong"
    r"|Result: FAIL|failing tests:?$|SUMMARY: \w+Sanitizer|ninja: build stopped|collect2:|ELIFECYCLE|FAIL\t|FAIL$|FAIL +\S+\.\w+$|FAILED \(|The following tests FAILED"
    r"|Errors? (?:while running|was found)|(?:\d+|some) (?:errors?|warnings?|tests?) (?:generated"
    r"|failed|emitted)|some errors have detailed|for more information about this error)"
    r"|due to (?:\d+ )?previous errors?|compilation terminated|Stopping at filesystem|-> \[Help \d\]$"
    r"|^\[ERROR\] (?:Failed to execute goal|COMPILATION ERROR|Failures:|Errors:|To see the full|Re-run Maven|For more information|After correcting|\[Help|$)",
    re.IGNORECASE,
)
"""What tools say after the failure, and because of it."""
PHRASE = re.compile(
    r"command not found|not found|no such|cannot|can't|could ?n[o']t|unable to|undefined|undeclared"
    r"|unresolved|unexpected|mismatch|invalid|missing|denied|refused|timed out|time-?out|expected"
    r"|assert|uncaught|violat|conflict|unknown|unsupported|illegal|corrupt|would reformat"
    r"|not formatted|differs?\b|rejected|obsolete|deadlock|unused|broken|\bbad\b|(?:must|should) not"
    r"|not (?:equal|match|allowed|defined|permitted|supported|valid)|^\s*\*\*\*",
    re.IGNORECASE,
)
WORD = re.compile(
    rf"{_FREE}(?:errors?|fail(?:s|ed|ures?|ing)?|fatal|panic|exception|abort(?:ed|ing)?){_END}",
    re.IGNORECASE,
)
WARNING = re.compile(rf"{_FREE}warn(?:ings?)?{_END}", re.IGNORECASE)

CODED = re.compile(r"(?<![\w-])[A-Z]{1,5}\d{3,5}(?=[\s:\])(]|$)")
"""A code such as linters give to their rules: E302, SC2086, TS2304."""

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
SPEAKS = re.compile("|".join([*map(re.escape, STEMS), *PLACE_STEMS]))


def weigh(line: str) -> Weight:
    """Say how strongly one line speaks of failure, by itself."""
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
