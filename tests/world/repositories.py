"""Bare repositories on this disk that stand for what GitHub serves."""

import atexit
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

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
        timeout=25,
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
    git(made, "init", "-q", "--bare", f"--initial-branch={branch}")
    if files:
        commit_to(made, dict(files), branch)
    return made


@cache
def _templates() -> str:
    place = tempfile.TemporaryDirectory(prefix="remotes-")
    atexit.register(place.cleanup)
    return place.name


def commit_to(
    remote: Path, files: Mapping[str, str | None], branch: str = "main", message: str = "Change"
) -> str:
    """Put a commit on a branch, new or not; a file that is None is deleted. Gives the commit."""
    ref = f"refs/heads/{branch}"
    held = git(remote, "for-each-ref", "--format=%(objectname)", ref)
    stream = [f"commit {ref}", "committer Ada <ada@example.org> 1700000000 +0000"]
    stream += [f"data {len(message.encode())}", message]
    stream += [f"from {held}"] if held else []
    for name, content in files.items():
        if content is None:
            stream.append(f"D {name}")
        else:
            stream += [f"M 100644 inline {name}", f"data {len(content.encode())}", content]
    git(remote, "fast-import", "--quiet", "--force", stdin="\n".join((*stream, "")))
    return git(remote, "rev-parse", ref)


def read_branch(remote: Path, branch: str, path: str) -> str:
    """Read a file as it is on a branch."""
    return git(remote, "cat-file", "blob", f"refs/heads/{branch}:{path}")


def branch_head(remote: Path, branch: str) -> str | None:
    """Give the commit of a branch; None where there is none."""
    return git(remote, "for-each-ref", "--format=%(objectname)", f"refs/heads/{branch}") or None
