"""The pull request's branch as it stands on the remote: whose commits, and what they change."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from mulligan.domain.issue import IssueRef
from mulligan.git.remote import Remote
from mulligan.pulls import Standing
from mulligan.worktree.mirror import Mirror

DIFF_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Proposal:
    """A pull request's head; `others` where it holds commits that Mulligan did not make.

    `fork_sha` is the commit at which it left the base branch, by what Mulligan knows of that.
    """

    head_sha: str
    fork_sha: str
    others: bool
    is_answered: bool
    is_reviewed: bool


def fetch_proposal(
    remote: Remote, mirror: Mirror, ref: IssueRef, base_sha: str, standing: Standing
) -> Proposal | None:
    """Fetch the issue's branch; None where there is none on the remote."""
    branch = f"refs/heads/{ref.branch}"
    head = remote.tip(mirror.git, branch)
    if head is None:
        return None
    # Left by a fetch that was killed; nobody else works on the issue now.
    (mirror.place.mirror / f"{_name(ref)}.lock").unlink(missing_ok=True)
    remote.fetch(mirror.git, [f"+{branch}:{_name(ref)}"])
    head = mirror.git.line("rev-parse", "--verify", f"{_name(ref)}^{{commit}}")
    bases = _bases_of(mirror, base_sha, head, standing)
    others = bool(others_in(mirror, bases, head, standing.own))
    shared = mirror.git.ask("merge-base", head, *bases)
    return Proposal(
        head, shared.text or base_sha, others, standing.is_answered, standing.is_reviewed
    )


def _bases_of(mirror: Mirror, base_sha: str, head: str, standing: Standing) -> list[str]:
    """List what the base branch is, and was where Mulligan's own head was made on it.

    Below a head that somebody else pushed, what the base branch had may be wanted.
    """
    had = sorted(standing.bases) if head in standing.own else []
    return [base_sha, *(sha for sha in had if mirror.has(sha))]


def others_in(
    mirror: Mirror, bases: Sequence[str], head: str, own: Collection[str]
) -> tuple[str, ...]:
    """List the commits of a head that neither the base branch has, or had, nor Mulligan made."""
    listed = mirror.git.line("rev-list", head, *(f"^{sha}" for sha in bases)).split()
    return tuple(sha for sha in listed if sha not in own)


def conflicts_in(mirror: Mirror, base_sha: str, head: str) -> tuple[str, ...]:
    """Name the files in which a head does not merge into the base branch; none where it does."""
    merged = mirror.git.ask("merge-tree", "--write-tree", "--name-only", "-z", base_sha, head)
    if merged.exit_code != 1:
        return ()
    names = merged.text.split("\0\0")[0].split("\0")[1:]
    return tuple(dict.fromkeys(name for name in names if name))


def is_tree_of(mirror: Mirror, one: str, other: str) -> bool:
    """Tell whether two commits have the same files."""
    first, second = mirror.git.line("rev-parse", f"{one}^{{tree}}", f"{other}^{{tree}}").split()
    return first == second


def is_change_of(mirror: Mirror, one: str, base_sha: str, head: str) -> bool:
    """Tell whether a commit is what a head's change comes to on a base; never where they conflict.

    Unlike a patch id, which passes over white space and places, this takes two changes for the
    same only where the files come out the same.
    """
    merged = mirror.git.ask("merge-tree", "--write-tree", base_sha, head)
    return not merged.exit_code and merged.text == mirror.git.line("rev-parse", f"{one}^{{tree}}")


def _name(ref: IssueRef) -> str:
    return f"refs/mulligan/proposed/{ref.number}"
