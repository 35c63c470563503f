"""Set up a worktree: use what setup commands left earlier, or run them (SETUP-1, SETUP-2)."""

from mulligan.config.policy import Policy, SetUp
from mulligan.domain.attempt import Change
from mulligan.domain.issue_context import IssueContext
from mulligan.domain.result import CheckResult
from mulligan.domain.set_up import key_inputs, select_inputs
from mulligan.implement.ports import AttemptContext, AttemptTools, Worktree
from mulligan.implement.prompt.manifest import hash_of

CACHE_VERSION = 1
"""Increase to run every setup command again."""


def set_up(tree: Worktree, case: IssueContext, policy: Policy, context: AttemptTools) -> Worktree:
    """Return a clean worktree with what the setup commands leave on its start tree.

    UnavailableError if one of them fails.
    """
    if not policy.setup.run:
        return tree
    key = _key(tree, case, policy, context)
    found = tree.with_set_up(key)
    if found is None:
        log = context.artifacts.path(case.issue.ref, case.status.number, "setup.log")
        context.verifier.set_up(policy.setup.run, tree, log)
        found = tree.keep_set_up(key)
    found.check_out(found.start_sha)
    return found


def set_up_change(
    change: Change, name: str, at: AttemptContext
) -> tuple[CheckResult, Worktree] | None:
    """Run the setup commands again on a change to their inputs; None if it has none (SETUP-3).

    They run on a copy of what they left before the agent. What they leave now is for this change.
    """
    settings, head_sha = at.policy.setup, change.head_sha
    touched = touched_inputs(change, settings)
    if head_sha is None or not touched:
        return None
    artifacts, tree = at.context.artifacts, at.worktree
    log = artifacts.path(at.case.issue.ref, at.case.status.number, name)
    tree.check_out(head_sha)
    result = at.context.verifier.set_up_again(settings, tree, log, _note(touched, settings))
    result = result.model_copy(update={"log_artifact": artifacts.name(log)})
    return result, tree.keep_set_up() if result.passed else tree


def touched_inputs(change: Change, settings: SetUp) -> tuple[str, ...]:
    """List the inputs of the setup commands that a change adds, changes or removes."""
    if not settings.run:
        return ()
    paths = {path for file in change.files for path in (file.path, file.old_path) if path}
    return tuple(sorted(select_inputs(paths, settings.run, settings.inputs)))


MAX_NAMED = 5


def _note(touched: tuple[str, ...], settings: SetUp) -> str:
    """Tell the agent why setup commands ran on its change, and what they could reach."""
    more = len(touched) - MAX_NAMED
    named = ", ".join(touched[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")
    reached = f"only {', '.join(settings.hosts)}" if settings.hosts else "no network"
    return f"The change touches {named}, so the setup commands ran again, with {reached}."


def _key(tree: Worktree, case: IssueContext, policy: Policy, context: AttemptTools) -> str:
    """Name what the setup commands leave: by all that they depend on, and for a day at most."""
    commands = policy.setup.run
    hashed = hash_of(
        {
            "version": CACHE_VERSION,
            "repository": case.issue.ref.repository,
            "commands": [*commands],
            "inputs": dict(key_inputs(tree.blobs(), commands, policy.setup.inputs)),
            "place": context.verifier.place(tree),
            "toolchain": context.verifier.toolchain(commands),
        }
    )
    return f"{context.clock.now():%Y%m%d}-{hashed}"
