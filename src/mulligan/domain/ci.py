"""The checks that GitHub runs on a pull request's head, and what they come to together. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from mulligan.domain.record import Record

MOST_CHECKS = 20
FAILURES = frozenset({"failure", "error", "timed_out", "startup_failure"})
"""Conclusions that the change may be to blame for; `error` is that of a commit status."""
PASSING = frozenset({"success", "neutral", "skipped"})
"""Conclusions that GitHub itself takes for fine."""


class FailedCheck(Record):
    """A check that failed on GitHub, and what it printed, condensed."""

    name: str
    digest: str = ""


class CiFailed(Record):
    """The checks of a head are complete, and some failed (SPEC P4).

    `refused` says why a person is asked, where no attempt is made.
    """

    kind: Literal["ci_failed"] = "ci_failed"
    head_sha: str
    checks: tuple[FailedCheck, ...]
    refused: str = ""


class CiPassed(Record):
    """The checks of a head are complete, and so many passed while none failed."""

    kind: Literal["ci_passed"] = "ci_passed"
    head_sha: str
    count: int


@dataclass(frozen=True, slots=True)
class CheckRun:
    """A check run or a commit status as GitHub has it; without a conclusion it still runs.

    A higher `id` of the same `app` is the later one. `said` is what a status says in a line. Runs
    of one `suite` were started together: two workflows have one each, also on the same commit.
    """

    id: int
    app: str
    name: str
    conclusion: str | None = None
    said: str = ""
    suite: int = 0

    @property
    def failed(self) -> bool:
        """Tell whether it failed; one that was cancelled, or waits for a person, did not."""
        return self.conclusion in FAILURES


def latest(runs: Iterable[CheckRun]) -> tuple[CheckRun, ...]:
    """Keep the newest of each name and suite: a re-run takes the place of the run before."""
    newest = {(run.app, run.suite, run.name): run for run in sorted(runs, key=lambda run: run.id)}
    return tuple(newest.values())


def told_apart(runs: Sequence[CheckRun]) -> tuple[str, ...]:
    """Name the runs, each by another name: of two `tests`, the second is `tests (2)`."""
    counts, names = Counter[str](), list[str]()
    for run in runs:
        counts[run.name] += 1
        again = counts[run.name] > 1
        names.append(f"{run.name} ({counts[run.name]})" if again else run.name)
    return tuple(names)


def failed_of(runs: Sequence[CheckRun]) -> tuple[CheckRun, ...]:
    """Pick those that failed, once all of them are complete."""
    return tuple(run for run in runs if run.failed) if _complete(runs) else ()


def passed_of(runs: Sequence[CheckRun]) -> int:
    """Count those that passed, once all are complete and fine."""
    fine = _complete(runs) and all(run.conclusion in PASSING for run in runs)
    return sum(run.conclusion == "success" for run in runs) if fine else 0


def _complete(runs: Sequence[CheckRun]) -> bool:
    return all(run.conclusion is not None for run in runs)


def key_of(head_sha: str) -> str:
    """Give the name under which it is remembered that the failures of a head were acted on."""
    return f"ci:{head_sha}"
