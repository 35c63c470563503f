"""Files that attempts get besides those of the commit, as a policy asks for (WORKTREE-5)."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from mulligan.config.policy import RECURSIVE, CheckoutSettings, Scope
from mulligan.git.worktrees.fetch_lfs import LfsFiles, LfsSource
from mulligan.git.worktrees.fetch_submodules import Submodule, SubmoduleSource
from mulligan.git.worktrees.reset import IssueWorktree
from mulligan.git.worktrees.write_lfs import (
    content_in,
    hide_in_index,
    restore_pointers,
    write_lfs,
)
from mulligan.git.worktrees.write_submodules import write_submodules


@dataclass(frozen=True, slots=True)
class FurtherFiles:
    """The fetched submodules, and the content of Git LFS files."""

    submodules: tuple[Submodule, ...] = ()
    lfs: LfsFiles | None = None

    def write(self, site: IssueWorktree, sha: str, left: Path | None = None) -> None:
        """Write them into a worktree that was just reset to a commit, with a new agent's index.

        `left` is what setup commands left, if the tree has a copy of it.
        """
        write_submodules(site, self.submodules, sha, left)
        if self.lfs:
            hide_in_index(site, write_lfs(site, self.lfs, sha))

    def restore(self, site: IssueWorktree, start_sha: str, scope: Scope) -> None:
        """Make the files that nobody changed equal to the commit again, for git to compare."""
        if self.lfs:
            restore_pointers(site, self.lfs, start_sha, scope)

    def same(
        self, site: IssueWorktree, sha: str, names: Collection[str], roots: Collection[Path]
    ) -> set[str]:
        """Return the files that differ from a commit only because they were written so."""
        return content_in(site, self.lfs, sha, names, roots) if self.lfs else set()


@dataclass(frozen=True, slots=True)
class FurtherSource:
    """Where the further files of a repository come from."""

    submodules: SubmoduleSource
    lfs: LfsSource

    def fetch(self, site: IssueWorktree, sha: str, settings: CheckoutSettings) -> FurtherFiles:
        """Fetch them by a commit of the base branch.

        UnavailableError if that fails; MisconfiguredError if it can never succeed.
        """
        is_recursive = settings.submodules == RECURSIVE
        return FurtherFiles(
            self.submodules.fetch(sha, is_recursive=is_recursive) if settings.submodules else (),
            self.lfs.fetch(site, sha) if settings.lfs else None,
        )
