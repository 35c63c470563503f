"""The port of what judges a change: guards, set-up, checks and reviewer."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from mulligan.config.policy import Check, Reviewer, Scope
from mulligan.domain.attempt import Change, Review
from mulligan.domain.guard import GuardViolation
from mulligan.domain.result import CheckResult


class Workplace(Protocol):
    """A directory that commands run in, and beside it `private`, for the run's own files.

    For git in it to work, the commands need what is `readable` and `writable` as well.
    """

    @property
    def path(self) -> Path: ...
    @property
    def private(self) -> Path: ...
    @property
    def readable(self) -> tuple[Path, ...]: ...
    @property
    def writable(self) -> tuple[Path, ...]: ...


class Verifier(Protocol):
    """See verification/checks.py."""

    def violations(self, change: Change, scope: Scope) -> tuple[GuardViolation, ...]:
        """List every rule of the scope that the change breaks (SPEC A9)."""
        ...

    def set_up(self, lines: Sequence[str], worktree: Workplace, log: Path) -> None:
        """Run the set-up lines; UnavailableError with the digest where one fails (SPEC A3)."""
        ...

    def check(self, check: Check, worktree: Workplace, log: Path) -> CheckResult:
        """Run one check on the committed tree (SPEC A10); `log` takes its output.

        MisconfiguredError where the program that it starts with is not there.
        """
        ...

    def steady(self, first: CheckResult, again: CheckResult) -> CheckResult:
        """Put two runs on one tree together: what failed once only is flaky (SPEC A11)."""
        ...

    def reproduced(self, first: CheckResult, again: CheckResult) -> CheckResult:
        """Put two runs on a start tree together: only what failed in both counts (SPEC A4)."""
        ...

    def added(self, failed: CheckResult, before: CheckResult | None) -> CheckResult:
        """Tell what a failing check found on the start tree already from what is new (SPEC A4).

        `before` is None where the check could not run there; what cannot be told apart is new.
        """
        ...

    def condense(self, output: bytes) -> str:
        """Condense what a check printed that failed elsewhere, without secrets."""
        ...

    def review(self, reviewer: Reviewer, question: bytes, worktree: Workplace, log: Path) -> Review:
        """Ask the reviewer command about a change; it always answers (SPEC 10)."""
        ...
