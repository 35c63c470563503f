"""Keep verified commits on a ref of the repository, where the next run finds them (SPEC A15, 18).

For runs that have no disk in common. No workflow runs for such a ref.
"""

from collections.abc import Callable
from contextlib import suppress

from mulligan.domain.issue import IssueRef
from mulligan.errors import DeniedError, WorldError
from mulligan.git.remote import Remote
from mulligan.stop import recording
from mulligan.worktree.bundle import VERIFIED, name_of
from mulligan.worktree.mirror import Mirror


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
