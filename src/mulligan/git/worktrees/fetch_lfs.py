"""Fetch the Git LFS objects that the base branch's pointers name (WORKTREE-5).

No filter of git or git-lfs runs: an agent's files configure those. Objects are kept beside the
mirror, named by their SHA-256.
"""

import hashlib
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

from mulligan.domain.errors import MisconfiguredError, UnavailableError
from mulligan.domain.lfs import MAX_POINTER_BYTES, LfsObject, read_pointer
from mulligan.git.worktrees.files import locked
from mulligan.git.worktrees.lfs import in_lfs, small_blobs
from mulligan.git.worktrees.reset import IssueWorktree
from mulligan.git.worktrees.submodule_urls import LOCAL, WEB, Address, Refusal, parse, same_place
from mulligan.implement.ports import LfsServer

MAX_OBJECTS = 10_000
MAX_BYTES = 2 * 1024**3
"""Limits of the objects of one commit together."""

FETCH_TIME = timedelta(minutes=30)
KEPT_SECONDS = 7 * 24 * 3600
MAX_CONFIG_BYTES = 64 * 1024
CHUNK = 1024 * 1024

REGULAR = ("100644", "100755")


class Pointer(NamedTuple):
    """A pointer of the base branch, and its object."""

    text: bytes
    wanted: LfsObject


@dataclass(frozen=True, slots=True)
class LfsFiles:
    """The pointers of a commit of the base branch by their blobs, and where their objects are."""

    sha: str
    pointers: Mapping[str, Pointer]
    store: Path

    def place(self, wanted: LfsObject) -> Path:
        """Return the file of an object."""
        return self.store / wanted.oid[:2] / wanted.oid


@dataclass(frozen=True, slots=True)
class LfsSource:
    """Fetches the objects of a repository at `url`; `token` returns Mulligan's for it."""

    url: str
    token: Callable[[], str | None] = field(repr=False)
    server: LfsServer | None = None

    def fetch(self, site: IssueWorktree, sha: str) -> LfsFiles:
        """Fetch the objects of a commit of the base branch.

        UnavailableError if that fails; MisconfiguredError if it can never succeed.
        """
        files = LfsFiles(sha, _pointers(site, sha), site.mirror.paths.lfs)
        wanted = {each.wanted for each in files.pointers.values()}
        size = sum(each.size for each in wanted)
        if len(wanted) > MAX_OBJECTS or size > MAX_BYTES:
            raise MisconfiguredError(
                f"{site.mirror.name} has {len(wanted)} Git LFS objects of {size} bytes. Mulligan"
                f" fetches at most {MAX_OBJECTS} of {MAX_BYTES // 1024**3} GiB. Turn checkout.lfs"
                " off."
            )
        if not wanted:
            return files
        name = f"the Git LFS objects of {site.mirror.name}"
        with locked(files.store / "lock", FETCH_TIME, name):
            self._remove_old(site, wanted)
            missing = sorted(each for each in wanted if not _is_stored(files.place(each), each))
            if missing:
                self._store(site, files, missing)
        return files

    def _store(self, site: IssueWorktree, files: LfsFiles, missing: Sequence[LfsObject]) -> None:
        until = time.monotonic() + FETCH_TIME.total_seconds()
        own = parse(self.url)
        with tempfile.TemporaryDirectory(prefix="new-", dir=files.store) as scratch:
            if own is not None and own.scheme == LOCAL:
                received = _copied(own, missing, Path(scratch))
            else:
                received = self._received(site, files.sha, missing, Path(scratch), until)
            for wanted, file in received:
                _keep(file, files.place(wanted), wanted)

    def _received(
        self,
        site: IssueWorktree,
        sha: str,
        missing: Sequence[LfsObject],
        scratch: Path,
        until: float,
    ) -> Iterator[tuple[LfsObject, Path]]:
        endpoint = self._endpoint(site, sha)
        if self.server is None:
            raise MisconfiguredError("This command cannot fetch from a Git LFS server.")
        # Another repository of the host may be one that nobody may read here.
        token = self.token() if endpoint == self._default_endpoint() else None
        return self.server.download(endpoint, token, missing, scratch, until)

    def _endpoint(self, site: IssueWorktree, sha: str) -> str:
        """Return the address of the LFS server, by .lfsconfig of the base branch."""
        configured = _configured(site, sha)
        default = self._default_endpoint()
        if configured is None:
            return default
        found = same_place(default, configured)
        if isinstance(found, Refusal):
            raise MisconfiguredError(
                f"Git LFS objects are not fetched: lfs.url in .lfsconfig {found.why}. Change it, or"
                " turn checkout.lfs off."
            )
        return found

    def _default_endpoint(self) -> str:
        own = parse(self.url)
        if own is None:
            raise MisconfiguredError("Git LFS needs an https, ssh or local clone_url.")
        scheme, place = (own.scheme, own.place) if own.scheme in WEB else ("https", own.host)
        path = own.path.strip("/").removesuffix(".git")
        return f"{scheme}://{place}/{path}.git/info/lfs"

    def _remove_old(self, site: IssueWorktree, wanted: Iterable[LfsObject]) -> None:
        """Remove objects that no attempt has used for long, and what a killed process left."""
        store = site.mirror.paths.lfs
        now = store / "now"
        now.touch()
        oldest = now.stat().st_mtime - KEPT_SECONDS
        names = {each.oid for each in wanted}
        for each in store.glob("??/*"):
            if each.name in names:
                # It is not old now.
                os.utime(each)
            elif each.stat().st_mtime < oldest:
                each.unlink()
        for each in store.glob("new-*"):
            shutil.rmtree(each, ignore_errors=True)


def _pointers(site: IssueWorktree, sha: str) -> dict[str, Pointer]:
    """Find the pointers of a commit: small files to which its attributes give the filter."""
    listed = site.mirror.git.read("ls-tree", "-r", "-l", "-z", "--full-tree", sha)
    small, has_attributes = dict[str, str](), False
    for entry in filter(None, listed.split(b"\0")):
        about, _, name = entry.partition(b"\t")
        mode, _, blob, size = about.decode().split()
        has_attributes |= name.rpartition(b"/")[2] == b".gitattributes"
        if mode in REGULAR and size.isdigit() and 0 < int(size) <= MAX_POINTER_BYTES:
            small[os.fsdecode(name)] = blob
    if not has_attributes:
        return {}
    blobs = {small[path] for path in in_lfs(site, sha, small)}
    texts = small_blobs(site, blobs).items()
    read = ((blob, text, read_pointer(text)) for blob, text in texts)
    return {blob: Pointer(text, wanted) for blob, text, wanted in read if wanted}


def _configured(site: IssueWorktree, sha: str) -> str | None:
    """Return lfs.url of the .lfsconfig of a commit."""
    blob = f"{sha}:.lfsconfig"
    about = site.mirror.git.query("cat-file", "-s", blob)
    if about.exit_code:
        return None
    listed = (
        site.mirror.git.query("config", "-z", "--no-includes", "--blob", blob, "--list")
        if int(about.text) <= MAX_CONFIG_BYTES
        else about
    )
    if listed.exit_code or listed is about:
        raise MisconfiguredError("git cannot read .lfsconfig of the base branch; fix it.")
    values = (line.partition("\n") for line in listed.text.split("\0"))
    return next((value for key, _, value in reversed([*values]) if key == "lfs.url"), None)


def _local_object(own: Address, wanted: LfsObject) -> Path:
    """Return the file of an object in a local repository, where git-lfs keeps it."""
    below = Path("lfs/objects", wanted.oid[:2], wanted.oid[2:4], wanted.oid)
    places = (Path(own.path, ".git", below), Path(own.path, below))
    found = next((each for each in places if each.is_file() and not each.is_symlink()), None)
    if found is None:
        raise UnavailableError(
            f"The Git LFS object {wanted.oid[:10]} is not in {own.path}. Run `git lfs fetch` in"
            " that repository, then try again."
        )
    return found


def _is_stored(place: Path, wanted: LfsObject) -> bool:
    return place.is_file() and place.stat().st_size == wanted.size


def _copied(
    own: Address, missing: Iterable[LfsObject], scratch: Path
) -> Iterator[tuple[LfsObject, Path]]:
    for wanted in missing:
        copied = scratch / wanted.oid
        shutil.copyfile(_local_object(own, wanted), copied)
        yield wanted, copied


def _keep(file: Path, place: Path, wanted: LfsObject) -> None:
    """Move an object into the store if it is what its name says."""
    if hash_of(file, wanted.size) != wanted.oid:
        raise UnavailableError(
            f"The content of the Git LFS object {wanted.oid[:10]} is not what the pointer names;"
            " it is tried again later."
        )
    place.parent.mkdir(exist_ok=True)
    file.chmod(0o444)
    file.replace(place)


def hash_of(file: Path, size: int) -> str:
    """Return the SHA-256 of a regular file of this size; empty if it is another kind or size."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return ""
    content, read = hashlib.sha256(), 0
    with os.fdopen(descriptor, "rb") as opened:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_size != size:
            return ""
        while chunk := opened.read(CHUNK):
            content.update(chunk)
            read += len(chunk)
    return content.hexdigest() if read == size else ""
