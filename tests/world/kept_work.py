"""The state after an agent's work, made once for each kind of worktrees and copied from then on."""

import atexit
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from mulligan.config.policy import CommitSettings
from mulligan.git.worktrees.worktrees import GitWorktrees
from world.checkouts import REF, TEXT, calc_remote, run_in_worktree, worktrees_of
from world.plain_worktrees import Clones, PlainWorktrees

KINDS: dict[str, Callable[[Path, Path], Clones]] = {
    "git": worktrees_of,
    "plain": PlainWorktrees,
}


def work(worktrees: Clones, text: str, settings: CommitSettings) -> str:
    """Let an agent write a text into the greeting's file; return Mulligan's commit."""
    with worktrees.open(REF) as tree:
        run_in_worktree(tree, f"echo {text} > README.md")
        head = tree.capture(TEXT, settings).head_sha
    assert head
    return head


def kept_work(place: Path, worktrees: Clones, *, pushed: bool) -> str:
    """Put the state after an agent's work, `remote.git` and `work`, in a place; give the commit."""
    kind = "git" if isinstance(worktrees, GitWorktrees) else "plain"
    template, head = _template(kind, pushed)
    for name in ("remote.git", "work"):
        shutil.rmtree(place / name)
        shutil.copytree(template / name, place / name, symlinks=True)
    return head


@cache
def _template(kind: str, pushed: bool) -> tuple[Path, str]:  # noqa: FBT001 - the key of a cache
    place = tempfile.TemporaryDirectory(prefix="kept-work-")
    atexit.register(place.cleanup)
    made = Path(place.name)
    (made / "work").mkdir()
    worktrees = KINDS[kind](made / "work", calc_remote(made / "remote.git"))
    head = work(worktrees, "two", CommitSettings())
    if pushed:
        worktrees.push(REF, head, worktrees.remote_head(REF))
    return made, head
