"""Push Mulligan's commits, and keep verified ones until then (SPEC P2, A15)."""

import os
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from mulligan.domain.errors import DeniedError, WorldError
from mulligan.domain.issue import IssueRef
from mulligan.git.repository import Remote
from mulligan.git.worktrees.mirror import Mirror
from mulligan.sandbox.cancellation import recording

VERIFIED = "refs/mulligan/verified/"

PATIENCE = timedelta(minutes=10)


def keep(mirror: Mirror, ref: IssueRef, head_sha: str, place: Path) -> None:
    """Write a commit of Mulligan's to a bundle, whole or not at all, without the base branch.

    Others' commits below it, as of a pull request, are in it.
    """
    name, new = name_of(ref), place.absolute().with_name(f".{place.name}")
    # Left by a git that was killed: nobody else works on the issue now.
    for lock in (mirror.place.mirror / f"{name}.lock", new.with_name(f"{new.name}.lock")):
        lock.unlink(missing_ok=True)
    mirror.git.read("update-ref", name, head_sha)
    without = _below(mirror, head_sha)
    mirror.git.run("bundle", "create", "-q", str(new), name, f"^{without}", patience=PATIENCE)
    with new.open("rb") as written:
        os.fsync(written.fileno())
    new.replace(place)


def bring_back(mirror: Mirror, head_sha: str, bundle: Path) -> bool:
    """Read a commit from its bundle; tell whether the mirror has it now."""
    mirror.git.attempt("bundle", "unbundle", str(bundle.absolute()), patience=PATIENCE)
    return mirror.has(head_sha)


def bring_from(remote: Remote, mirror: Mirror, ref: IssueRef, head_sha: str) -> bool:
    """Fetch a commit that was pushed already; tell whether the mirror has it now."""
    branch = f"refs/heads/{ref.branch}"
    if remote.tip(mirror.git, branch) != head_sha:
        return False
    remote.fetch(mirror.git, [f"+{branch}:{name_of(ref)}"])
    return mirror.has(head_sha)


def _below(mirror: Mirror, head_sha: str) -> str:
    """Find the newest commit below one that the base branch has; its parent where there is none."""
    base = mirror.base_sha()
    shared = mirror.git.ask("merge-base", base, head_sha) if base else None
    return shared.text if shared and not shared.exit_code else f"{head_sha}^"


def name_of(ref: IssueRef) -> str:
    """Name the ref, here or on the remote, that holds an issue's verified commit."""
    return f"{VERIFIED}{ref.number}"


def hand_over(mirror: Mirror, remote: Remote, ref: IssueRef, head_sha: str) -> None:
    """Make the issue's ref there be the commit, whatever it was before.

    What the server refuses here it refuses on the branch as well, which a person is told of then.
    """
    with recording(), suppress(DeniedError):
        held = remote.tip(mirror.git, name_of(ref))
        if held != head_sha:
            remote.push(mirror.git, head_sha, name_of(ref), held)


def take_over(mirror: Mirror, remote: Remote, ref: IssueRef, head_sha: str) -> bool:
    """Fetch a commit that another run handed over; tell whether the mirror has it now."""
    if remote.tip(mirror.git, name_of(ref)) != head_sha:
        return False
    remote.fetch(mirror.git, [f"+{name_of(ref)}:{name_of(ref)}"])
    return mirror.has(head_sha)


def let_go(mirror: Mirror, remote: Remote, ref: IssueRef) -> None:
    """Remove the issue's ref there, if there is one; what is left does no harm."""
    with suppress(WorldError):
        if held := remote.tip(mirror.git, name_of(ref)):
            remote.delete(mirror.git, name_of(ref), held)


def let_go_of_old(mirror: Mirror, remote: Remote, needed: Callable[[int], bool]) -> None:
    """Remove the refs of issues that need theirs no more; `needed` is asked once all are listed."""
    with recording():
        for name, held in remote.tips(mirror.git, f"{VERIFIED}*").items():
            number = name.removeprefix(VERIFIED)
            if number.isdecimal() and not needed(int(number)):
                remote.delete(mirror.git, name, held)


def publish(
    mirror: Mirror, remote: Remote, ref: IssueRef, head_sha: str, expected: str | None
) -> None:
    """Make the branch on the remote be `head_sha`; `expected` is what Mulligan pushed last.

    A push may fail and have happened: what the remote says afterwards decides.
    """
    branch = f"refs/heads/{ref.branch}"
    held = remote.tip(mirror.git, branch)
    if held == head_sha:
        return
    if held not in {None, expected}:
        raise _somebody_elses(ref)
    if not mirror.has(head_sha):
        raise gone(head_sha)
    try:
        remote.push(mirror.git, head_sha, branch, held)
    except WorldError:
        now = remote.tip(mirror.git, branch)
        if now == head_sha:
            return
        if now != held:
            raise _somebody_elses(ref) from None
        raise


def attempt_ref(ref: IssueRef, number: int) -> str:
    """Name the ref of an attempt, which is no branch: no workflow runs for it (SPEC H3)."""
    return f"refs/mulligan/attempts/{ref.number}-{number}"


def publish_attempt(
    mirror: Mirror, remote: Remote, ref: IssueRef, head_sha: str, number: int
) -> str:
    """Push an attempt's commit to its own ref, over what was there of it; give the ref."""
    if not mirror.has(head_sha):
        raise gone(head_sha)
    name = attempt_ref(ref, number)
    held = remote.tip(mirror.git, name)
    if held != head_sha:
        remote.push(mirror.git, head_sha, name, held)
    return name


def gone(head_sha: str) -> DeniedError:
    """Say that a commit is not here to be pushed."""
    message = f"The commit {head_sha} is not on this machine any more; ask for new work."
    return DeniedError(message)


def _somebody_elses(ref: IssueRef) -> DeniedError:
    message = (
        f"The branch {ref.branch} of {ref.repository} holds commits that Mulligan did not make; "
        "merge or delete it there."
    )
    return DeniedError(message)
