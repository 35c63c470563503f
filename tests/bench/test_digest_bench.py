"""Digests of real outputs (DIGEST-6): what they name, how sure they recognise, how fast.

Speed is per second of processor time. The five gigabytes come first, since the peak of memory
never falls. The corpus is described in corpus/README.md.
"""

import gc
import re
import resource
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from io import BytesIO, RawIOBase
from itertools import chain

import pytest

from mulligan.checks.digest import digest
from world.digest_corpus import (
    BASELINES,
    CASES,
    FRESH,
    FRESH_LAST,
    FRESH_LATE,
    FRESH_LONG,
    FRESH_MANY,
    CorpusCase,
    cases,
    recall,
    wrong,
)

RECALL = 0.97
PRECISION_SLACK = 0.03
"""The share of the corpus's findings that may be about something that did not fail."""
CORPORA = {
    "corpus": CASES,
    "fresh": FRESH,
    "fresh and long": FRESH_LONG,
    "made late": FRESH_LATE,
    "many failures": FRESH_MANY,
    "made last": FRESH_LAST,
}
ALIKE = 0.96
DISTINCT = 0.98
HERE, ELSEWHERE = "/repo", "/home/runner/work/app"
"""Where a tool ran, and ran again."""
FAST = 50
"""MB/s on large outputs."""
ROOM_MB = 100
MEGABYTE = 1024 * 1024
LARGE = 200 * MEGABYTE
HUGE = 5 * 1024 * MEGABYTE

Means = dict[str, float]


def report(*cells: object) -> None:
    print("digest |", " | ".join(map(str, cells)))  # noqa: T201 - what a benchmark is for


def means(chosen: Sequence[CorpusCase]) -> Means:
    """Give the mean recall of the digest, of what the prompt has, and of each baseline."""
    ways: dict[str, Callable[[CorpusCase], str]] = {
        "digest": lambda case: case.digest().text,
        "prompt": CorpusCase.shown,
    }
    for name, baseline in BASELINES.items():
        ways[name] = lambda case, baseline=baseline: baseline(case.output)
    return {
        name: statistics.fmean(recall(case, way(case)) for case in chosen)
        for name, way in ways.items()
    }


def row(name: str, chosen: Sequence[CorpusCase]) -> Means:
    found = means(chosen)
    report(f"{name:<40}", f"{len(chosen):>3}", *(f"{share:.2f}" for share in found.values()))
    return found


class Endless(RawIOBase):
    """A file of any size that repeats one chunk; the failure stands in the middle."""

    def __init__(self, chunk: bytes, size: int) -> None:
        self.chunk, self.size, self.told = chunk, size, 0

    def read(self, size: int = -1, /) -> bytes:
        before, self.told = self.told, self.told + len(self.chunk)
        if before >= self.size:
            return b""
        middle = before <= self.size // 2 < self.told
        return self.chunk + (b"src/a.c:3:5: error: expected ';'\n" if middle else b"")


def passing(lines: int) -> Iterator[str]:
    for number in range(lines):
        yield f"tests/test_part{number % 97}.py::test_number_{number} PASSED [{number % 100:>3}%]\n"


def decoys(lines: int) -> Iterator[str]:
    for number in range(lines):
        mark = f"{(number + 1) * 2654435761 % 16**10:010x}"
        yield f"batch {mark} done by worker-{mark[:5]}: errors=0 failed=0 warnings=0 missing=0\n"


def records(lines: int) -> Iterator[str]:
    trace = 'Traceback (most recent call last):\\n  File \\"a.py\\", line 4, in f\\n    g()\\n' * 4
    for number in range(lines // 5):
        level = "error" if number % 3 == 0 else "info"
        yield f'{{"ts": {number}, "level": "{level}", "msg": "failed", "exc_info": "{trace}"}}\n'


def compiling(lines: int) -> Iterator[str]:
    for number in range(lines):
        yield f"[{number}/{lines}] cc -O2 -Wall -Werror -c src/part_{number}.c -o {number}.o\n"


def prefixed(lines: int) -> Iterator[str]:
    for number, line in enumerate(passing(lines)):
        yield f"@shop/part-{number % 7}:test: {line}"


@pytest.mark.timeout(600)
def test_five_gigabytes_are_streamed() -> None:
    chunk = "".join(passing(12_000)).encode()[: MEGABYTE - 1] + b"\n"
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun = time.process_time()
    found = digest(Endless(chunk, HUGE), exit_code=1)  # pyright: ignore[reportArgumentType] - a raw file reads as one
    taken = time.process_time() - begun
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    report("5 GB", f"{HUGE / MEGABYTE / taken:.0f} MB/s", f"{grown:.0f} MB more memory")
    assert "src/a.c:3:5" in found.text
    assert grown < ROOM_MB


@pytest.mark.timeout(600)
def test_digests_name_what_failed() -> None:
    corpus = cases()
    report(f"{'recall':<40}", "  n", "digest", "prompt", *BASELINES)
    by_tool = defaultdict[str, list[CorpusCase]](list)
    for case in corpus:
        by_tool[case.tool].append(case)
    for tool, of_tool in sorted(by_tool.items()):
        row(tool, of_tool)
    row("all", corpus)
    long = [case for case in corpus if case.is_long]
    for name, held_out in (("seen", False), ("held out", True)):
        row(f"{name}, all", [case for case in corpus if case.held_out is held_out])
        row(f"{name}, > 2,000", [case for case in long if case.held_out is held_out])
    overall = row("all, longer than 2,000 characters", long)
    assert overall["digest"] >= RECALL
    assert overall["digest"] > max(overall[name] for name in BASELINES)


def test_digests_of_fresh_outputs_are_measured() -> None:
    """No figure gates: they are reported as they are."""
    fresh = cases(FRESH)
    row(f"fresh, of {len({case.tool for case in fresh})} tools", fresh)
    row("fresh, > 2,000", [case for case in fresh if case.is_long])
    long = cases(FRESH_LONG)
    for name, held_out in (("open", False), ("closed", True)):
        chosen = [case for case in long if case.held_out is held_out]
        row(f"fresh and long, {name}", chosen)
        row(f"fresh and long, {name}, > 2,000", [case for case in chosen if case.is_long])
    late = cases(FRESH_LATE)
    row("made late", late)
    row("made late, > 2,000", [case for case in late if case.is_long])
    many = cases(FRESH_MANY)
    row("many failures, several tools", many)
    row("many failures, several tools, > 2,000", [case for case in many if case.is_long])
    last = cases(FRESH_LAST)
    row("made last", last)
    row("made last, > 2,000", [case for case in last if case.is_long])
    counted = [(case.total, case.digest()) for case in many if case.total]
    stated = sum(bool(re.search(rf"(?<!\d){total}(?!\d)", told.text)) for total, told in counted)
    exact = sum(total == told.count for total, told in counted)
    report(f"totals of {len(counted)} cases", f"stated {stated}", f"count is right {exact}")
    tools = [{case.tool for case in corpus} for corpus in (cases(), fresh, long, late, many, last)]
    assert len(set[str]().union(*tools)) == sum(map(len, tools))


@pytest.mark.timeout(600)
def test_digests_name_little_that_did_not_fail() -> None:
    """Of test programs: the facts name every failed test, so that other findings are wrong.

    A lower bound, since a right finding may be worded otherwise than the facts.
    """
    report(f"{'precision':<40}", "  n", "findings", "wrong")
    for name, directory in CORPORA.items():
        read = [(case, case.digest().findings, wrong(case)) for case in cases(directory)]
        judged = [(case.tool, found, bad) for case, found, bad in read if bad is not None]
        total, all_bad = (sum(len(each[at]) for each in judged) for at in (1, 2))
        share = f"{1 - all_bad / total:.3f}"
        report(f"{name:<40}", f"{len(judged):>3}", f"{total:>8}", f"{all_bad:>5}", share)
        for tool, found, bad in sorted(judged, key=lambda each: -len(each[2])):
            if bad:
                report(f"  {tool:<38}", "   ", f"{len(found):>8}", f"{len(bad):>5}", bad[0].summary)
        assert name != "corpus" or all_bad <= PRECISION_SLACK * total


@pytest.mark.timeout(600)
def test_a_failure_is_recognised_and_no_other_taken_for_it() -> None:
    corpus = cases()
    prints, again = (
        {
            case.name: digest(output, exit_code=case.exit_code, root=root).fingerprint
            for case in corpus
            for output, root in [(case.output, HERE) if first else (case.again, ELSEWHERE)]
        }
        for first in (True, False)
    )
    stable = statistics.fmean(prints[name] == again[name] for name in prints)
    others = list(chain(prints.values()))
    distinct = statistics.fmean(others.count(found) == 1 for found in others)
    report("fingerprint the same in a second run", f"{stable:.3f}")
    report("fingerprint of no other failure", f"{distinct:.3f}")
    assert stable >= ALIKE
    assert distinct >= DISTINCT


@pytest.mark.timeout(600)
def test_large_outputs_are_read_fast() -> None:
    for name, lines in (
        *(("passing tests", passing), ("a build", compiling)),
        *(("lines with decoy words", decoys), ("JSON records with tracebacks", records)),
        ("lines with a program's prefix", prefixed),
    ):
        data = "".join(lines(LARGE // 80)).encode()
        begun = time.process_time()
        found = digest(BytesIO(data), exit_code=1)
        taken = time.process_time() - begun
        speed = len(data) / MEGABYTE / taken
        report(f"{len(data) // MEGABYTE} MB of {name}", f"{speed:.0f} MB/s")
        assert found.text
        assert speed >= FAST / 1.5
