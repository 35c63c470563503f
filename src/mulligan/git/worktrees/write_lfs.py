"""Write the content of Git LFS files into a worktree, and pointers back into it (WORKTREE-5)."""

import os
import shutil
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from mulligan.config.policy import Scope
from mulligan.domain.errors import UnavailableError
from mulligan.domain.lfs import LfsObject
from mulligan.git.worktrees.fetch_lfs import MAX_BYTES, REGULAR, LfsFiles, Pointer, hash_of
from mulligan.git.worktrees.lfs import in_lfs
from mulligan.git.worktrees.reset import IssueWorktree
from mulligan.git.worktrees.sizes import changed_names, sizes_of


def write_lfs(site: IssueWorktree, files: LfsFiles, sha: str) -> dict[str, LfsObject]:
    """Replace pointers by content in a worktree that was just reset to a commit; return the paths.

    Only pointers of the base branch are replaced, where its attributes have the filter.
    """
    if not files.pointers:
        return {}
    written = dict[str, LfsObject]()
    for path, blob in _paths(site, files, sha):
        wanted = files.pointers[blob].wanted
        place = site.paths.tree / path
        if not _is_file_in_tree(site.paths.tree, path):
            continue
        stored = files.place(wanted)
        if not stored.is_file() or stored.stat().st_size != wanted.size:
            raise UnavailableError(f"The Git LFS object of {path} is missing; it is fetched again.")
        mode = place.stat().st_mode
        place.unlink()
        shutil.copyfile(stored, place)
        place.chmod(mode)
        written[path] = wanted
    return written


def _paths(site: IssueWorktree, files: LfsFiles, sha: str) -> list[tuple[str, str]]:
    """List the pointers of the base branch in a commit, by path and blob."""
    listed = site.git.read("ls-tree", "-r", "-z", "--full-tree", sha)
    found = dict[str, str]()
    for entry in filter(None, listed.split(b"\0")):
        about, _, name = entry.partition(b"\t")
        mode, _, blob = about.decode().split()
        if mode in REGULAR and blob in files.pointers:
            found[os.fsdecode(name)] = blob
    return [(path, found[path]) for path in in_lfs(site, files.sha, found)]


def restore_pointers(site: IssueWorktree, files: LfsFiles, start_sha: str, scope: Scope) -> None:
    """Write pointers back for all new and changed files that still have an object's content.

    Call it when no process of others runs. Everything else stays, so that guards see it.
    """
    names = changed_names(site, scope) if files.pointers else None
    if not names:
        return
    by_size = {each.wanted.size for each in files.pointers.values()}
    alike = [name for name, size in sizes_of(site, names).items() if size in by_size]
    before = dict(_paths(site, files, start_sha))
    by_oid = {each.wanted.oid: each for each in files.pointers.values()}
    for path, pointer in _unchanged(site, in_lfs(site, files.sha, dict.fromkeys(alike)), by_oid):
        own = files.pointers.get(before.get(path, ""))
        is_own = own is not None and own.wanted == pointer.wanted
        _replace(site.paths.tree / path, own.text if own and is_own else pointer.text)


def _unchanged(
    site: IssueWorktree, paths: Collection[str], by_oid: Mapping[str, Pointer]
) -> Iterator[tuple[str, Pointer]]:
    """Yield the files whose content is an object's, until too many bytes are read."""
    left = 2 * MAX_BYTES
    for path in paths:
        place = site.paths.tree / path
        if not _is_file_in_tree(site.paths.tree, path):
            continue
        size = place.lstat().st_size
        left -= size
        if left < 0:
            return
        if found := by_oid.get(hash_of(place, size)):
            yield path, found


def _replace(place: Path, text: bytes) -> None:
    """Write a new file with the old one's permissions; an agent may have linked the old one."""
    mode = place.stat().st_mode
    place.unlink()
    place.write_bytes(text)
    place.chmod(mode)


def _is_file_in_tree(tree: Path, path: str) -> bool:
    """Return whether a path is a regular file that is reached through no link."""
    root = os.path.realpath(tree)
    place = Path(root, path)
    return (
        os.path.realpath(place.parent) == str(place.parent)
        and place.is_file()
        and not place.is_symlink()
    )


def hide_in_index(site: IssueWorktree, paths: Collection[str]) -> None:
    """Have the agent's git see the content as its pointer, as with git-lfs.

    Its own commands then do not report or commit the content. Mulligan has another index.
    """
    if paths:
        git = replace(site.git, extra={"GIT_INDEX_FILE": str(site.paths.agent_git_dir / "index")})
        names = b"\0".join(map(os.fsencode, sorted(paths))) + b"\0"
        git.read("update-index", "-z", "--assume-unchanged", "--stdin", stdin=names)


def content_in(
    site: IssueWorktree, files: LfsFiles, sha: str, names: Collection[str], roots: Collection[Path]
) -> set[str]:
    """Return the names that are pointers in a commit, and whose files have the content.

    The file of the first of the `roots` counts that has one.
    """
    same = set[str]()
    for path, blob in _paths(site, files, sha) if names else ():
        wanted = files.pointers[blob].wanted
        found = next((root / path for root in roots if os.path.lexists(root / path)), None)
        if path in names and found and hash_of(found, wanted.size) == wanted.oid:
            same.add(path)
    return same
