"""Find the tests that ran before a change and do not run with it (CHECK-7). Pure.

This is a guard against shortcuts, not against forgery: reports can be forged.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

from mulligan.checks.digest.findings import clip
from mulligan.checks.digest.identity import fingerprint, stable_name
from mulligan.config.policy import Scope
from mulligan.domain.result import CheckResult, Finding, RanTests

# The tests that are lost


@dataclass(frozen=True, slots=True)
class Excuses:
    """What a change may do to tests: `is_removed` tells whether it takes a test's name away."""

    is_removed: Callable[[str], bool]
    may_delete: bool = False
    may_skip: bool = False


def lost_tests(before: RanTests, after: RanTests | None, excuses: Excuses) -> tuple[str, ...]:
    """Return the tests that ran before and have no successor among those that run now.

    A successor has the same name in another place, or the same name with other parameters. A test
    whose name the change removes may have any new test as its successor. Each one has one only.
    """
    after = after or RanTests()
    old, now, skipped = (
        Counter(map(stable_name, names))
        for names in (before.ran, (*after.ran, *after.stopped), after.skipped)
    )
    old -= skipped if excuses.may_skip else Counter[str]()
    missing, new = _without_duplicates(old - now, now - old)
    for shortened in (title_of, without_parameters):
        missing, new = _without_pairs(missing, new, shortened)
    removed = [name for name in missing.elements() if excuses.is_removed(name)]
    excused = removed if excuses.may_delete else removed[: new.total()]
    return tuple(sorted((missing - Counter(excused)).elements()))


def _without_duplicates(
    missing: Counter[str], new: Counter[str]
) -> tuple[Counter[str], Counter[str]]:
    """Leave out tests with equal parameters, of which the change keeps one."""
    kept = {name: short for name in missing if (short := _without_ordinal(name)) in new}
    left = Counter({name: number for name, number in missing.items() if name not in kept})
    return left, new - Counter({*kept.values()})


def _without_pairs(
    missing: Counter[str], new: Counter[str], shortened: Callable[[str], str]
) -> tuple[Counter[str], Counter[str]]:
    """Leave out one missing and one new test of each pair with the same shortened name."""
    waiting = Counter(shortened(name) for name in new.elements())
    found = Counter(shortened(name) for name in missing.elements()) & waiting
    return _less(missing, found, shortened), _less(new, found, shortened)


def _less(
    names: Counter[str], found: Counter[str], shortened: Callable[[str], str]
) -> Counter[str]:
    left, kept = Counter(found), Counter[str]()
    for name in names.elements():
        short = shortened(name)
        if left[short] > 0:
            left[short] -= 1
        else:
            kept[name] += 1
    return kept


OWNER = re.compile(r".*(?:::| › |\.(?=(?:Test|Example|Fuzz)\w))", re.DOTALL)
PARAMETERS = re.compile(r"\[.*\]$", re.DOTALL)


def title_of(name: str) -> str:
    """Return a test's name without its file, package, class or suite."""
    return OWNER.sub("", name)


def without_parameters(name: str) -> str:
    """Return a test's title without the parameters of one of its cases."""
    return PARAMETERS.sub("", title_of(name))


ORDINAL = re.compile(r"_?\d+\]$")


def _without_ordinal(name: str) -> str:
    """Return the name that pytest gives a test once no other has equal parameters."""
    return ORDINAL.sub("]", name)


WORD = re.compile(r"\w+")
QUOTED = re.compile(r"(['\"`])(.+?)\1")
PLACEHOLDER = re.compile(r"[$#]?\{[^}]*\}|%[a-z]")
"""A value in a title: `${kind} adds`, `adds %i`, `{n} items`."""

SHORTEST_TITLE, SHORTEST_PART = 4, 6


def removed_names(diff: bytes) -> Callable[[str], bool]:
    """Return what tells whether a change removes a test's name, by the lines of its diff."""
    words, titles = Counter[str](), Counter[str]()
    for line in diff.decode(errors="replace").split("\n"):
        if line.startswith(("--- ", "+++ ")):
            continue
        quoted = [title for _, title in QUOTED.findall(line)]
        if line.startswith("-"):
            words.update(WORD.findall(line))
            titles.update(quoted)
        elif line.startswith("+"):
            words.subtract(WORD.findall(line))
            titles.subtract(quoted)
    gone = (+words).keys()
    whole = tuple(t for t in +titles if len(t) >= SHORTEST_TITLE and not PLACEHOLDER.search(t))
    parts = [max(PLACEHOLDER.split(t), key=len) for t in +titles if PLACEHOLDER.search(t)]
    made = [part for part in parts if len(part) >= SHORTEST_PART]
    return lambda name: (
        without_parameters(name) in gone
        or name.endswith(whole)
        or any(part in name for part in made)
    )


def excuses_of(diff: bytes, scope: Scope) -> Excuses:
    """Return what a change with this diff may do to tests."""
    is_removed = removed_names(diff)
    return Excuses(is_removed, scope.allow_deleted_tests, scope.allow_skipped_tests)


# What a check says of them

GONE = (
    "{} ran before this change and {} not run now. Let every test run. If you rename one, keep "
    "what it tests."
)
NONE_LEFT = (
    "No test runs with this change; {} ran before it. Let the command of the check run its tests."
)
NO_REPORT = (
    "The tests of this check no longer report: {} ran before this change, and now the command "
    "leaves no report. Let it run the tests as before."
)
SHOWN = 20


def judge_tests(
    runs: Sequence[CheckResult], before: CheckResult | None, excuses: Excuses
) -> CheckResult:
    """Fail the first run if a test that ran before runs in none of them; else return it."""
    result = runs[0]
    if result.fails or before is None or before.tests is None or not before.tests.ran:
        return result
    found = [lost_tests(before.tests, run.tests, excuses) for run in runs]
    in_all = reduce(lambda one, other: one & other, map(Counter, found))
    lost = tuple(in_all.elements())
    if not lost:
        return result
    number = _counted(len(lost))
    if result.tests is None:
        heading = NO_REPORT.format(_counted(len(before.tests.ran)))
    elif not result.tests.ran:
        heading = NONE_LEFT.format(_counted(len(before.tests.ran)))
    else:
        heading = GONE.format(number, "does" if len(lost) == 1 else "do")
    skipped = {*result.tests.skipped} if result.tests else set[str]()
    findings = (*_findings(lost, skipped),)
    return result.model_copy(
        update={
            "passed": False,
            "flaky": False,
            "preexisting": False,
            "digest": "\n".join([heading, *_listed(lost, skipped)]),
            "long_digest": "",
            "findings": findings,
            "count": len(lost),
            "source": (),
            "fingerprint": fingerprint(findings),
        }
    )


def _counted(number: int) -> str:
    return f"{number:,} test{'' if number == 1 else 's'}"


def _listed(lost: Sequence[str], skipped: Iterable[str]) -> Iterator[str]:
    for name in lost[:SHOWN]:
        yield f"- {clip(name, 200)}{' (skipped)' if name in skipped else ''}"
    if len(lost) > SHOWN:
        yield f"(+ {len(lost) - SHOWN} more)"


MAX_LOST = 1000


def _findings(lost: Sequence[str], skipped: Iterable[str]) -> Iterator[Finding]:
    for name in lost[:MAX_LOST]:
        message = "It is skipped now." if name in skipped else "It does not run now."
        summary = clip(f"{clip(name, 75)}: {message}", 100)
        yield Finding(summary=summary, message=message, test_id=name)
