"""Merge the base branch into a pull request's head, as a commit of Mulligan's own."""

from dataclasses import replace

from mulligan.config.policy import CommitSettings
from mulligan.domain.attempt import CommitText
from mulligan.domain.issue import IssueRef
from mulligan.worktree.message import message_of, plain
from mulligan.worktree.mirror import Mirror


def lacks(mirror: Mirror, head_sha: str, base_sha: str) -> bool:
    """Tell whether a head does not have a commit of the base branch."""
    return mirror.git.ask("merge-base", "--is-ancestor", base_sha, head_sha).exit_code == 1


def is_in_base(mirror: Mirror, now: str, start_sha: str, base_sha: str) -> bool:
    """Tell whether the base branch, which is `now` there, still has what work stands on.

    `base_sha` is the base branch as the work knew it. The work stands on that, or, where
    `start_sha` is the head of a pull request, on the commits at which that head left the base.
    """
    if not mirror.has(base_sha):
        # Whatever the base branch has is here.
        return False
    shared = [base_sha]
    if start_sha != base_sha and mirror.has(start_sha):
        shared = mirror.git.ask("merge-base", "--all", start_sha, base_sha).text.split()
    return not any(lacks(mirror, now, sha) for sha in shared)


def merge(
    mirror: Mirror, ref: IssueRef, pair: tuple[str, str], settings: CommitSettings
) -> str | None:
    """Make the commit that merges a base into a head, `pair`; None where they conflict.

    It is dated by its younger parent, so that whoever makes it again makes the same one.
    """
    base_sha, head_sha = pair
    merged = mirror.git.ask("merge-tree", "--write-tree", base_sha, head_sha)
    if merged.exit_code:
        return None
    times = mirror.git.line("show", "-s", "--format=%ct", base_sha, head_sha).split()
    identity = {
        f"GIT_{role}_{part}": value
        for role in ("AUTHOR", "COMMITTER")
        for part, value in (
            ("NAME", plain(settings.name)),
            ("EMAIL", plain(settings.email)),
            ("DATE", f"{max(map(int, times))} +0000"),
        )
    }
    subject = f"Merge {mirror.base_branch()} into {ref.branch}"
    said = message_of(CommitText(subject, f"Issue: {ref}", co_author=""), settings)
    git = replace(mirror.git, extra=identity)
    parents = ("-p", head_sha, "-p", base_sha)
    return git.line("commit-tree", merged.text.strip(), *parents, "-m", said)
