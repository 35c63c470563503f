"""Fetch the commits of submodules, by the files of the base branch only (WORKTREE-5).

`git submodule` never runs: it would read what an agent wrote. Each commit is in a bare repository
of its own beside the mirror, without history, and appears there by one rename.
"""

import hashlib
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from mulligan.domain.errors import MisconfiguredError, UnavailableError, WorldError
from mulligan.git.faults import TookTooLongError
from mulligan.git.repository import Remote, Repository
from mulligan.git.worktrees.files import locked
from mulligan.git.worktrees.mirror import Mirror
from mulligan.git.worktrees.submodule_urls import (
    LOCAL,
    WEB,
    Address,
    Refusal,
    allowed_address,
    parse,
    resolve,
)

MAX_SUBMODULES = 50
"""Limit of the submodules of one commit, with those in them."""

MAX_DEPTH = 5
"""Limit of submodules in each other."""

MAX_FILES = 200_000
MAX_BYTES = 2 * 1024**3
"""Limits of the files of all submodules together, and of what git may receive for one."""

FETCH_TIME = timedelta(minutes=30)
"""Time limit of fetching all submodules of one commit."""

KEPT_SECONDS = 7 * 24 * 3600
"""How long an unused commit stays; no attempt takes so long."""

MAX_GITMODULES_BYTES = 256 * 1024
MAX_LISTED_BYTES = 64 * 1024**2
LIST_TIMEOUT = timedelta(minutes=2)

RAW = "* -text !filter !ident !working-tree-encoding !diff !merge\n"
"""Attributes with which files are the bytes of the commit."""

GITLINK = b"160000 commit "
TOO_LARGE = re.compile(r"failed: (?:fetch-pack: )?invalid index-pack output|file too large")
"""What git says if it may not write more; without another reason beside it."""

MISSING = re.compile(r"not our ref|does not allow request for unadvertised", re.IGNORECASE)
UNREADABLE = re.compile(r"could not read username|authentication failed|error: 40[134]|not found")
GIT_NAME = ".git"


@dataclass(frozen=True, slots=True)
class Submodule:
    """A submodule's commit, fetched to the git directory `place`; `path` is that in the worktree.

    `links` are the paths of the submodules in it, relative to it.
    """

    path: str
    sha: str
    place: Path
    links: tuple[str, ...] = ()

    def git(self, outer: Mapping[str, str], work_tree: Path, index: Path) -> Repository:
        """Return the repository for a directory with the submodule's files, and an own index."""
        return Repository(
            f"the submodule {self.path}",
            self.place,
            outer,
            work_tree=work_tree,
            extra={"GIT_INDEX_FILE": str(index)},
            is_limited=True,
        )


class _Listed(NamedTuple):
    """What a commit holds: its submodules, and the number and bytes of its files."""

    links: Mapping[str, str]
    files: int
    size: int


@dataclass(slots=True)
class _Left:
    """What may still be fetched for one commit."""

    until: float
    submodules: int
    files: int
    size: int


@dataclass(frozen=True, slots=True)
class _Outer:
    """A commit with submodules: the repository's own, or a submodule's at `path`.

    `modules` is where git keeps the submodules of a local clone.
    """

    git: Repository
    sha: str
    url: str
    path: str = ""
    modules: tuple[Path, ...] = ()
    depth: int = 0

    def full(self, path: str) -> str:
        return f"{self.path}/{path}" if self.path else path


class _Module(NamedTuple):
    """An entry of .gitmodules."""

    name: str
    url: str
    is_skipped: bool


@dataclass(frozen=True, slots=True)
class SubmoduleSource:
    """Fetches the submodules of a repository at `url`; `private` are those that get a token."""

    mirror: Mirror
    url: str
    token: Callable[[str], str | None] = field(repr=False)
    private: Collection[str] = ()

    def fetch(self, sha: str, *, is_recursive: bool) -> tuple[Submodule, ...]:
        """Fetch the submodules of a commit of the base branch, outer ones first.

        UnavailableError if that fails; MisconfiguredError if it can never succeed.
        """
        outer = _Outer(self.mirror.git, sha, self.url, modules=_modules_of_clone(self.url))
        until = time.monotonic() + FETCH_TIME.total_seconds()
        left = _Left(until, MAX_SUBMODULES, MAX_FILES, MAX_BYTES)
        listed = _list(outer.git, sha, self._scratch, "")
        if not listed.links:
            return ()
        name = f"the submodules of {self.mirror.name}"
        with locked(self.mirror.paths.submodules / "lock", FETCH_TIME, name):
            self._remove_old()
            return tuple(self._fetch(outer, listed, left, is_recursive=is_recursive))

    def _fetch(
        self, outer: _Outer, listed: _Listed, left: _Left, *, is_recursive: bool
    ) -> Iterator[Submodule]:
        modules = _read_modules(outer)
        for path, sha in listed.links.items():
            full = outer.full(path)
            module = modules.get(path)
            if module is None:
                raise MisconfiguredError(
                    f"{full} is a submodule without an entry in .gitmodules. Add one with `path`"
                    " and `url`, or turn checkout.submodules off."
                )
            if module.is_skipped:
                continue
            left.submodules -= 1
            if left.submodules < 0 or outer.depth >= MAX_DEPTH:
                raise MisconfiguredError(
                    f"{self.mirror.name} has more than {MAX_SUBMODULES} submodules, or more than"
                    f" {MAX_DEPTH} in each other ({full}). Turn checkout.submodules off."
                )
            place, inner = self._place(outer, full, module, sha, left)
            git = Repository(f"the submodule {full}", place, self.mirror.outer, is_limited=True)
            found = _list(git, sha, self._scratch, full)
            left.files -= found.files
            left.size -= found.size
            if left.files < 0 or left.size < 0:
                raise _too_large(full)
            yield Submodule(full, sha, place, tuple(found.links))
            if is_recursive and found.links:
                deeper = replace(inner, git=git, sha=sha, path=full, depth=outer.depth + 1)
                yield from self._fetch(deeper, found, left, is_recursive=True)

    def _place(
        self, outer: _Outer, path: str, module: _Module, sha: str, left: _Left
    ) -> tuple[Path, _Outer]:
        """Return the git directory with a commit; fetch it first if it is not there."""
        clones = tuple(directory / module.name for directory in outer.modules)
        in_clone = next((each for each in clones if self._has(each, sha)), None)
        if in_clone:
            address = Address(LOCAL, "", "", str(in_clone))
        else:
            address = self._allowed(outer, path, module)
        key = hashlib.sha256(address.url.encode()).hexdigest()[:20]
        place = self.mirror.paths.submodules / f"{key}-{sha}.git"
        if place.exists():
            # It is not old now.
            (place / "used").touch()
        else:
            self._create(place, address, path, sha, left)
        url = resolve(outer.url, module.url)
        inner = _Outer(outer.git, sha, url, modules=tuple(each / "modules" for each in clones))
        return place, inner

    def _allowed(self, outer: _Outer, path: str, module: _Module) -> Address:
        url = resolve(outer.url, module.url)
        found = allowed_address(self.url, url)
        if isinstance(found, Refusal):
            in_clone = " Or run `git submodule update --init --recursive` in the clone."
            instead = in_clone if _is_clone(self.url) else ""
            raise MisconfiguredError(
                f"The submodule {path} is not fetched: its URL {_shown(url)} {found.why}. Change"
                f" the URL in .gitmodules, or turn checkout.submodules off.{instead}"
            )
        if found.scheme not in {*WEB, LOCAL} and not self._is_named(found):
            raise MisconfiguredError(self._advice(path, found))
        return found

    def _is_named(self, address: Address) -> bool:
        """Return whether Mulligan's credential may be used: the operator named the repository."""
        own = parse(self.url)
        named = {each.casefold() for each in (own.repository if own else "", *self.private)}
        return address.repository.casefold() in named

    def _advice(self, path: str, address: Address) -> str:
        return (
            f"The submodule {path} is at {address.url}, which cannot be read without a credential."
            f" If it exists and is private, the operator must add {address.repository} to"
            f" `submodules` of {self.mirror.name} in mulligan.yml."
        )

    def _create(self, place: Path, address: Address, path: str, sha: str, left: _Left) -> None:
        is_named = address.scheme in WEB and self._is_named(address)
        token = self.token(address.repository) if is_named else None
        made = Path(tempfile.mkdtemp(prefix="new-", dir=place.parent))
        git = Repository(
            f"the submodule {path}",
            made,
            self.mirror.outer,
            # Other protocols are never used, whatever a URL says.
            extra={"GIT_ALLOW_PROTOCOL": address.scheme},
            max_file_bytes=MAX_BYTES,
        )
        try:
            git.read("init", "-q", "--bare", "--template=", "--object-format=sha1")
            (made / "info").mkdir(exist_ok=True)
            (made / "info" / "attributes").write_text(RAW)
            self._receive(git, Remote(address.url, token), address, path, sha, left)
            made.rename(place)
        finally:
            shutil.rmtree(made, ignore_errors=True)

    def _receive(
        self, git: Repository, remote: Remote, address: Address, path: str, sha: str, left: _Left
    ) -> None:
        rest = timedelta(seconds=max(left.until - time.monotonic(), 1))
        options = ("--depth=1", "--no-tags")
        try:
            # A small pack is kept as it is, so that its size has a limit.
            git = replace(git, extra={**git.extra, **UNPACK_NOTHING})
            remote.fetch(git, [sha], options, rest)
        except TookTooLongError:
            raise
        except WorldError as error:
            said = str(error)
            if TOO_LARGE.search(said):
                raise _too_large(path) from error
            if MISSING.search(said):
                raise UnavailableError(
                    f"The submodule {path} links to the commit {sha[:10]}, which {address.url} does"
                    " not have. Push it there, or change the link; it is tried again later."
                ) from error
            is_hidden = remote.token is None and address.scheme in WEB
            if is_hidden and UNREADABLE.search(said.lower()):
                raise MisconfiguredError(self._advice(path, address)) from error
            raise
        git.read("rev-parse", "--verify", f"{sha}^{{commit}}")

    def _has(self, clone: Path, sha: str) -> bool:
        if not (clone / "HEAD").is_file():
            return False
        git = Repository(self.mirror.name, clone, self.mirror.outer)
        return not git.query("cat-file", "-e", f"{sha}^{{commit}}").exit_code

    def _remove_old(self) -> None:
        """Remove commits that no attempt has used for long, and what a killed process left."""
        now = self.mirror.paths.submodules / "now"
        now.touch()
        oldest = now.stat().st_mtime - KEPT_SECONDS
        for each in self.mirror.paths.submodules.glob("*.git"):
            used = each / "used"
            if (used if used.exists() else each).stat().st_mtime < oldest:
                self.mirror.cleaner.set_aside(each, "submodules")
        for each in self.mirror.paths.submodules.glob("new-*"):
            self.mirror.cleaner.set_aside(each, "submodules")
        self.mirror.cleaner.empty("submodules")

    @property
    def _scratch(self) -> Path:
        place = self.mirror.paths.submodules
        place.mkdir(parents=True, exist_ok=True)
        return place


UNPACK_NOTHING = {
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "fetch.unpackLimit",
    "GIT_CONFIG_VALUE_0": "1",
}


def _too_large(path: str) -> MisconfiguredError:
    return MisconfiguredError(
        f"The submodules are too large (at {path}): Mulligan fetches at most"
        f" {MAX_BYTES // 1024**3} GiB in {MAX_FILES} files. Turn checkout.submodules off."
    )


def _shown(url: str) -> str:
    """Quote a URL without a password in it."""
    return repr(re.sub(r"//[^/@]*@", "//", url))


def _list(git: Repository, sha: str, scratch: Path, path: str) -> _Listed:
    """List the submodules of a commit, and measure its files."""
    with tempfile.NamedTemporaryFile(prefix="list-", dir=scratch) as file:
        place = Path(file.name)
        ended = git.stream(
            *("ls-tree", "-r", "-l", "-z", "--full-tree", sha),
            into=place,
            limit=MAX_LISTED_BYTES,
            timeout=LIST_TIMEOUT,
        )
        listed = place.read_bytes()
    if ended.output_bytes > len(listed):
        raise _too_large(path or "the repository itself")
    if ended.exit_code or ended.stopped_by:
        raise UnavailableError(
            f"The files of {git.name} cannot be listed; it is tried again later."
        )
    links, files, size = dict[str, str](), 0, 0
    for entry in filter(None, listed.split(b"\0")):
        about, _, name = entry.partition(b"\t")
        _, _, blob, length = about.split()
        files += 1
        size += int(length) if length.isdigit() else 0
        if about.startswith(GITLINK):
            links[_plain(name, git.name)] = blob.decode()
    return _Listed(links, files, size)


def _plain(name: bytes, where: str) -> str:
    """Return the path of a submodule; git refuses such trees, and so does this."""
    try:
        path = name.decode()
    except UnicodeDecodeError:
        path = ""
    parts = path.split("/")
    if not path or any(part in {"", ".", ".."} or _is_git(part) for part in parts):
        raise MisconfiguredError(f"A submodule of {where} has the path {name!r}; rename it.")
    return path


def _is_git(part: str) -> bool:
    """Return whether a file system may take a name for `.git`."""
    return part.rstrip(". ").casefold() in {GIT_NAME, "git~1"}


def _read_modules(outer: _Outer) -> dict[str, _Module]:
    """Read the .gitmodules of a commit, by path."""
    where = outer.full(".gitmodules")
    about = outer.git.query("cat-file", "-s", f"{outer.sha}:.gitmodules")
    if about.exit_code:
        return {}
    if int(about.text) > MAX_GITMODULES_BYTES:
        raise MisconfiguredError(f"{where} is larger than {MAX_GITMODULES_BYTES} bytes.")
    blob = f"{outer.sha}:.gitmodules"
    listed = outer.git.query("config", "-z", "--no-includes", "--blob", blob, "--list")
    if listed.exit_code:
        raise MisconfiguredError(f"git cannot read {where} of the base branch; fix it.")
    entries = dict[str, dict[str, str]]()
    for line in filter(None, listed.output.decode(errors="replace").split("\0")):
        key, _, value = line.partition("\n")
        section, _, rest = key.partition(".")
        name, _, setting = rest.rpartition(".")
        if section == "submodule" and _is_plain_name(name):
            # git takes the first value, and refuses options in a URL or path.
            entries.setdefault(name, {}).setdefault(setting, value)
    return {
        found["path"].rstrip("/"): _Module(name, found["url"], found.get("update") == "none")
        for name, found in entries.items()
        if found.get("path") and found.get("url")
    }


def _is_plain_name(name: str) -> bool:
    path = PurePosixPath(name)
    return bool(name) and not path.is_absolute() and ".." not in re.split(r"[/\\]", name)


def _is_clone(url: str) -> bool:
    own = parse(url)
    return own is not None and own.scheme == LOCAL and Path(own.path, GIT_NAME).exists()


def _modules_of_clone(url: str) -> tuple[Path, ...]:
    """Return where a local clone keeps its submodules; none for a repository on a server."""
    own = parse(url)
    if own is None or own.scheme != LOCAL:
        return ()
    place = Path(own.path)
    return tuple(each for each in (place / ".git/modules", place / "modules") if each.is_dir())
