"""The lines in which a tool counts what it found. Pure."""

import re
from collections.abc import Sequence
from itertools import islice

NOUN = (
    r"(?:failed|failing|failures?|errors?|passed|passing|problems?|warnings?|skipped|pending"
    r"|broken|ok|ignored|successes|assertions?|offenses?|violations?|issues?|vulnerabilities"
    r"|leaks?|mismatch(?:es)?)"
)
COUNTED = re.compile(
    rf"\b\d+ (?:\w+ )?{NOUN}\b|\b{NOUN}\s*[:=]\s*\d+|^#? ?{NOUN} \d+$|\b\d+ files? would be"
    r"|\b\d+ out of \d+\b|\b\d+% tests passed|\b\d+ of \d+ \w+",
    re.IGNORECASE,
)
SUMMARY = re.compile(
    r"^\W*(?:tests?|test (?:suites|files|result|run)|found|ran|total|summary|failed|failures|fail"
    r"|result|finished|done|ok|error|all|oh no|examples|checked|suites|snapshots?|run)\b|^\W*\d+",
    re.IGNORECASE,
)
BAD = re.compile(
    r"(?P<before>\d+) (?:tests? |\w+ )?(?:failed|failing|failures?|errors?|problems?|offenses?)\b"
    r"|\b(?:failed|failing|failures?|fail|errors?)\s*[:=]?\s*(?P<after>\d+)",
    re.IGNORECASE,
)
MOST = 3
LONGEST = 160
REACH = 2000


def is_total(line: str) -> bool:
    """Tell whether a line counts results."""
    text = _bare(line)
    return bool(text) and len(text) <= LONGEST and bool(SUMMARY.match(text) and COUNTED.search(text))


def total_lines(lines: Sequence[str]) -> tuple[str, ...]:
    """Pick the last few lines that count, in the order in which they stand."""
    counting = (_bare(line) for line in reversed(lines[-REACH:]) if is_total(line))
    return tuple(reversed(list(islice(dict.fromkeys(counting), MOST))))


def count_bad(line: str) -> int:
    """Give the largest number of failures or errors that a line of totals names."""
    numbers = (match["before"] or match["after"] for match in BAD.finditer(line))
    return max((int(number[:9]) for number in numbers), default=0)


def _bare(line: str) -> str:
    return line.strip(" =-*─_\t|#")
