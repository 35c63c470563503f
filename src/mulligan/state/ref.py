"""The ref that holds the state: one commit without a parent, replaced by compare-and-swap."""

import io
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mulligan.errors import UnavailableError, WorldError
from mulligan.git.remote import Remote
from mulligan.git.repository import Repository
from mulligan.state.lines import Snapshot, snapshot_of
from mulligan.stop import recording

STATE_REF = "refs/mulligan/state"
IDENTITY = {
    f"GIT_{role}_{part}": value
    for role in ("AUTHOR", "COMMITTER")
    for part, value in (("NAME", "Mulligan"), ("EMAIL", "mulligan@users.noreply.github.com"))
}


class MovedError(UnavailableError):
    """Another run has written the ref meanwhile; it has to be read again."""


@dataclass(frozen=True, slots=True)
class StateRef:
    """The ref on a remote; `remote` gives the way there each time, since tokens change."""

    place: Path
    outer: Mapping[str, str]
    remote: Callable[[], Remote]

    def tip(self) -> str | None:
        """Read which commit the ref names; None where there is none yet."""
        with recording():
            return self.remote().tip(self._bare, STATE_REF)

    def read(self) -> Snapshot:
        """Fetch what the ref holds now."""
        with recording():
            if self.tip() is None:
                return Snapshot()
            self.remote().fetch(self._bare, [f"+{STATE_REF}:{STATE_REF}"])
            sha = self._bare.line("rev-parse", "--verify", STATE_REF)
            return snapshot_of(sha, _unpacked(self._bare.read("archive", "--format=tar", sha)))

    def write(self, new: Snapshot, before: Snapshot) -> Snapshot:
        """Make the ref hold `new`; MovedError where it does not hold `before` any more.

        A push may fail and have happened: what the remote says afterwards decides.
        """
        with recording():
            sha = self._commit(new.files)
            try:
                self.remote().push(self._bare, sha, STATE_REF, before.sha)
            except WorldError as error:
                now = self.tip()
                if now not in {sha, before.sha}:
                    message = "Mulligan's state was written by another run meanwhile."
                    raise MovedError(message) from error
                if now != sha:
                    raise
            return Snapshot(sha, new.issues, new.tenures)

    def _commit(self, files: Mapping[str, bytes]) -> str:
        """Make a commit of the files; it has no parent, so that no history grows."""
        tree = self.place / "files"
        shutil.rmtree(tree, ignore_errors=True)
        for name, content in files.items():
            path = tree / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        extra = {**IDENTITY, "GIT_INDEX_FILE": str(self.place / "index")}
        work = Repository(self._bare.name, self._bare.git_dir, self.outer, tree, extra=extra)
        work.read("add", "--all", "--force", "--", ".")
        made = work.line("write-tree")
        return work.line("commit-tree", made, "-m", "Where Mulligan's issues stand")

    @property
    def _bare(self) -> Repository:
        return Repository("the state", self.place / "state.git", self.outer)

    def prepare(self) -> None:
        """Make the repository that commits are made in."""
        self._bare.git_dir.mkdir(parents=True, exist_ok=True)
        self._bare.read("init", "-q", "--bare", "--template=", "--object-format=sha1")


@contextmanager
def open_state_ref(outer: Mapping[str, str], remote: Callable[[], Remote]) -> Generator[StateRef]:
    """Give the ref; what is needed on this machine for it is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="mulligan-state-") as scratch:
        ref = StateRef(Path(scratch), outer, remote)
        ref.prepare()
        yield ref


def _unpacked(archive: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
        return {
            each.name: opened.read()
            for each in packed
            if each.isfile() and (opened := packed.extractfile(each))
        }
