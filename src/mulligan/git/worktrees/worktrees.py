"""The worktrees of all repositories: mirror, clean checkout, push."""

import os
import time
from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from mulligan.config.operator import RepositorySettings
from mulligan.config.policy import CommitSettings
from mulligan.domain.attempt_times import Copies
from mulligan.domain.errors import DeniedError, MisconfiguredError
from mulligan.domain.issue import (
    BRANCH_DIRECTORY,
    HEADS,
    IssueRef,
    RepositoryFacts,
    check_branches,
)
from mulligan.git.commits import SigningKey
from mulligan.git.faults import DamagedError
from mulligan.git.repository import Remote
from mulligan.git.worktrees.attempt_worktree import Checkout, check_out_commit, refs_for_agent
from mulligan.git.worktrees.fetch_lfs import LfsSource
from mulligan.git.worktrees.fetch_submodules import SubmoduleSource
from mulligan.git.worktrees.files import disk_faults, locked
from mulligan.git.worktrees.further_files import FurtherSource
from mulligan.git.worktrees.mirror import Mirror
from mulligan.git.worktrees.naming import BRANCH, repository_paths, set_up_cache, worktree_paths
from mulligan.git.worktrees.publish import (
    commit_missing,
    delete_old_verified,
    delete_verified,
    fetch_pushed,
    fetch_verified,
    publish,
    publish_attempt,
    push_verified,
    read_bundle,
    write_bundle,
)
from mulligan.git.worktrees.pull_request_branch import (
    PullRequestHead,
    conflicts_in,
    fetch_pull_request,
    is_in_base,
    lacks_commit,
    merge,
)
from mulligan.git.worktrees.reset import IssueWorktree, discard, reset_worktree, search
from mulligan.implement.ports import Credentials, LfsServer, PullRequestBase
from mulligan.sandbox.cancellation import meanwhile
from mulligan.sandbox.set_up_cache import SetUpCache

LOCK_TIMEOUT = timedelta(seconds=2)
MAX_CACHED_FILES = 4000
"""Limit of cached files, since every poll reads the policy; a commit's files never change."""


BRANCHES_KNOWN_SECONDS = 600.0
"""For how long no new branch is expected to get in the way of Mulligan's; a refused push names it.
"""


@dataclass(frozen=True, slots=True)
class GitWorktrees:
    """Implements the port `Worktrees` with git: a bare mirror per repository, a worktree per issue.

    `facts` reads the tracker if the settings have no URL or base branch. With
    `stores_verified_remotely`, verified commits are pushed to the remote too, for runs on other
    machines. What setup commands leave is kept in `set_up_root`, by default below `root`; with
    `is_layered`, commands get it as a layer, which `bubblewrap` mounts if that is a program.
    Otherwise each gets a copy, and `copied_because` says why. `signing_key` signs every commit.
    """

    root: Path
    repositories: Mapping[str, RepositorySettings]
    credentials: Credentials
    facts: Callable[[str], RepositoryFacts]
    environment: Mapping[str, str] = field(repr=False)
    keep_ignored: bool = False
    max_set_up_bytes: int = 10 * 1024**3
    litter: tuple[str, ...] = ()
    stores_verified_remotely: bool = False
    set_up_root: Path | None = None
    is_layered: bool = False
    bubblewrap: str = ""
    copied_because: str = ""
    lfs_server: LfsServer | None = None
    signing_key: SigningKey | None = None
    branches: dict[str, tuple[float, dict[str, str]]] = field(
        default_factory=dict[str, tuple[float, dict[str, str]]], init=False, repr=False
    )
    names: dict[tuple[str, tuple[str, ...]], tuple[str, tuple[str, ...]]] = field(
        default_factory=dict[tuple[str, tuple[str, ...]], tuple[str, tuple[str, ...]]],
        init=False,
        repr=False,
    )
    """The names in directories of base branches, with the commit at which they were listed."""
    file_cache: dict[tuple[str, str, str], bytes | None] = field(
        default_factory=dict[tuple[str, str, str], bytes | None], init=False, repr=False
    )

    @disk_faults()
    def fetch_base(self, repository: str) -> None:
        remote, base = self._upstream(repository)
        self._mirror(repository).fetch(remote, base)

    @disk_faults()
    def check_branch_names(
        self, repository: str, issue: IssueRef | None = None, own: Collection[str] = ()
    ) -> None:
        read_at, heads = self.branches.get(repository, (float("-inf"), dict[str, str]()))
        if time.monotonic() < read_at + BRANCHES_KNOWN_SECONDS:
            with suppress(MisconfiguredError):
                check_branches(heads, repository, issue, own)
                return
        mirror, (remote, base) = self._mirror(repository), self._upstream(repository)
        if not mirror.paths.mirror.exists():
            mirror.fetch(remote, base)
        heads = remote.heads_of(mirror.git, f"{HEADS}{BRANCH_DIRECTORY}*")
        check_branches(heads, repository, issue, own)
        self.branches[repository] = (time.monotonic(), heads)

    @contextmanager
    def open(self, ref: IssueRef, standing: PullRequestBase | None = None) -> Generator[Checkout]:
        place = worktree_paths(self.root.absolute(), ref)
        with locked(place.lock, LOCK_TIMEOUT, str(ref)), ExitStack() as uses:
            yield self._clean(ref, standing, uses)

    @disk_faults()
    def base_file(self, repository: str, path: str, sha: str | None = None) -> bytes | None:
        mirror = self._mirror(repository)
        sha = sha or mirror.base_sha()
        if sha is None:
            return None
        key = (repository, path, sha)
        if key not in self.file_cache:
            if len(self.file_cache) >= MAX_CACHED_FILES:
                self.file_cache.clear()
            self.file_cache[key] = mirror.file(path, sha)
        return self.file_cache[key]

    def base_subjects(self, repository: str, sha: str, most: int) -> tuple[str, ...]:
        listed = self._mirror(repository).git.read(
            *("log", "--no-merges", f"--max-count={most}", "--format=%s%x00", sha, "--")
        )
        subjects = listed.decode(errors="replace").split("\0")
        return tuple(each.strip("\n") for each in subjects if each.strip("\n"))

    def base_names(self, repository: str, *directories: str) -> tuple[str, ...]:
        mirror = self._mirror(repository)
        sha = mirror.base_sha()
        if sha is None:
            return ()
        key = (repository, directories)
        known, names = self.names.get(key, ("", ()))
        if known != sha:
            names = mirror.names(directories, sha)
            self.names[key] = (sha, names)
        return names

    @disk_faults()
    def base_tree(self, repository: str, path: str, sha: str) -> str | None:
        return self._mirror(repository).tree(path, sha)

    @disk_faults()
    def write_tree(self, repository: str, tree: str, place: Path) -> None:
        self._mirror(repository).write_tree(tree, place)

    def base_branch(self, repository: str) -> str:
        known = self._settings(repository).base_branch or self._mirror(repository).base_branch()
        return known or self._upstream(repository)[1]

    @disk_faults()
    def store_commit(self, ref: IssueRef, head_sha: str, place: Path) -> None:
        mirror = self._mirror(ref.repository)
        if not place.exists():
            write_bundle(mirror, ref, head_sha, place)
        if self.stores_verified_remotely:
            push_verified(mirror, self._upstream(ref.repository)[0], ref, head_sha)

    @disk_faults()
    def ensure_commit(self, ref: IssueRef, head_sha: str, bundle: Path) -> bool:
        """Look on the remote, too: among the verified commits, and at the issue's branch."""
        mirror = self._mirror(ref.repository)
        if mirror.paths.mirror.exists() and mirror.has(head_sha):
            return True
        remote, base = self._upstream(ref.repository)
        mirror.fetch(remote, base)
        if self.stores_verified_remotely and fetch_verified(mirror, remote, ref, head_sha):
            return True
        return read_bundle(mirror, head_sha, bundle) or fetch_pushed(remote, mirror, ref, head_sha)

    @disk_faults()
    def base_sha(self, repository: str) -> str | None:
        return self._mirror(repository).base_sha()

    @disk_faults()
    def conflicts(self, ref: IssueRef, base_sha: str, head_sha: str) -> tuple[str, ...]:
        mirror = self._mirror(ref.repository)
        local = mirror.has(base_sha) and mirror.has(head_sha)
        return conflicts_in(mirror, base_sha, head_sha) if local else ()

    @disk_faults()
    def is_behind(self, ref: IssueRef, base_sha: str, head_sha: str) -> bool:
        mirror, (remote, _) = self._mirror(ref.repository), self._upstream(ref.repository)
        local = mirror.has(head_sha) or fetch_pushed(remote, mirror, ref, head_sha)
        return local and mirror.has(base_sha) and lacks_commit(mirror, head_sha, base_sha)

    @disk_faults()
    def is_in_base(self, ref: IssueRef, start_sha: str, base_sha: str) -> bool:
        mirror, (remote, base) = self._mirror(ref.repository), self._upstream(ref.repository)
        return is_in_base(mirror, mirror.fetch(remote, base), start_sha, base_sha)

    @disk_faults()
    def merge(
        self, ref: IssueRef, base_sha: str, head_sha: str, settings: CommitSettings
    ) -> str | None:
        return merge(self._mirror(ref.repository), ref, (base_sha, head_sha), settings)

    @disk_faults()
    def remote_head(self, ref: IssueRef) -> str | None:
        mirror, (remote, base) = self._mirror(ref.repository), self._upstream(ref.repository)
        if not mirror.paths.mirror.exists():
            mirror.fetch(remote, base)
        return remote.head_of(mirror.git, f"refs/heads/{ref.branch}")

    @disk_faults()
    def delete_branch(self, ref: IssueRef, own: Collection[str]) -> bool:
        mirror, (remote, base) = self._mirror(ref.repository), self._upstream(ref.repository)
        sha = mirror.fetch(remote, base)
        found = fetch_pull_request(remote, mirror, ref, sha, PullRequestBase(frozenset(own)))
        if found is None or found.others or base == ref.branch:
            return False
        remote.delete(mirror.git, f"refs/heads/{ref.branch}", found.head_sha)
        return True

    @disk_faults()
    def push(self, ref: IssueRef, head_sha: str, expected: str | None) -> None:
        mirror, (remote, base) = self._mirror(ref.repository), self._upstream(ref.repository)
        if base == ref.branch:
            message = f"Mulligan never pushes to the base branch {base!r}; set another base_branch."
            raise DeniedError(message)
        if not mirror.paths.mirror.exists():
            raise commit_missing(head_sha)
        publish(mirror, remote, ref, head_sha, expected)
        if self.stores_verified_remotely:
            delete_verified(mirror, remote, ref)

    @disk_faults()
    def delete_old_verified(self, repository: str, needed: Callable[[int], bool]) -> None:
        """Delete the verified commits on the remote of issues that no longer need them."""
        mirror = self._mirror(repository)
        if self.stores_verified_remotely and mirror.paths.mirror.exists():
            delete_old_verified(mirror, self._upstream(repository)[0], needed)

    @disk_faults()
    def push_attempt(self, ref: IssueRef, head_sha: str, number: int) -> str:
        mirror, (remote, _) = self._mirror(ref.repository), self._upstream(ref.repository)
        if not mirror.paths.mirror.exists():
            raise commit_missing(head_sha)
        return publish_attempt(mirror, remote, ref, head_sha, number)

    @disk_faults()
    def exists(self, ref: IssueRef) -> bool:
        """Count files in the trash, too."""
        place = worktree_paths(self.root.absolute(), ref)
        paths = (*place.all_paths, *place.beside.all_paths)
        set_aside = place.repository.trash.glob(f"*{place.name}-*")
        return any(map(os.path.lexists, paths)) or any(set_aside)

    @disk_faults()
    def discard(self, ref: IssueRef) -> None:
        """Keep the lock file, too."""
        place = worktree_paths(self.root.absolute(), ref)
        site = IssueWorktree(place, self._mirror(ref.repository), ref.branch)
        with locked(place.lock, LOCK_TIMEOUT, str(ref)):
            discard(site)
            discard(site.beside)

    @disk_faults()
    def _clean(self, ref: IssueRef, standing: PullRequestBase | None, uses: ExitStack) -> Checkout:
        remote, base = self._upstream(ref.repository)
        mirror = self._mirror(ref.repository)
        site = IssueWorktree(worktree_paths(self.root.absolute(), ref), mirror, ref.branch)

        def start(
            sha: str, *, is_searched: bool
        ) -> tuple[PullRequestHead | None, str, bool, Mapping[str, str]]:
            found = fetch_pull_request(remote, mirror, ref, sha, standing) if standing else None
            begin = found.head_sha if found and found.others else sha
            with meanwhile(lambda: refs_for_agent(site, base, sha)) as refs:
                recreated = reset_worktree(
                    site, begin, keep_ignored=self.keep_ignored, is_searched=is_searched
                )
                return found, begin, recreated, refs()

        for old in (site.paths.private, site.paths.agent_git_dir):
            site.cleaner.set_aside(old, site.paths.name)
        # Only one whose process was killed is left.
        discard(site.beside)
        with site.cleaner.emptying(site.paths.name):
            # The search needs no network, and the fetch no worktree.
            with meanwhile(lambda: mirror.fetch(remote, base)) as fetched:
                is_searched = search(site)
                sha = fetched()
            try:
                proposal, begin, recreated, refs = start(sha, is_searched=is_searched)
            except DamagedError:
                sha = mirror.recreate(remote, base)
                proposal, begin, _, refs = start(sha, is_searched=False)
                recreated = True
        site.paths.private.mkdir(mode=0o700)
        check_out_commit(site, refs, begin)
        site.cleaner.empty(site.paths.name)
        kept = self.set_up_root or set_up_cache(self.root.absolute())
        cache = SetUpCache(kept, self.max_set_up_bytes, self.environment)
        return Checkout(
            *(site, refs, sha, begin, recreated, cache, uses, self._further(mirror, remote.url)),
            self.keep_ignored,
            proposal,
            can_layer=self.is_layered,
            bubblewrap=self.bubblewrap,
            copies=Copies(self.copied_because),
        )

    def _further(self, mirror: Mirror, url: str) -> FurtherSource:
        name, token = mirror.name, self.credentials.git_token
        private = self._settings(name).submodules
        return FurtherSource(
            SubmoduleSource(mirror, url, token, private),
            LfsSource(url, lambda: token(name), self.lfs_server),
        )

    def _settings(self, repository: str) -> RepositorySettings:
        return self.repositories.get(repository) or RepositorySettings(name=repository)

    def _mirror(self, repository: str) -> Mirror:
        place = repository_paths(self.root.absolute(), repository)
        return Mirror(repository, place, self.environment, self.litter, self.signing_key)

    def _upstream(self, repository: str) -> tuple[Remote, str]:
        """Return a repository's URL and base branch; read the tracker if needed."""
        settings = self._settings(repository)
        url, base = settings.clone_url, settings.base_branch
        if url is None or base is None:
            facts = self.facts(repository)
            url, base = url or facts.clone_url, base or facts.default_branch
        if not BRANCH.fullmatch(base):
            message = f"{base!r} is not a valid branch name; fix base_branch of {repository}."
            raise MisconfiguredError(message)
        return Remote(url, self.credentials.git_token(repository)), base
