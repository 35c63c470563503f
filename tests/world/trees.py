"""A worktree that is only two directories, for what merely runs in one."""

from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from mulligan.config.policy import CommitSettings
from mulligan.implement.ports import CommitText


@dataclass(frozen=True)
class PlainWorktree:
    """The port Worktree, as far as checks need it."""

    path: Path
    private: Path
    base_sha: str = "a" * 40
    start_sha: str = "a" * 40
    recreated: bool = False
    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()

    def capture(self, text: CommitText, settings: CommitSettings) -> NoReturn:
        raise NotImplementedError

    def check_out(self, head_sha: str) -> NoReturn:
        raise NotImplementedError

    def pristine_checkout(self) -> NoReturn:
        raise NotImplementedError


def plain_worktree(root: Path) -> PlainWorktree:
    """Make one in a directory."""
    tree = PlainWorktree(root / "tree", root / "private")
    tree.path.mkdir(parents=True)
    tree.private.mkdir()
    return tree
