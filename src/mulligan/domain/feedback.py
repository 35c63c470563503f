"""The feedback of a pull request: reviews, conflicts, and checks on GitHub. Pure."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import Self

from mulligan.domain.events import FailedCheck, Remark
from mulligan.domain.issue import ReviewAct
from mulligan.domain.outcome import Record

# Feedback that waits for an attempt.

MAX_REMARKS = 50

BODY_CHARS = 4000

CODE_CHARS = 2000


class Feedback(Record):
    """All pending feedback: remarks of reviewers, a conflict, checks that failed on GitHub.

    `at` is the time of the latest, and `received` are the ids of the reviews.
    """

    at: datetime
    remarks: tuple[Remark, ...] = ()
    received: tuple[int, ...] = ()
    conflict: str = ""
    checks: tuple[FailedCheck, ...] = ()

    @property
    def threads(self) -> tuple[int, ...]:
        """Return the ids of the comments to reply to, each once."""
        return tuple(dict.fromkeys(remark.thread for remark in self.remarks if remark.thread))

    @property
    def reviews(self) -> dict[int, str]:
        """Return the reviews to reply to as a whole, by id, with their authors.

        If a review has comments on lines, the replies to those report what changed.
        """
        on_lines = {remark.review for remark in self.remarks if remark.thread}
        remarks = (each for each in self.remarks if each.review and each.review not in on_lines)
        return {each.review: each.author for each in remarks}

    def without(self, reviews: Collection[int]) -> Self | None:
        """Drop reviews; None if nothing is left."""
        left = tuple(each for each in self.received if each not in reviews)
        if not (left or self.conflict or self.checks):
            return None
        remarks = tuple(each for each in self.remarks if each.review not in reviews)
        return self.model_copy(update={"received": left, "remarks": remarks})


def merge_feedback(pending: Feedback | None, new: Feedback) -> Feedback:
    """Add new feedback; a conflict or failed checks replace older ones."""
    if pending is None:
        return new
    return Feedback(
        at=max(pending.at, new.at),
        remarks=(*pending.remarks, *new.remarks)[:MAX_REMARKS],
        received=(*pending.received, *new.received),
        conflict=new.conflict or pending.conflict,
        checks=new.checks or pending.checks,
    )


# Pull requests and reviews, as GitHub returns them.


@dataclass(frozen=True, slots=True)
class OpenPull:
    """One of Mulligan's open pull requests, as listed; any review changes `updated_at`.

    `base` is the branch into which it would be merged.
    """

    number: int
    branch: str
    head_sha: str
    updated_at: datetime
    base: str = ""


@dataclass(frozen=True, slots=True)
class PullState:
    """The state of a pull request; GitHub closes its issue only if it goes `into_default`.

    `is_behind`: it can be merged once it has the newest commits of the base branch, `base`.
    """

    is_open: bool
    is_merged: bool = False
    into_default: bool = True
    is_draft: bool = False
    is_behind: bool = False
    base: str = ""


def describe_other_base(base: str, wanted: str) -> str:
    """Say that somebody changed the base of a pull request; empty if it is the one wanted."""
    if not base or base == wanted:
        return ""
    names = [name.replace("`", "'") for name in (base, wanted)]
    return (
        f"The pull request's base is `{names[0]}`; Mulligan works on `{names[1]}` only. Retarget "
        f"it to `{names[1]}`, or finish it by hand."
    )


@dataclass(frozen=True, slots=True)
class Review:
    """A review that a trusted person submitted.

    `withdrawn`: the same reviewer gave another opinion later, or the review was dismissed.
    """

    id: int
    author: str
    author_id: int | None
    at: datetime
    requests_changes: bool
    remarks: tuple[Remark, ...] = ()
    withdrawn: bool = False

    @property
    def act(self) -> ReviewAct:
        """Return the act of the review; it is handled once."""
        return ReviewAct(self.id)


# Checks on GitHub.

MAX_CHECKS = 20

FAILURES = frozenset({"failure", "error", "timed_out", "startup_failure"})
"""Conclusions that the change may have caused; `error` comes from a commit status."""

PASSING = frozenset({"success", "neutral", "skipped"})
"""Conclusions that GitHub counts as passing."""


@dataclass(frozen=True, slots=True)
class CheckRun:
    """A check run or a commit status on GitHub; without a conclusion it is still running.

    Within one `app`, a higher `id` is later. `said` is the description of a commit status. `suite`
    groups the runs of one workflow run. `at` is when it ended or, while it runs, when it began.
    """

    id: int
    app: str
    name: str
    conclusion: str | None = None
    said: str = ""
    suite: int = 0
    at: datetime | None = None

    @property
    def failed(self) -> bool:
        """Return whether it failed; cancelled runs and runs that wait for approval did not."""
        return self.conclusion in FAILURES


def latest(runs: Iterable[CheckRun]) -> tuple[CheckRun, ...]:
    """Keep the newest run of each name and suite: a re-run replaces the earlier run."""
    newest = {(run.app, run.suite, run.name): run for run in sorted(runs, key=lambda run: run.id)}
    return tuple(newest.values())


def unique_names(runs: Sequence[CheckRun]) -> tuple[str, ...]:
    """Make every run's name unique: the second `tests` becomes `tests (2)`."""
    counts, names = Counter[str](), list[str]()
    for run in runs:
        counts[run.name] += 1
        again = counts[run.name] > 1
        names.append(f"{run.name} ({counts[run.name]})" if again else run.name)
    return tuple(names)


@dataclass(frozen=True, slots=True)
class HeadChecks:
    """The checks of a head: `failed` through the change, `on_base`, or still `pending`."""

    failed: tuple[CheckRun, ...] = ()
    on_base: tuple[CheckRun, ...] = ()
    pending: tuple[CheckRun, ...] = ()

    def acts_at(self, pending_timeout: timedelta) -> datetime | None:
        """Return until when the failures wait for pending checks; None if they do not wait."""
        times = [run.at for run in self.failed if run.at]
        return max(times) + pending_timeout if times and self.pending else None


def judge_checks(runs: Sequence[CheckRun], base: Sequence[CheckRun]) -> HeadChecks:
    """Compare the checks of a head with those of its base commit (PR-3).

    A check that fails on the base as often as here is not the change's. While a failed check still
    runs on the base, it is pending.
    """
    left = Counter((run.app, run.name) for run in base if run.failed)
    failed, on_base = list[CheckRun](), list[CheckRun]()
    for run in runs:
        if run.failed:
            (on_base if left[run.app, run.name] > 0 else failed).append(run)
            left[run.app, run.name] -= 1
    names = {(run.app, run.name) for run in failed}
    pending = [run for run in runs if run.conclusion is None]
    pending += [
        replace(run, name=f"{run.name} (base branch)")
        for run in base
        if run.conclusion is None and (run.app, run.name) in names
    ]
    return HeadChecks(tuple(failed), tuple(on_base), tuple(pending))


def without_ignored(runs: Iterable[CheckRun], ignored: Sequence[str]) -> tuple[CheckRun, ...]:
    """Drop the checks whose name matches a pattern, in which `*` stands for anything."""
    return tuple(run for run in runs if not any(fnmatchcase(run.name, each) for each in ignored))


def describe_checks(found: HeadChecks, base_sha: str, acts_at: datetime | None) -> str:
    """Say which failures wait, for which checks, and which the change did not cause, if any."""
    parts = list[str]()
    if found.failed and acts_at:
        times = [run.at for run in found.pending if run.at]
        since = f" since {min(times):%H:%M} UTC" if times else ""
        parts.append(
            f"Waits for {_names(found.pending)}{since}; {_names(found.failed)} failed. Mulligan "
            f"acts on the failure after {acts_at:%H:%M} UTC."
        )
    if found.on_base:
        parts.append(
            f"{_names(found.on_base)} failed on GitHub, and on the base commit `{base_sha[:10]}` "
            "too, so Mulligan makes no attempt for that."
        )
    return " ".join(parts)


MAX_NAMED = 5


def _names(checks: Sequence[CheckRun | FailedCheck]) -> str:
    shown = [f"`{check.name[:100].replace('`', chr(39))}`" for check in checks[:MAX_NAMED]]
    more = len(checks) - MAX_NAMED
    return ", ".join([*shown, *([f"{more} more"] if more > 0 else [])])


def describe_failed_checks(feedback: Feedback | None) -> str:
    """Name the checks that failed on GitHub and wait for an attempt; empty if there is none."""
    return f"{_names(feedback.checks)} failed on GitHub." if feedback and feedback.checks else ""


def passed_of(runs: Sequence[CheckRun]) -> int:
    """Count the successful runs; 0 unless all runs are complete and passing."""
    fine = _complete(runs) and all(run.conclusion in PASSING for run in runs)
    return sum(run.conclusion == "success" for run in runs) if fine else 0


def _complete(runs: Sequence[CheckRun]) -> bool:
    return all(run.conclusion is not None for run in runs)
