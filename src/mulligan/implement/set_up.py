"""Set up a worktree: use what setup commands left earlier, or run them (SETUP-1, SETUP-2)."""

from mulligan.config.policy import Policy
from mulligan.domain.issue_context import IssueContext
from mulligan.domain.set_up import key_inputs
from mulligan.implement.ports import BotContext, Worktree
from mulligan.implement.prompt.manifest import hash_of

CACHE_VERSION = 1
"""Increase to run every setup command again."""


def set_up(tree: Worktree, case: IssueContext, policy: Policy, context: BotContext) -> Worktree:
    """Give a clean worktree with what the setup commands leave on its start tree.

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


def _key(tree: Worktree, case: IssueContext, policy: Policy, context: BotContext) -> str:
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
