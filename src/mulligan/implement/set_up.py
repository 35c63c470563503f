"""Set up a worktree: use what setup commands left earlier, or run them (SETUP-1, SETUP-2)."""

from collections.abc import Iterable, Mapping
from typing import Protocol

from pydantic import JsonValue

from mulligan.config.policy import CheckoutSettings, Policy, SetUp
from mulligan.domain.attempt import Change
from mulligan.domain.issue import IssueRef
from mulligan.domain.result import CheckResult
from mulligan.domain.set_up import SetUpError, key_inputs, select_inputs
from mulligan.implement.ports import Artifacts, AttemptContext, Clock, Verifier, Worktree
from mulligan.implement.prompt.manifest import hash_of
from mulligan.implement.prompt.outcome_text import verdict
from mulligan.implement.stopwatch import Stopwatch

CACHE_VERSION = 1
"""Increase to run every setup command again."""

SET_UP_LOG = "setup.log"

SUBMODULE = "160000 "
"""The mode of a submodule in a listed tree."""


class SetUpTools(Protocol):
    """What setup needs: less than a WriteContext, since `mulligan check` has no ledger."""

    @property
    def verifier(self) -> Verifier: ...
    @property
    def artifacts(self) -> Artifacts: ...
    @property
    def clock(self) -> Clock: ...


def set_up(
    tree: Worktree,
    ref: IssueRef,
    number: int,
    policy: Policy,
    tools: SetUpTools,
    stopwatch: Stopwatch,
) -> Worktree:
    """Return a clean worktree with what the setup commands leave on its start tree.

    They run on the base branch's commit: the head of a pull request has an agent's work, too. If
    that touches their inputs, they run on it again for this attempt. SetUpError if one fails.
    """
    if not policy.setup.run:
        return tree
    fork = tree.blobs(tree.fork_sha)
    key = _key(fork, tree, ref.repository, policy, tools)
    found = tree.with_set_up(key)
    stopwatch.set_up_reused = found is not None
    if found is None:
        log = tools.artifacts.path(ref, number, SET_UP_LOG)
        if tree.fork_sha != tree.start_sha:
            tree.check_out(tree.fork_sha)
        require_passed(tools.verifier.set_up(policy.setup.run, tree, log), ref)
        found = tree.keep_set_up(key)
    stopwatch.copies = found.copies
    found.check_out(found.start_sha)
    if tree.fork_sha == tree.start_sha:
        return found
    start = tree.blobs(tree.start_sha).items()
    touched = _inputs({path for path, _ in fork.items() ^ start}, policy.setup)
    if not touched:
        return found
    log = tools.artifacts.path(ref, number, "setup-start.log")
    found = found.with_copies()
    found.check_out(found.start_sha)
    note = _note("pull request", touched, policy.setup)
    # As on a change (SETUP-3).
    require_passed(tools.verifier.set_up_again(policy.setup, found, log, note), ref)
    kept = found.keep_set_up()
    kept.check_out(kept.start_sha)
    return kept


def require_passed(result: CheckResult, ref: IssueRef) -> None:
    """Raise SetUpError for people of an issue if a setup command or a build failed."""
    if not result.passed:
        whole = f"For its whole output, run: mulligan inspect {ref} --log setup"
        raise SetUpError(f"{verdict(result)} {whole}", result)


def set_up_change(
    change: Change, name: str, at: AttemptContext
) -> tuple[CheckResult, Worktree] | None:
    """Run the setup commands again on a change to their inputs; None if it has none (SETUP-3).

    They run on a copy of their result before the agent. The new result is for this change only.
    """
    settings, head_sha = at.policy.setup, change.head_sha
    touched = touched_inputs(change, settings)
    if head_sha is None or not touched:
        return None
    artifacts, tree = at.context.artifacts, at.worktree.with_copies()
    log = artifacts.path(at.case.issue.ref, at.case.status.number, name)
    tree.check_out(head_sha)
    result = at.context.verifier.set_up_again(
        settings, tree, log, _note("change", touched, settings)
    )
    result = result.model_copy(update={"log_artifact": artifacts.name(log)})
    return result, tree.keep_set_up() if result.passed else at.worktree


def touched_inputs(change: Change, settings: SetUp) -> tuple[str, ...]:
    """List the inputs of the setup commands that a change adds, changes or removes."""
    paths = {path for file in change.files for path in (file.path, file.old_path) if path}
    return _inputs(paths, settings) if settings.run else ()


def _inputs(paths: Iterable[str], settings: SetUp) -> tuple[str, ...]:
    return tuple(sorted(select_inputs(paths, settings.run, settings.inputs)))


MAX_NAMED = 5


def _note(what: str, touched: tuple[str, ...], settings: SetUp) -> str:
    """Say why setup commands ran on a change or a pull request, and what they could reach."""
    more = len(touched) - MAX_NAMED
    named = ", ".join(touched[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")
    reached = f"only {', '.join(settings.hosts)}" if settings.hosts else "no network"
    return f"The {what} touches {named}, so the setup commands ran again, with {reached}."


def _key(
    blobs: Mapping[str, str],
    tree: Worktree,
    repository: str,
    policy: Policy,
    tools: SetUpTools,
) -> str:
    """Return the cache key of the setup commands: all their inputs, and the day."""
    commands = policy.setup.run
    further: dict[str, JsonValue] = {}
    if policy.checkout != CheckoutSettings():
        links = [f"{entry} {path}" for path, entry in blobs.items() if entry.startswith(SUBMODULE)]
        further = {"checkout": policy.checkout.model_dump(mode="json"), "links": [*links]}
    if tree.image:
        further["image"] = tree.image.digest
    hashed = hash_of(
        {
            **further,
            "version": CACHE_VERSION,
            "repository": repository,
            "commands": [*commands],
            "inputs": dict(key_inputs(blobs, commands, policy.setup.inputs)),
            "place": tools.verifier.place(tree),
            "toolchain": tools.verifier.toolchain(commands),
        }
    )
    return f"{tools.clock.now():%Y%m%d}-{hashed}"
