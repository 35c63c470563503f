"""Digests of real outputs (DIGEST-6): what they name, how sure they recognise, how fast.

Speed is per second of processor time. The five gigabytes come first, since the peak of memory
never falls. outputs/README.md describes the outputs.
"""

import gc
import resource
import statistics
import time
from collections.abc import Iterator, Sequence
from io import BytesIO, RawIOBase

import pytest

from mulligan.checks.digest import digest
from world.digest_corpus import BASELINES, CorpusCase, cases, recall, wrong

RECALL = 0.97
PRECISION = 0.9
COUNTS = 0.8
"""The share of the counts of failures that are right."""
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


def report(*cells: object) -> None:
    print("digest |", " | ".join(map(str, cells)))  # noqa: T201 - what a benchmark is for


def row(name: str, chosen: Sequence[CorpusCase]) -> dict[str, float]:
    """Report the mean recall of the digest and of each baseline."""
    digests = [case.digest().text for case in chosen]
    texts = {"digest": digests} | {
        name: [baseline(case.output) for case in chosen] for name, baseline in BASELINES.items()
    }
    found = {way: statistics.fmean(map(recall, chosen, given)) for way, given in texts.items()}
    length = statistics.fmean(map(len, digests))
    shares = (f"{share:.3f}" for share in found.values())
    report(f"{name:<14}", f"{len(chosen):>3}", f"{length:>10.0f}", *shares)
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


def test_digests_name_what_failed() -> None:
    report(f"{'recall':<14}", "  n", "characters", "digest", *BASELINES)
    every = cases()
    for name, chosen in (("all", every), ("long", [case for case in every if case.is_long])):
        found = row(name, chosen)
        assert found["digest"] >= RECALL
        assert found["digest"] > max(found[name] for name in BASELINES)


def test_digests_name_little_that_did_not_fail() -> None:
    """Of test programs: the facts name every failed test, so that other findings are wrong.

    A lower bound, since a right finding may be worded otherwise than the facts.
    """
    judged = [(case.digest().findings, bad) for case in cases() if (bad := wrong(case)) is not None]
    total, bad = (sum(len(each[at]) for each in judged) for at in (0, 1))
    share = 1 - bad / total
    report(f"precision of {len(judged)}", f"{total} findings", f"{bad} wrong", f"{share:.3f}")
    assert share >= PRECISION


def test_digests_count_what_failed() -> None:
    counted = [(case.total, case.digest().count) for case in cases() if case.total]
    said = [(total, count) for total, count in counted if count]
    right = sum(total == count for total, count in said)
    report(f"counts of {len(counted)}", f"{len(said)} said", f"{right} right")
    assert right >= COUNTS * len(said)


def test_a_failure_is_recognised_and_no_other_taken_for_it() -> None:
    every = cases()
    prints = [printed(case, case.output, HERE) for case in every]
    again = [
        print_ == printed(case, case.again, ELSEWHERE)
        for case, print_ in zip(every, prints, strict=True)
        if case.again
    ]
    stable = statistics.fmean(again)
    distinct = statistics.fmean(prints.count(found) == 1 for found in prints)
    report(f"fingerprint the same in a second run, of {len(again)}", f"{stable:.3f}")
    report(f"fingerprint of no other failure, of {len(prints)}", f"{distinct:.3f}")
    assert stable >= ALIKE
    assert distinct >= DISTINCT


def printed(case: CorpusCase, output: bytes, root: str) -> str:
    return digest(output, exit_code=case.exit_code, root=root).fingerprint


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
