"""Push Mulligan's commits, and keep verified ones until then (PUBLISH-3, COMMIT-2)."""

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
    """Make the branch on the remote be `head_sha`; `expected` is what Mulligan pushed last.

    A push may fail and have happened: what the remote says afterwards decides.
    """
    branch = f"refs/heads/{ref.branch}"
    held = remote.head_of(mirror.git, branch)
    if held == head_sha:
        return
    if held not in {None, expected}:
        raise _foreign_branch(ref)
    if not mirror.has(head_sha):
        raise commit_missing(head_sha)
    try:
        remote.push(mirror.git, head_sha, branch, held)
    except WorldError:
        now = remote.head_of(mirror.git, branch)
        if now == head_sha:
            return
        if now != held:
            raise _foreign_branch(ref) from None
        raise


def publish_attempt(
    mirror: Mirror, remote: Remote, ref: IssueRef, head_sha: str, number: int
) -> str:
    """Push an attempt's commit to its own ref, over what was there of it; give the ref."""
    if not mirror.has(head_sha):
        raise commit_missing(head_sha)
    name = attempt_ref(ref, number)
    held = remote.head_of(mirror.git, name)
    if held != head_sha:
        remote.push(mirror.git, head_sha, name, held)
    return name


def attempt_ref(ref: IssueRef, number: int) -> str:
    """Name the ref of an attempt, which is no branch: no workflow runs for it (ESCALATION-3)."""
    return f"refs/mulligan/attempts/{ref.number}-{number}"


def commit_missing(head_sha: str) -> DeniedError:
    """Say that a commit is not here to be pushed."""
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
    """Write a commit of Mulligan's to a bundle, whole or not at all, without the base branch.

    Others' commits below it, as of a pull request, are in it.
    """
    name, new = verified_ref(ref), place.absolute().with_name(f".{place.name}")
    # Left by a git that was killed: nobody else works on the issue now.
    for lock in (mirror.paths.mirror / f"{name}.lock", new.with_name(f"{new.name}.lock")):
        lock.unlink(missing_ok=True)
    mirror.git.read("update-ref", name, head_sha)
    without = _below(mirror, head_sha)
    mirror.git.run(
        "bundle", "create", "-q", str(new), name, f"^{without}", patience=PUBLISH_TIMEOUT
    )
    with new.open("rb") as written:
        os.fsync(written.fileno())
    new.replace(place)


def _below(mirror: Mirror, head_sha: str) -> str:
    """Find the newest commit below one that the base branch has; its parent where there is none."""
    base = mirror.base_sha()
    shared = mirror.git.query("merge-base", base, head_sha) if base else None
    return shared.text if shared and not shared.exit_code else f"{head_sha}^"


def read_bundle(mirror: Mirror, head_sha: str, bundle: Path) -> bool:
    """Read a commit from its bundle; tell whether the mirror has it now."""
    mirror.git.attempt("bundle", "unbundle", str(bundle.absolute()), patience=PUBLISH_TIMEOUT)
    return mirror.has(head_sha)


def fetch_pushed(remote: Remote, mirror: Mirror, ref: IssueRef, head_sha: str) -> bool:
    """Fetch a commit that was pushed already; tell whether the mirror has it now."""
    branch = f"refs/heads/{ref.branch}"
    if remote.head_of(mirror.git, branch) != head_sha:
        return False
    remote.fetch(mirror.git, [f"+{branch}:{verified_ref(ref)}"])
    return mirror.has(head_sha)


# Verified commits on the remote, for runs on other machines.

VERIFIED_REFS = "refs/mulligan/verified/"


def verified_ref(ref: IssueRef) -> str:
    """Name the ref, here or on the remote, that holds an issue's verified commit."""
    return f"{VERIFIED_REFS}{ref.number}"


def push_verified(mirror: Mirror, remote: Remote, ref: IssueRef, head_sha: str) -> None:
    """Make the issue's ref there be the commit, whatever it was before.

    What the server refuses here it refuses on the branch as well, which a person is told of then.
    """
    with defer_shutdown(), suppress(DeniedError):
        held = remote.head_of(mirror.git, verified_ref(ref))
        if held != head_sha:
            remote.push(mirror.git, head_sha, verified_ref(ref), held)


def fetch_verified(mirror: Mirror, remote: Remote, ref: IssueRef, head_sha: str) -> bool:
    """Fetch a commit that another run handed over; tell whether the mirror has it now."""
    if remote.head_of(mirror.git, verified_ref(ref)) != head_sha:
        return False
    remote.fetch(mirror.git, [f"+{verified_ref(ref)}:{verified_ref(ref)}"])
    return mirror.has(head_sha)


def delete_verified(mirror: Mirror, remote: Remote, ref: IssueRef) -> None:
    """Remove the issue's ref there, if there is one; what is left does no harm."""
    with suppress(WorldError):
        if held := remote.head_of(mirror.git, verified_ref(ref)):
            remote.delete(mirror.git, verified_ref(ref), held)


def delete_old_verified(mirror: Mirror, remote: Remote, needed: Callable[[int], bool]) -> None:
    """Remove the refs of issues that need theirs no more; `needed` is asked once all are listed."""
    with defer_shutdown():
        for name, held in remote.heads_of(mirror.git, f"{VERIFIED_REFS}*").items():
            number = name.removeprefix(VERIFIED_REFS)
            if number.isdecimal() and not needed(int(number)):
                remote.delete(mirror.git, name, held)
