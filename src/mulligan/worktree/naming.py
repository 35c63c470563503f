"""Where things lie under the workspace root, and what agents litter. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from mulligan.domain.issue import IssueRef

LITTER = (".aider*", ".claude/", ".gemini/")
"""What agent CLIs leave in a repository, as in .gitignore; it never counts as work (SPEC A12a)."""

ATTRIBUTES = "* !filter !diff !merge !working-tree-encoding"
"""Takes every driver away that a repository's own .gitattributes asks for."""

PRINTABLE = bytes(sign for sign in range(ord(" "), ord("~") + 1) if sign not in b'"\\')

BASE_REF = "refs/remotes/origin/"
BRANCH = re.compile(
    r"(?![-/.])(?!.*(?:\.\.|//|/\.|@\{|\.lock(?:/|$)))[^\x00-\x20\x7f~^:?*\[\\]+(?<![/.])"
)
"""A branch name that git allows (git-check-ref-format)."""


@dataclass(frozen=True, slots=True)
class Place:
    """The paths of one repository."""

    home: Path

    @property
    def mirror(self) -> Path:
        """Give the bare mirror."""
        return self.home / "mirror.git"

    @property
    def mirror_lock(self) -> Path:
        """Give the file that is locked while the mirror is fetched into."""
        return self.home / "mirror.lock"

    @property
    def trash(self) -> Path:
        """Give where things are moved that are about to be deleted."""
        return self.home / "trash"


@dataclass(frozen=True, slots=True)
class IssuePlace:
    """The paths of one issue's worktree: `tree` and `decoy` are the agent's, `admin` is not."""

    repository: Place
    name: str

    @property
    def tree(self) -> Path:
        """Give the worktree."""
        return self.repository.home / self.name

    @property
    def decoy(self) -> Path:
        """Give the git directory that the agent sees."""
        return self.repository.home / f"{self.name}.git"

    @property
    def private(self) -> Path:
        """Give the directory for the run's own files."""
        return self.repository.home / f"{self.name}.run"

    @property
    def lock(self) -> Path:
        """Give the file that is locked while the worktree is in use."""
        return self.repository.home / f"{self.name}.lock"

    @property
    def admin(self) -> Path:
        """Give Mulligan's own git directory of the worktree."""
        return self.repository.mirror / "worktrees" / self.name

    @property
    def everything(self) -> tuple[Path, ...]:
        """Give what a worktree consists of."""
        return (self.tree, self.admin, self.decoy, self.private)


def place_of(root: Path, repository: str) -> Place:
    """Give the paths of a repository, `owner/name`."""
    return Place(root / repository)


def issue_place(root: Path, ref: IssueRef) -> IssuePlace:
    """Give the paths of an issue."""
    return IssuePlace(place_of(root, ref.repository), f"issue-{ref.number}")


def is_litter(path: str, litter: Sequence[str] = LITTER) -> bool:
    """Tell whether a path in a repository is something that agents leave behind."""
    *directories, name = PurePosixPath(path).parts
    return any(
        fnmatchcase(part, pattern.rstrip("/"))
        for pattern in litter
        for part in (directories if pattern.endswith("/") else (*directories, name))
    )


def taken_as_bytes(path: bytes) -> bytes:
    """Write the line of git's attributes that switches line-end conversion off for one path."""
    pattern = re.sub(rb"[\\*?\[\]]", rb"\\\g<0>", path)
    quoted = b"".join(
        bytes([byte]) if byte in PRINTABLE else b"\\%03o" % byte for byte in b"/" + pattern
    )
    return b'"%s" -text' % quoted
