"""Weigh how clearly a line reports a failure; find totals and follow-up lines. Pure."""

import re
from collections import Counter
from collections.abc import Sequence
from enum import IntEnum
from functools import lru_cache

from mulligan.checks.digest.locations import DIAGNOSTIC, HAS_PLACE

# The weight of a line


class Weight(IntEnum):
    """How much a line helps to fix the failure."""

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


# Patterns by weight, the heaviest first

_FREE = r"(?<![\w./\\-])"
_END = r"(?![\w/\\-]|\.\w)"

TEST = re.compile(
    r"^\s*(?:--- FAIL|not ok\b(?!.*#\s*(?:TODO|SKIP))|\[\s*(?:FAILED|FAIL)\s*\])"
    r"|^\s*(?:\d+\) )?[✗✖✘✕×❌⨯●]\s++(?=.*\w)|^\s+JUnit (?:Jupiter|Vintage):"
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
    r"^(?:E\s+|[^\w$]{0,20}+)(?:Exception in thread \S+ |Uncaught |thread '[^']*' )?"
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

WARNING = re.compile(rf"{_FREE}warn(?:ings?)?{_END}", re.IGNORECASE)

PHRASE = re.compile(
    r"not found|no such|cannot|can't|could ?n[o']t|unable to|undefined|undeclared|unresolved"
    r"|unexpected|mismatch|invalid|missing|denied|refused|timed out|time-?out|expected|assert"
    r"|uncaught|violat|conflict|unknown|unsupported|illegal|corrupt|would (?:be )?reformat"
    r"|not formatted|differs?\b|rejected|obsolete|deadlock|unused|broken|\bbad\b"
    r"|(?:must|should) not|not (?:equal|match|allowed|defined|permitted|supported|valid)"
    r"|^\s*\*\*\*|^\s*failures:|^\s*\d+ failing|^there (?:was|were) \d+ |^\+\+\+ \S"
)
"""In lower case, which is faster than ignoring the case."""

CODED = re.compile(r"(?<![\w-])[A-Z]{1,5}\d{3,5}(?=[\s:\])(]|$)|^E: \S")
"""The code of a linter's rule, such as E302, SC2086, TS2304; and the start of an error of apt."""

WORD = re.compile(
    rf"{_FREE}(?:errors?|fail(?:s|ed|ures?|ing)?|fatal|panic|exception|abort(?:ed|ing)?){_END}",
    re.IGNORECASE,
)


def has_phrase(text: str) -> bool:
    """Return whether a text has a phrase such as `not found`, in any case."""
    return bool(PHRASE.search(text.lower()))


RULES = (
    (Weight.TEST, TEST.search),
    (Weight.CRASH, CRASH.search),
    (Weight.CRASH, EXCEPTION.match),
    (Weight.ERROR, ERROR.search),
    (Weight.ERROR, FAULT.search),
    (Weight.WARNING, WARNING.search),
    (Weight.PHRASE, has_phrase),
    (Weight.PHRASE, CODED.search),
    (Weight.WORD, WORD.search),
)
"""The first that matches gives the weight."""


# Lines that weigh nothing

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
SPEAKS = re.compile("|".join([*map(re.escape, STEMS), *PLACE_SHAPES]))

STARTS_PASSING = re.compile(
    r"\s*+(?:✓|✔|√|☑|ok\b|PASS(?:ED)?\b|[\[(]\s*(?:OK|PASS(?:ED)?|RUN|pass)\s*[\])]"
    r"|#\s*Subtest|=== (?:RUN|PAUSE|CONT|NAME)"
    r"|--- (?:PASS|SKIP): |Start +\d+: |\d+/\d+ Test +#\d+: .* Passed )"
    r"|(?:plugins|rootdir): |collecting \.{3} |\[gw\d+\] \[ *\d+%\] PASSED "
)

ENDS_PASSING = re.compile(
    r"(?:(?:\.\.\.|[\])\w:]) +(?:ok|OK|PASS(?:ED)?|[Pp]assed|✓|✔)"
    r"\s*(?:\[[^\]]*\]|\([^)]*\)|[\d.]+ ?m?s)?|(?<!\.)\.{3,}(?:\(.*\))?(?:Passed|Skipped))$"
)

PASSING_END = 160
"""The number of characters at the end of a line that are searched for a verdict."""


LOUD = re.compile(r"^E\s|^\W{0,20}+(?:\S+ ){0,3}\[?(?:ERROR|FATAL|CRITICAL|SEVERE)\b")
"""The start of an error's line: it may end with `want 200 OK`."""


def is_passing(line: str) -> bool:
    """Return whether a line reports success, or the start of a step."""
    if STARTS_PASSING.match(line):
        return True
    end = max(0, len(line) - PASSING_END)
    is_loud = LOUD.match(line) or EXCEPTION.match(line)
    return bool(ENDS_PASSING.search(line, end)) and not is_loud


HARMLESS = re.compile(
    r"\b(?:0|no|zero)\s+(?:\w+ )?"
    r"(?:errors?|failures?|failed|failing|warnings?|problems?|issues?)\b"
    r"|\b(?:errors?|failures?|failed|warnings?)\"?\s*[:=]\s*0\b",
    re.IGNORECASE,
)

QUIET = re.compile(
    r"^\W{0,20}(?:\S+ ){0,3}\[?(?:INFO|DEBUG|TRACE|NOTICE|note|help|hint)\b",
    re.IGNORECASE,
)


def weigh(line: str) -> Weight:
    """Rate how clearly one line reports a failure, regardless of other lines."""
    return _weigh(line.translate(SAME_DIGITS))


SAME_DIGITS = str.maketrans("23456789", "1" * 8)
"""Makes all numbers but zero equal, so that more lines share a cached weight."""

CACHED = 16384


WEIGHED_START, WEIGHED_END = 800, 100
"""The characters of a long line that are weighed."""


@lru_cache(maxsize=CACHED)
def _weigh(line: str) -> Weight:
    if len(line) > WEIGHED_START + WEIGHED_END:
        line = f"{line[:WEIGHED_START]} {line[-WEIGHED_END:]}"
    if not (SPEAKS.search(line.lower()) or CODED.search(line)) or is_passing(line):
        return Weight.NOTHING
    line = HARMLESS.sub("", line)
    weight = next((weight for weight, rule in RULES if rule(line)), Weight.NOTHING)
    if weight < Weight.PLACE and weight != Weight.WARNING and _opens_with_place(line):
        return Weight.PLACE
    if weight < Weight.CRASH and QUIET.match(line):
        return min(weight, Weight.MENTION)
    return weight


def _opens_with_place(line: str) -> bool:
    return bool(HAS_PLACE.search(line) and DIAGNOSTIC.match(line))


# Lines that only say that something failed before

OPENINGS = (
    r"g?make(?:\[\d+\])?: (?:\*\*\* \[.*\] (?:Error|Segm|Killed|Abort)|Target)",
    r"npm (?:ERR!|error)",
    r"error Command failed",
    r"error: (?:aborting due to|could not compile|(?:doc)?test failed|recipe|build failed)",
    r"error: \d+ targets? failed",
    r"error: process didn't exit",
    r"ERROR: InvocationError",
    r".{0,60}?\b(?:exited|failed|terminated|completed) with (?:exit )?(?:code|status)",
    r"exit status \d+$",
    r"BUILD FAILED",
    r"FAILURE: Build failed",
    r"> Task \S+ FAILED",
    r":[\w:-]+ FAILED$",
    r"\* What went wrong",
    r"Result: FAIL",
    r"\*\* (?:TEST|BUILD) FAILED \*\*",
    r"failing tests:?$",
    r"SUMMARY: \w+Sanitizer",
    r"ninja: build stopped",
    r"collect2:",
    r"ELIFECYCLE",
    r"FAIL\t",
    r"FAIL$",
    r"FAIL +\S+\.\w+$",
    r"FAILED \(",
    r"\[\s*FAILED\s*\] +\d+ tests?\b",
    r".{0,80}: Executed \d+ of \d+",
    r"The following tests FAILED",
    r"Errors? (?:while running|was found)",
    r"(?:\d+|one|some) (?:errors?|warnings?|tests?) (?:generated|failed|emitted|found)",
    r"some errors have detailed",
    r"for more information about this error",
    r"(?:\[ERROR\] ?)+(?:Failed to execute goal|COMPILATION ERROR|Failures:|Errors:|To see the)",
    r"(?:\[ERROR\] ?)+(?:Re-run Maven|For more information|After correcting|Please refer|\[Help|$)",
)

OPENING = re.compile(rf"(?:\[\w+\]\s*+)?\W{{0,20}}(?:{'|'.join(OPENINGS)})", re.IGNORECASE)

ANYWHERE = re.compile(
    r"due to (?:\d+ )?previous errors?|compilation terminated|stopping at filesystem"
    r"|-> \[help \d\]$|\(failed - \d+\)$"
    r"|\bcommand\b.* exited \(\d+\)$|\bexited with \d+\.?$|pnpm[ _]recursive"
)


def is_aftermath(line: str) -> bool:
    """Return whether a line only repeats that something failed before."""
    return bool(OPENING.match(line.strip()) or ANYWHERE.search(line.lower()))


# Lines that say that a tool stopped early, or shortened its list

_FAILURES = r"(?:errors?|failures?|problems?|violations?|offenses?|failing tests?)"

CUT_SHORT = re.compile(
    r"too many errors|stopping after \d+ |\d+ errors? during collection|bail(?:ed|ing)? out\b"
    rf"|(?:{_FAILURES}|max\S*) (?:limit|count|number) (?:was )?(?:reached|exceeded)"
    rf"|\d+ (?:more|other|additional|further) (?:\w+ )?{_FAILURES}"
    rf"|{_FAILURES} (?:were |are )?(?:not shown|omitted|suppressed|truncated)"
    r"|max(?:imum)? (?:number of )?(?:errors|failures)|terminated due to -wfatal-errors"
    r"|test failed, to rerun pass|errors prevented further checking"
    r"|^test suites: .*\d of \d+ total"
)
"""In lower case. Cargo starts no further test program after the one that it says to rerun.

Jest counts test suites `of` all only if it skipped some.
"""

RAN_ALL = re.compile(r"^error: \d+ targets? failed:")
"""What cargo says at the end with `--no-fail-fast`."""


def is_cut_short(lines: Sequence[str]) -> bool:
    """Return whether a tool reports that it did not run or list everything."""
    return any(CUT_SHORT.search(line[:LONGEST].lower()) for line in lines) and not any(
        map(RAN_ALL.match, lines)
    )


# Lines that count results

NOUN = (
    r"(?:failed|failing|failures?|errors?|passed|passing|problems?|warnings?|skipped|pending"
    r"|broken|ok|ignored|successes|assertions?|offenses?|violations?|issues?|vulnerabilities"
    r"|leaks?|mismatch(?:es)?)"
)

COUNTED = re.compile(
    rf"(?<![:.,\d-])\b\d+ (?:\w+ )?{NOUN}\b(?!:)|\b{NOUN}\s*[:=\t]\s*\d+"
    rf"|^(?:tests|suites|pass|fail|cancelled|todo|{NOUN}) \d+$"
    r"|\b\d+ files? would be|\b\d+ out of \d+\b|\b\d+% tests passed|\b\d+ of \d+ \w+",
    re.IGNORECASE,
)

SUMMARY = re.compile(
    r"^\W*(?:tests?|test (?:suites|files|result|run)|found|ran|total|summary|failed|failures|fail"
    r"|result|finished|done|ok|errors?|warnings|all|oh no|examples|checked|suites|snapshots?|run"
    r"|pass|fail|cancelled|skipped|todo|executed|errored|broken)\b|^\W*\d+%?\s|^\S+:\tTotal\t",
    re.IGNORECASE,
)

LONGEST = 160


def is_total(line: str) -> bool:
    """Return whether a line counts results."""
    text = _bare(line)
    return (
        bool(text) and len(text) <= LONGEST and bool(SUMMARY.match(text) and COUNTED.search(text))
    )


TAG = re.compile(r"^\[\w+\] ")


def _bare(line: str) -> str:
    return TAG.sub("", line).strip(" =-*─_\t|#ℹ")


FINISHED = re.compile(
    r"^\W*(?:finished|ran all|duration\b|randomi[sz]ed|time:|failures:$)|^(?:<==$|==> )"
    r"|^(?:FAIL|ok  )\t",
    re.IGNORECASE,
)


def ends_results(line: str) -> bool:
    """Return whether a line comes after the last result."""
    return is_total(line) or bool(FINISHED.match(line))


MOST = 3
REACH = 2000

ALIKE = 20
"""If more lines than this differ only in numbers, they are a program's own log."""

NUMBER = re.compile(r"\d+")


def total_lines(lines: Sequence[str]) -> tuple[str, ...]:
    """Return the last lines that count failures, or without one, that count anything, in order."""
    totals = _totals_among([*reversed(lines[-REACH:])])
    alike = Counter(NUMBER.sub("1", line) for line in dict.fromkeys(totals))
    counting = dict.fromkeys(line for line in totals if alike[NUMBER.sub("1", line)] <= ALIKE)
    bad = [line for line in counting if count_bad(line)]
    return tuple(reversed(bad[:MOST] or list(counting)[:1]))


def _totals_among(lines: Sequence[str]) -> list[str]:
    """Return the lines of totals; lines that differ only in numbers are tested once."""
    shapes = [NUMBER.sub("1", line) for line in lines]
    telling = {shape for shape in {*shapes} if is_total(shape)}
    bare = (_bare(line) for line, shape in zip(lines, shapes, strict=True) if shape in telling)
    return [line for line in bare if len(line) <= LONGEST]


BAD = re.compile(
    r"(?<!\d)(?P<of>\d++)(?:/| (?:out )?of )\d+ (?:tests? |\w+ )?(?:failed|failing)\b"
    r"|(?<!\d)(?P<before>\d++) (?:tests? |\w+ )?"
    r"(?:failed|failing|failures?|errors?|problems?|offenses?)\b(?!\s*[:=]\s*\d)"
    r"|\b(?:failed|failing|failures?|fail|errors?)\s*+[:=]?\s*+(?P<after>\d++)(?!/| *[!=<>]=)",
    re.IGNORECASE,
)


def count_bad(line: str) -> int:
    """Return the number of failures and errors that a line of totals names.

    Problems are errors and warnings together: they count if the line names no errors.
    """
    most = Counter[str]()
    for match in BAD.finditer(line):
        kind = next(kind for kind in ("prob", "offen", "fail", "err") if kind in match[0].lower())
        most[kind] = max(most[kind], _number_in(match))
    return most["fail"] + most["err"] or max(most["prob"], most["offen"])


def _number_in(match: re.Match[str]) -> int:
    return int((match["of"] or match["before"] or match["after"])[:9])
