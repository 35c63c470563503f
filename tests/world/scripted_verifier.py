"""A verifier whose set-up and checks are Python functions over the worktree, not shell lines."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mulligan.checks import compare
from mulligan.checks.guards import violations
from mulligan.checks.progress import with_progress
from mulligan.checks.proof import (
    files_of_tests,
    needs_second_run,
    proof_of,
    proof_without_files,
    unproved,
)
from mulligan.checks.ran import excuses_of, judge_tests
from mulligan.checks.runner import read_answer
from mulligan.config.policy import Check, Reviewer, Scope, SetUp
from mulligan.domain.attempt import Change, ReviewerResult
from mulligan.domain.errors import MisconfiguredError
from mulligan.domain.events import FailedCheck
from mulligan.domain.result import (
    CheckKind,
    CheckResult,
    Finding,
    GuardViolation,
    Proof,
    RanTests,
)
from mulligan.implement.ports import ReviewQuestion, RunDirectory
from mulligan.implement.prompt.outcome_text import verdict

Verdict = Callable[[Path], str | None]
"""Looks at the tree; gives what a failing check prints, or None where it passes."""


def _set_up_result(command: str, failed: str | None) -> CheckResult:
    return CheckResult(
        name="setup",
        kind=CheckKind.OTHER,
        command=command,
        passed=not failed,
        exit_code=int(bool(failed)),
        digest=failed or "",
        is_set_up=True,
    )


@dataclass(frozen=True)
class ScriptedVerifier:
    """The port Verifier with a function for each shell line."""

    lines: Mapping[str, Verdict] = field(default_factory=dict[str, Verdict])
    programs: str = ""
    shown_at: str = ""
    """Where each worktree appears, as in a sandbox."""
    tests: RanTests | Callable[[Path], RanTests] | None = None
    """What the report of each check names."""
    questions: list[bytes] = field(default_factory=list[bytes])
    """What the reviewer was asked."""

    def violations(self, change: Change, scope: Scope) -> tuple[GuardViolation, ...]:
        return violations(change, scope)

    def set_up(self, lines: Sequence[str], worktree: RunDirectory, log: Path) -> CheckResult:
        said, result = list[str](), _set_up_result("; ".join(lines), None)
        for line in lines:
            failed = self.lines[line](worktree.path)
            said.append(f"$ {line}\n{failed or ''}\n")
            log.write_text("".join(said))
            if failed:
                return _set_up_result(line, failed)
        return result

    def set_up_again(
        self, settings: SetUp, worktree: RunDirectory, log: Path, note: str
    ) -> CheckResult:
        result = self.set_up(settings.run, worktree, log)
        digest = "" if result.passed else f"{note} {verdict(result)}\n{result.digest}"
        return result.model_copy(update={"digest": digest})

    def check(
        self, check: Check, worktree: RunDirectory, log: Path, check_out: Callable[[], object]
    ) -> CheckResult:
        check_out()
        if check.run not in self.lines:
            message = (
                f"{check.run.split()[0]!r} not found. It is the program of the check"
                f" {check.name!r}; "
                "install it in a setup command, or change the check's command."
            )
            raise MisconfiguredError(message)
        failed = self.lines[check.run](worktree.path)
        log.write_text(failed or "")
        first = (failed or "").partition("\n")[0][:100]
        return CheckResult(
            name=check.name,
            kind=check.kind,
            command=check.run,
            required=check.required,
            passed=failed is None,
            exit_code=int(failed is not None),
            digest=failed or "Passed.",
            findings=(Finding(summary=first, message=first, test_id=first),) if failed else (),
            fingerprint=first,
            tests=self.tests(worktree.path) if callable(self.tests) else self.tests,
        )

    def merge_reruns(self, first: CheckResult, again: CheckResult) -> CheckResult:
        return compare.apply_rerun(first, again)

    def merge_baseline_runs(self, first: CheckResult, again: CheckResult) -> CheckResult:
        return compare.keep_reproduced(first, again)

    def subtract_baseline(
        self, failed: CheckResult, before: CheckResult | None, files: Collection[str]
    ) -> CheckResult:
        return compare.subtract_baseline(failed, before, files)

    def judge_tests(
        self, runs: Sequence[CheckResult], before: CheckResult, diff: bytes, scope: Scope
    ) -> CheckResult:
        return judge_tests(runs, before, excuses_of(diff, scope))

    def files_of_tests(self, change: Change, patterns: Sequence[str]) -> frozenset[str]:
        return files_of_tests(change.files, patterns)

    def needs_second_run(self, diff: bytes, change: CheckResult, run: CheckResult) -> bool:
        return needs_second_run(diff, change, run)

    def proof_of(
        self, change: CheckResult, runs: Sequence[CheckResult], before: RanTests | None
    ) -> Proof:
        return proof_of(change, runs, before)

    def proof_without_files(
        self, diff: bytes, change: CheckResult, before: RanTests | None
    ) -> Proof:
        return proof_without_files(diff, change, before)

    def unproved(self, proof: Proof) -> CheckResult | None:
        return unproved(proof)

    def with_progress(
        self, result: CheckResult, before: CheckResult | None, number: int
    ) -> CheckResult:
        return with_progress(result, before, number)

    def place(self, worktree: RunDirectory) -> str:
        return self.shown_at or str(worktree.path)

    def toolchain(self, lines: Sequence[str]) -> str:
        return self.programs

    def condense(self, name: str, output: bytes) -> FailedCheck:
        return FailedCheck(name=name, digest=output.decode())

    def review(
        self, reviewer: Reviewer, question: ReviewQuestion, worktree: RunDirectory, log: Path
    ) -> ReviewerResult:
        self.questions.append(question.asked)
        said = self.lines[reviewer.run](worktree.path) or ""
        log.write_text(said)
        return read_answer(said.encode())
