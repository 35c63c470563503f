"""Run one check on a commit, with its log among the files of the attempt."""

from functools import partial

from mulligan.config.policy import Check
from mulligan.domain.errors import UnavailableError
from mulligan.domain.result import CheckResult
from mulligan.implement.ports import AttemptContext


def run_check(
    check: Check, sha: str, name: str, at: AttemptContext, runs: list[str]
) -> CheckResult:
    """Run a check on a commit in the attempt's worktree; add the `name` of its log to `runs`.

    The result names the tracked files that the check changed, if they can be listed.
    MisconfiguredError if the check's program is not found.
    """
    runs.append(name)
    artifacts = at.context.artifacts
    log = artifacts.path(at.case.issue.ref, at.case.status.number, f"{name}.log")
    check_out = partial(at.worktree.check_out, sha)
    result = at.context.verifier.check(check, at.worktree, log, check_out)
    changed = _changed(at, sha)
    return result.model_copy(update={"log_artifact": artifacts.name(log), "changed": changed})


MAX_CHANGED = 10


def _changed(at: AttemptContext, sha: str) -> tuple[str, ...]:
    try:
        return tuple(at.worktree.changed_files(sha))[:MAX_CHANGED]
    except UnavailableError:
        return ()
