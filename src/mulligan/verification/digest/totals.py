"""The lines in which a tool counts what it found. Pure."""

import re
from collections import Counter
from collections.abc import Sequence

NOUN = (
    r"(?:failed|failing|failures?|errors?|passed|passing|problems?|warnings?|skipped|pending"
    r"|broken|ok|ignored|successes|assertions?|offenses?|violations?|issues?|vulnerabilities"
    r"|leaks?|mismatch(?:es)?)"
)
COUNTED = re.compile(
    rf"(?<![:.,\d-])\b\d+ (?:\w+ )?{NOUN}\b(?!:)|\b{NOUN}\s*[:=]\s*\d+"
    rf"|^(?:tests|suites|pass|fail|cancelled|todo|{NOUN}) \d+$"
    r"|\b\d+ files? would be|\b\d+ out of \d+\b|\b\d+% tests passed|\b\d+ of \d+ \w+",
    re.IGNORECASE,
)
SUMMARY = re.compile(
    r"^\W*(?:tests?|test (?:suites|files|result|run)|found|ran|total|summary|failed|failures|fail"
    r"|result|finished|done|ok|errors?|warnings|all|oh no|examples|checked|suites|snapshots?|run"
    r"|pass|fail|cancelled|skipped|todo)\b|^\W*\d+%?\s",
    re.IGNORECASE,
)
FINISHED = re.compile(r"^\W*(?:finished|ran all|duration\b|randomi[sz]ed|time:)", re.IGNORECASE)
BAD = re.compile(
    r"(?P<before>\d+) (?:tests? |\w+ )?(?:failed|failing|failures?|errors?|problems?|offenses?)\b"
    r"|\b(?:failed|failing|failures?|fail|errors?)\s*[:=]?\s*(?P<after>\d+)",
    re.IGNORECASE,
)
TAG = re.compile(r"^\[\w+\] ")
MOST = 3
LONGEST = 160
REACH = 2000
ALIKE = 20
"""More lines that differ in their numbers only are a program's own log."""
NUMBER = re.compile(r"\d+")


def is_total(line: str) -> bool:
    """Tell whether a line counts results."""
    text = _bare(line)
    return (
        bool(text) and len(text) <= LONGEST and bool(SUMMARY.match(text) and COUNTED.search(text))
    )


def ends_results(line: str) -> bool:
    """Tell whether a line comes after the last result."""
    return is_total(line) or bool(FINISHED.match(line))


def total_lines(lines: Sequence[str]) -> tuple[str, ...]:
    """Pick the last lines that count failures, or else anything, in the order they stand in."""
    told = _told([*reversed(lines[-REACH:])])
    alike = Counter(NUMBER.sub("1", line) for line in dict.fromkeys(told))
    counting = dict.fromkeys(line for line in told if alike[NUMBER.sub("1", line)] <= ALIKE)
    bad = [line for line in counting if count_bad(line)]
    return tuple(reversed(bad[:MOST] or list(counting)[:1]))


def _told(lines: Sequence[str]) -> list[str]:
    """Pick the lines of totals; those that differ in their numbers only are judged once."""
    shapes = [NUMBER.sub("1", line) for line in lines]
    telling = {shape for shape in {*shapes} if is_total(shape)}
    bare = (_bare(line) for line, shape in zip(lines, shapes, strict=True) if shape in telling)
    return [line for line in bare if len(line) <= LONGEST]


def count_bad(line: str) -> int:
    """Give the largest number of failures or errors that a line of totals names."""
    numbers = (match["before"] or match["after"] for match in BAD.finditer(line))
    return max((int(number[:9]) for number in numbers), default=0)


def _bare(line: str) -> str:
    return TAG.sub("", line).strip(" =-*─_\t|#ℹ")
