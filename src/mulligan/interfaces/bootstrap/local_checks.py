"""Run checks and digests without an issue: as in an attempt, in a directory, or on any log."""

import fcntl
import hashlib
import os
import shlex
import shutil
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from pydantic import JsonValue

from mulligan.checks.digest import MAX_CHARS, Digest, digest
from mulligan.checks.proof import source_files
from mulligan.checks.runner import CommandVerifier
from mulligan.config.load import load_operator, load_policy, policy_in
from mulligan.config.operator import (
    AgentSettings,
    Operator,
    RepositorySettings,
    WorkspaceSettings,
)
from mulligan.config.policy import Check, Policy
from mulligan.domain.attempt_times import Copies
from mulligan.domain.errors import ConfigError, UsageError
from mulligan.domain.image import Image
from mulligan.domain.issue import Issue, IssueRef
from mulligan.domain.layer import Layer
from mulligan.domain.result import CheckResult
from mulligan.domain.set_up import SetUpError
from mulligan.git.local_clone import LocalClone, require_directory
from mulligan.implement.image import in_image
from mulligan.implement.ports import Artifacts, Clock, Images, Worktree, Worktrees
from mulligan.implement.prompt.outcome_text import verdict
from mulligan.implement.set_up import SET_UP_LOG, set_up
from mulligan.implement.stopwatch import Stopwatch
from mulligan.interfaces.bootstrap.clock_and_backoff import SystemClock
from mulligan.interfaces.bootstrap.container import Environment, build_verifier, open_git
from mulligan.interfaces.bootstrap.rehearsal import (
    RehearsalSetup,
    branch_of,
    local_issue,
    local_set_up,
    local_source,
    local_state,
    overrides_for,
    settings_file,
)
from mulligan.interfaces.bootstrap.sandbox import confine, image_store, with_layers
from mulligan.interfaces.bootstrap.stores import publishing_redactor_of
from mulligan.sandbox.home import clear, keep
from mulligan.sandbox.sandbox import Sandbox, Unconfined
from mulligan.storage.artifacts import FileArtifacts
from mulligan.storage.state_directory import make_private

__all__ = [
    "MAX_CHARS",
    "AttemptChecks",
    "Digest",
    "LocalChecks",
    "LocalCommit",
    "command_here",
    "digest",
    "open_attempt_checks",
    "open_local_checks",
    "read_local_commit",
    "read_local_directory",
]


class LocalChecks(Protocol):
    """Where `mulligan check` runs setup commands and checks; their logs are in `logs`."""

    @property
    def logs(self) -> Path: ...

    def set_up(self, lines: Sequence[str]) -> tuple["LocalChecks", bool]:
        """Run the setup commands for checks to find; SetUpError if one fails.

        Also return whether they ran: an earlier result may have been used.
        """
        ...

    def run_and_compare(self, check: Check) -> tuple[CheckResult, Sequence[str]]:
        """Run one check, once; also list the tracked files that it changed.

        MisconfiguredError if its program is missing.
        """
        ...


# In a directory as it is.


@dataclass(frozen=True, slots=True)
class ChecksHere:
    """A directory in which checks run as it is; their logs are deleted afterwards."""

    path: Path
    private: Path
    verifier: CommandVerifier
    clone: LocalClone
    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    set_up_files: Path | None = None
    layer: Layer | None = None
    image: Image | None = None
    copies: Copies = field(default_factory=Copies)

    @property
    def logs(self) -> Path:
        """The directory for logs and HOME."""
        return self.private

    def set_up(self, lines: Sequence[str]) -> tuple["ChecksHere", bool]:
        """Run the setup commands here; they may create files for the checks."""
        log = self.private / SET_UP_LOG
        result = self.verifier.set_up(lines, self, log)
        if not result.passed:
            raise _failed_set_up(result, log)
        kept = keep(self.private, None, self.verifier.environment)
        return replace(self, set_up_files=kept), True

    def run(self, check: Check) -> CheckResult:
        """Run one check, once; MisconfiguredError if its program is missing."""
        return self.verifier.check(check, self, self.private / "check.log")

    def run_and_compare(self, check: Check) -> tuple[CheckResult, Sequence[str]]:
        """Outside of a repository, no file is tracked."""
        before = self.clone.changed()
        began = time.monotonic()
        result = _timed(self.run(check), began)
        after = self.clone.changed()
        paths = sorted(before.keys() | after.keys())
        return result, [path for path in paths if before.get(path) != after.get(path)]


@dataclass(frozen=True, slots=True)
class LocalDirectory:
    """A directory, its policy, and the operator's file (`settings`) if one was found."""

    path: Path
    operator: Operator
    settings: Path | None
    policy: Policy


def read_local_directory(
    directory: Path, config: Path | None, policy: Path | None, environment: Environment
) -> LocalDirectory:
    """Read the policy of a directory and the operator's file; ConfigError if one is invalid."""
    require_directory(directory)
    settings = settings_file(config, directory, environment)
    operator = _read_operator(settings, environment)
    overrides = overrides_for(operator, LocalClone(directory, environment))
    return LocalDirectory(directory, operator, settings, _read_policy(policy, directory, overrides))


@contextmanager
def open_local_checks(
    directory: Path, environment: Environment, operator: Operator | None = None
) -> Generator[ChecksHere]:
    """Open a directory for checks, without a sandbox, with the operator's network if given."""
    operator = operator or _read_operator(None, environment)
    redactor = publishing_redactor_of(operator, environment)
    with TemporaryDirectory(prefix="mulligan-check-", ignore_cleanup_errors=True) as private:
        verifier = build_verifier(operator, environment, Unconfined(), redactor)
        clone = LocalClone(directory, environment)
        yield ChecksHere(directory, Path(private), verifier, clone)


# As in an attempt.


def command_here(directory: Path, *options: str) -> str:
    """Return the command that runs the checks without a sandbox, in the directory as it is."""
    named = () if directory == Path.cwd() else (os.path.relpath(directory),)
    return shlex.join(("mulligan", "check", "--here", *options, *named))


def _try_here(directory: Path) -> str:
    return (
        "To run the checks without a sandbox, in the directory as it is:"
        f" `{command_here(directory)}`."
    )


@dataclass(frozen=True, slots=True)
class LocalCommit:
    """The commit that is checked out in a clone, and what an attempt there would depend on.

    `settings` is the operator's file, if one was found. `uncommitted` counts the paths that differ
    from the commit, without the clone's policy if that is used.
    """

    setup: RehearsalSetup
    sha: str
    operator: Operator
    sandbox: Sandbox
    settings: Path | None
    policy: Policy
    is_policy_committed: bool
    uncommitted: int

    @property
    def is_confined(self) -> bool:
        """Return whether the sandbox is on."""
        return not isinstance(self.sandbox, Unconfined)


def read_local_commit(
    directory: Path, config: Path | None, policy: Path | None, environment: Environment
) -> LocalCommit:
    """Read a clone, its policy and the operator's file; UsageError or ConfigError if invalid.

    It is also a ConfigError if no sandbox works here.
    """
    require_directory(directory)
    clone = LocalClone(directory, environment)
    try:
        branch, sha = branch_of(directory), clone.commit()
    except UsageError as error:
        raise UsageError(f"{error} {_try_here(directory)}") from error
    if sha is None:
        raise UsageError(
            f"{directory} has no commit on {branch} yet. Commit first. {_try_here(directory)}"
        )
    settings = settings_file(config, directory, environment)
    operator = _read_operator(settings, environment)
    read = _read_policy(policy, directory, overrides_for(operator, clone))
    uncommitted = set(clone.uncommitted())
    used = set[str]() if policy else {policy_in(directory)}
    return LocalCommit(
        RehearsalSetup(Issue(local_issue(directory), "", ""), directory, branch),
        sha,
        operator,
        _confine(operator, directory, environment),
        settings,
        read,
        is_policy_committed=not used & uncommitted,
        uncommitted=len(uncommitted - used),
    )


def _confine(operator: Operator, directory: Path, environment: Environment) -> Sandbox:
    try:
        return confine(operator, environment)
    except ConfigError as error:
        raise ConfigError(f"{error} {_try_here(directory)}") from error


def _read_operator(settings: Path | None, environment: Environment) -> Operator:
    if settings:
        return load_operator(settings, environment, needs_token=False)
    # No agent runs here.
    nobody = AgentSettings(command=("false",))
    return Operator(repositories=(RepositorySettings(name="local/none"),), agent=nobody)


@dataclass(frozen=True, slots=True)
class AttemptChecks:
    """The worktree of an attempt at a local commit, without an agent."""

    commit: LocalCommit
    tree: Worktree
    verifier: CommandVerifier
    artifacts: Artifacts
    clock: Clock
    images: Images
    worktrees: Worktrees
    uses: ExitStack

    @property
    def ref(self) -> IssueRef:
        """The issue that the worktree is for."""
        return self.commit.setup.issue.ref

    @property
    def logs(self) -> Path:
        """The directory for logs."""
        return self._log(SET_UP_LOG).parent

    def in_image(self) -> "AttemptChecks":
        """Return the same in the image of the policy, if it names one; SetUpError, as `set_up`."""
        policy, uses = self.commit.policy, self.uses
        try:
            return replace(self, tree=in_image(self.tree, self.ref, ATTEMPT, policy, self, uses))
        except SetUpError as error:
            raise _failed_set_up(error.failed, self._log(SET_UP_LOG)) from error

    def set_up(self, lines: Sequence[str]) -> tuple["AttemptChecks", bool]:
        """Set up as an attempt does; the lines are the policy's."""
        del lines
        try:
            stopwatch = Stopwatch(self.clock.now)
            ready = set_up(self.tree, self.ref, ATTEMPT, self.commit.policy, self, stopwatch)
        except SetUpError as error:
            raise _failed_set_up(error.failed, self._log(SET_UP_LOG)) from error
        return replace(self, tree=ready), not stopwatch.set_up_reused

    def run_and_compare(self, check: Check) -> tuple[CheckResult, Sequence[str]]:
        """Run one check on the commit; its time is measured as in an attempt."""
        began = time.monotonic()
        check_out = partial(self.tree.check_out, self.tree.start_sha)
        result = self.verifier.check(check, self.tree, self._log("check.log"), check_out)
        return _timed(result, began), self.tree.changed_files(self.tree.start_sha)

    def notices_broken_code(self, check: Check, result: CheckResult) -> bool:
        """Return whether a check fails otherwise with all source files broken, except tests.

        `result` is that on the commit. True if the commit has no such file.
        """
        sha = self.tree.start_sha
        files = self.tree.blobs(sha).keys()
        paths = source_files(files, self.commit.policy.test_files)

        def check_out() -> None:
            self.tree.check_out(sha)
            for path in paths:
                file = self.tree.path / path
                if file.is_file() and not file.is_symlink():
                    file.write_text(BROKEN, encoding="utf-8")

        if not paths:
            return True
        broken = self.verifier.check(check, self.tree, self._log("check.log"), check_out)
        if result.passed:
            return not broken.passed
        before = self.verifier.merge_baseline_runs(result, result)
        return self.verifier.subtract_baseline(broken, before, files).fails

    def repeated(self, failed: CheckResult) -> CheckResult:
        """Return a failure as an attempt counts it that changes nothing about it (BASELINE-1)."""
        if not self.commit.policy.has_baseline:
            return failed
        before = self.verifier.merge_baseline_runs(failed, failed)
        files = self.tree.blobs(self.tree.start_sha).keys()
        return self.verifier.subtract_baseline(failed, before, files)

    def _log(self, name: str) -> Path:
        return self.artifacts.path(self.ref, ATTEMPT, name)


BROKEN = ")(}{ broken by `mulligan init`, to see whether the tests notice\n"

ATTEMPT = 1
"""The number of the attempt that the files are named for."""


@contextmanager
def open_attempt_checks(commit: LocalCommit, environment: Environment) -> Generator[AttemptChecks]:
    """Make the worktree of an attempt at a commit, and remove it at the end.

    For a policy with an image, call `in_image` first.
    """
    setup = commit.setup
    with _workspace(setup.clone, environment) as root:
        operator = _operator_in(root, commit)
        redactor = publishing_redactor_of(operator, environment)
        source = local_source(setup, lambda _: None)
        layers = with_layers(commit.sandbox, operator, environment)
        worktrees, _ = open_git(operator, source, environment, local_set_up(), layers)
        verifier = build_verifier(operator, environment, layers.sandbox, redactor)
        artifacts = FileArtifacts(root / "artifacts", redactor)
        images = image_store(commit.operator, environment, layers.sandbox, local_state())
        with worktrees.open(setup.issue.ref) as opened, ExitStack() as uses:
            tree = opened.with_checkout(commit.policy.checkout)
            yield AttemptChecks(
                commit, tree, verifier, artifacts, SystemClock(), images, worktrees, uses
            )


def _operator_in(root: Path, commit: LocalCommit) -> Operator:
    """Return the operator's settings, for the clone as the only repository and a workspace."""
    operator, setup = commit.operator, commit.setup
    repository = RepositorySettings(
        name=setup.issue.ref.repository, clone_url=str(setup.clone), base_branch=setup.branch
    )
    workspace = WorkspaceSettings(root=root, keep_ignored=operator.workspace.keep_ignored)
    return operator.model_copy(update={"repositories": (repository,), "workspace": workspace})


@contextmanager
def _workspace(clone: Path, environment: Environment) -> Generator[Path]:
    """Yield an empty directory for the time of the block; no other process uses it.

    It is the same one each time if it can be: without a sandbox, programs note down where they
    were installed (SETUP-2).
    """
    parent = local_state()
    make_private(parent)
    name = local_issue(clone).repository.rpartition("/")[2]
    hashed = hashlib.sha256(os.fsencode(clone)).hexdigest()
    for number in count(1):
        place = parent / f"{name}-{hashed[:12]}-{number}"
        with ExitStack() as held:
            lock = held.enter_context(place.with_name(f"{place.name}.lock").open("ab"))
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            # A process that was killed leaves its files.
            clear(place, environment)
            held.callback(clear, place, environment)
            place.mkdir(mode=0o700)
            yield place
            return


# Both.


def _timed(result: CheckResult, began: float) -> CheckResult:
    """Add the time since `began`, as in an attempt: with checkouts and copies."""
    took = round((time.monotonic() - began) * 1000)
    return result.model_copy(update={"runs": 1, "wall_ms": took})


def _failed_set_up(result: CheckResult, log: Path) -> SetUpError:
    """Return the error with the end of the output; keep the whole output in a file."""
    descriptor, kept = tempfile.mkstemp(prefix="mulligan-setup-", suffix=".log")
    os.close(descriptor)
    shutil.copyfile(log, kept)
    return SetUpError(f"{verdict(result)}\n{result.digest}\nThe whole output: {kept}", result)


def _read_policy(place: Path | None, directory: Path, overrides: Mapping[str, JsonValue]) -> Policy:
    """Read a policy file, by default the repository's own; `overrides` replace whole keys."""
    path = place or directory / policy_in(directory)
    if place is None and not path.exists():
        if overrides:
            return load_policy(None, overrides, str(path))
        raise ConfigError(
            f"{directory} has no {policy_in(directory)}, so Mulligan would publish every change"
            " without verification. Run `mulligan init` to propose one, or name a policy file with"
            " --policy FILE."
        )
    try:
        text = path.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"{path} could not be read ({error.strerror}). Name the policy file with --policy FILE."
        ) from error
    return load_policy(text, overrides, str(path))
