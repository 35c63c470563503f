"""The plainest worktrees: files in a new directory for every attempt, and no process of git.

The objects and refs are git's own (world/git_objects.py), so that the simulated GitHub and the
tests see in the remote repository what real worktrees would have pushed. It keeps all that it has
in its directory: who deletes that has a machine that knows nothing. An agent finds no `.git` here;
where it or a check uses git, real worktrees are needed. Two changes of one file always conflict.
"""

import shutil
import subprocess
import tempfile
from collections.abc import Collection, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from pathspec import GitIgnoreSpec
from pydantic import BaseModel, ValidationError

from mulligan.config.policy import CheckoutSettings, CommitSettings, Scope
from mulligan.domain.attempt import Change
from mulligan.domain.attempt_times import Copies
from mulligan.domain.errors import DeniedError, MisconfiguredError, UnavailableError
from mulligan.domain.image import Image
from mulligan.domain.issue import BRANCH_DIRECTORY, HEADS, IssueRef, check_branches
from mulligan.domain.layer import Layer
from mulligan.git.worktrees.sizes import DEFAULT_SCOPE
from mulligan.implement.commit_message import CommitText
from mulligan.implement.ports import GitWriter, PullRequestBase, Worktrees
from world.git_diffs import diff_text, differences, file_change
from world.git_objects import FILE, LINK, PROGRAM, Entry, Files, ObjectStore

HOOKS = ("pre-receive", "update")
"""Hooks with which a remote repository accepts no push. They are not run: some kill the caller."""
NO_PULL_REQUEST = PullRequestBase(frozenset())


class Clones(Worktrees, GitWriter, Protocol):
    """The git ports: reading and writing."""


class Packed(BaseModel):
    """The objects of a commit by kind and content, and the commits that they need."""

    below: list[str]
    objects: list[tuple[str, str]]


def names_in(paths: Iterable[str], directories: Sequence[str]) -> tuple[str, ...]:
    """List the paths directly in directories, "." for the root."""
    found = dict[str, None]()
    for directory in directories:
        below = "" if directory == "." else f"{directory}/"
        inside = (path.removeprefix(below) for path in paths if path.startswith(below))
        found |= dict.fromkeys(f"{below}{name.partition('/')[0]}" for name in inside)
    return tuple(found)


def write_files(store: ObjectStore, sha: str, directory: Path) -> None:
    """Write the files of a commit, or of a tree."""
    for name, entry in store.files(sha).items():
        place = directory / name
        place.parent.mkdir(parents=True, exist_ok=True)
        content = store.blob(entry.sha)
        if entry.mode == LINK:
            place.symlink_to(content.decode())
        else:
            place.write_bytes(content)
            place.chmod(0o755 if entry.mode == PROGRAM else 0o644)


@dataclass(frozen=True)
class PlainWorktree:
    """A directory with the files of a commit; it never has to be made anew, since it always is."""

    store: ObjectStore
    path: Path
    private: Path
    base_sha: str
    start_sha: str
    head_sha: str | None = None
    bases: tuple[str, ...] = ()
    standing: PullRequestBase = NO_PULL_REQUEST
    recreated: bool = False
    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    set_up_files: Path | None = None
    layer: Layer | None = None
    agent_layer: Layer | None = None
    image: Image | None = None
    copies: Copies = field(default_factory=Copies)

    def with_checkout(self, settings: CheckoutSettings) -> "PlainWorktree":
        """Return itself: no test that uses it has submodules."""
        assert settings == CheckoutSettings()
        return self

    def with_image(self, image: Image) -> "PlainWorktree":
        return replace(self, image=image)

    def with_copies(self) -> "PlainWorktree":
        """Return itself: it has no layers."""
        return self

    @property
    def pull_request_diff(self) -> bytes:
        if self.head_sha is None:
            return b""
        (fork, *_) = merge_bases(self.store, self.head_sha, *self.bases)
        return diff_text(self.store, self.store.files(fork), self.store.files(self.head_sha))

    def capture(
        self, text: CommitText, settings: CommitSettings, scope: Scope = DEFAULT_SCOPE
    ) -> Change:
        before, after = self.store.files(self.start_sha), self._read()
        if after == before:
            return Change(self.start_sha, None, 0)
        if self._is_proposed(after):
            return Change(self.start_sha, None, 1, is_proposed=True)
        message = _message(text, settings)
        tree, who = self.store.write_tree(after), f"{settings.name} <{settings.email}>"
        head = self.store.write_commit(tree, [self.start_sha], message, who)
        found = tuple(file_change(self.store, each) for each in differences(before, after))
        return Change(self.start_sha, head, 1, found, diff_text(self.store, before, after))

    @property
    def fork_sha(self) -> str:
        is_proposed = self.head_sha == self.start_sha
        return (
            merge_bases(self.store, self.start_sha, *self.bases)[0]
            if is_proposed
            else self.start_sha
        )

    def blobs(self, sha: str) -> dict[str, str]:
        return {path: entry.sha for path, entry in self.store.files(sha).items()}

    def with_set_up(self, key: str) -> None:
        """Keep nothing between attempts."""

    def keep_set_up(self, key: str = "") -> "PlainWorktree":
        return self

    def check_out(self, head_sha: str, *, for_agent: bool = False) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        self.path.mkdir()
        write_files(self.store, head_sha, self.path)

    def start_with(self, head_sha: str, paths: Collection[str]) -> str:
        ours, theirs = self.store.files(self.start_sha), self.store.files(head_sha)
        kept = {path: entry for path, entry in ours.items() if path not in paths}
        laid = {path: theirs[path] for path in paths if path in theirs}
        tree = self.store.write_tree({**kept, **laid})
        return self.store.write_commit(tree, [self.start_sha], "tests", "mulligan <mulligan>")

    def changed_files(self, head_sha: str) -> tuple[str, ...]:
        found = self._read()
        tracked = self.store.files(head_sha).items()
        return tuple(name for name, entry in tracked if found.get(name) != entry)

    @contextmanager
    def base_checkout(self, change_sha: str) -> Generator[tuple["PlainWorktree", Path]]:
        files = self.path.with_name(f"{self.path.name}-change")
        replace(self, path=files).check_out(change_sha)
        with self.pristine_checkout(self.fork_sha):
            yield self, files

    @contextmanager
    def beside(self) -> Generator["PlainWorktree"]:
        place = Path(tempfile.mkdtemp(dir=self.path.parent))
        (place / "private").mkdir()
        try:
            yield replace(self, path=place / "tree", private=place / "private")
        finally:
            shutil.rmtree(place)

    @contextmanager
    def pristine_checkout(self, sha: str) -> Generator[None]:
        aside = self.path.with_name(f"{self.path.name}-aside")
        self.path.rename(aside)
        self.check_out(sha)
        yield
        subprocess.run(["rm", "-rf", str(self.path)], check=True)
        aside.rename(self.path)

    def _read(self) -> dict[str, Entry]:
        """Read the files as git would add them: none that are new and ignored."""
        known, rules = self.store.files(self.start_sha), self.path / ".gitignore"
        ignored = GitIgnoreSpec.from_lines(rules.read_text().splitlines() if rules.exists() else ())
        found = dict[str, Entry]()
        for place in sorted(self.path.rglob("*")):
            name = str(place.relative_to(self.path))
            if place.is_symlink():
                found[name] = Entry(LINK, self.store.write("blob", str(place.readlink()).encode()))
            elif place.is_file() and (name in known or not ignored.match_file(name)):
                mode = PROGRAM if place.stat().st_mode & 0o100 else FILE
                found[name] = Entry(mode, self.store.write("blob", place.read_bytes()))
        return found

    def _is_proposed(self, files: Files) -> bool:
        """Compare with the pull request as it is, and on a review as it were on this base."""
        if not self.standing.is_answered or self.head_sha is None:
            return False
        if files == self.store.files(self.head_sha):
            return True
        if not self.standing.is_reviewed or self.start_sha != self.base_sha:
            return False
        merged, conflicts = merged_files(self.store, self.base_sha, self.head_sha)
        return not conflicts and files == merged


@dataclass(frozen=True)
class PlainWorktrees:
    """Worktrees of one remote repository; `root` has all objects that were fetched or made."""

    root: Path
    remote: Path
    branch: str = "main"

    def fetch_base(self, repository: str) -> None:
        """Fetch the base branch."""
        self._fetch()

    def check_branch_names(
        self, repository: str, issue: IssueRef | None = None, own: Collection[str] = ()
    ) -> None:
        """Refuse where a branch is in the way of Mulligan's."""
        heads = ObjectStore(self.remote).heads(f"{HEADS}{BRANCH_DIRECTORY}")
        check_branches(heads, repository, issue, own)

    @contextmanager
    def open(
        self, ref: IssueRef, standing: PullRequestBase | None = None
    ) -> Generator[PlainWorktree]:
        sha = self._fetch()
        head = self._head(ref) if standing else None
        about = standing if standing and head else NO_PULL_REQUEST
        bases = self._bases(sha, head or "", about)
        start = head if head and self._others(bases, head, about.own) else sha
        place = Path(tempfile.mkdtemp(dir=self.root))
        (place / "private").mkdir()
        made = PlainWorktree(
            self.store, place / "tree", place / "private", sha, start, head, bases, about
        )
        made.check_out(start)
        yield made
        shutil.rmtree(place)

    def base_file(self, repository: str, path: str, sha: str | None = None) -> bytes | None:
        known = sha or self.base_sha(repository)
        found = self.store.files(known).get(path) if known else None
        return self.store.blob(found.sha) if found else None

    def base_subjects(self, repository: str, sha: str, most: int) -> tuple[str, ...]:
        return ()

    def base_names(self, repository: str, *directories: str) -> tuple[str, ...]:
        known = self.base_sha(repository)
        return names_in(self.store.files(known) if known else {}, directories)

    def base_tree(self, repository: str, path: str, sha: str) -> str | None:
        below = "" if path == "." else f"{path}/"
        files = self.store.files(sha).items()
        found = {name.removeprefix(below): each for name, each in files if name.startswith(below)}
        return self.store.write_tree(found) if found else None

    def write_tree(self, repository: str, tree: str, place: Path) -> None:
        write_files(self.store, tree, place)

    def base_branch(self, repository: str) -> str:
        return self.branch

    def store_commit(self, ref: IssueRef, head_sha: str, place: Path) -> None:
        if not place.exists():
            place.write_bytes(_packed_up(self.store, head_sha, self._fetch()))

    def ensure_commit(self, ref: IssueRef, head_sha: str, bundle: Path) -> bool:
        self._fetch()
        if not self.store.has(head_sha):
            self._head(ref)
            _unpack(self.store, bundle)
        return self.store.has(head_sha)

    def base_sha(self, repository: str) -> str | None:
        return self.store.branch(self.branch)

    def conflicts(self, ref: IssueRef, base_sha: str, head_sha: str) -> tuple[str, ...]:
        return merged_files(self.store, base_sha, head_sha)[1]

    def is_behind(self, ref: IssueRef, base_sha: str, head_sha: str) -> bool:
        self._fetch()
        self._head(ref)
        here = self.store.has(base_sha) and self.store.has(head_sha)
        return here and base_sha not in self.store.ancestors(head_sha)

    def is_in_base(self, ref: IssueRef, start_sha: str, base_sha: str) -> bool:
        now = self._fetch()
        if not self.store.has(base_sha):
            return False
        return {*merge_bases(self.store, start_sha, base_sha)} <= self.store.ancestors(now)

    def merge(
        self, ref: IssueRef, base_sha: str, head_sha: str, settings: CommitSettings
    ) -> str | None:
        files, conflicts = merged_files(self.store, base_sha, head_sha)
        if conflicts:
            return None
        when = max(self.store.commit(sha).time for sha in (base_sha, head_sha))
        who = f"{settings.name} <{settings.email}>"
        tree = self.store.write_tree(files)
        return self.store.write_commit(tree, [head_sha, base_sha], "Merge\n", who, when)

    def remote_head(self, ref: IssueRef) -> str | None:
        return ObjectStore(self.remote).branch(ref.branch)

    def delete_branch(self, ref: IssueRef, own: Collection[str]) -> bool:
        head = self._head(ref)
        if head is None or self._others((self._fetch(),), head, own):
            return False
        (self.remote / "refs" / "heads" / ref.branch).unlink()
        return True

    def push(self, ref: IssueRef, head_sha: str, expected: str | None) -> None:
        self._there()
        held = self.remote_head(ref)
        if held not in {None, expected, head_sha}:
            message = f"The branch {ref.branch} holds commits of somebody else; delete it."
            raise DeniedError(message)
        if held != head_sha:
            self._send(f"refs/heads/{ref.branch}", head_sha)

    def push_attempt(self, ref: IssueRef, head_sha: str, number: int) -> str:
        name = f"refs/mulligan/attempts/{ref.number}-{number}"
        self._send(name, head_sha)
        return name

    def exists(self, ref: IssueRef) -> bool:
        """Say that no directory outlives its attempt."""
        return False

    def discard(self, ref: IssueRef) -> None:
        """Do nothing: there is nothing to remove."""

    @property
    def store(self) -> ObjectStore:
        return ObjectStore(self.root / "kept.git")

    def _send(self, name: str, sha: str) -> None:
        """Push a commit to a ref of the remote, unless that has a hook."""
        if any((self.remote / "hooks" / hook).exists() for hook in HOOKS):
            message = "The push was declined; change the rule."
            raise DeniedError(message)
        if not self.store.has(sha):
            message = f"The commit {sha} is gone."
            raise DeniedError(message)
        ObjectStore(self.remote).copy(self.store, sha)
        ObjectStore(self.remote).set_ref(name, sha)

    def _head(self, ref: IssueRef) -> str | None:
        """Fetch the issue's branch."""
        head = self.remote_head(ref)
        if head:
            self.store.copy(ObjectStore(self.remote), head)
        return head

    def _bases(self, base: str, head: str, standing: PullRequestBase) -> tuple[str, ...]:
        """List what the base branch is, and was where Mulligan's own head was made on it."""
        had = sorted(standing.bases) if head in standing.own else []
        return (base, *(sha for sha in had if self.store.has(sha)))

    def _others(self, bases: Collection[str], head: str, own: Collection[str]) -> set[str]:
        return self.store.ancestors(head) - self.store.ancestors(*bases) - {*own}

    def _there(self) -> None:
        if not self.remote.exists():
            message = f"{self.remote} is away; try again."
            raise UnavailableError(message)

    def _fetch(self) -> str:
        self._there()
        remote = ObjectStore(self.remote)
        sha = remote.branch(self.branch)
        if sha is None:
            message = f"There is no branch {self.branch}; push one."
            raise MisconfiguredError(message)
        if not self.store.exists:
            self.store.make(self.branch)
        if self.store.branch(self.branch) != sha:
            self.store.copy(remote, sha)
            self.store.set_ref(f"refs/heads/{self.branch}", sha)
        return sha


def merge_bases(store: ObjectStore, head: str, *others: str) -> list[str]:
    """List where a line of work parted from others: what they share, and nothing below that."""
    shared = store.ancestors(head) & store.ancestors(*others)
    below = {up for sha in shared for up in store.ancestors(*store.commit(sha).parents)}
    return sorted(shared - below)


def merged_files(store: ObjectStore, base: str, head: str) -> tuple[Files, tuple[str, ...]]:
    """Merge two commits by file; list the files that both changed, each in another way."""
    forks = merge_bases(store, head, base)
    before = store.files(forks[0]) if forks else dict[str, Entry]()
    one, other = store.files(base), store.files(head)
    merged, conflicts = dict[str, Entry](), list[str]()
    for path in sorted({*before, *one, *other}):
        was, ours, theirs = before.get(path), one.get(path), other.get(path)
        if was not in {ours, theirs} and ours != theirs:
            conflicts.append(path)
        chosen = theirs if ours == was else ours
        if chosen:
            merged[path] = chosen
    return merged, tuple(conflicts)


def _message(text: CommitText, settings: CommitSettings) -> str:
    lines = [text.subject, "", text.body]
    if text.co_author:
        address = f"{text.co_author}@users.noreply.github.com"
        lines.append(f"Co-authored-by: {text.co_author} <{address}>")
    if settings.signoff:
        lines.append(f"Signed-off-by: {settings.name} <{settings.email}>")
    return "\n".join((*lines, ""))


def _packed_up(store: ObjectStore, head: str, base: str) -> bytes:
    """Write the objects of a commit that the base branch lacks, and name the commits below."""
    made = store.ancestors(head) - store.ancestors(base)
    below = sorted({up for sha in made for up in store.commit(sha).parents} - made)
    objects = sorted(store.reachable(head) - store.reachable(base))
    told = ((kind, content.hex()) for kind, content in map(store.read, objects))
    return Packed(below=below, objects=[*told]).model_dump_json().encode()


def _unpack(store: ObjectStore, bundle: Path) -> None:
    """Import the output of `_packed_up`, if all ancestors are here."""
    try:
        found = Packed.model_validate_json(bundle.read_bytes())
    except (FileNotFoundError, ValidationError):
        return
    if all(map(store.has, found.below)):
        for kind, content in found.objects:
            store.write(kind, bytes.fromhex(content))
