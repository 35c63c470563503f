"""A user's own clone, read with their git and their settings; nothing in it changes."""

import hashlib
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from mulligan.domain.errors import MisconfiguredError, UsageError
from mulligan.sandbox.process import Command, run

TIMEOUT = timedelta(minutes=5)

ONLY_OUTPUT = ("/bin/sh", "-c", 'exec "$@" 2>/dev/null', "sh")

KINDS_WITH_FIELDS = {b"1": 8, b"u": 10, b"?": 1}
"""How many fields stand before the path, by the kind of entry (git-status(1), porcelain v2)."""

GITLINK = b"160000 "
"""The mode of a submodule in a listed tree."""


def require_directory(path: Path) -> None:
    """Raise UsageError if there is no such directory."""
    if not path.is_dir():
        raise UsageError(f"{path} is not a directory. Name the directory of a clone.")


@dataclass(frozen=True, slots=True)
class LocalClone:
    """A directory in a clone; `environment` is the user's."""

    path: Path
    environment: Mapping[str, str] = field(repr=False)

    def commit(self) -> str | None:
        """Return the commit that is checked out; None if there is none, or no repository."""
        return self._line("rev-parse", "--verify", "--quiet", "HEAD^{commit}")

    def url(self, remote: str) -> str | None:
        """Return the URL of a remote as it is configured; None if there is none."""
        return self._line("config", "--get", f"remote.{remote}.url")

    def committed(self, path: str) -> bytes | None:
        """Return a file of the commit that is checked out; None if there is none."""
        return self._git("cat-file", "blob", f"HEAD:{path}")

    def submodules(self) -> tuple[str, ...]:
        """List the paths of the submodules of the commit that is checked out."""
        listed = self._git("ls-tree", "-r", "-z", "--full-tree", "HEAD") or b""
        entries = (line.partition(b"\t") for line in listed.split(b"\0"))
        return tuple(os.fsdecode(path) for about, _, path in entries if about.startswith(GITLINK))

    def uncommitted(self) -> Mapping[str, str]:
        """Map each path that differs from the commit to a hash of how; with untracked files."""
        return self._status("--untracked-files=all")

    def changed(self) -> Mapping[str, str]:
        """Map each tracked file that differs from the commit to a hash of how."""
        return self._status("--untracked-files=no")

    def _status(self, untracked: str) -> Mapping[str, str]:
        listed = self._git(
            *("status", "--porcelain=v2", "-z", "--no-renames", "--ignore-submodules=all"),
            untracked,
        )
        top = Path(self._line("rev-parse", "--show-toplevel") or self.path)
        found = dict[str, str]()
        for entry in (listed or b"").split(b"\0"):
            fields = KINDS_WITH_FIELDS.get(entry[:1])
            if fields:
                *about, path = entry.split(b" ", fields)
                found[os.fsdecode(path)] = _hash_of(b" ".join(about), top / os.fsdecode(path))
        return found

    def _line(self, *arguments: str) -> str | None:
        output = self._git(*arguments)
        return None if output is None else output.decode(errors="replace").strip() or None

    def _git(self, *arguments: str) -> bytes | None:
        """Return the output of a git command; None if it failed, or git is not installed."""
        # In a hook, git's variables name the repository of the hook.
        variables = {
            name: value for name, value in self.environment.items() if not name.startswith("GIT_")
        }
        with tempfile.TemporaryDirectory(prefix="mulligan-git-") as directory:
            output = Path(directory, "output")
            try:
                done = run(
                    Command(
                        argv=(*ONLY_OUTPUT, "git", "-c", "core.fsmonitor=false", *arguments),
                        directory=self.path,
                        environment={**variables, "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"},
                        timeout=TIMEOUT,
                        log=output,
                    )
                )
            except MisconfiguredError:
                return None
            return None if done.exit_code or done.stopped_by else output.read_bytes()


def _hash_of(about: bytes, path: Path) -> str:
    """Return a hash of git's words about a file and of its content."""
    content = hashlib.sha256(about)
    try:
        content.update(os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes())
    except OSError:
        content.update(b"\0")
    return content.hexdigest()
