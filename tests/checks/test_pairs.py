"""Verdicts on pairs of real runs, of a base and a change, whose right verdict was written first.

Each pair was made with a real tool: two runs of the base, two of the change. `why` gives the reason
for the expected verdict. Nothing may be excused; whatever else differs from it is listed here.
"""

import json
from pathlib import Path

import pytest
from pydantic import BaseModel

from mulligan.checks.compare import Comparison, Run, Verdict, compare

PAIRS = Path(__file__).parents[1] / "fixtures" / "pairs"
NAMES = sorted(file.stem for file in PAIRS.glob("*.json"))


class Ran(BaseModel):
    """One run; the output is text, whatever its bytes were."""

    output: str
    exit_code: int
    reports: tuple[str, ...] = ()


class Pair(BaseModel):
    """A pair; `also_ok` are verdicts that are as right, `missing` tests that no longer run."""

    tool: str
    why: str
    expected: Verdict
    also_ok: tuple[Verdict, ...] = ()
    changed_files: tuple[str, ...] = ()
    missing: tuple[str, ...]
    base: tuple[Ran, ...]
    change: tuple[Ran, ...]


def pair(name: str) -> Pair:
    return Pair.model_validate(json.loads((PAIRS / f"{name}.json").read_text()))


def compared(made: Pair, *, reports: bool) -> Comparison:
    def runs(of: tuple[Ran, ...]) -> list[Run]:
        return [
            Run(
                ran.output.encode(),
                ran.exit_code,
                [report.encode() for report in ran.reports] if reports else [],
            )
            for ran in of
        ]

    return compare(change=runs(made.change), base=runs(made.base), changed_files=made.changed_files)


OTHERWISE = {
    "30-jest-console-noise": Verdict.UNKNOWN,
    "37-mocha-flaky-two-tests": Verdict.NEW,
    "57-go-panic-hides-rest": Verdict.NEW,
    "60-cargo-backtrace-shift": Verdict.UNKNOWN,
    "61-cargo-left-differs": Verdict.UNKNOWN,
    "75-pytest-old-failure-moved": Verdict.UNKNOWN,
    "80-gcc-warnings-move": Verdict.UNKNOWN,
    "90-make-crash": Verdict.NEW,
    "93-mocha-hook-hides-tests": Verdict.NEW,
    "late-08-pytest-cause-differs": Verdict.UNKNOWN,
    "late-13-node-random-diff-and-error-logs": Verdict.MIXED,
    "late-14-node-shuffled-subtests": Verdict.UNKNOWN,
    "late-17-node-timeout-and-unhandled": Verdict.NEW,
    "late-30-go-base-does-not-build": Verdict.MIXED,
    "late-33-cargo-same-name-two-targets": Verdict.UNKNOWN,
    "late-35-jest-long-snapshot": Verdict.UNKNOWN,
    "late-40-mocha-base-was-flaky": Verdict.NEW,
    "late-42-unittest-setupclass-and-noise": Verdict.MIXED,
}
"""What the text alone gives for some pairs, where another verdict is right."""

REPORTED_OTHERWISE = {
    "late-14-node-shuffled-subtests": Verdict.UNKNOWN,
    "late-20-ctest-long-golden-diff": Verdict.UNKNOWN,
}
"""The same with reports."""


@pytest.mark.parametrize("name", NAMES)
def test_the_text_alone_gives_the_verdict(name: str) -> None:
    made = pair(name)
    verdict = compared(made, reports=False).verdict
    assert verdict in {OTHERWISE.get(name, made.expected), *made.also_ok}, made.why


@pytest.mark.parametrize("name", [name for name in NAMES if any(pair(name).change[0].reports)])
def test_reports_give_the_verdict(name: str) -> None:
    made = pair(name)
    found = compared(made, reports=True)
    expected = REPORTED_OTHERWISE.get(name, made.expected)
    assert found.verdict in {expected, *made.also_ok}, made.why
    assert bool(found.missing) == bool(made.missing), (found.missing, made.missing)


def test_no_failure_is_excused() -> None:
    for name, verdict in (OTHERWISE | REPORTED_OTHERWISE).items():
        assert verdict in {Verdict.UNKNOWN, Verdict.NEW, Verdict.MIXED}, name
        assert pair(name).expected is not Verdict.PASSED
