"""Figures measured side by side in one run: their JSON, their table in the docs, and the gate."""

import json
import os
import platform
import statistics
import subprocess
import time
from collections import defaultdict
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from pydantic import TypeAdapter

FILE = Path(__file__).with_suffix(".json")
PAGE = Path(__file__).parents[2] / "docs" / "benchmarks.md"
START, END = "<!-- figures: written by `make bench` -->\n", "<!-- end of figures -->\n"
SLACK = 1.5
"""How far a figure may be from the committed one on another machine, or a busy one."""


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
class Figure:
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


FIGURES = TypeAdapter(list[Figure])


@dataclass
class Bench:
    """Collects the figures of a run, which began at a `load` of the machine."""

    found: list[Figure] = field(default_factory=list[Figure])
    load: float = field(default_factory=lambda: os.getloadavg()[0])

    def figure(
        self,
        name: str,
        rounds: list[float],
        *,
        most: float | None = None,
        least: float | None = None,
        gates: bool = False,
    ) -> None:
        """Add a figure; it `gates` if its medians in five runs on a busy machine were alike."""
        median, low, high = statistics.median(rounds), min(rounds), max(rounds)
        shown = round(median, 3), round(low, 3), round(high, 3)
        found = Figure(name, *shown, most, least, gates)
        self.found.append(found)
        print(f"\nfigure | {_line(found)}")  # noqa: T201 - what a benchmark is for

    def write(self) -> None:
        """Replace all figures, in JSON and on the page, by those of this run."""
        FILE.write_text(json.dumps([asdict(each) for each in self.found], indent=1) + "\n")
        before, _, rest = PAGE.read_text().partition(START)
        PAGE.write_text(before + START + self._table() + END + rest.partition(END)[2])

    def worse(self) -> list[str]:
        """List the figures that gate and are worse than committed."""
        known = {each.name: each for each in committed()}
        found = list[str]()
        for each in self.found:
            target = each.most if each.least is None else each.least
            before = known[each.name].median if each.name in known else target
            if each.gates and before is not None and each.is_worse_than(before):
                found.append(f"{_line(each)} | committed: {before}")
        return found

    def _table(self) -> str:
        head = "\n| figure | median | spread | target | gates |\n| --- | --- | --- | --- | --- |\n"
        lines = [f"| {_line(each)} | {'yes' if each.gates else ''} |\n" for each in self.found]
        git = subprocess.run(["git", "version"], capture_output=True, text=True, check=True)
        where = (
            f"One run with Python {platform.python_version()} and {git.stdout.strip()}, on "
            f"{os.cpu_count()} cores with a load of {self.load:.1f} before it.\n"
        )
        return f"{head}{''.join(lines)}\n{where}\n"


def committed() -> list[Figure]:
    """Read the figures of the last run that was committed."""
    return FIGURES.validate_json(FILE.read_text()) if FILE.exists() else []


def _line(row: Figure) -> str:
    return f"{row.name} | {row.median:.2f} | {row.low:.2f} to {row.high:.2f} | {row.target}"
