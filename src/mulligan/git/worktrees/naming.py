"""Names of branches and paths, and leftover files. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mulligan.domain.issue import IssueRef

# Paths.


@dataclass(frozen=True, slots=True)
class RepositoryPaths:
    """The paths of one repository."""

    root: Path

    @property
    def mirror(self) -> Path:
        return self.root / "mirror.git"

    @property
    def mirror_lock(self) -> Path:
        """The lock file for fetches into the mirror."""
        return self.root / "mirror.lock"

    @property
    def submodules(self) -> Path:
        """The directory for the commits of submodules, each in a repository of its own."""
        return self.root / "submodules"

    @property
    def lfs(self) -> Path:
        """The directory for Git LFS objects, by their SHA-256."""
        return self.root / "lfs"

    @property
    def trash(self) -> Path:
        """The directory for files that are about to be deleted."""
        return self.root / "trash"


@dataclass(frozen=True, slots=True)
class WorktreePaths:
    """The paths of one issue's worktree; an agent writes to `tree` and `agent_git_dir` only."""

    repository: RepositoryPaths
    name: str

    @property
    def tree(self) -> Path:
        return self.repository.root / self.name

    @property
    def agent_git_dir(self) -> Path:
        """The git directory that the agent sees."""
        return self.repository.root / f"{self.name}.git"

    @property
    def private(self) -> Path:
        """The directory for the run's own files."""
        return self.repository.root / f"{self.name}.run"

    @property
    def lock(self) -> Path:
        """The lock file of the worktree."""
        return self.repository.root / f"{self.name}.lock"

    @property
    def git_dir(self) -> Path:
        """Mulligan's own git directory of the worktree."""
        return self.repository.mirror / "worktrees" / self.name

    @property
    def beside(self) -> "WorktreePaths":
        """The paths of the checkout of the start tree while an agent works (BASELINE-1)."""
        return WorktreePaths(self.repository, f"base-of-{self.name}")

    @property
    def all_paths(self) -> tuple[Path, ...]:
        """All paths that make up a worktree."""
        return (self.tree, self.git_dir, self.agent_git_dir, self.private)


def repository_paths(root: Path, repository: str) -> RepositoryPaths:
    """Return the paths of a repository, `owner/name`."""
    return RepositoryPaths(root / repository)


def set_up_cache(root: Path) -> Path:
    """Return the cache of what setup commands left; no owner on GitHub has a name with a dot."""
    return root / ".set-up"


def image_directory(root: Path) -> Path:
    """Return the directory for the files of images, which is no owner's either."""
    return root / ".images"


def worktree_paths(root: Path, ref: IssueRef) -> WorktreePaths:
    """Return the paths of an issue's worktree."""
    return WorktreePaths(repository_paths(root, ref.repository), f"issue-{ref.number}")


# Branches.

BASE_REF = "refs/remotes/origin/"

BRANCH = re.compile(
    r"(?![-/.])(?!.*(?:\.\.|//|/\.|@\{|\.lock(?:/|$)))[^\x00-\x20\x7f~^:?*\[\\]+(?<![/.])"
)
"""A branch name that git allows (git-check-ref-format)."""

# Patterns and attributes for git.


TOOL_LEFTOVERS = (
    # Bytecode and metadata that Python and setuptools write beside the source.
    *("__pycache__/", "*.pyc", "*.egg-info/", ".venv/"),
    # Caches and data of test runners, linters and type checkers.
    *(".pytest_cache/", ".mypy_cache/", ".ruff_cache/", ".hypothesis/", ".tox/", ".nox/"),
    *(".coverage", ".ipynb_checkpoints/", ".nyc_output/", ".eslintcache", ".phpunit.result.cache"),
    # Installed packages, and the state of build tools.
    *("node_modules/", ".gradle/", ".dart_tool/", ".terraform/", ".next/", ".parcel-cache/"),
    # Reports and logs.
    *("htmlcov/", "npm-debug.log", "yarn-error.log", "nohup.out"),
    # Copies that editors, merges and patches leave beside a file.
    *("*.orig", "*.rej", "*~", ".*.swp"),
    # The view settings of a directory on macOS and Windows.
    *(".DS_Store", "Thumbs.db"),
)
"""What tools leave behind, as in .gitignore; only names that nobody gives to their own files.

A name such as build, dist, vendor or target may be somebody's work.
"""


def leftover_in(path: str, patterns: Sequence[str]) -> str:
    """Return the file or directory of a path that matches a pattern, as in .gitignore; else ""."""
    found = _matching(tuple(patterns)).match(path)
    return found[0] if found else ""


@cache
def _matching(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """Match the start of a path until a part that one of the patterns names."""
    directories, names = (
        "|".join(
            re.escape(pattern.rstrip("/")).replace(r"\*", "[^/]*")
            for pattern in patterns
            if pattern.endswith("/") is is_directory
        )
        or NEVER
        for is_directory in (True, False)
    )
    return re.compile(rf"(?s:(?:[^/]*/)*?(?:(?:{directories})/|(?:{names})(?:/|\Z)))")


NEVER = "(?!)"

VIRTUAL_ENVIRONMENT, CACHE_TAG = "pyvenv.cfg", "CACHEDIR.TAG"
"""Files that mark their directory as a tool's, whatever its name."""

CACHE_SIGNATURE = b"Signature: 8a477f597d28d172789f06886806bc55"
"""The beginning of a valid CACHEDIR.TAG (https://bford.info/cachedir)."""


ATTRIBUTES = "* !filter !diff !merge !working-tree-encoding"
"""Disables every driver that the repository's own .gitattributes configures."""

PRINTABLE = bytes(sign for sign in range(ord(" "), ord("~") + 1) if sign not in b'"\\')


def binary_attribute(path: bytes) -> bytes:
    """Return the git attribute that disables line-ending conversion for one path."""
    pattern = re.sub(rb"[\\*?\[\]]", rb"\\\g<0>", path)
    quoted = b"".join(
        bytes([byte]) if byte in PRINTABLE else b"\\%03o" % byte for byte in b"/" + pattern
    )
    return b'"%s" -text' % quoted
