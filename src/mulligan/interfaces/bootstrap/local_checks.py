"""Run checks and digests without an issue: on any directory, or on any log."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from mulligan.checks.digest import MAX_CHARS, Digest, digest
from mulligan.checks.runner import CommandVerifier
from mulligan.config.load import load_policy, policy_in
from mulligan.config.policy import Check, Policy
from mulligan.domain.errors import ConfigError, SetUpError
from mulligan.domain.result import CheckResult
from mulligan.implement.prompt.outcome_text import verdict
from mulligan.interfaces.bootstrap.container import Environment
from mulligan.sandbox.home import keep

__all__ = ["MAX_CHARS", "Digest", "LocalChecks", "digest", "open_local_checks", "read_policy"]


@dataclass(frozen=True, slots=True)
class LocalChecks:
    """A directory in which checks run as it is; their logs are deleted afterwards."""

    path: Path
    private: Path
    verifier: CommandVerifier
    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    set_up_files: Path | None = None

    def set_up(self, lines: Sequence[str]) -> "LocalChecks":
        """Run the setup commands here, for checks to find; SetUpError if one fails."""
        result = self.verifier.set_up(lines, self, self.private / "setup.log")
        if not result.passed:
            raise SetUpError(f"{verdict(result)} The end of its output:\n{result.digest}", result)
        kept = keep(self.private, None, self.verifier.environment)
        return replace(self, set_up_files=kept)

    def run(self, check: Check) -> CheckResult:
        """Run one check, once; MisconfiguredError if its program is missing."""
        return self.verifier.check(check, self, self.private / "check.log")


@contextmanager
def open_local_checks(directory: Path, environment: Environment) -> Generator[LocalChecks]:
    """Open a directory for checks, with the environment of checks in an attempt."""
    with TemporaryDirectory(prefix="mulligan-check-", ignore_cleanup_errors=True) as private:
        yield LocalChecks(directory, Path(private), CommandVerifier(environment))


def read_policy(place: Path | None, directory: Path) -> Policy:
    """Read a policy file, by default the repository's own."""
    path = place or directory / policy_in(directory)
    try:
        text = path.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"{path} could not be read ({error.strerror}). Name the policy file with --policy FILE."
        ) from error
    return load_policy(text, {}, str(path))
