"""Find an agent's work in submodules, of which git keeps nothing here (WORKTREE-5)."""

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mulligan.domain.errors import WorldError
from mulligan.git.repository import Repository
from mulligan.git.worktrees.fetch_submodules import Submodule
from mulligan.git.worktrees.left_out import UNIGNORED, is_below, paths_of
from mulligan.git.worktrees.naming import leftover_in
from mulligan.git.worktrees.reset import IssueWorktree, submodule_directory

MAX_POINTER_BYTES = 4096
TREE_LINK = b"160000 commit "
BINARY_BYTES = 8000
"""Git calls a file binary if these first bytes of it have a NUL."""


@dataclass(frozen=True, slots=True)
class SubmoduleFiles:
    """The files in submodules that differ from the commits that their links name.

    `output` are new binary files, as compilers make them. `unknown` are submodules with a git
    repository of their own that cannot be compared.
    """

    changed: tuple[str, ...] = ()
    output: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


def keep_objects(site: IssueWorktree, submodules: Mapping[str, str]) -> dict[str, Path]:
    """Move the git objects of submodules that the agent checked out out of its reach.

    Call it before the tree is cleaned. A path without objects stands for a repository elsewhere.
    """
    store = site.paths.git_dir / "submodules"
    site.cleaner.set_aside(store, site.paths.name)
    kept = dict[str, Path]()
    for number, path in enumerate(submodules):
        directory = submodule_directory(site.paths.tree, path)
        if directory is None or not os.path.lexists(directory / ".git"):
            continue
        found = _objects_of(site, directory)
        if found or not stat.S_ISDIR((directory / ".git").lstat().st_mode):
            kept[path] = store / str(number)
            store.mkdir(exist_ok=True)
        if found:
            site.cleaner.move(found, kept[path])
    if kept:
        site.cleaner.only_files(store)
    for objects in kept.values():
        # An agent could point git at any directory of this machine.
        (objects / "info" / "alternates").unlink(missing_ok=True)
    return kept


def _objects_of(site: IssueWorktree, directory: Path) -> Path | None:
    """Return the object directory of a repository, if the agent's own directories hold it."""
    place = directory / ".git"
    if stat.S_ISREG(place.lstat().st_mode):
        with place.open("rb") as opened:
            pointer = os.fsdecode(opened.read(MAX_POINTER_BYTES)).strip()
        if "\0" in pointer:
            return None
        place = directory / pointer.removeprefix("gitdir: ")
    objects = Path(os.path.realpath(place)) / "objects"
    owned = (site.paths.agent_git_dir, directory)
    is_owned = any(objects.is_relative_to(os.path.realpath(path)) for path in owned)
    return objects if is_owned and objects.is_dir() and not objects.is_symlink() else None


def read_submodules(
    site: IssueWorktree,
    submodules: Mapping[str, str],
    kept: Mapping[str, Path],
    fetched: Sequence[Submodule] = (),
) -> SubmoduleFiles:
    """Compare the files in submodules with the commits of their links, or with what was fetched.

    Without a repository, all of them are new: the directories are empty before the agent runs.
    """
    changed, new, unknown = list[str](), list[str](), list[str]()
    own = {each.path: each for each in fetched}
    for path, sha in _with_inner(submodules, fetched).items():
        directory = submodule_directory(site.paths.tree, path)
        if directory is None or not any(directory.iterdir()):
            continue
        if path in own:
            index = site.paths.git_dir / "submodule-index"
            index.unlink(missing_ok=True)
            git, start = own[path].git(site.mirror.outer, directory, index), own[path].sha
        else:
            git = _repository(site, directory, kept.get(path))
            start = sha if path in kept else "--empty"
        try:
            git.read("read-tree", start)
            modified = paths_of(git.read("ls-files", "-z", "--modified"))
            changed += [f"{path}/{name}" for name in _unfiltered(git, modified, directory)]
            others = paths_of(git.read("ls-files", "-z", "--others", UNIGNORED))
        except WorldError:
            # The agent's repository lacks the commit, is damaged, or is too large.
            unknown.append(path)
        else:
            new += [f"{path}/{name}" for name in others]
    new = [path for path in new if not leftover_in(path, site.mirror.excluded)]
    output = [path for path in new if _is_binary(site.paths.tree / path)]
    site.cleaner.set_aside(site.paths.git_dir / "submodules", site.paths.name)
    return SubmoduleFiles(
        (*changed, *(path for path in new if path not in set(output))),
        tuple(output),
        tuple(unknown),
    )


def _with_inner(submodules: Mapping[str, str], fetched: Sequence[Submodule]) -> Mapping[str, str]:
    """Add the submodules in those that were fetched; a directory that was not is empty."""
    inner = (
        path
        for each in fetched
        if is_below(each.path, submodules)
        for path in (each.path, *(f"{each.path}/{link}" for link in each.links))
    )
    return {**dict.fromkeys(inner, ""), **submodules}


def changed_links(
    repository: Repository, submodules: Mapping[str, str], head: str | None, start_sha: str
) -> tuple[str, ...]:
    """List the submodules whose link one of the agent's commits changed; HEAD has the change.

    `repository` borrows the agent's objects.
    """
    if head is None or head == start_sha or not submodules:
        return ()
    listed = repository.query(
        *("--literal-pathspecs", "ls-tree", "-z", "--full-tree", head, "--"), *submodules
    )
    links = dict[str, str]()
    for entry in listed.output.split(b"\0"):
        about, _, path = entry.partition(b"\t")
        if about.startswith(TREE_LINK):
            links[os.fsdecode(path)] = about.split()[2].decode()
    return tuple(
        path
        for path, sha in links.items()
        # The agent may have merged somebody else's commit.
        if sha != submodules.get(path) and _touched(repository, path, head, start_sha)
    )


def _touched(repository: Repository, path: str, head: str, start_sha: str) -> bool:
    counted = ("rev-list", "--max-count=1", head, "--not", start_sha, "--all", "--", path)
    return bool(repository.query("--literal-pathspecs", *counted).output)


def _repository(site: IssueWorktree, directory: Path, objects: Path | None) -> Repository:
    """Return an empty repository of Mulligan's own, without the agent's configuration."""
    place = site.paths.git_dir / "submodule"
    for part in ("objects", "refs"):
        (place / part).mkdir(parents=True, exist_ok=True)
    (place / "HEAD").write_text("ref: refs/heads/none\n")
    return Repository(
        site.mirror.name,
        place,
        site.mirror.outer,
        work_tree=directory,
        alternates=(objects,) if objects else (),
        is_limited=True,
    )


def _unfiltered(git: Repository, modified: Sequence[str], directory: Path) -> Iterator[str]:
    """Keep the files that exist, and whose content does not depend on a filter, as of Git LFS."""
    names = [name for name in modified if os.path.lexists(directory / name)]
    if not names:
        return
    listed = git.read(
        *("check-attr", "--stdin", "-z", "filter"), stdin=b"\0".join(map(os.fsencode, names))
    )
    for name, _, value in zip(*[iter(paths_of(listed))] * 3, strict=True):
        if value in {"unspecified", "unset"}:
            yield name


def _is_binary(path: Path) -> bool:
    if path.is_symlink():
        return False
    with path.open("rb") as opened:
        return b"\0" in opened.read(BINARY_BYTES)
