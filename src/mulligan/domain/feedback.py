"""The checks that GitHub runs on a pull request's head, and what they come to together. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from mulligan.domain.events import FailedCheck, Remark
from mulligan.domain.outcome import Record

# Feedback that waits for an attempt.

MAX_REMARKS = 50

BODY_CHARS = 4000

CODE_CHARS = 2000


class Feedback(Record):
    """All that is pending: remarks of reviewers, a conflict, checks that failed on GitHub.

    `at` is when the last of it came.
    """

    at: datetime
    remarks: tuple[Remark, ...] = ()
    conflict: str = ""
    checks: tuple[FailedCheck, ...] = ()

    @property
    def threads(self) -> tuple[int, ...]:
        """Name the comments that are to be answered, each once."""
        return tuple(dict.fromkeys(said.thread for said in self.remarks if said.thread))

    @property
    def reviews(self) -> dict[int, str]:
        """Name the reviews that are to be answered as a whole, and who wrote each."""
        return {said.review: said.author for said in self.remarks if said.review}


def merge_feedback(pending: Feedback | None, new: Feedback) -> Feedback:
    """Add to what is pending; a conflict, and failed checks, replace older ones."""
    if pending is None:
        return new
    return Feedback(
        at=max(pending.at, new.at),
        remarks=(*pending.remarks, *new.remarks)[:MAX_REMARKS],
        conflict=new.conflict or pending.conflict,
        checks=new.checks or pending.checks,
    )


# Pull requests and reviews, as GitHub gives them.


@dataclass(frozen=True, slots=True)
class OpenPull:
    """A pull request of Mulligan's as a list has it; any review moves `updated_at`."""

    number: int
    branch: str
    head_sha: str
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class PullState:
    """What became of a pull request; `into_default` tells whether GitHub closes the issue.

    It `is_behind` where nothing but commits of the base branch is missing for it to be merged.
    """

    is_open: bool
    is_merged: bool = False
    into_default: bool = True
    is_draft: bool = False
    is_behind: bool = False


@dataclass(frozen=True, slots=True)
class Review:
    """A review that a trusted person submitted; `objects` where it requests changes."""

    id: int
    author: str
    author_id: int | None
    at: datetime
    requests_changes: bool
    remarks: tuple[Remark, ...] = ()

    @property
    def key(self) -> str:
        """Give the name under which it is remembered that it was acted on."""
        return f"review:{self.id}"


# Checks on GitHub.

MAX_CHECKS = 20

FAILURES = frozenset({"failure", "error", "timed_out", "startup_failure"})
"""Conclusions that the change may be to blame for; `error` is that of a commit status."""

PASSING = frozenset({"success", "neutral", "skipped"})
"""Conclusions that GitHub itself takes for fine."""


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


def unique_names(runs: Sequence[CheckRun]) -> tuple[str, ...]:
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


def failed_head_key(head_sha: str) -> str:
    """Give the name under which it is remembered that the failures of a head were acted on."""
    return f"ci:{head_sha}"
