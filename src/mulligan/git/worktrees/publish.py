"""Push Mulligan's commits, and store verified ones until then (PUBLISH-3, COMMIT-2)."""

import os
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from mulligan.domain.errors import DeniedError, WorldError
from mulligan.domain.issue import IssueRef
from mulligan.git.repository import Remote
from mulligan.git.worktrees.mirror import Mirror
from mulligan.sandbox.cancellation import defer_shutdown

# The issue's branch, and the ref of an attempt.

PUBLISH_TIMEOUT = timedelta(minutes=10)


def publish(
    mirror: Mirror, remote: Remote, ref: IssueRef, head_sha: str, expected: str | None
) -> None:
    """Set the remote branch to `head_sha`; `expected` is the commit that Mulligan last pushed.

    The push names `expected` as its lease. A push that failed may have succeeded on the server, and
    somebody may have deleted the branch: read it to decide.
    """
    branch = f"refs/heads/{ref.branch}"
    is_here = mirror.has(head_sha)
    try:
        if not is_here:
            raise commit_missing(head_sha)
        remote.push(mirror.git, head_sha, branch, expected)
    except WorldError:
        current = remote.head_of(mirror.git, branch)
        if current == head_sha:
            return
        if current not in {None, expected}:
            raise _foreign_branch(ref) from None
        if current == expected or not is_here:
            raise
        remote.push(mirror.git, head_sha, branch, None)


def publish_attempt(
    mirror: Mirror, remote: Remote, ref: IssueRef, head_sha: str, number: int
) -> str:
    """Push an attempt's commit to its own ref, replacing any earlier one; return the ref."""
    if not mirror.has(head_sha):
        raise commit_missing(head_sha)
    name = attempt_ref(ref, number)
    current = remote.head_of(mirror.git, name)
    if current != head_sha:
        remote.push(mirror.git, head_sha, name, current)
    return name


def attempt_ref(ref: IssueRef, number: int) -> str:
    """Return an attempt's ref, which is no branch, so that no workflow runs (ESCALATION-3)."""
    return f"refs/mulligan/attempts/{ref.number}-{number}"


def commit_missing(head_sha: str) -> DeniedError:
    """Return the error for a commit that is missing here and cannot be pushed."""
    message = (
        f"The commit {head_sha} no longer exists on this machine; start new"
        " attempts with `/mulligan retry`."
    )
    return DeniedError(message)


def _foreign_branch(ref: IssueRef) -> DeniedError:
    message = (
        f"The branch {ref.branch} of {ref.repository} has commits that Mulligan did not make; "
        "merge or delete it there."
    )
    return DeniedError(message)


# Verified commits in a file, until they are pushed.


def write_bundle(mirror: Mirror, ref: IssueRef, head_sha: str, place: Path) -> None:
    """Write a commit of Mulligan's to a bundle, atomically, without the base branch.

    The bundle includes other people's commits below it, such as a pull request's.
    """
    name, new = verified_ref(ref), place.absolute().with_name(f".{place.name}")
    # From a git that was killed: no other process works on the issue now.
    for lock in (mirror.paths.mirror / f"{name}.lock", new.with_name(f"{new.name}.lock")):
        lock.unlink(missing_ok=True)
    mirror.set_ref(name, head_sha)
    without = _below(mirror, head_sha)
    mirror.git.run("bundle", "create", "-q", str(new), name, f"^{without}", timeout=PUBLISH_TIMEOUT)
    with new.open("rb") as written:
        os.fsync(written.fileno())
    new.replace(place)


def _below(mirror: Mirror, head_sha: str) -> str:
    """Return the newest commit below this one that the base branch has, or else its parent."""
    base = mirror.base_sha()
    if base and base in mirror.parents(head_sha):
        return base
    shared = mirror.git.query("merge-base", base, head_sha) if base else None
    return shared.text if shared and not shared.exit_code else f"{head_sha}^"


def read_bundle(mirror: Mirror, head_sha: str, bundle: Path) -> bool:
    """Read a commit from its bundle; return whether the mirror has it now."""
    mirror.git.attempt("bundle", "unbundle", str(bundle.absolute()), timeout=PUBLISH_TIMEOUT)
    return mirror.has(head_sha)


def fetch_pushed(remote: Remote, mirror: Mirror, ref: IssueRef, head_sha: str) -> bool:
    """Fetch a pushed commit; return whether the mirror has it now."""
    branch = f"refs/heads/{ref.branch}"
    if remote.head_of(mirror.git, branch) != head_sha:
        return False
    remote.fetch(mirror.git, [f"+{branch}:{verified_ref(ref)}"])
    return mirror.has(head_sha)


# Verified commits on the remote, for runs on other machines.

VERIFIED_REFS = "refs/mulligan/verified/"


def verified_ref(ref: IssueRef) -> str:
    """Return the ref, local or remote, of an issue's verified commit."""
    return f"{VERIFIED_REFS}{ref.number}"


def push_verified(mirror: Mirror, remote: Remote, ref: IssueRef, head_sha: str) -> None:
    """Set the issue's ref on the remote to the commit, whatever it was before.

    Ignore a refusal by the server: the push of the branch will fail the same way and report it.
    """
    with defer_shutdown(), suppress(DeniedError):
        current = remote.head_of(mirror.git, verified_ref(ref))
        if current != head_sha:
            remote.push(mirror.git, head_sha, verified_ref(ref), current)


def fetch_verified(mirror: Mirror, remote: Remote, ref: IssueRef, head_sha: str) -> bool:
    """Fetch a commit that another run verified; return whether the mirror has it now."""
    if remote.head_of(mirror.git, verified_ref(ref)) != head_sha:
        return False
    remote.fetch(mirror.git, [f"+{verified_ref(ref)}:{verified_ref(ref)}"])
    return mirror.has(head_sha)


def delete_verified(mirror: Mirror, remote: Remote, ref: IssueRef) -> None:
    """Delete the issue's ref on the remote, if any; ignore errors, since the ref is harmless."""
    with suppress(WorldError):
        if current := remote.head_of(mirror.git, verified_ref(ref)):
            remote.delete(mirror.git, verified_ref(ref), current)


def delete_old_verified(mirror: Mirror, remote: Remote, needed: Callable[[int], bool]) -> None:
    """Delete the refs of issues that no longer need them; call `needed` after listing all."""
    with defer_shutdown():
        for name, current in remote.heads_of(mirror.git, f"{VERIFIED_REFS}*").items():
            number = name.removeprefix(VERIFIED_REFS)
            if number.isdecimal() and not needed(int(number)):
                remote.delete(mirror.git, name, current)
