"""One attempt's worktree: the port `Worktree` on a site that was reset and verified."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mulligan.config.policy import CommitSettings
from mulligan.domain.attempt import Change, CommitText
from mulligan.worktree import decoy
from mulligan.worktree.capture import capture, diff_of
from mulligan.worktree.disk import disk_faults
from mulligan.worktree.naming import BASE_REF
from mulligan.worktree.proposal import DIFF_BYTES, Proposal, is_change_of, is_tree_of
from mulligan.worktree.reset import Site, restore


@dataclass(frozen=True, slots=True)
class Checkout:
    """A clean worktree at `start_sha`, of a base branch at `base_sha`.

    `keeps` tells whether files that git ignores stay when a commit is shown: set-up lines put
    them there (SPEC A3), and checks need them. Without set-up lines none stay.
    """

    site: Site
    base_branch: str
    base_sha: str
    start_sha: str
    recreated: bool
    keeps: Callable[[], bool]
    proposal: Proposal | None = None

    @property
    def path(self) -> Path:
        """Give the directory that the agent works in."""
        return self.site.place.tree

    @property
    def private(self) -> Path:
        """Give the directory beside it for the run's own files."""
        return self.site.place.private

    @property
    def proposed(self) -> bytes:
        """Give what the pull request changes as it stands; empty where there is none."""
        if self.proposal is None:
            return b""
        return diff_of(self.site, self.proposal.fork_sha, self.proposal.head_sha, DIFF_BYTES)

    @property
    def readable(self) -> tuple[Path, ...]:
        """Give the link to the decoy, which is to stay what it is, and the mirror's objects."""
        return (self.path / ".git", self.site.mirror.place.mirror / "objects")

    @property
    def writable(self) -> tuple[Path, ...]:
        """Give the decoy."""
        return (self.site.place.decoy,)

    @disk_faults()
    def capture(self, text: CommitText, settings: CommitSettings) -> Change:
        """Read what the agent left and commit it (SPEC A7, A8)."""
        change = capture(self.site, self.start_sha, text, settings)
        return self._nothing_new(change) or change

    def _nothing_new(self, change: Change) -> Change | None:
        """Take a change for none that leaves the pull request as it is, on review (SPEC 6)."""
        stands, head = self.proposal, change.head_sha
        if head is None or stands is None or not stands.is_answered:
            return None
        if not (
            is_tree_of(self.site.mirror, head, stands.head_sha) or self._is_moved(head, stands)
        ):
            return None
        return Change(change.start_sha, None, change.commits, is_proposed=True)

    def _is_moved(self, head: str, stands: Proposal) -> bool:
        """Tell whether it is the pull request's change, made again on a base that has moved."""
        if not stands.is_reviewed or stands.others:
            return False
        return is_change_of(self.site.mirror, head, self.base_sha, stands.head_sha)

    @disk_faults()
    def show_commit(self, head_sha: str) -> None:
        """Reset the tree to Mulligan's commit, so that checks see that and nothing else (A10)."""
        restore(self.site, head_sha, keep_ignored=self.keeps())
        show(self.site, self.base_branch, self.base_sha, head_sha)
        self.site.broom.empty(self.site.place.name)

    @contextmanager
    def untouched(self) -> Generator[None]:
        """Have a new checkout of `start_sha` in place of this one, for a while (SPEC A4).

        It has nothing that an agent or a check wrote, nor what set-up wrote. It lies at the same
        path, since what a check says may name that. Afterwards `show_commit` is to be called.
        """
        site, place = self.site, self.site.place
        aside = place.private / "worktree"
        with disk_faults():
            site.broom.set_aside(aside, place.name)
            site.broom.move(place.tree, aside)
            try:
                restore(site, self.start_sha, keep_ignored=False)
                show(site, self.base_branch, self.base_sha, self.start_sha)
                yield
            finally:
                site.broom.set_aside(place.tree, place.name)
                site.broom.move(aside, place.tree)


def show(site: Site, base: str, base_sha: str, head_sha: str) -> None:
    """Put a fresh decoy into a restored worktree, with HEAD at its commit."""
    place = site.place
    site.broom.set_aside(place.decoy, place.name)
    listed = site.mirror.git.read("for-each-ref", "--format=%(refname) %(objectname)", "refs/tags")
    refs = dict(line.split(" ") for line in listed.decode(errors="replace").splitlines())
    refs[f"{BASE_REF}{base}"] = base_sha
    if not f"{site.branch}/".startswith(f"{base}/"):
        refs[f"refs/heads/{base}"] = base_sha
    refs[f"refs/heads/{site.branch}"] = head_sha
    objects = site.mirror.place.mirror / "objects"
    sources = (place.admin / "index", objects)
    decoy.write(place.decoy, refs, site.branch, sources, site.mirror.litter)
    (place.tree / ".git").write_text(f"gitdir: {place.decoy}\n")
