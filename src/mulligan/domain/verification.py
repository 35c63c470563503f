"""The checks that passed on a change, and those that say nothing about it. Pure."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from mulligan.domain.outcome import Outcome
from mulligan.domain.result import CheckKind, CheckResult, FileChange, Proof, WorkerResultMeta


@dataclass(frozen=True, slots=True)
class Verification:
    """The names of an attempt's checks, by what they say about its change.

    Every check is in exactly one of the tuples. `flaky` ones passed when they ran again,
    `preexisting` ones fail without the change too, `optional` ones failed and are not required.
    `skipped` ones did not run. `no_test_passed` is set if there is a check of kind `test` and none
    passed, `no_test_ran` if all of them were skipped. `set_up_failed`: the
    setup commands failed on the change, so no check ran. Not `is_recorded`: the ledger was lost.
    `deciding` are the files of the change that may decide how its checks run. `proof` is what its
    tests say without it.
    """

    passed: tuple[str, ...] = ()
    flaky: tuple[str, ...] = ()
    preexisting: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    no_test_passed: bool = False
    no_test_ran: bool = False
    set_up_failed: bool = False
    is_recorded: bool = True
    deciding: tuple[str, ...] = ()
    proof: Proof | None = None

    @classmethod
    def of(cls, meta: WorkerResultMeta) -> Self:
        """Read the results of an attempt's checks; the setup commands verify nothing."""
        checks = [check for check in meta.checks if not check.is_set_up]
        tests = [check.passed for check in checks if check.kind is CheckKind.TEST]
        skipped = meta.skipped_checks
        lacks_tests = any(check.kind is CheckKind.TEST for check in skipped)
        return cls(
            passed=_names(each for each in checks if each.passed and not each.flaky),
            flaky=_names(each for each in checks if each.passed and each.flaky),
            preexisting=_names(each for each in checks if each.preexisting and not each.passed),
            optional=_names(
                each for each in checks if not (each.passed or each.preexisting or each.required)
            ),
            failed=_names(each for each in checks if each.fails or each.is_broken),
            skipped=tuple(check.name for check in skipped),
            no_test_passed=(bool(tests) or lacks_tests) and not any(tests),
            no_test_ran=lacks_tests and not tests,
            set_up_failed=any(check.is_set_up and check.fails for check in meta.checks),
            is_recorded=bool(meta.checks or skipped) or not meta.restored,
            deciding=deciding_files(meta.files_modified, checks),
            proof=meta.proof,
        )

    @property
    def any_passed(self) -> bool:
        """Return whether any check passed, at once or when it ran again."""
        return bool(self.passed or self.flaky)

    @property
    def any_ran(self) -> bool:
        """Return whether any check ran."""
        return self.any_passed or bool(self.preexisting or self.optional or self.failed)

    @property
    def is_nothing(self) -> bool:
        """Return whether no check passed; False if the results were lost."""
        return self.is_recorded and not self.any_passed

    @property
    def is_weak(self) -> bool:
        """Return whether no check passed, or no test."""
        return self.no_test_passed or not self.any_passed


def is_unverified(meta: WorkerResultMeta) -> bool:
    """Return whether an attempt made a change that no check verified."""
    return meta.outcome is Outcome.SUCCEEDED and Verification.of(meta).is_nothing


DECIDING = re.compile(
    r"(?:^|/)(?:conftest\.py|\.?pytest\.(?:ini|toml)|tox\.(?:ini|toml)|setup\.cfg|pyproject\.toml"
    r"|noxfile\.py|(?:GNU)?[Mm]akefile|[Jj]ustfile|Taskfile\.ya?ml|package\.json|\.npmrc|\.rspec"
    r"|(?:jest|vitest|vite|karma)\.config\.\w+|\.mocharc\.?\w*|phpunit\.xml(?:\.dist)?"
    r"|pom\.xml|build\.gradle(?:\.kts)?|Rakefile)$"
)
"""Files that configure test programs, or what a command runs."""

WORD = re.compile(r"[^\s'\";|&()<>=]+")


def deciding_files(files: Iterable[FileChange], checks: Iterable[CheckResult]) -> tuple[str, ...]:
    """List the changed files that configure how checks run, or that a check's command names."""
    named = {word.removeprefix("./") for each in checks for word in WORD.findall(each.command)}
    paths = (path for file in files for path in (file.path, file.old_path) if path)
    return tuple(dict.fromkeys(path for path in paths if DECIDING.search(path) or path in named))


def _names(checks: Iterable[CheckResult]) -> tuple[str, ...]:
    return tuple(check.name for check in checks)
