"""Check out the worktree of one attempt, commit what the agent left, and describe the change."""

import os
import shutil
import time
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from itertools import islice
from pathlib import Path, PurePosixPath
from threading import Event
from typing import Self

from mulligan.config.policy import CheckoutSettings, CommitSettings, Scope
from mulligan.domain.attempt import Change
from mulligan.domain.attempt_times import Copies
from mulligan.domain.image import Image
from mulligan.domain.layer import Layer
from mulligan.domain.result import FileChange
from mulligan.git.commits import commit_tree
from mulligan.git.faults import FULL_DISK, TookTooLongError, fault_of
from mulligan.git.repository import Repository
from mulligan.git.worktrees import agent_git_directory
from mulligan.git.worktrees.agent_git_directory import AgentCommits, unseen_work
from mulligan.git.worktrees.fetch_submodules import Submodule
from mulligan.git.worktrees.files import FoundDirectories, disk_faults
from mulligan.git.worktrees.further_files import FurtherFiles, FurtherSource
from mulligan.git.worktrees.left_out import (
    Excluded,
    excluded_from,
    is_below,
    left_by_tools,
    paths_of,
    unlike_leftovers,
    written_by_agent,
)
from mulligan.git.worktrees.lfs import raw_lfs_files, small_blobs
from mulligan.git.worktrees.naming import (
    BASE_REF,
    TOOL_LEFTOVERS,
    leftover_in,
)
from mulligan.git.worktrees.pull_request_branch import (
    DIFF_BYTES,
    PullRequestHead,
    is_change_of,
    is_tree_of,
)
from mulligan.git.worktrees.reset import (
    LIST_INDEX,
    RESET_TIMEOUT,
    IssueWorktree,
    discard,
    good_index,
    has_attributes,
    links_in,
    make_empty,
    reset_worktree,
    submodule_directory,
    submodules_in,
)
from mulligan.git.worktrees.sizes import DEFAULT_SCOPE, measure, sizes_of
from mulligan.git.worktrees.submodules import changed_links, keep_objects, read_submodules
from mulligan.git.worktrees.write_submodules import remove_tracked
from mulligan.implement.commit_message import CommitText, identity_of, message_of
from mulligan.sandbox.cancellation import defer_shutdown, meanwhile
from mulligan.sandbox.home import TREE, clear, copy, create_layer, keep, layer_in
from mulligan.sandbox.layers import remove_notes
from mulligan.sandbox.process import Finished
from mulligan.sandbox.set_up_cache import SetUpCache


@dataclass(frozen=True, slots=True)
class Checkout:
    """The port Worktree: a clean worktree at `start_sha`, for a base branch at `base_sha`.

    `uses` holds the entries of the `cache` that this attempt needs. Ignored files of agents stay
    only with `keeps_ignored`. With `is_layered`, what setup commands left is not in the tree, but
    below it in a layer, which `bubblewrap` mounts if that is a program; else `copies` says why.
    `base_files` are what they left on the base branch's commit. `source` fetches the
    `further` files.
    """

    worktree: IssueWorktree
    refs: Mapping[str, str]
    base_sha: str
    start_sha: str
    recreated: bool
    cache: SetUpCache
    uses: ExitStack
    source: FurtherSource
    keeps_ignored: bool = False
    pull_request: PullRequestHead | None = None
    set_up_files: Path | None = None
    base_files: Path | None = None
    can_layer: bool = False
    is_layered: bool = False
    bubblewrap: str = ""
    copies: Copies = field(default_factory=Copies)
    further: FurtherFiles = field(default_factory=FurtherFiles)
    image: Image | None = None
    searched: Event = field(default_factory=Event)
    """Set while nobody else's process has run in the tree since `capture` searched it."""

    @property
    def path(self) -> Path:
        """The directory that the agent works in."""
        return self.worktree.paths.tree

    @property
    def private(self) -> Path:
        """The directory beside the worktree for the run's own files."""
        return self.worktree.paths.private

    @property
    def pull_request_diff(self) -> bytes:
        """The diff of the open pull request; empty if there is none."""
        if self.pull_request is None:
            return b""
        return diff_of(
            self.worktree, self.pull_request.fork_sha, self.pull_request.head_sha, DIFF_BYTES
        )

    @property
    def readable(self) -> tuple[Path, ...]:
        """The `.git` file, which the agent must not change, and the mirror's objects."""
        return (self.path / ".git", self.worktree.mirror.paths.mirror / "objects")

    @property
    def writable(self) -> tuple[Path, ...]:
        """The agent's git directory."""
        return (self.worktree.paths.agent_git_dir,)

    @property
    def layer(self) -> Layer | None:
        """The tree of a check with what setup commands left; its writes are its own."""
        if self._lower is None:
            return None
        place = self.private / "tree-layer"
        return layer_in(place, (self.path, self._lower), place / "merged")

    @property
    def agent_layer(self) -> Layer | None:
        if self._lower is None:
            return None
        place = self.private / "agent-layer"
        layer = layer_in(place, (self._lower,), place / "merged")
        return layer._replace(upper=str(self.path))

    @property
    def _lower(self) -> Path | None:
        return self.set_up_files / TREE if self.is_layered and self.set_up_files else None

    def with_image(self, image: Image) -> Self:
        return replace(self, image=image)

    def with_copies(self) -> Self:
        return replace(self, is_layered=False)

    @disk_faults()
    def with_checkout(self, settings: CheckoutSettings) -> Self:
        """Fetch by the base branch's commit below the start, and write into the tree as it is."""
        if settings == CheckoutSettings():
            return self
        found = self.source.fetch(self.worktree, self.fork_sha, settings)
        found.write(self.worktree, self.start_sha)
        return replace(self, further=found)

    @disk_faults()
    def capture(
        self, text: CommitText, settings: CommitSettings, scope: Scope = DEFAULT_SCOPE
    ) -> Change:
        try:
            change = capture(self.worktree, self.start_sha, text, settings, scope, self.further)
        except TookTooLongError as error:
            return self._blame_for_time(error)
        self.searched.set()
        whole = replace(change, set_up_paths=_named(self._paths_of_set_up(change)))
        return self._nothing_new(change) or whole

    def _paths_of_set_up(self, change: Change) -> Iterator[str]:
        """Yield the files of a change that setup commands made, or that lie in their directories.

        A file or directory is theirs if they left it and the base branch does not track it. A file
        or link in place of a directory, also of a tracked one, hides what they left below it.
        """
        if self.set_up_files is None:
            return
        left = self.set_up_files / TREE
        names = [each.path for each in change.files if each.status != DELETED]
        found = {part for name in names for part in _with_parents(name) if _in_tree(left, part)}
        if not found:
            return
        tracked = self.worktree.git.read(*LIST_NAMES, self.fork_sha)
        own = found.difference(map(os.fsdecode, tracked.split(b"\0")))
        own |= {name for name in found.intersection(names) if _is_directory(left / name)}
        yield from (name for name in names if own.intersection(_with_parents(name)))

    def _blame_for_time(self, error: TookTooLongError) -> Change:
        """Return a change that git could not read in time; raise if the machine itself is slow.

        It is not if it makes a whole tree, without what the agent left, in a minute.
        """
        began = time.monotonic()
        self.worktree.cleaner.set_aside(self.path, self.worktree.paths.name)
        reset_worktree(self.worktree, self.start_sha, keep_ignored=False)
        if time.monotonic() - began > QUICK_SECONDS:
            raise error
        return Change(self.start_sha, None, 1, unread=UNREAD)

    def _nothing_new(self, change: Change) -> Change | None:
        """Return an empty change if an answer to a review changes nothing (OUTCOME-1)."""
        stands, head = self.pull_request, change.head_sha
        if head is None or stands is None or not stands.is_answered:
            return None
        if not (
            is_tree_of(self.worktree.mirror, head, stands.head_sha) or self._is_moved(head, stands)
        ):
            return None
        return replace(
            change,
            head_sha=None,
            files=(),
            diff=b"",
            leftovers=(),
            raw_lfs_files=(),
            is_proposed=True,
        )

    def _is_moved(self, head: str, stands: PullRequestHead) -> bool:
        """Return whether the commit is the pull request's change, rebased onto a newer base."""
        if not stands.is_reviewed or stands.others:
            return False
        return is_change_of(self.worktree.mirror, head, self.base_sha, stands.head_sha)

    @property
    def fork_sha(self) -> str:
        """The base branch's commit below the start: below a pull request with others' commits."""
        found = self.pull_request
        return found.fork_sha if found and found.head_sha == self.start_sha else self.start_sha

    @disk_faults()
    def blobs(self, sha: str) -> Mapping[str, str]:
        files = _blobs(self.worktree.git, sha)
        for each in self.further.submodules:
            if each.path in files:
                git = each.git(self.worktree.mirror.outer, self.path, self.private / "index")
                inner = _blobs(git, each.sha)
                files |= {f"{each.path}/{path}": entry for path, entry in inner.items()}
        return files

    @disk_faults()
    def with_set_up(self, key: str) -> Self | None:
        found = self.cache.find(key, self.uses)
        return self._with_base_files(found) if found else None

    def _with_base_files(self, left: Path | None) -> Self:
        return replace(self, set_up_files=left, base_files=left, is_layered=self.can_layer)

    @disk_faults()
    def keep_set_up(self, key: str = "") -> Self:
        site = self.worktree
        left = keep(self.private, self.path, site.mirror.outer)
        _remove_unignored(site, left / TREE, self.further.submodules)
        if key:
            return self._with_base_files(self.cache.add(key, left, self.uses))
        return replace(self, set_up_files=left, is_layered=self.can_layer)

    @disk_faults()
    def check_out(self, head_sha: str, *, for_agent: bool = False) -> None:
        """What setup commands left is a layer below the tree, or the tree is a new copy of it.

        Without setup commands, an agent finds its ignored files again, with `keeps_ignored`.
        """
        site, is_copied = self.worktree, self.set_up_files is not None and not self.is_layered
        keeps_ignored = self.keeps_ignored and not self.set_up_files
        is_same = not is_copied and not keeps_ignored
        site.cleaner.set_aside(site.paths.agent_git_dir, site.paths.name)
        is_searched = self.searched.is_set() and is_same
        self.searched.clear()
        if self.set_up_files and is_copied:
            site.cleaner.set_aside(self.path, site.paths.name)
            files = self.set_up_files / TREE
            self.copies.took += copy(files, self.path, site.mirror.outer)
        elif keeps_ignored and for_agent:
            self._return_agents_tree()
        elif keeps_ignored and not self._agents_tree.exists():
            site.cleaner.move(self.path, self._agents_tree)
            self.uses.callback(self._return_agents_tree)
        keep_ignored = is_copied or (keeps_ignored and for_agent)
        with site.cleaner.emptying(site.paths.name):
            reset_worktree(site, head_sha, keep_ignored=keep_ignored, is_searched=is_searched)
        if self.layer and self.agent_layer:
            remove_notes(self.path)
            create_layer(self.layer, site.mirror.outer)
            create_layer(self.agent_layer, site.mirror.outer)
        check_out_commit(site, self.refs, head_sha)
        copied = self.set_up_files / TREE if self.set_up_files and is_copied else None
        self.further.write(site, head_sha, copied)
        site.cleaner.empty(site.paths.name)

    @disk_faults()
    def start_with(self, head_sha: str, paths: Collection[str]) -> str:
        """Leave the worktree as it is."""
        site = self.worktree
        index, listed = (site.paths.git_dir / name for name in ("proof-index", "proof-paths"))
        git = replace(site.git, extra={"GIT_INDEX_FILE": str(index), **OWN_IDENTITY})
        git.read("read-tree", self.start_sha)
        names = (f":(top,literal){path}" for path in sorted(paths))
        listed.write_bytes(b"\0".join(map(os.fsencode, names)))
        chosen = (f"--pathspec-from-file={listed}", "--pathspec-file-nul")
        git.read("restore", "--staged", f"--source={head_sha}", *chosen)
        tree = git.line("write-tree")
        return git.line("commit-tree", tree, "-p", self.start_sha, "-m", "Tests of the change")

    @disk_faults()
    def changed_files(self, head_sha: str) -> tuple[str, ...]:
        asked = ("diff", "--name-only", "-z", "--no-renames", "--ignore-submodules=all", head_sha)
        if self.layer is None:
            listed = self.worktree.git.read(*asked)
        else:
            listed = self._read_merged(self.layer, asked)
        names = [os.fsdecode(name) for name in listed.split(b"\0") if name]
        # A check's own writes hide the files of the tree.
        roots = (*([Path(self.layer.upper)] if self.layer else []), self.path)
        same = self.further.same(self.worktree, head_sha, names, roots)
        return tuple(name for name in names if name not in same)

    def _read_merged(self, layer: Layer, asked: Sequence[str]) -> bytes:
        """Return git's output about the tree as the last command saw it."""
        merged = Path(layer.target)
        git = replace(
            self.worktree.git, work_tree=merged, layers=(layer,), bubblewrap=self.bubblewrap
        )
        output = merged.with_name("output")
        ended = git.stream(*asked, into=output, limit=MAX_LISTED_BYTES, timeout=RESET_TIMEOUT)
        if ended.exit_code:
            raise fault_of(ended.text, "Listing the files that a check changed")
        return output.read_bytes()

    @property
    def _agents_tree(self) -> Path:
        return self.private / "tree-of-agent"

    def _return_agents_tree(self) -> None:
        if self._agents_tree.exists():
            self.worktree.cleaner.set_aside(self.path, self.worktree.paths.name)
            self.worktree.cleaner.move(self._agents_tree, self.path)

    @contextmanager
    def base_checkout(self, change_sha: str) -> Generator[tuple[Self, Path]]:
        """Give git the change as `mulligan/change`. Call `check_out` afterwards."""
        refs = {**self.refs, CHANGE_REF: change_sha}
        base = replace(self._with_base_files(self.base_files), refs=refs)
        with base.pristine_checkout(base.fork_sha), self._files_of(change_sha) as files:
            yield base, files

    @contextmanager
    def beside(self) -> Generator[Self]:
        """Leave the issue's branch as it is."""
        site = self.worktree.beside
        _create_beside(site)
        copies = Copies(self.copies.because)
        try:
            yield replace(self, worktree=site, keeps_ignored=False, copies=copies, searched=Event())
        finally:
            # A shutdown must not leave files of a command behind.
            with defer_shutdown():
                discard(site)

    @contextmanager
    def _files_of(self, sha: str) -> Generator[Path]:
        """Write the files of a commit to a directory of their own while the block lasts."""
        site, files = self.worktree, self.private / "change"
        with site.cleaner.emptying(site.paths.name):
            site.cleaner.set_aside(files, site.paths.name)
            files.mkdir()
            index = {"GIT_INDEX_FILE": str(self.private / "index-of-change")}
            git = replace(site.git, work_tree=files, extra=index)
            git.run("read-tree", "--reset", "-u", sha, timeout=RESET_TIMEOUT)
            try:
                yield files
            finally:
                site.cleaner.set_aside(files, site.paths.name)

    @contextmanager
    def pristine_checkout(self, sha: str) -> Generator[None]:
        """Keep the path, since the output of a check may name it. Call `check_out` afterwards."""
        place, cleaner = self.worktree.paths, self.worktree.cleaner
        aside = place.private / "worktree"
        with disk_faults():
            cleaner.set_aside(aside, place.name)
            cleaner.move(place.tree, aside)
            try:
                self.check_out(sha)
                yield
            finally:
                cleaner.set_aside(place.tree, place.name)
                cleaner.move(aside, place.tree)


@disk_faults()
def _create_beside(site: IssueWorktree) -> None:
    discard(site)
    make_empty(site)
    site.paths.private.mkdir(mode=0o700)


CHANGE_REF = "refs/mulligan/change"

OWN_IDENTITY = {
    f"GIT_{role}_{part}": "mulligan"
    for role in ("AUTHOR", "COMMITTER")
    for part in ("NAME", "EMAIL")
}
"""Of commits that no branch ever has."""

LIST_NAMES = ("ls-tree", "-r", "-t", "-z", "--name-only", "--full-tree")


def _with_parents(name: str) -> Iterator[str]:
    """Yield a path and the directories above it, without the tree itself."""
    yield name
    yield from (str(parent) for parent in PurePosixPath(name).parents[:-1])


def _blobs(git: Repository, sha: str) -> dict[str, str]:
    listed = git.read("ls-tree", "-r", "-z", "--full-tree", sha)
    lines = listed.decode(errors="surrogateescape").split("\0")
    return {path: entry for entry, _, path in (line.partition("\t") for line in lines) if path}


def _remove_unignored(site: IssueWorktree, tree: Path, submodules: Sequence[Submodule]) -> None:
    """Keep only what git ignores of a tree that setup commands left; git follows no link.

    The files of submodules that Mulligan did not fetch are not kept (WORKTREE-5): their `.git`
    leads to this attempt's.
    """
    fetched = remove_tracked(site, submodules, tree)
    for path in submodules_in(site.git.read(*LIST_INDEX).split(b"\0")):
        if path not in fetched and (found := submodule_directory(tree, path)):
            clear(found, site.mirror.outer)
    (tree / ".git").unlink(missing_ok=True)
    index = site.paths.private / "index"
    shutil.copyfile(site.paths.git_dir / "index", index)
    git = replace(site.git, work_tree=tree, extra={"GIT_INDEX_FILE": str(index)})
    git.run("clean", "-q", "-ffd", timeout=RESET_TIMEOUT)
    empty = git.line("hash-object", "-t", "tree", os.devnull)
    git.run("read-tree", "--reset", "-u", empty, timeout=RESET_TIMEOUT)


def refs_for_agent(site: IssueWorktree, base: str, base_sha: str) -> Mapping[str, str]:
    """Return the refs that an agent finds besides its branch: the tags and the base branch."""
    listed = site.mirror.git.read("for-each-ref", "--format=%(refname) %(objectname)", "refs/tags")
    refs = dict(line.split(" ") for line in listed.decode(errors="replace").splitlines())
    refs[f"{BASE_REF}{base}"] = base_sha
    if not f"{site.branch}/".startswith(f"{base}/"):
        refs[f"refs/heads/{base}"] = base_sha
    return refs


SHALLOW = "shallow"
"""git's list of the commits whose parents a shallow clone lacks (gitrepository-layout(5))."""


def check_out_commit(site: IssueWorktree, standing: Mapping[str, str], head_sha: str) -> None:
    """Write a new agent's git directory for a restored worktree, with HEAD at its commit."""
    place = site.paths
    site.cleaner.set_aside(place.agent_git_dir, place.name)
    refs = {**standing, f"refs/heads/{site.branch}": head_sha}
    objects = site.mirror.paths.mirror / "objects"
    sources = (place.git_dir / "index", objects)
    agent_git_directory.write(place.agent_git_dir, refs, site.branch, sources, site.mirror.excluded)
    with suppress(FileNotFoundError):
        shutil.copyfile(site.mirror.paths.mirror / SHALLOW, place.agent_git_dir / SHALLOW)
    (place.tree / ".git").write_text(f"gitdir: {place.agent_git_dir}\n")


# Commit the agent's work.

MAX_LISTED_BYTES = 4 * 1024 * 1024
"""Limit of the names of changed files to read."""

ADDED_NAMES_BYTES = 4 * 1024 * 1024
ADDED_NAMES_TIMEOUT = timedelta(seconds=20)
MAX_FORCED = 10_000
"""Limit of committed paths to search for ignored files."""

MAX_START_LINKS = 20_000
"""Limit of links of the start tree to read; hardly any repository has a thousand."""

MAX_NAMED_PATHS = 20
"""Limit of paths to name that are not part of a change."""


QUICK_SECONDS = 60.0
UNREAD = (
    "Git could not read in time what the agent left. Leave fewer and smaller files, and shorter "
    "lists of what git ignores."
)


def capture(
    site: IssueWorktree,
    start_sha: str,
    text: CommitText,
    settings: CommitSettings,
    scope: Scope,
    further: FurtherFiles,
) -> Change:
    """Commit the agent's tree, with Mulligan's own index and identity."""
    place = site.paths
    if place.tree.is_symlink() or not place.tree.is_dir():
        site.cleaner.set_aside(place.tree, place.name)
        place.tree.mkdir()
    site.cleaner.open(place.tree)
    with meanwhile(lambda: _search(site)) as searched:
        left = _read_agent_commits(site, start_sha)
        start_tree = site.git.line("rev-parse", f"{start_sha}^{{tree}}")
        index = good_index(site, start_sha)
        found, agents = searched()
        submodules = submodules_in(index)
        kept = {} if found.is_clean else _clean(site, submodules)
        excluded = excluded_from(site, found, index)
    further.restore(site, start_sha, scope)
    measured = measure(site, excluded.directories, scope)
    if measured.unread:
        return Change(start_sha, None, left.commits + 1, unread=measured.unread)
    tree, large = _write_tree(site, start_sha, left, excluded, (measured.large, scope))
    committed = start_tree if left.head == start_sha else _committed_tree(site, left, start_tree)
    uncommitted = tree != committed
    commits = left.commits + int(uncommitted)
    links = changed_links(_with_agent_objects(site), submodules, left.head, start_sha)
    unchanged = {path: sha for path, sha in submodules.items() if path not in links}
    inside = read_submodules(site, unchanged, kept, further.submodules)
    nested = (path for path in excluded.nested if path in agents)
    change = Change(
        start_sha,
        None,
        commits,
        nested=_named((*nested, *inside.unknown)),
        submodule_files=_named(inside.changed),
        submodule_links=_named(links),
        too_large=tuple(zip(_named(large), large.values(), strict=False)),
    )
    if tree == start_tree:
        unseen = unseen_work(left, _with_agent_objects(site), (start_sha, start_tree))
        return replace(
            change, ignored_files=_named(_ignored(site, excluded)), not_checked_out=_named(unseen)
        )
    head_sha = _commit(site, tree, start_sha, message_of(text, settings), settings)
    with meanwhile(lambda: diff_of(site, start_sha, head_sha)) as diff:
        files, written = _changed_files(site, start_sha, head_sha)
        return replace(
            change,
            head_sha=head_sha,
            files=files,
            leftovers=_named((*left_by_tools(site, excluded), *inside.output)),
            raw_lfs_files=_named(
                raw_lfs_files(site, start_sha, written) if has_attributes(index) else ()
            ),
            links=_links(site, index),
            diff=diff(),
        )


def _links(site: IssueWorktree, index: Sequence[bytes]) -> tuple[tuple[str, str], ...]:
    """Read where the links of the start tree lead."""
    blobs = dict(islice(links_in(index).items(), MAX_START_LINKS))
    contents = small_blobs(site, {*blobs.values()})
    return tuple((path, _text(contents[blob])) for path, blob in blobs.items())


def _search(site: IssueWorktree) -> tuple[FoundDirectories, frozenset[str]]:
    """List the repositories and directories of tools in the tree, and the agent's repositories.

    Setup commands and package managers leave repositories, too, in which nobody worked.
    """
    found = site.cleaner.search(site.paths.tree)
    made = (
        path
        for path in written_by_agent(site, found.repositories)
        if not leftover_in(f"{path}/", TOOL_LEFTOVERS)
    )
    return found, frozenset(made)


def _clean(site: IssueWorktree, submodules: Mapping[str, str]) -> dict[str, Path]:
    """Clean the tree; return the object directories of its submodules."""
    kept = keep_objects(site, submodules)
    site.cleaner.clean(site.paths.tree)
    return kept


def _read_agent_commits(site: IssueWorktree, start_sha: str) -> AgentCommits:
    place = site.paths
    if place.agent_git_dir.is_symlink() or not place.agent_git_dir.is_dir():
        return AgentCommits()
    site.cleaner.only_files(place.agent_git_dir)
    return agent_git_directory.read(place.agent_git_dir, _with_agent_objects(site), start_sha)


def _write_tree(
    site: IssueWorktree,
    start_sha: str,
    left: AgentCommits,
    excluded: Excluded,
    measured: tuple[Mapping[str, int], Scope],
) -> tuple[str, Mapping[str, int]]:
    """Write the agent's tree without files that are too large; return it, and those files."""
    directories, (large, scope) = excluded.directories, measured
    without = [f":(top,exclude,literal){path}" for path in (*directories, *large)]
    added = _add(site, ("-A",), [":/", *without] if without else ())
    # 1: git skipped a path that it refuses.
    if added.exit_code not in {0, 1} or FULL_DISK.shows_in(added.text):
        raise fault_of(added.text, f"git add for {site.mirror.name}")
    forced = [*_forced(site, start_sha, left, excluded), *unlike_leftovers(site, excluded)]
    sizes = sizes_of(site, forced)
    also = {path: size for path, size in sizes.items() if size > scope.max_file_bytes}
    large = {**large, **also}
    left_out = {*directories, *large}
    if forced := [path for path in forced if not is_below(path, left_out)]:
        _add(site, ("--force",), [f":(top,literal){path}" for path in forced])
    return site.git.line("write-tree"), large


def _add(site: IssueWorktree, options: Sequence[str], pathspecs: Sequence[str]) -> Finished:
    """Add files to the index; all without pathspecs, of which there may be very many."""
    listed = site.paths.git_dir / "to-add"
    listed.write_bytes(b"\0".join(map(os.fsencode, pathspecs)))
    chosen = (f"--pathspec-from-file={listed}", "--pathspec-file-nul") if pathspecs else ()
    return site.git.attempt(*("add", *options, "--ignore-errors", *chosen), timeout=RESET_TIMEOUT)


def _forced(
    site: IssueWorktree, start_sha: str, left: AgentCommits, excluded: Excluded
) -> list[str]:
    """List the ignored files that the agent committed explicitly and that are still in its tree."""
    if left.head is None or left.head == start_sha:
        return []
    # A few objects can stand for a tree of millions of paths.
    place = site.paths.git_dir / "added"
    _with_agent_objects(site).stream(
        *("diff-tree", "-r", "-z", "--name-only", "--no-renames", "--diff-filter=A"),
        *(start_sha, left.head),
        into=place,
        limit=ADDED_NAMES_BYTES,
        timeout=ADDED_NAMES_TIMEOUT,
    )
    # The last path may be truncated.
    *names, _ = place.read_bytes().split(b"\0")
    place.unlink()
    patterns = (*site.mirror.litter, *excluded.tools)
    wanted = (name for name in map(os.fsdecode, names) if _is_work(name, patterns))
    return [name for name in islice(wanted, MAX_FORCED) if _in_tree(site.paths.tree, name)]


def _is_work(name: str, patterns: Sequence[str]) -> bool:
    return bool(name) and not leftover_in(name, patterns)


def _is_directory(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _in_tree(tree: Path, name: str) -> bool:
    """Return whether a path exists in the tree without passing through a link."""
    root = Path(os.path.realpath(tree))
    parent = (root / name).parent
    return os.path.lexists(root / name) and os.path.realpath(parent) == str(parent)


def _committed_tree(site: IssueWorktree, left: AgentCommits, start_tree: str) -> str:
    if left.head is None:
        return start_tree
    found = _with_agent_objects(site).query("rev-parse", "--verify", f"{left.head}^{{tree}}")
    return start_tree if found.exit_code else found.text


def _with_agent_objects(site: IssueWorktree) -> Repository:
    """Return the repository with the agent's objects added, without its configuration and refs."""
    return replace(site.git, alternates=(site.paths.agent_git_dir / "objects",))


def _ignored(site: IssueWorktree, excluded: Excluded) -> Iterator[str]:
    """List ignored files that the agent wrote; those that agents and tools leave come last."""
    listed = site.git.read("ls-files", "-z", "--others", "--ignored", "--exclude-standard")
    is_leftover = partial(leftover_in, patterns=site.mirror.excluded)
    names = sorted(paths_of(listed), key=lambda name: bool(is_leftover(name)))
    yield from written_by_agent(site, names)
    if excluded.marked:
        yield from left_by_tools(site, replace(excluded, tools=()))


def _named(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the first paths as text; bytes that are not UTF-8 are replaced."""
    return tuple(
        os.fsencode(path).decode(errors="replace") for path in islice(paths, MAX_NAMED_PATHS)
    )


def _commit(
    site: IssueWorktree, tree: str, start_sha: str, message: str, settings: CommitSettings
) -> str:
    identity, key = identity_of(settings), site.mirror.signing_key
    head_sha = commit_tree(site.git, tree, [start_sha], message, identity, key)
    site.mirror.set_ref(f"refs/heads/{site.branch}", head_sha)
    return head_sha


# Describe the change.

CAPTURED_DIFF_BYTES = 64 * 1024 * 1024
"""Limit of a stored diff; the commit holds all of it."""

DIFF_TIMEOUT = timedelta(minutes=5)


def diff_of(
    site: IssueWorktree, start_sha: str, head_sha: str, limit: int = CAPTURED_DIFF_BYTES
) -> bytes:
    """Return the diff as text; cut it off at `limit` bytes or after DIFF_TIMEOUT."""
    place = site.paths.git_dir / "changes.diff"
    finished = site.git.stream(
        *("diff", "--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none"),
        *("-M", start_sha, head_sha, "--"),
        into=place,
        limit=limit,
        timeout=DIFF_TIMEOUT,
    )
    diff = place.read_bytes()
    place.unlink()
    omitted = finished.output_bytes - len(diff)
    if omitted or finished.stopped_by:
        diff += f"\n[... {omitted or 'more'} bytes omitted]\n".encode()
    return diff


MAX_LINKS = 200
"""Limit of symbolic links to read from a change; guards refuse a change with more."""

MAX_NAMED = 200
"""Limit of files to read one by one from a tree; of more, the whole tree is listed."""

UNKNOWN = "\N{REPLACEMENT CHARACTER}"
"""In a path: its bytes are not UTF-8, so git would not find it by this name."""

BINARY = b"-"

SYMLINK, NO_FILE, DELETED = "120000", "000000", "D"


def _changed_files(
    site: IssueWorktree, start_sha: str, head_sha: str
) -> tuple[tuple[FileChange, ...], Mapping[str, tuple[str, int]]]:
    """Describe the changed files, and map the written ones to their blobs and sizes."""
    listed = site.git.read(
        *("diff-tree", "-r", "-z", "--raw", "--numstat", "-M"),
        *("--ignore-submodules=none", start_sha, head_sha),
    )
    changes = changes_of(listed)
    names = [change.path for change in changes]
    # Reading the sizes of all 11,000 files of a tree takes longer than all other commands.
    is_exact = len(names) <= MAX_NAMED and not any(UNKNOWN in name for name in names)
    entries = entries_of(
        site.git.read(
            *("--literal-pathspecs", "ls-tree", "-r", "-l", "-z", "--full-tree", head_sha),
            *("--", *names) if is_exact else (),
        )
    )
    changed = {name: entries[name] for name in names if name in entries}
    blobs = dict.fromkeys(entry.blob for entry in changed.values() if entry.mode == SYMLINK)
    links = {
        blob: site.git.read("cat-file", "blob", blob).decode(errors="replace")
        for blob in islice(blobs, MAX_LINKS)
    }
    written = {
        name: (entry.blob, entry.size)
        for name, entry in changed.items()
        if entry.size is not None and entry.mode != SYMLINK
    }
    return measured(changes, entries, links), written


def changes_of(output: bytes) -> tuple[FileChange, ...]:
    """Parse `git diff-tree -r -z --raw --numstat -M`; keep git's order.

    Bytes of a name that are not UTF-8 are replaced.
    """
    tokens = iter(output.split(b"\0"))
    raw, files = dict[bytes, FileChange](), list[FileChange]()
    for token in tokens:
        if token.startswith(b":"):
            path, change = _raw(token, tokens)
            raw[path] = change
        elif token:
            plus, minus, path = token.split(b"\t", 2)
            if not path:
                # A renamed file has both paths.
                _, path = next(tokens), next(tokens)
            files.append(_counted(raw[path], plus, minus))
    return tuple(files)


def _raw(token: bytes, tokens: Iterator[bytes]) -> tuple[bytes, FileChange]:
    """Parse `:100644 100644 <blob> <blob> R087`, and the one or two names after it."""
    before, after, _, _, letter = token[1:].decode().split(" ")
    path = old = next(tokens)
    if letter.startswith("R"):
        path = next(tokens)
    return path, FileChange(
        path=_text(path),
        status=letter[:1],
        old_path=None if path is old else _text(old),
        mode=before if after == NO_FILE else after,
    )


def _counted(change: FileChange, plus: bytes, minus: bytes) -> FileChange:
    if BINARY in {plus, minus}:
        return change
    return change.model_copy(update={"insertions": int(plus), "deletions": int(minus)})


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a tree; a submodule has no size."""

    mode: str
    blob: str
    size: int | None


def entries_of(output: bytes) -> dict[str, Entry]:
    """Parse `git ls-tree -r -l -z`, by path."""
    entries = dict[str, Entry]()
    for line in filter(None, output.split(b"\0")):
        about, _, path = line.partition(b"\t")
        mode, _, blob, size = about.decode().split()
        entries[_text(path)] = Entry(mode, blob, int(size) if size.isdigit() else None)
    return entries


def measured(
    changes: Sequence[FileChange], entries: Mapping[str, Entry], links: Mapping[str, str]
) -> tuple[FileChange, ...]:
    """Add to each change its size in the new tree and its link target; `links` maps blobs."""
    measured_changes = list[FileChange]()
    for change in changes:
        entry = entries.get(change.path)
        if entry:
            link = links.get(entry.blob) if entry.mode == SYMLINK else None
            measured_changes.append(change.model_copy(update={"size": entry.size, "link": link}))
        else:
            measured_changes.append(change)
    return tuple(measured_changes)


def _text(path: bytes) -> str:
    return path.decode(errors="replace")
