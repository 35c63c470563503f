"""Keep a few files on a ref of a remote repository, and replace them only if nobody else did."""

import shutil
import tempfile
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mulligan.domain.errors import UnavailableError, WorldError
from mulligan.git.commits import SigningKey, commit_tree
from mulligan.git.repository import Remote, Repository
from mulligan.sandbox.cancellation import defer_shutdown

IDENTITY = {
    f"GIT_{role}_{part}": value
    for role in ("AUTHOR", "COMMITTER")
    for part, value in (("NAME", "Mulligan"), ("EMAIL", "mulligan@users.noreply.github.com"))
}


class RefMovedError(UnavailableError):
    """Somebody else has written the ref since it was read; read it again."""


@dataclass(frozen=True, slots=True)
class RemoteRef:
    """A ref on a remote; `remote` is called each time, since tokens change.

    `title` is what its commits say. The `signing_key` signs them.
    """

    name: str
    title: str
    place: Path
    outer: Mapping[str, str]
    remote: Callable[[], Remote]
    signing_key: SigningKey | None = None

    def tip(self) -> str | None:
        """Return the commit that the ref names; None if there is no ref yet."""
        with defer_shutdown():
            return self.remote().head_of(self.git, self.name)

    def fetch(self) -> str:
        """Fetch the ref, and return its commit."""
        with defer_shutdown():
            self.remote().fetch(self.git, [f"+{self.name}:{self.name}"])
            return self.git.line("rev-parse", "--verify", self.name)

    def size(self, sha: str) -> int:
        """Return the bytes of all files of a fetched commit."""
        entries = self.git.read("ls-tree", "-r", "-l", "-z", sha).split(b"\0")
        sizes = [each.split()[3] for each in entries if each]
        return sum(int(each) for each in sizes if each.isdigit())

    def write(self, files: Mapping[str, bytes], before: str | None) -> str:
        """Make the ref hold the files; RefMovedError if it no longer names `before`.

        Return the new commit.
        """
        with defer_shutdown():
            sha = self._commit(self._tree(files), [])
            self._change(
                lambda remote: remote.push(self.git, sha, self.name, before), before, after=sha
            )
        return sha

    def add_to(self, base: str, files: Mapping[str, bytes]) -> str | None:
        """Make the ref, which must not exist, a commit that adds the files to a branch.

        Return the commit; None if the branch has these files.
        """
        tip = f"refs/heads/{base}"
        with defer_shutdown():
            self.remote().fetch(self.git, [f"+{tip}:{tip}"], ["--depth=1", "--no-tags"])
            parent = self.git.line("rev-parse", "--verify", tip)
            tree = self._tree(files, parent)
            if tree == self.git.line("rev-parse", "--verify", f"{parent}^{{tree}}"):
                return None
            sha = self._commit(tree, [parent])
            self._change(
                lambda remote: remote.push(self.git, sha, self.name, None), None, after=sha
            )
        return sha

    def delete(self, before: str) -> None:
        """Delete the ref; RefMovedError if it no longer names `before`."""
        with defer_shutdown():
            self._change(
                lambda remote: remote.delete(self.git, self.name, before), before, after=None
            )

    def _change(
        self, change: Callable[[Remote], None], before: str | None, after: str | None
    ) -> None:
        """Change the ref. A push that fails may have taken effect, so read the ref to decide."""
        try:
            change(self.remote())
        except WorldError as error:
            now = self.tip()
            if now not in {before, after}:
                message = f"{self.name} was changed by somebody else at the same time."
                raise RefMovedError(message) from error
            if now != after:
                raise

    def _commit(self, tree: str, parents: Sequence[str]) -> str:
        """Commit a tree; without a parent, no history grows."""
        return commit_tree(self.git, tree, parents, self.title, IDENTITY, self.signing_key)

    def _tree(self, files: Mapping[str, bytes], onto: str = "") -> str:
        """Write a tree of the files, added to those of the commit `onto`."""
        tree, index = self.place / "files", self.place / "index"
        shutil.rmtree(tree, ignore_errors=True)
        index.unlink(missing_ok=True)
        for name, content in files.items():
            path = tree / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        extra = {"GIT_INDEX_FILE": str(index)}
        work = Repository(self.git.name, self.git.git_dir, self.outer, tree, extra=extra)
        if onto:
            work.read("read-tree", onto)
        work.read("add", "--force", "--ignore-removal", "--", ".")
        return work.line("write-tree")

    @property
    def git(self) -> Repository:
        """The local repository for the commits."""
        return Repository(self.name, self.place / "ref.git", self.outer)

    def prepare(self) -> None:
        """Create the local repository for commits: what `git init --bare` writes, no process."""
        for part in ("objects", "refs"):
            (self.git.git_dir / part).mkdir(parents=True, exist_ok=True)
        (self.git.git_dir / "HEAD").write_text("ref: refs/heads/none\n")
        (self.git.git_dir / "config").write_text("[core]\n\tbare = true\n")


@contextmanager
def open_remote_ref(
    name: str,
    title: str,
    outer: Mapping[str, str],
    remote: Callable[[], Remote],
    signing_key: SigningKey | None = None,
) -> Generator[RemoteRef]:
    """Open a ref with temporary files, which are removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="mulligan-ref-") as scratch:
        ref = RemoteRef(name, title, Path(scratch), outer, remote, signing_key)
        ref.prepare()
        yield ref
