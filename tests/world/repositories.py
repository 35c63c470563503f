"""Bare repositories on this disk, in place of GitHub's."""

import atexit
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from world.git_objects import FILE, Entry, ObjectStore

NOBODY = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "LC_ALL": "C.UTF-8",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
}
ADA = {
    f"GIT_{role}_{part}": value
    for role in ("AUTHOR", "COMMITTER")
    for part, value in (("NAME", "Ada"), ("EMAIL", "ada@example.org"))
}


def run_git(
    directory: Path, *arguments: str, stdin: str | None = None, as_somebody: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run git as a person would, as Ada; it may fail."""
    return subprocess.run(
        ["git", *arguments],
        cwd=directory,
        env={**NOBODY, **(ADA if as_somebody else {})},
        input=stdin,
        capture_output=True,
        text=True,
        errors="surrogateescape",
        check=False,
        timeout=120,
    )


def git(
    directory: Path, *arguments: str, stdin: str | None = None, as_somebody: bool = True
) -> str:
    """Run git as a person would; give its output without the newline at its end."""
    done = run_git(directory, *arguments, stdin=stdin, as_somebody=as_somebody)
    assert done.returncode == 0, f"git {' '.join(arguments)}: {done.stderr}"
    return done.stdout.rstrip("\n")


def make_remote(path: Path, files: Mapping[str, str], branch: str = "main") -> Path:
    """Make a bare repository whose one branch holds the files; with no files it is empty."""
    template = _template(branch, tuple(files.items()))
    return Path(shutil.copytree(template, path))


@cache
def _template(branch: str, files: tuple[tuple[str, str], ...]) -> Path:
    """Make what such repositories are copied from, once."""
    made = Path(_templates(), str(len(list(Path(_templates()).iterdir()))))
    made.mkdir()
    git(made, "init", "-q", "--bare", "--template=", f"--initial-branch={branch}")
    git(made, "config", "receive.autogc", "false")
    (made / "hooks").mkdir()
    if files:
        commit_to(made, dict(files), branch)
    return made


def add_submodule(remote: Path, path: str, branch: str = "main", sha: str = "1" * 40) -> None:
    """Commit a submodule to a bare repository; its default commit exists nowhere."""
    directory, _, name = path.rpartition("/")
    link = f"160000 commit {sha}\t{name}\n"
    if directory:
        tree = git(remote, "mktree", "--missing", stdin=link)
        link = f"040000 tree {tree}\t{directory}\n"
    listed = git(remote, "ls-tree", branch) + "\n"
    tree = git(remote, "mktree", "--missing", stdin=listed + link)
    commit = git(remote, "commit-tree", tree, "-p", branch, "-m", "sub")
    git(remote, "update-ref", f"refs/heads/{branch}", commit)


@cache
def _templates() -> str:
    place = tempfile.TemporaryDirectory(prefix="remotes-")
    atexit.register(place.cleanup)
    return place.name


def commit_to(
    remote: Path, files: Mapping[str, str | None], branch: str = "main", message: str = "Change"
) -> str:
    """Put a commit on a branch, new or not; a file that is None is deleted. Gives the commit."""
    return add_commit(remote, files, f"refs/heads/{branch}", message=message)


def add_commit(
    remote: Path,
    files: Mapping[str, str | None],
    ref: str,
    *,
    message: str,
    who: str = "Ada <ada@example.org> 1700000000",
    start: str | None = None,
) -> str:
    """Add a commit to a ref, on its current commit or on `start`; `who` ends with the time."""
    store = ObjectStore(remote)
    held = start or store.ref(ref)
    after = {**store.files(held)} if held else {}
    for name, content in files.items():
        after.pop(name, None)
        if content is not None:
            after[name] = Entry(FILE, store.write("blob", os.fsencode(content)))
    person, _, when = who.rpartition(" ")
    parents = [held] if held else []
    made = store.write_commit(store.write_tree(after), parents, message, person, int(when))
    store.set_ref(ref, made)
    return made


def read_branch(remote: Path, branch: str, path: str) -> str:
    """Read a file as it is on a branch, without the newline at its end."""
    store, held = ObjectStore(remote), branch_head(remote, branch)
    assert held, branch
    return store.blob(store.files(held)[path].sha).decode().rstrip("\n")


def branch_head(remote: Path, branch: str) -> str | None:
    """Give the commit of a branch; None where there is none."""
    return ObjectStore(remote).branch(branch)
