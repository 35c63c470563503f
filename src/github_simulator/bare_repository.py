"""Read a simulated repository's git data from a bare repository on disk."""

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

HEADS = "refs/heads/"

SHA = re.compile(r"[0-9a-f]{40,64}")

TIMEOUT = 120
"""Limit in seconds; on a healthy disk a command takes milliseconds."""

ENVIRONMENT = {
    "HOME": "/nonexistent",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_AUTHOR_NAME": "GitHub",
    "GIT_AUTHOR_EMAIL": "noreply@github.com",
    "GIT_COMMITTER_NAME": "GitHub",
    "GIT_COMMITTER_EMAIL": "noreply@github.com",
    # GitHub signs its own merges, and rules for pushes do not apply to them.
    "SIMULATOR_MERGES": "1",
}

SETTINGS = {
    # Git runs nothing that a repository configures.
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "diff.external": "",
    "commit.gpgSign": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    # Files and their names are exactly those of the commit.
    "core.attributesFile": os.devnull,
    "core.autocrlf": "false",
    "core.quotePath": "false",
}

SAFE = tuple(part for key, value in SETTINGS.items() for part in ("-c", f"{key}={value}"))


PLAIN = ("--no-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none")
"""Options of a diff that shows the commits' files and runs nothing."""


class SimulatorError(Exception):
    """The simulator cannot work on this machine; the message is a sentence that says what to do.

    An error answer of GitHub itself is a `reply.ErrorReply` instead.
    """


def git(directory: Path, *arguments: str, stdin: bytes = b"") -> bytes | None:
    """Run git in a directory and return its output; None if git fails.

    Git reads only the repository's own configuration. SimulatorError if git is missing, or takes
    longer than `TIMEOUT`.
    """
    done = _run(directory, arguments, stdin)
    return done.stdout if done.returncode == 0 else None


def serve_pack(directory: Path, service: str, protocol: str, body: bytes | None = None) -> bytes:
    """Answer a request of git's smart HTTP protocol; without a body, list the refs.

    `protocol` is the header Git-Protocol. An error is part of git's answer.
    """
    command = service.removeprefix("git-")
    options = ("--stateless-rpc", *(() if body is not None else ("--http-backend-info-refs",)))
    return _run(directory, (command, *options, "."), body or b"", {"GIT_PROTOCOL": protocol}).stdout


def _run(
    directory: Path,
    arguments: Sequence[str],
    stdin: bytes,
    variables: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            ["git", *SAFE, *arguments],
            cwd=directory,
            env={**ENVIRONMENT, **(variables or {}), "PATH": os.environ.get("PATH", os.defpath)},
            input=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=TIMEOUT,
            start_new_session=True,  # Ctrl-C is for the simulator, which stops git itself
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise SimulatorError(
            f"git {arguments[0]} took longer than {TIMEOUT} seconds in {directory}; try again."
        ) from error
    except OSError as error:
        raise SimulatorError(
            f"git cannot be started in {directory} ({error}); install git."
        ) from error


@dataclass(frozen=True, slots=True)
class BareRepository:
    """A bare repository; refs are not cached, since pushes bypass the simulator."""

    path: Path

    def listed_branches(self) -> dict[str, str]:
        """Return the commit of each branch, as git lists them."""
        listed = self._text("for-each-ref", "--format=%(refname) %(objectname)", HEADS)
        pairs = (line.split(" ") for line in listed.splitlines())
        return {name.removeprefix(HEADS): sha for name, sha in pairs}

    def branches(self) -> dict[str, str]:
        """Return each branch with its commit, from git's files: every request needs them."""
        found = dict(_loose(self.path / HEADS))
        for line in _lines(self.path / "packed-refs"):
            sha, _, name = line.partition(" ")
            if name.startswith(HEADS):
                found.setdefault(name.removeprefix(HEADS), sha)
        if all(map(SHA.fullmatch, found.values())) and not (self.path / "reftable").exists():
            return found
        return self.listed_branches()

    def resolve(self, revision: str) -> str | None:
        """Return the commit of a branch, tag or (short) id; None if there is none."""
        options = ("--verify", "--quiet", "--end-of-options")
        found = self._ask("rev-parse", *options, f"{revision}^{{commit}}")
        return found.decode().strip() if found else None

    def merge_base(self, one: str, other: str) -> str | None:
        """Return the merge base of two commits."""
        found = self._compare("merge-base", one, other)
        return found.split()[0] if found else None

    def count_ahead(self, base: str, head: str) -> int:
        """Count the commits of `head` that `base` lacks."""
        return int(self._compare("rev-list", "--count", f"{base}..{head}") or 0)

    def changes(self, base: str, head: str) -> list[tuple[int, int]]:
        """Return the added and deleted lines of each file that differs; a binary file has none."""
        lines = self._compare("diff", *PLAIN, "--numstat", base, head).splitlines()
        counts = (line.split("\t")[:2] for line in lines)
        return [(int(added.strip("-") or 0), int(gone.strip("-") or 0)) for added, gone in counts]

    def patch(self, base: str, head: str) -> tuple[list[str], str]:
        """Return the paths of the files that differ, and the patch with them in the same order."""
        names = self._text("diff", *PLAIN, "--name-only", "-z", base, head)
        return names.split("\0")[:-1], self._text("diff", *PLAIN, "--unified=5", base, head)

    def file(self, sha: str, path: str) -> bytes | None:
        """Return the content of a file in a commit; None if it has no such file."""
        return self._ask("cat-file", "blob", f"{sha}:{path}")

    def merge(
        self, base: str, head: str, message: str, *, squash: bool = False, into: str = ""
    ) -> str | None:
        """Merge two commits in a temporary clone; return the merge, or None on a conflict.

        With `into`, set the branch of that name to the result; it must still be at `base`.
        """
        with tempfile.TemporaryDirectory(prefix="simulator-") as scratch:
            place, clone = Path(scratch), Path(scratch, "clone")
            options = ("--quiet", "--shared", "--no-checkout")
            _required(git(place, "clone", *options, "--", str(self.path), "clone"))
            _required(git(clone, "checkout", "--quiet", "--detach", base))
            way = ("--squash",) if squash else ("--no-ff", "--no-commit")
            if git(clone, "merge", "--quiet", *way, head) is None:
                return None
            _required(git(clone, "commit", "--quiet", "--allow-empty", "-m", message))
            merged = _required(git(clone, "rev-parse", "HEAD")).decode().strip()
            if into and git(clone, "push", "--quiet", "origin", f"HEAD:refs/heads/{into}") is None:
                return None
        return merged

    def _compare(self, *arguments: str) -> str:
        """Return what git says of two commits, by their ids; empty if git fails."""
        try:
            return _compared(self.path, *arguments)
        except LookupError:
            return ""

    def _text(self, *arguments: str) -> str:
        """Return git's output as text; empty if git fails."""
        return (self._ask(*arguments) or b"").decode(errors="replace")

    def _ask(self, *arguments: str) -> bytes | None:
        """Return git's output; None if git fails."""
        return git(self.path, "--git-dir=.", *arguments)


@lru_cache(maxsize=4096)
def _compared(path: Path, *arguments: str) -> str:
    """Return what git says of two commits, which never changes; LookupError if git fails."""
    output = git(path, "--git-dir=.", *arguments)
    if output is None:
        raise LookupError(arguments[0])
    return output.decode(errors="replace")


def _loose(directory: Path) -> Iterator[tuple[str, str]]:
    """Yield the loose refs in a directory: name and content."""
    for where, _, names in os.walk(directory):
        for name in names:
            file = Path(where, name)
            if file.suffix != ".lock":
                yield from ((str(file.relative_to(directory)), line) for line in _lines(file))


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(errors="replace").splitlines()
    except FileNotFoundError:
        return []


def _required(output: bytes | None) -> bytes:
    if output is None:
        raise SimulatorError("The simulator's repository cannot be used by git; make it anew.")
    return output
