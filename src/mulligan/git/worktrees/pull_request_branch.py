"""The pull request's branch on the remote: its commits and changes, and merges of the base."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from mulligan.config.policy import CommitSettings
from mulligan.domain.issue import IssueRef
from mulligan.git.commits import commit_tree
from mulligan.git.repository import Remote
from mulligan.git.worktrees.mirror import Mirror
from mulligan.implement.commit_message import identity_of, merge_text, message_of
from mulligan.implement.ports import PullRequestBase

DIFF_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class PullRequestHead:
    """A pull request's head; `others` are the commits that Mulligan did not make.

    `fork_sha` is the commit at which it left the base branch, as far as Mulligan knows.
    """

    head_sha: str
    fork_sha: str
    others: bool
    is_answered: bool
    is_reviewed: bool


def fetch_pull_request(
    remote: Remote, mirror: Mirror, ref: IssueRef, base_sha: str, standing: PullRequestBase
) -> PullRequestHead | None:
    """Fetch the issue's branch; None if the remote has none."""
    branch = f"refs/heads/{ref.branch}"
    head = remote.head_of(mirror.git, branch)
    if head is None:
        return None
    # From a fetch that was killed; no other process works on the issue now.
    (mirror.paths.mirror / f"{_name(ref)}.lock").unlink(missing_ok=True)
    remote.fetch(mirror.git, [f"+{branch}:{_name(ref)}"])
    head = mirror.git.line("rev-parse", "--verify", f"{_name(ref)}^{{commit}}")
    bases = _bases_of(mirror, base_sha, head, standing)
    others = bool(foreign_commits(mirror, bases, head, standing.own))
    shared = mirror.git.query("merge-base", head, *bases)
    return PullRequestHead(
        head, shared.text or base_sha, others, standing.is_answered, standing.is_reviewed
    )


def _name(ref: IssueRef) -> str:
    return f"refs/mulligan/proposed/{ref.number}"


def _bases_of(mirror: Mirror, base_sha: str, head: str, standing: PullRequestBase) -> list[str]:
    """List the base branch's commit, and its earlier commits if Mulligan made the head on them.

    If somebody else pushed the head, it may contain earlier commits of the base on purpose.
    """
    had = sorted(standing.bases) if head in standing.own else []
    return [base_sha, *(sha for sha in had if mirror.has(sha))]


def foreign_commits(
    mirror: Mirror, bases: Sequence[str], head: str, own: Collection[str]
) -> tuple[str, ...]:
    """List other people's commits below a head, without those that the base branch has or had."""
    listed = mirror.git.line("rev-list", head, *(f"^{sha}" for sha in bases)).split()
    return tuple(sha for sha in listed if sha not in own)


def conflicts_in(mirror: Mirror, base_sha: str, head: str) -> tuple[str, ...]:
    """Return the files that conflict when a head is merged into the base branch."""
    merged = mirror.git.query("merge-tree", "--write-tree", "--name-only", "-z", base_sha, head)
    if merged.exit_code != 1:
        return ()
    names = merged.text.split("\0\0")[0].split("\0")[1:]
    return tuple(dict.fromkeys(name for name in names if name))


def lacks_commit(mirror: Mirror, head_sha: str, base_sha: str) -> bool:
    """Return whether a head lacks a commit of the base branch."""
    return mirror.git.query("merge-base", "--is-ancestor", base_sha, head_sha).exit_code == 1


def is_in_base(mirror: Mirror, now: str, start_sha: str, base_sha: str) -> bool:
    """Return whether the base branch, now at `now`, still contains the commits below some work.

    `base_sha` is the base branch when the work began. The work stands on that, or, if `start_sha`
    is the head of a pull request, on the commits where that head left the base.
    """
    if base_sha != now and not mirror.has(base_sha):
        # The mirror has every commit of the base branch, so the branch lost this one.
        return False
    shared = [base_sha]
    if start_sha != base_sha and mirror.has(start_sha):
        shared = mirror.git.query("merge-base", "--all", start_sha, base_sha).text.split()
    return not any(sha != now and lacks_commit(mirror, now, sha) for sha in shared)


def is_tree_of(mirror: Mirror, one: str, other: str) -> bool:
    """Return whether two commits have the same files."""
    first, second = mirror.git.line("rev-parse", f"{one}^{{tree}}", f"{other}^{{tree}}").split()
    return first == second


def is_change_of(mirror: Mirror, one: str, base_sha: str, head: str) -> bool:
    """Return whether a commit equals a head's change merged onto a base; False on a conflict.

    A patch id ignores white space and positions; this compares the resulting files.
    """
    merged = mirror.git.query("merge-tree", "--write-tree", base_sha, head)
    return not merged.exit_code and merged.text == mirror.git.line("rev-parse", f"{one}^{{tree}}")


def merge(
    mirror: Mirror, ref: IssueRef, pair: tuple[str, str], settings: CommitSettings
) -> str | None:
    """Create the commit that merges a base into a head, `pair`; None if they conflict.

    Its date is that of the younger parent, so that a repeated merge yields the same commit;
    a signature by an Ed25519 or RSA key is always the same, one by an ECDSA key is not.
    """
    base_sha, head_sha = pair
    merged = mirror.git.query("merge-tree", "--write-tree", base_sha, head_sha)
    if merged.exit_code:
        return None
    times = mirror.git.line("show", "-s", "--format=%ct", base_sha, head_sha).split()
    message = message_of(merge_text(ref, mirror.base_branch() or "the base branch"), settings)
    identity = identity_of(settings, f"{max(map(int, times))} +0000")
    parents, tree = (head_sha, base_sha), merged.text.strip()
    return commit_tree(mirror.git, tree, parents, message, identity, mirror.signing_key)
