"""Mulligan's worktrees on a bare repository of this disk, and an agent's hands in them."""

import os
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path

from mulligan.agents.adapters import BUILT_IN
from mulligan.checks.runner import CommandVerifier
from mulligan.config.operator import RepositorySettings
from mulligan.domain.issue import IssueRef, RepositoryFacts
from mulligan.git.worktrees.worktrees import GitWorktrees
from mulligan.implement.commit_message import CommitText
from mulligan.implement.ports import Worktree
from world.repositories import make_remote

REPOSITORY = "octo/calc"
REF = IssueRef(REPOSITORY, 12)
LITTER = tuple(name for adapter in BUILT_IN.values() for name in adapter.litter)
TEXT = CommitText("Add numbers (#12)", "Issue: octo/calc#12\nMulligan-Attempt: 1", "ada")
FILES = {
    "README.md": "Adds.\n",
    "src/calc.py": "def add(a, b):\n    return a + b\n",
    "src/deep/er/empty.py": "",
    ".gitignore": "*.log\nbuild/\n",
}


@dataclass(frozen=True)
class FixedToken:
    """The port `Credentials` with one token for all."""

    token: str | None = None

    def git_token(self, repository: str) -> str | None:
        return self.token


def never_asked(repository: str) -> RepositoryFacts:
    raise AssertionError(repository)


def worktrees_of(
    root: Path,
    remote: Path,
    base: str = "main",
    *,
    keep_ignored: bool = False,
) -> GitWorktrees:
    """Build Mulligan's worktrees of one repository."""
    settings = RepositorySettings(name=REPOSITORY, clone_url=str(remote), base_branch=base)
    return GitWorktrees(
        root=root,
        repositories={REPOSITORY: settings},
        credentials=FixedToken(),
        facts=never_asked,
        environment={"PATH": os.environ["PATH"]},
        keep_ignored=keep_ignored,
        litter=LITTER,
    )


def calc_remote(path: Path) -> Path:
    """Make the remote that most tests work on."""
    return make_remote(path, FILES)


def run_in_worktree(tree: Worktree, *lines: str, check: bool = True) -> str:
    """Do what an agent would do: run shell lines in the worktree with plain git."""
    done = subprocess.run(
        ["bash", "-c", "set -e\n" * check + "\n".join(lines)],
        cwd=tree.path,
        env={"PATH": os.environ["PATH"], "HOME": str(tree.private), "LC_ALL": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        timeout=120,
    )
    assert done.returncode == 0 or not check, done.stdout + done.stderr
    return done.stdout.rstrip("\n")


def contents(tree: Path) -> dict[str, str]:
    """Map every path below a worktree to what is there; its own `.git` is not looked at."""
    found = dict[str, str]()
    for directory, below, names in os.walk(tree):
        for name in (*below, *names):
            path = Path(directory, name)
            key = os.fsencode(path.relative_to(tree)).decode(errors="backslashreplace")
            found[key] = _what(path)
        if Path(directory) == tree and ".git" in below:
            below.remove(".git")
    found.pop(".git", None)
    return found


def _what(path: Path) -> str:
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return f"-> {path.readlink()}"
    if stat.S_ISDIR(mode):
        return "directory"
    if stat.S_ISREG(mode) and not mode & stat.S_IWUSR:
        return "read-only"
    if stat.S_ISREG(mode):
        return ("! " if mode & stat.S_IXUSR else "= ") + path.read_text(errors="replace")
    return "special"


def files_as_committed(files: dict[str, str] = FILES) -> dict[str, str]:
    """Say what `contents` gives for a worktree that holds just these files."""
    directories = {str(parent) for name in files for parent in Path(name).parents} - {"."}
    return {name: f"= {text}" for name, text in files.items()} | dict.fromkeys(
        directories, "directory"
    )


def set_up_in_worktree(tree: Worktree, line: str) -> Worktree:
    """Run a set-up line as checks/runner.py does, and give the worktree with what it left."""
    verifier = CommandVerifier({"PATH": os.environ["PATH"]})
    verifier.set_up((line,), tree, tree.private / "setup.log")
    ready = tree.keep_set_up()
    ready.check_out(ready.start_sha)
    return ready
