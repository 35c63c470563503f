"""Bare repositories with submodules beside each other on this disk."""

import tempfile
from collections.abc import Mapping
from pathlib import Path

from world.repositories import branch_head, git, make_remote

LIBRARY = {
    "lib.py": "VALUE = 41\n",
    "deep/data.txt": "data\n",
    "crlf.txt": "a\r\nb\r\n",
    ".gitattributes": "*.txt text\n",
    ".gitignore": "*.o\n",
}
FILE, SYMLINK, GITLINK = "100644", "120000", "160000"


def library(directory: Path, name: str = "lib.git", files: Mapping[str, str] = LIBRARY) -> Path:
    """Make the repository that a submodule leads to."""
    return make_remote(directory / name, files)


def gitmodules(**urls: str) -> str:
    """Write a .gitmodules file; the names of the entries are not their paths."""
    entries = enumerate(urls.items())
    return "".join(
        f'[submodule "name-{number}"]\n\tpath = {path}\n\turl = {url}\n'
        for number, (path, url) in entries
    )


def put(remote: Path, entries: Mapping[str, tuple[str, str]], message: str = "Change") -> str:
    """Commit entries to the branch main, each as mode and content; a gitlink's is a commit."""
    with tempfile.TemporaryDirectory() as scratch:
        index = f"GIT_INDEX_FILE={scratch}/index"
        listed = [git(remote, "ls-tree", "-r", "main")]
        for path, (mode, content) in entries.items():
            sha = content
            if mode != GITLINK:
                sha = git(remote, "hash-object", "-w", "--stdin", stdin=content)
            listed.append(f"{mode} {sha}\t{path}")
        _with(remote, index, "update-index", "--index-info", stdin="\n".join(listed) + "\n")
        tree = _with(remote, index, "write-tree", "--missing-ok")
    commit = git(remote, "commit-tree", tree, "-p", "main", "-m", message)
    git(remote, "update-ref", "refs/heads/main", commit)
    return commit


def _with(remote: Path, variable: str, *arguments: str, stdin: str | None = None) -> str:
    name, _, value = variable.partition("=")
    alias = f'alias.x=!{name}={value} git {arguments[0]} "$@" #'
    return git(remote, "-c", alias, "x", *arguments[1:], stdin=stdin)


def link(remote: Path, path: str, target: Path, url: str = "") -> str:
    """Commit a link to the head of a target, and the entry for it; give the linked commit."""
    sha = branch_head(target, "main")
    assert sha
    entry = gitmodules(**{path: url or f"../{target.name}"})
    put(remote, {".gitmodules": (FILE, entry), path: (GITLINK, sha)})
    return sha
