"""Run a repository's own commands in a worktree: its set-up, and the checks that decide."""

import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from mulligan.config.policy import Check, Scope
from mulligan.config.settings import format_duration
from mulligan.domain.attempt import Change
from mulligan.domain.result import CheckKind, CheckResult
from mulligan.errors import MisconfiguredError, UnavailableError
from mulligan.ports import Worktree
from mulligan.process import Command, Finished, run
from mulligan.verification.digest import Digest, digest
from mulligan.verification.guards import violations

SET_UP_TIMEOUT = timedelta(minutes=30)
KEPT_FINDINGS = 50
NOT_FOUND = 127
"""What a shell exits with when it does not find a program (POSIX)."""


@dataclass(frozen=True, slots=True)
class CommandVerifier:
    """The port Verifier on shell lines; of `environment` they get PATH."""

    environment: Mapping[str, str]

    def violations(self, change: Change, scope: Scope) -> tuple[str, ...]:
        """List every rule of the scope that the change breaks (SPEC A9)."""
        return violations(change, scope)

    def set_up(self, lines: Sequence[str], worktree: Worktree, log: Path) -> None:
        """Run the set-up lines in order; UnavailableError where one fails (SPEC A3)."""
        for line in lines:
            ended = self._run(line, SET_UP_TIMEOUT, worktree, log)
            if ended.stopped_by or ended.exit_code:
                message = f"The set-up line {line!r} failed: {_first_words(line, ended, log)}"
                raise UnavailableError(message)

    def check(self, check: Check, worktree: Worktree, log: Path) -> CheckResult:
        """Run one check on the committed tree (SPEC A10); `log` takes its whole output."""
        ended = self._run(check.run, check.timeout, worktree, log)
        self._refuse_a_missing_program(check, ended, worktree)
        told, timed_out = _digest(check.run, ended, log), ended.stopped_by is not None
        late = f"Timed out after {format_duration(check.timeout)}.\n" if timed_out else ""
        return CheckResult(
            name=check.name,
            kind=CheckKind(check.kind),
            command=check.run,
            required=check.required,
            passed=told.passed and not timed_out,
            exit_code=ended.exit_code,
            timed_out=timed_out,
            duration_ms=round(ended.duration.total_seconds() * 1000),
            digest=late + told.text,
            findings=told.findings[:KEPT_FINDINGS],
            fingerprint=told.fingerprint,
        )

    def _run(self, line: str, timeout: timedelta, worktree: Worktree, log: Path) -> Finished:
        home = worktree.private / "home"
        home.mkdir(mode=0o700, exist_ok=True)
        return run(
            Command(
                argv=("/bin/sh", "-c", line),
                directory=worktree.path,
                environment={
                    "PATH": self.environment.get("PATH", ""),
                    "HOME": str(home),
                    "LANG": "C.UTF-8",
                    "TERM": "dumb",
                    "CI": "true",
                },
                timeout=timeout,
                log=log,
            )
        )

    def _refuse_a_missing_program(self, check: Check, ended: Finished, worktree: Worktree) -> None:
        if ended.exit_code != NOT_FOUND:
            return
        program = _program(check.run)
        here = (worktree.path / program).exists()
        if program and not here and not shutil.which(program, path=self.environment.get("PATH")):
            message = (
                f"The program {program!r} of the check {check.name!r} is not on this machine; "
                "install it or mend the check."
            )
            raise MisconfiguredError(message)


def _program(line: str) -> str:
    """Name the program that a shell line starts with; nothing where it is no plain command."""
    try:
        words = shlex.split(line)
    except ValueError:
        return ""
    return words[0] if words and words[0].replace("-", "").replace("_", "").isalnum() else ""


def _digest(line: str, ended: Finished, log: Path) -> Digest:
    with log.open("rb") as output:
        return digest(output, command=line, exit_code=ended.exit_code)


def _first_words(line: str, ended: Finished, log: Path) -> str:
    if ended.stopped_by:
        return f"it did not end within {format_duration(SET_UP_TIMEOUT)}."
    told = _digest(line, ended, log)
    return told.findings[0].summary if told.findings else told.text
