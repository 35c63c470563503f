"""Keep a commit as a file outside the mirror, and bring it back from there (SPEC A15)."""

import os
from datetime import timedelta
from pathlib import Path

from mulligan.domain.issue import IssueRef
from mulligan.git.remote import Remote
from mulligan.worktree.mirror import Mirror

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
