"""Bare mirror of a repository: fetched by literal URL, without remotes, hooks or drivers."""

import tempfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

from mulligan.domain.errors import MisconfiguredError, UnavailableError
from mulligan.domain.issue import COMMIT_SHA
from mulligan.git.commits import SigningKey
from mulligan.git.faults import DamagedError
from mulligan.git.repository import Remote, Repository
from mulligan.git.worktrees.files import TreeCleaner, locked, write_whole
from mulligan.git.worktrees.naming import (
    ATTRIBUTES,
    BASE_REF,
    TOOL_LEFTOVERS,
    RepositoryPaths,
    binary_attribute,
)

WORK_REFS = "refs/heads/mulligan/*"
"""The refs that keep Mulligan's commits, pushed or not."""
FETCH_TIMEOUT = timedelta(hours=2)
WRITE_TIMEOUT = timedelta(minutes=30)
MAX_PACKS = 50
MAX_COMMIT = 1024 * 1024
"""Limit of a commit in bytes to read without git."""
TRASH_OWNER = "mirror"


@dataclass(frozen=True, slots=True)
class Mirror:
    """A repository as last fetched; HEAD is the base branch at that time.

    `litter` are patterns of files that agents leave and that are not part of a change. The
    `signing_key` signs the commits that Mulligan makes here.
    """

    name: str
    paths: RepositoryPaths
    outer: Mapping[str, str] = field(repr=False)
    litter: tuple[str, ...] = ()
    signing_key: SigningKey | None = None

    @property
    def git(self) -> Repository:
        """The mirror as a repository without a worktree."""
        return Repository(self.name, self.paths.mirror, self.outer)

    @property
    def excluded(self) -> tuple[str, ...]:
        """The patterns of files that git ignores here besides those in .gitignore files."""
        return (*self.litter, *TOOL_LEFTOVERS)

    @property
    def cleaner(self) -> TreeCleaner:
        """The cleaner for this repository's directories."""
        return TreeCleaner(self.paths.trash, self.outer)

    def fetch(self, remote: Remote, base: str) -> str:
        """Fetch the base branch; return its commit."""
        with locked(self.paths.mirror_lock, FETCH_TIMEOUT, f"the mirror of {self.name}"):
            self._prepare()
            try:
                sha = self._fetch(remote, base)
            except DamagedError:
                return self._make_anew(remote, base)
            self._join_packs()
            return sha

    def recreate(self, remote: Remote, base: str) -> str:
        """Replace a damaged mirror; keep all of Mulligan's commits that can still be read."""
        with locked(self.paths.mirror_lock, FETCH_TIMEOUT, f"the mirror of {self.name}"):
            return self._make_anew(remote, base)

    def base_sha(self) -> str | None:
        """Return the base branch's commit as last fetched; None before the first fetch."""
        # Each poll reads this for every repository; git itself keeps the commit in this file.
        try:
            sha = (self.paths.mirror / f"{BASE_REF}{self.base_branch()}").read_text().strip()
        except (OSError, UnicodeDecodeError):
            return None
        return sha if COMMIT_SHA.fullmatch(sha) else None

    def base_branch(self) -> str | None:
        """Return the base branch's name as last fetched."""
        try:
            head = (self.paths.mirror / "HEAD").read_text()
        except (OSError, UnicodeDecodeError):
            return None
        return head.strip().partition(BASE_REF)[2] or None

    def file(self, path: str, sha: str) -> bytes | None:
        """Read a file of a commit; None if the commit has no such file."""
        if not self.has(sha):
            message = f"The commit {sha} of {self.name} is not in the local mirror; fetch it again."
            raise UnavailableError(message)
        # An unreadable file must not count as a missing one.
        listed, _, _ = self.git.line("ls-tree", sha, "--", path).partition("\t")
        kind, _, blob = listed.partition(" ")[2].partition(" ")
        return self.git.read("cat-file", "blob", blob) if kind == "blob" else None

    def tree(self, path: str, sha: str) -> str | None:
        """Return the id of a directory of a commit; None if the commit has no such directory."""
        if path == ".":
            return self.git.line("rev-parse", f"{sha}^{{tree}}")
        listed, _, _ = self.git.line("ls-tree", sha, "--", path).partition("\t")
        kind, _, tree = listed.partition(" ")[2].partition(" ")
        return tree if kind == "tree" else None

    def write_tree(self, tree: str, place: Path) -> None:
        """Write the files of a directory, by its id, into an empty directory."""
        with tempfile.TemporaryDirectory(prefix="mulligan-") as scratch:
            index = {"GIT_INDEX_FILE": str(Path(scratch, "index"))}
            git = replace(self.git, work_tree=place, extra=index)
            git.run("read-tree", "--reset", "-u", tree, timeout=WRITE_TIMEOUT)

    def names(self, directories: Sequence[str], sha: str) -> tuple[str, ...]:
        """List the paths directly in directories of a commit; none in one that does not exist."""
        places = (f"{directory}/" for directory in directories)
        listed = self.git.read("ls-tree", "-z", "--name-only", sha, "--", *places)
        return tuple(name.decode(errors="replace") for name in listed.split(b"\0") if name)

    def has(self, sha: str) -> bool:
        """Return whether the mirror has a commit."""
        return bool(self._loose_commit(sha)) or not (
            self.git.query("cat-file", "-e", f"{sha}^{{commit}}").exit_code
        )

    def parents(self, sha: str) -> Sequence[str]:
        """Return the parents of a commit; none if the mirror does not have it."""
        text = self._loose_commit(sha)
        if not text:
            text = self.git.query("cat-file", "commit", sha).output
        header = text.partition(b"\n\n")[0].decode(errors="replace")
        return [line.partition(" ")[2] for line in header.split("\n") if line.startswith("parent ")]

    def _loose_commit(self, sha: str) -> bytes:
        """Read a commit that Mulligan has just made, without a process; empty if git packed it.

        The format is that of gitformat-loose(5): a file of zlib, which begins with type and size.
        """
        unpacked = zlib.decompressobj()
        try:
            packed = (self.paths.mirror / "objects" / sha[:2] / sha[2:]).read_bytes()
            kind, _, text = unpacked.decompress(packed, MAX_COMMIT).partition(b"\0")
        except (OSError, zlib.error):
            return b""
        is_whole = kind == b"commit %d" % len(text) and unpacked.eof
        return text if is_whole else b""

    def set_ref(self, name: str, sha: str) -> None:
        """Set a ref of Mulligan's own, which only the holder of the issue's lock writes."""
        ref = self.paths.mirror / name
        ref.parent.mkdir(parents=True, exist_ok=True)
        # If Mulligan is killed meanwhile, git does not take a `.lock` for another ref.
        write_whole(ref, f"{sha}\n".encode(), ".lock")

    def disable_conversion(self, paths: Sequence[bytes]) -> None:
        """Disable line-ending conversion for files that the repository holds unconverted."""
        with locked(self.paths.mirror_lock, FETCH_TIMEOUT, f"the mirror of {self.name}"):
            attributes = self.paths.mirror / "info" / "attributes"
            lines = attributes.read_bytes().splitlines()
            new = [line for path in paths if (line := binary_attribute(path)) not in lines]
            write_whole(attributes, b"".join(line + b"\n" for line in (*lines, *new)))

    def _prepare(self) -> None:
        mirror = self.paths.mirror
        mirror.mkdir(parents=True, exist_ok=True)
        if not (mirror / "HEAD").exists() or not (mirror / "config").exists():
            self.git.read("init", "-q", "--bare", "--template=", "--object-format=sha1")
        (mirror / "info").mkdir(exist_ok=True)
        exclude = "".join(f"{pattern}\n" for pattern in self.excluded)
        write_whole(mirror / "info" / "exclude", exclude.encode())
        attributes = mirror / "info" / "attributes"
        if not attributes.exists():
            write_whole(attributes, f"{ATTRIBUTES}\n".encode())
        # From a fetch that was killed; no other process writes these while the lock is held.
        stale = [*(mirror / BASE_REF).rglob("*.lock"), *mirror.glob("*.lock")]
        for lock in stale:
            lock.unlink(missing_ok=True)

    def _fetch(self, remote: Remote, base: str) -> str:
        ref = f"{BASE_REF}{base}"
        try:
            # Git ignores the branches of a shallow clone otherwise.
            remote.fetch(self.git, [f"+refs/heads/{base}:{ref}"], ("--update-shallow",))
        except UnavailableError as error:
            if "couldn't find remote ref" not in str(error):
                raise
            message = (
                f"{self.name} has no branch {base!r}; push a first commit to it, "
                "or set base_branch to another one."
            )
            raise MisconfiguredError(message) from error
        if self.base_branch() != base:
            self.git.read("symbolic-ref", "HEAD", ref)
        return self.base_sha() or self.git.line("rev-parse", "--verify", f"{ref}^{{commit}}")

    def _join_packs(self) -> None:
        """Join the small packs of many fetches; unlike `git gc`, delete no object."""
        if len(list((self.paths.mirror / "objects" / "pack").glob("*.pack"))) > MAX_PACKS:
            self.git.attempt("repack", "-q", "-d", "--geometric=2", timeout=FETCH_TIMEOUT)

    def _make_anew(self, remote: Remote, base: str) -> str:
        self.cleaner.set_aside(self.paths.mirror, TRASH_OWNER)
        self._prepare()
        sha = self._fetch(remote, base)
        for old in self.paths.trash.glob(f"{TRASH_OWNER}-*/{self.paths.mirror.name}"):
            self._rescue(old)
        self.cleaner.empty(TRASH_OWNER)
        return sha

    def _rescue(self, old: Path) -> None:
        """Copy Mulligan's own commits from a damaged mirror, as far as they can be read."""
        with_old = Repository(self.name, old, self.outer)
        refs = with_old.query("for-each-ref", "--format=%(refname)", WORK_REFS.rstrip("*"))
        for ref in refs.text.splitlines():
            self.git.attempt(
                *("fetch", "-q", "--no-tags", "--no-write-fetch-head", "--", str(old)),
                f"+{ref}:{ref}",
                timeout=FETCH_TIMEOUT,
            )
