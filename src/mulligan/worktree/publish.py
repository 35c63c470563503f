"""Push Mulligan's commit to the issue's branch, and never over anybody else's (SPEC P2, E7)."""

from mulligan.domain.issue import IssueRef
from mulligan.errors import DeniedError, WorldError
from mulligan.git.remote import Remote
from mulligan.worktree.mirror import Mirror


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
