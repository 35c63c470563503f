"""Read what an agent left in its worktree, however it ended, and commit it (SPEC A7, A8, A12a)."""

import os
from dataclasses import replace
from datetime import timedelta
from functools import partial
from itertools import islice
from pathlib import Path

from mulligan.config.policy import CommitSettings
from mulligan.domain.attempt import Change, CommitText
from mulligan.domain.result import FileChange
from mulligan.git.faults import FULL_DISK, fault_of
from mulligan.git.repository import Repository
from mulligan.worktree import decoy
from mulligan.worktree.changes import SYMLINK, changes_of, entries_of, measured
from mulligan.worktree.decoy import Left
from mulligan.worktree.message import message_of, plain
from mulligan.worktree.naming import is_litter
from mulligan.worktree.reset import PATIENCE, Site, drop_bad_index

DIFF_BYTES = 64 * 1024 * 1024
"""The most of a diff that is kept; what is cut off is still in the commit."""
DIFF_PATIENCE = timedelta(minutes=5)
MOST_LINKS = 200
"""Symbolic links of a change that are read; the guards refuse the others."""
MOST_IGNORED = 20
"""Names of ignored files that are told; they are no work, so a few of them are enough."""


def capture(site: Site, start_sha: str, text: CommitText, settings: CommitSettings) -> Change:
    """Commit the tree that the agent left, with Mulligan's index and identity."""
    left = _what_was_committed(site, start_sha)
    start_tree = site.git.line("rev-parse", f"{start_sha}^{{tree}}")
    tree = _write_tree(site, start_sha, left)
    uncommitted = tree != _committed_tree(site, left, start_tree)
    commits = left.commits + int(uncommitted)
    if tree == start_tree:
        return Change(start_sha, None, commits, ignored_files=_ignored(site))
    head_sha = _commit(site, tree, start_sha, message_of(text, settings), settings)
    files = _changed_files(site, start_sha, head_sha)
    return Change(start_sha, head_sha, commits, files, diff_of(site, start_sha, head_sha))


def _changed_files(site: Site, start_sha: str, head_sha: str) -> tuple[FileChange, ...]:
    listed = site.git.read(
        *("diff-tree", "-r", "-z", "--raw", "--numstat", "-M"),
        *("--ignore-submodules=none", start_sha, head_sha),
    )
    changes = changes_of(listed)
    entries = entries_of(site.git.read("ls-tree", "-r", "-l", "-z", "--full-tree", head_sha))
    changed = (entries[change.path] for change in changes if change.path in entries)
    blobs = dict.fromkeys(entry.blob for entry in changed if entry.mode == SYMLINK)
    links = {
        blob: site.git.read("cat-file", "blob", blob).decode(errors="replace")
        for blob in islice(blobs, MOST_LINKS)
    }
    return measured(changes, entries, links)


def _what_was_committed(site: Site, start_sha: str) -> Left:
    place = site.place
    if place.tree.is_symlink() or not place.tree.is_dir():
        site.broom.set_aside(place.tree, place.name)
        place.tree.mkdir()
    site.broom.scrub(place.tree)
    if place.decoy.is_symlink() or not place.decoy.is_dir():
        return Left()
    site.broom.only_files(place.decoy)
    return decoy.read(place.decoy, _borrowing(site), start_sha)


def _borrowing(site: Site) -> Repository:
    """See the agent's objects, too; its configuration and refs stay unseen."""
    return replace(site.git, borrowed=(site.place.decoy / "objects",))


def _committed_tree(site: Site, left: Left, start_tree: str) -> str:
    if left.head is None:
        return start_tree
    found = _borrowing(site).ask("rev-parse", "--verify", f"{left.head}^{{tree}}")
    return start_tree if found.exit_code else found.text


def _write_tree(site: Site, start_sha: str, left: Left) -> str:
    drop_bad_index(site)
    if not (site.place.admin / "index").exists():
        site.git.read("read-tree", start_sha)
    added = site.git.attempt("add", "-A", "--ignore-errors", patience=PATIENCE)
    # 1: a name that git refuses was left out.
    if added.exit_code not in {0, 1} or FULL_DISK.shows_in(added.text):
        raise fault_of(added.text, f"git add for {site.mirror.name}")
    if forced := _forced(site, start_sha, left):
        listed = site.place.admin / "forced"
        listed.write_bytes(b"\0".join(map(os.fsencode, forced)))
        site.git.attempt(
            *("--literal-pathspecs", "add", "--force", "--ignore-errors"),
            *(f"--pathspec-from-file={listed}", "--pathspec-file-nul"),
            patience=PATIENCE,
        )
    return site.git.line("write-tree")


def _forced(site: Site, start_sha: str, left: Left) -> list[str]:
    """List what the agent committed on purpose although it is ignored, and left in its tree."""
    if left.head is None:
        return []
    listed = _borrowing(site).ask(
        *("diff-tree", "-r", "-z", "--name-only", "--no-renames", "--diff-filter=A"),
        *(start_sha, left.head),
    )
    names = [os.fsdecode(name) for name in listed.output.split(b"\0") if name]
    wanted = (name for name in names if not is_litter(name, site.mirror.litter))
    return [name for name in wanted if _in_tree(site.place.tree, name)]


def _in_tree(tree: Path, name: str) -> bool:
    """Tell whether a path leads to something in the tree, through no link."""
    root = Path(os.path.realpath(tree))
    parent = (root / name).parent
    return os.path.lexists(root / name) and os.path.realpath(parent) == str(parent)


def _ignored(site: Site) -> tuple[str, ...]:
    """Name what the agent wrote that git ignores; what agents litter comes last.

    Set-up lines may have written such files as well. The agent began after that, when a home was
    made for it, and with it the private directory changed.
    """
    root, private = site.place.tree, site.place.private
    began = private.stat().st_mtime_ns if private.is_dir() else 0
    listed = site.git.read("ls-files", "-z", "--others", "--ignored", "--exclude-standard")
    is_litters = partial(is_litter, litter=site.mirror.litter)
    names = sorted(map(os.fsdecode, filter(None, listed.split(b"\0"))), key=is_litters)
    new = (name for name in names if _written(root / name) > began)
    return tuple(os.fsencode(name).decode(errors="replace") for name in islice(new, MOST_IGNORED))


def _written(path: Path) -> int:
    """Give the time at which a file was last written, in nanoseconds; none can be set back."""
    try:
        return path.lstat().st_ctime_ns
    except OSError:
        return 0


def _commit(site: Site, tree: str, start_sha: str, message: str, settings: CommitSettings) -> str:
    identity = {
        f"GIT_{role}_{part}": value
        for role in ("AUTHOR", "COMMITTER")
        for part, value in (("NAME", plain(settings.name)), ("EMAIL", plain(settings.email)))
    }
    git = replace(site.git, extra=identity)
    head_sha = git.line("commit-tree", tree, "-p", start_sha, "-m", message)
    git.read("update-ref", f"refs/heads/{site.branch}", head_sha)
    return head_sha


def diff_of(site: Site, start_sha: str, head_sha: str, limit: int = DIFF_BYTES) -> bytes:
    """Write the diff as text; the end of one that is too large or takes too long is cut off."""
    place = site.place.admin / "changes.diff"
    finished = site.git.stream(
        *("diff", "--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none"),
        *("-M", start_sha, head_sha, "--"),
        into=place,
        limit=limit,
        patience=DIFF_PATIENCE,
    )
    diff = place.read_bytes()
    place.unlink()
    omitted = finished.output_bytes - len(diff)
    if omitted or finished.stopped_by:
        diff += f"\n[... {omitted or 'more'} bytes omitted]\n".encode()
    return diff
