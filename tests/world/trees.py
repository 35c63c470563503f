"""A worktree that is only two directories, for what merely runs in one."""

import os
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NoReturn

from mulligan.config.policy import CheckoutSettings, CommitSettings, Scope
from mulligan.domain.attempt_times import Copies
from mulligan.domain.image import Image
from mulligan.domain.layer import Layer
from mulligan.git.worktrees.sizes import DEFAULT_SCOPE
from mulligan.implement.commit_message import CommitText
from mulligan.sandbox.home import keep


@dataclass(frozen=True)
class PlainWorktree:
    """The port Worktree, as far as checks need it."""

    path: Path
    private: Path
    base_sha: str = "a" * 40
    start_sha: str = "a" * 40
    fork_sha: str = "a" * 40
    recreated: bool = False
    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    set_up_files: Path | None = None
    layer: Layer | None = None
    agent_layer: Layer | None = None
    image: Image | None = None
    copies: Copies = field(default_factory=Copies)

    def with_checkout(self, settings: CheckoutSettings) -> NoReturn:
        raise NotImplementedError

    def with_image(self, image: Image) -> "PlainWorktree":
        return replace(self, image=image)

    def with_copies(self) -> "PlainWorktree":
        """Return itself: it has no layers."""
        return self

    def capture(
        self, text: CommitText, settings: CommitSettings, scope: Scope = DEFAULT_SCOPE
    ) -> NoReturn:
        raise NotImplementedError

    def blobs(self, sha: str) -> NoReturn:
        raise NotImplementedError

    def with_set_up(self, key: str) -> NoReturn:
        raise NotImplementedError

    def keep_set_up(self, key: str = "") -> "PlainWorktree":
        """Keep HOME and leave the tree as it is."""
        return replace(self, set_up_files=keep(self.private, None, os.environ))

    def check_out(self, head_sha: str, *, for_agent: bool = False) -> NoReturn:
        raise NotImplementedError

    def start_with(self, head_sha: str, paths: Collection[str]) -> NoReturn:
        raise NotImplementedError

    def changed_files(self, head_sha: str) -> NoReturn:
        raise NotImplementedError

    def pristine_checkout(self, sha: str) -> NoReturn:
        raise NotImplementedError

    def beside(self) -> NoReturn:
        raise NotImplementedError

    def base_checkout(self, change_sha: str) -> NoReturn:
        raise NotImplementedError


def plain_worktree(root: Path) -> PlainWorktree:
    """Make one in a directory."""
    tree = PlainWorktree(root / "tree", root / "private")
    tree.path.mkdir(parents=True)
    tree.private.mkdir()
    return tree
