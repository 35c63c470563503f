"""Ratios measured side by side in one run: their JSON, their table in the docs, and the gate."""

import json
import os
import platform
import statistics
import time
from collections import defaultdict
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from pydantic import TypeAdapter

FILE = Path(__file__).with_suffix(".json")
PAGE = Path(__file__).parents[2] / "docs" / "benchmarks.md"
START, END = "<!-- ratios: written by `make bench` -->\n", "<!-- end of ratios -->\n"
SLACK = 1.5
"""How far a ratio may be from the committed one on another machine, or a busy one."""


class Stopwatch:
    """Times kinds of work, round by round, in milliseconds."""

    def __init__(self) -> None:
        self.taken = defaultdict[str, list[float]](list)

    @contextmanager
    def __call__(self, name: str) -> Generator[None]:
        begun = time.perf_counter()
        yield
        self.taken[name].append((time.perf_counter() - begun) * 1000)

    def ratios(self, one: str, other: str) -> list[float]:
        """Divide each round's time by that of the other work in the same round."""
        pairs = zip(self.taken[one], self.taken[other], strict=True)
        return [first / second for first, second in pairs]


@dataclass(frozen=True)
class Ratio:
    """The median of the rounds with its spread; `most` or `least` is what it must reach."""

    name: str
    median: float
    low: float
    high: float
    most: float | None = None
    least: float | None = None
    gates: bool = False

    def is_worse_than(self, committed: float) -> bool:
        """Compare with the committed median, or the target where none is committed."""
        if self.least is not None:
            return self.median < committed / SLACK
        return self.median > committed * SLACK

    @property
    def target(self) -> str:
        if self.most is not None:
            return f"at most {self.most:g}"
        return "" if self.least is None else f"at least {self.least:g}"


RATIOS = TypeAdapter(list[Ratio])


@dataclass
class Bench:
    """Collects the ratios of a run."""

    found: list[Ratio] = field(default_factory=list[Ratio])

    def ratio(
        self,
        name: str,
        rounds: list[float],
        *,
        most: float | None = None,
        least: float | None = None,
        gates: bool = False,
    ) -> None:
        """Add a ratio; it `gates` if its medians in five runs on a busy machine were alike."""
        median, low, high = statistics.median(rounds), min(rounds), max(rounds)
        shown = round(median, 3), round(low, 3), round(high, 3)
        found = Ratio(name, *shown, most, least, gates)
        self.found.append(found)
        print(f"\nratio | {_line(found)}")  # noqa: T201 - what a benchmark is for

    def finish(self) -> Iterator[str]:
        """Write what was found; with BENCH_CHECK, list what is worse than committed instead."""
        known = {each.name: each for each in committed()}
        if os.environ.get("BENCH_CHECK"):
            for each in self.found:
                target = each.most if each.least is None else each.least
                before = known[each.name].median if each.name in known else target
                if each.gates and before is not None and each.is_worse_than(before):
                    yield f"{_line(each)} | committed: {before}"
            return
        rows = list({**known, **{each.name: each for each in self.found}}.values())
        FILE.write_text(json.dumps([asdict(each) for each in rows], indent=1) + "\n")
        before, _, rest = PAGE.read_text().partition(START)
        PAGE.write_text(before + START + table(rows) + END + rest.partition(END)[2])


def committed() -> list[Ratio]:
    """Read the ratios of the last run that was committed."""
    return RATIOS.validate_json(FILE.read_text()) if FILE.exists() else []


def table(rows: list[Ratio]) -> str:
    """Draw the table of the docs."""
    head = "| ratio | median | spread | target | gates |\n| --- | --- | --- | --- | --- |\n"
    lines = [f"| {_line(each)} | {'yes' if each.gates else ''} |\n" for each in rows]
    where = f"Measured with Python {platform.python_version()} on {os.cpu_count()} cores.\n"
    return f"{head}{''.join(lines)}\n{where}"


def _line(row: Ratio) -> str:
    return f"{row.name} | {row.median:.2f} | {row.low:.2f} to {row.high:.2f} | {row.target}"
