"""The bare mirror of one repository: fetched by literal URL, no remote, no hooks, no drivers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from mulligan.domain.errors import MisconfiguredError, UnavailableError
from mulligan.domain.issue import COMMIT_SHA
from mulligan.git.faults import DamagedError
from mulligan.git.repository import Remote, Repository
from mulligan.git.worktrees.files import TreeCleaner, locked, write_whole
from mulligan.git.worktrees.naming import ATTRIBUTES, BASE_REF, RepositoryPaths, binary_attribute

WORK_REFS = "refs/heads/mulligan/*"
"""Where Mulligan's commits are kept, published or not."""
FETCH_TIMEOUT = timedelta(hours=2)
MAX_PACKS = 50
TRASH_OWNER = "mirror"


@dataclass(frozen=True, slots=True)
class Mirror:
    """A repository as it was fetched last; HEAD names the base branch of that time.

    `litter` is what agents leave in it that is no work.
    """

    name: str
    paths: RepositoryPaths
    outer: Mapping[str, str] = field(repr=False)
    litter: tuple[str, ...] = ()

    @property
    def git(self) -> Repository:
        """Give the mirror as a repository without files."""
        return Repository(self.name, self.paths.mirror, self.outer)

    @property
    def cleaner(self) -> TreeCleaner:
        """Give what clears directories of this repository."""
        return TreeCleaner(self.paths.trash, self.outer)

    def fetch(self, remote: Remote, base: str) -> str:
        """Bring the base branch up to date; give its commit."""
        with locked(self.paths.mirror_lock, FETCH_TIMEOUT, f"the mirror of {self.name}"):
            self._prepare()
            try:
                sha = self._fetch(remote, base)
            except DamagedError:
                return self._make_anew(remote, base)
            self._join_packs()
            return sha

    def recreate(self, remote: Remote, base: str) -> str:
        """Replace a mirror that proved to be broken; what work can be read is carried over."""
        with locked(self.paths.mirror_lock, FETCH_TIMEOUT, f"the mirror of {self.name}"):
            return self._make_anew(remote, base)

    def base_sha(self) -> str | None:
        """Give the base branch's commit as fetched last; None before the first fetch."""
        # A poll asks this of every repository; git itself keeps the commit in this file.
        try:
            sha = (self.paths.mirror / f"{BASE_REF}{self.base_branch()}").read_text().strip()
        except (OSError, UnicodeDecodeError):
            return None
        return sha if COMMIT_SHA.fullmatch(sha) else None

    def base_branch(self) -> str | None:
        """Give the base branch's name as of the last fetch."""
        try:
            head = (self.paths.mirror / "HEAD").read_text()
        except (OSError, UnicodeDecodeError):
            return None
        return head.strip().partition(BASE_REF)[2] or None

    def file(self, path: str, sha: str) -> bytes | None:
        """Read a file of a commit; None where that has no such file."""
        if not self.has(sha):
            message = f"The commit {sha} of {self.name} is not in the local mirror; fetch it again."
            raise UnavailableError(message)
        # A file that cannot be read must not be taken for one that is not there.
        listed, _, _ = self.git.line("ls-tree", sha, "--", path).partition("\t")
        kind, _, blob = listed.partition(" ")[2].partition(" ")
        return self.git.read("cat-file", "blob", blob) if kind == "blob" else None

    def names(self, directory: str, sha: str) -> tuple[str, ...]:
        """List the paths right below a directory of a commit; none where it has no such one."""
        listed = self.git.read("ls-tree", "-z", "--name-only", sha, "--", f"{directory}/")
        return tuple(name.decode(errors="replace") for name in listed.split(b"\0") if name)

    def has(self, sha: str) -> bool:
        """Tell whether a commit is here."""
        return not self.git.query("cat-file", "-e", f"{sha}^{{commit}}").exit_code

    def disable_conversion(self, paths: Sequence[bytes]) -> None:
        """Switch line-end conversion off for files that the repository holds unconverted."""
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
        exclude = "".join(f"{litter}\n" for litter in self.litter)
        write_whole(mirror / "info" / "exclude", exclude.encode())
        attributes = mirror / "info" / "attributes"
        if not attributes.exists():
            write_whole(attributes, f"{ATTRIBUTES}\n".encode())
        # Left by a fetch that was killed; nobody else writes these while the lock is held.
        stale = [*(mirror / BASE_REF).rglob("*.lock"), *mirror.glob("*.lock")]
        for lock in stale:
            lock.unlink(missing_ok=True)

    def _fetch(self, remote: Remote, base: str) -> str:
        ref = f"{BASE_REF}{base}"
        try:
            remote.fetch(self.git, [f"+refs/heads/{base}:{ref}"])
        except UnavailableError as error:
            if "couldn't find remote ref" not in str(error):
                raise
            message = (
                f"{self.name} has no branch {base!r}; push a first commit to it, "
                "or set base_branch to another one."
            )
            raise MisconfiguredError(message) from error
        self.git.read("symbolic-ref", "HEAD", ref)
        return self.git.line("rev-parse", "--verify", f"{ref}^{{commit}}")

    def _join_packs(self) -> None:
        """Join the small packs that fetches leave; unlike a gc, this drops no object at all."""
        if len(list((self.paths.mirror / "objects" / "pack").glob("*.pack"))) > MAX_PACKS:
            self.git.attempt("repack", "-q", "-d", "--geometric=2", patience=FETCH_TIMEOUT)

    def _make_anew(self, remote: Remote, base: str) -> str:
        self.cleaner.set_aside(self.paths.mirror, TRASH_OWNER)
        self._prepare()
        sha = self._fetch(remote, base)
        for old in self.paths.trash.glob(f"{TRASH_OWNER}-*/{self.paths.mirror.name}"):
            self._rescue(old)
        self.cleaner.empty(TRASH_OWNER)
        return sha

    def _rescue(self, old: Path) -> None:
        """Carry Mulligan's own commits over, as far as a broken mirror can still be read."""
        with_old = Repository(self.name, old, self.outer)
        refs = with_old.query("for-each-ref", "--format=%(refname)", WORK_REFS.rstrip("*"))
        for ref in refs.text.splitlines():
            self.git.attempt(
                *("fetch", "-q", "--no-tags", "--no-write-fetch-head", "--", str(old)),
                f"+{ref}:{ref}",
                patience=FETCH_TIMEOUT,
            )
