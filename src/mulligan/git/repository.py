"""Run git with fixed, hardened settings, on this machine and against a remote."""

import os
import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

from tenacity import (
    RetryError,
    Retrying,
    retry_if_result,
    stop_after_attempt,
    wait_exponential,
)

from mulligan.config.settings import format_duration
from mulligan.domain.errors import MisconfiguredError
from mulligan.domain.layer import Layer
from mulligan.git.faults import TookTooLongError, fault_of, may_pass, one_line
from mulligan.sandbox.bubblewrap import layered
from mulligan.sandbox.cancellation import sleep_until_cancelled
from mulligan.sandbox.process import Command, Finished, run

# The environment and the settings of every git command.

PATH = "/usr/local/bin:/usr/bin:/bin"

FIXED = {
    "HOME": "/nonexistent",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_ALLOW_PROTOCOL": "https:http:ssh:git:file",
}

TOLERATED_FSCK_ERRORS = (
    *("badTimezone", "missingSpaceBeforeDate", "missingSpaceBeforeEmail", "missingEmail"),
    *("missingNameBeforeEmail", "zeroPaddedDate", "zeroPaddedFilemode", "badEmail", "badName"),
)
"""Harmless errors in old commits of well-known repositories."""

SETTINGS = {
    # Git runs nothing that a repository configures, and reads nothing outside it.
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.pager": "cat",
    "core.editor": "false",
    "core.sshCommand": "ssh -oBatchMode=yes -oConnectTimeout=30 -oServerAliveInterval=15",
    "core.attributesFile": "/dev/null",
    "core.excludesFile": "/dev/null",
    "credential.helper": "",
    "diff.external": "",
    "commit.gpgSign": "false",
    "gpg.program": "false",
    "submodule.recurse": "false",
    "diff.ignoreSubmodules": "all",
    "gc.auto": "0",
    "maintenance.auto": "false",
    # Files equal the commit, and the index hides no change.
    "core.autocrlf": "false",
    "core.fileMode": "true",
    "core.symlinks": "true",
    "core.ignoreCase": "false",
    "core.protectHFS": "true",
    "core.protectNTFS": "true",
    "core.sparseCheckout": "false",
    "core.splitIndex": "false",
    "core.untrackedCache": "false",
    "core.quotePath": "false",
    "core.logAllRefUpdates": "false",
    "checkout.workers": "0",
    # Stream larger files and diff them as binary; git would hold them in memory otherwise.
    "core.bigFileThreshold": "16m",
    # Without these, git waits for a stalled server without end.
    "http.lowSpeedLimit": "1000",
    "http.lowSpeedTime": "30",
    "fetch.fsckObjects": "true",
    **{f"fetch.fsck.{mistake}": "ignore" for mistake in TOLERATED_FSCK_ERRORS},
    "push.followTags": "false",
    "push.gpgSign": "false",
}

HARDENED = tuple(part for key, value in SETTINGS.items() for part in ("-c", f"{key}={value}"))

COMMAND_TIMEOUT = timedelta(minutes=2)
"""Time limit of local commands, which take milliseconds on a healthy disk."""

MAX_MEMORY_KIB = 1024 * 1024
"""The memory limit, in KiB, of a git that reads an agent's objects, without the files that it maps.
"""

LIMITED = ("/bin/sh", "-c", f'ulimit -d {MAX_MEMORY_KIB}; exec "$@"', "sh")

BLOCK_BYTES = 512
"""The unit of `ulimit -f` (POSIX)."""

NO_SUCH_PROGRAM = 127
"""The exit code of env(1) if it does not find git."""

# A repository on this machine.


@dataclass(frozen=True, slots=True)
class GitOutput:
    """The result of a local git command."""

    exit_code: int
    output: bytes
    stderr: str

    @property
    def text(self) -> str:
        """The output as text, without the final newline."""
        return self.output.decode(errors="replace").rstrip("\n")


@dataclass(frozen=True, slots=True)
class Access:
    """The access of one git command to a remote: variables, and descriptors to inherit."""

    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    descriptors: tuple[int, ...] = ()


TO_REACH_REMOTES = (
    *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
    *("HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO", "SSH_AUTH_SOCK"),
)
"""Variables that git gets from Mulligan's environment, besides PATH, to talk to a remote."""


@dataclass(frozen=True, slots=True)
class Repository:
    """A git directory of Mulligan's own, and its worktree if it has one.

    `outer` is Mulligan's environment; `alternates` are further object directories to read;
    `name` stands for the repository in errors; `extra` are more variables for git.
    With `is_limited`, git may not use more than MAX_MEMORY_KIB: objects that an agent made may
    be a thousand times as large as their files. With `max_file_bytes`, git may not write a larger
    file. For `stream`, `layers` are mounted first, by `bubblewrap` if that is a program.
    """

    name: str
    git_dir: Path
    outer: Mapping[str, str] = field(repr=False)
    work_tree: Path | None = None
    alternates: tuple[Path, ...] = ()
    extra: Mapping[str, str] = field(default_factory=dict[str, str])
    is_limited: bool = False
    max_file_bytes: int = 0
    layers: tuple[Layer, ...] = ()
    bubblewrap: str = ""

    def query(self, *arguments: str, stdin: bytes = b"") -> GitOutput:
        """Run a local command that may fail; raise only if git is missing or times out."""
        try:
            # Half of Mulligan's commands never call git, and importing this takes 50 ms of CPU.
            from git.cmd import Git  # noqa: PLC0415
        except ImportError as error:
            raise _no_git(str(error)) from error

        variables = [f"{name}={value}" for name, value in self._environment().items()]
        # GitPython always adds the variables of this process, also with `env`; env(1) removes them.
        # It starts git in 3 ms; sandbox/process.py, with its supervisor, takes 17 ms.
        with _readable(stdin) as istream:
            code, output, stderr = Git(self.work_tree or self.git_dir).execute(
                ["env", "-i", *variables, *self._argv(arguments)],
                istream=istream,
                with_extended_output=True,
                with_exceptions=False,
                stdout_as_string=False,
                strip_newline_in_stdout=False,
                kill_after_timeout=COMMAND_TIMEOUT.total_seconds(),
            )
        if stderr.startswith("Timeout:"):
            raise self._too_long(arguments, COMMAND_TIMEOUT)
        if code == NO_SUCH_PROGRAM:
            raise _no_git(stderr)
        return GitOutput(code, output, stderr)

    def read(self, *arguments: str, stdin: bytes = b"") -> bytes:
        """Run a local command; return its standard output."""
        answer = self.query(*arguments, stdin=stdin)
        if answer.exit_code:
            raise fault_of(answer.stderr, self._doing(arguments))
        return answer.output

    def line(self, *arguments: str) -> str:
        """Run a local command; return its one line of output."""
        return self.read(*arguments).decode(errors="replace").rstrip("\n")

    def attempt(
        self, *arguments: str, timeout: timedelta, access: Access | None = None
    ) -> Finished:
        """Run a long command that may fail; UnavailableError if it times out."""
        command = self._command(arguments, timeout)
        if access:
            reaching = {name: self.outer[name] for name in TO_REACH_REMOTES if name in self.outer}
            command = replace(
                command,
                environment={**command.environment, **reaching, **access.environment},
                pass_fds=access.descriptors,
            )
        finished = run(command)
        if finished.stopped_by:
            raise self._too_long(arguments, timeout)
        return finished

    def run(self, *arguments: str, timeout: timedelta, access: Access | None = None) -> Finished:
        """Run a long command; raise if it fails.

        With a remote, a failure that may pass is repeated in place (GITHUB-4). A push may be, too:
        its lease refuses the second one if the first one has reached the server.
        """
        retrying = Retrying(
            retry=retry_if_result(lambda done: bool(done.exit_code) and may_pass(done.text)),
            stop=stop_after_attempt(REMOTE_TRIES if access else 1),
            wait=wait_exponential(REMOTE_WAIT_SECONDS, min=REMOTE_WAIT_SECONDS),
            sleep=sleep_until_cancelled,
        )
        try:
            finished = retrying(self.attempt, *arguments, timeout=timeout, access=access)
        except RetryError as error:
            finished = error.last_attempt.result()
        if finished.exit_code:
            raise fault_of(finished.text, self._doing(arguments))
        return finished

    def stream(self, *arguments: str, into: Path, limit: int, timeout: timedelta) -> Finished:
        """Run git, and write at most `limit` bytes of its output to a file."""
        command = self._command(arguments, timeout)
        return run(replace(command, log=into, max_log_bytes=limit))

    def _command(self, arguments: tuple[str, ...], timeout: timedelta) -> Command:
        argv = self._argv(arguments)
        return Command(
            argv=layered(self.bubblewrap, self.layers, argv) if self.bubblewrap else argv,
            directory=self.work_tree or self.git_dir,
            environment=self._environment(),
            timeout=timeout,
            layers=() if self.bubblewrap else self.layers,
        )

    def _argv(self, arguments: tuple[str, ...]) -> tuple[str, ...]:
        git = ("git", *HARDENED, *arguments)
        if self.max_file_bytes:
            blocks = self.max_file_bytes // BLOCK_BYTES
            git = ("/bin/sh", "-c", f'ulimit -f {blocks}; exec "$@"', "sh", *git)
        return (*LIMITED, *git) if self.is_limited else git

    def _environment(self) -> dict[str, str]:
        variables = {
            **FIXED,
            "PATH": self.outer.get("PATH", PATH),
            "GIT_DIR": str(self.git_dir),
            **self.extra,
        }
        if self.work_tree:
            variables["GIT_WORK_TREE"] = str(self.work_tree)
        if self.alternates:
            variables["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = ":".join(map(_quoted, self.alternates))
        return variables

    def _doing(self, arguments: tuple[str, ...]) -> str:
        return f"git {arguments[0]} for {self.name}"

    def _too_long(self, arguments: tuple[str, ...], timeout: timedelta) -> TookTooLongError:
        message = (
            f"{self._doing(arguments)} took longer than {format_duration(timeout)}; "
            "it is tried again later."
        )
        return TookTooLongError(message)


@contextmanager
def _readable(content: bytes) -> Generator[BinaryIO | None]:
    """Provide a file with this content; None without content."""
    if not content:
        yield None
        return
    with os.fdopen(os.memfd_create("stdin"), "w+b") as file:
        file.write(content)
        file.seek(0)
        yield file


def _quoted(path: Path) -> str:
    """Quote a path, so that a colon in it does not separate paths."""
    escaped = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _no_git(stderr: str) -> MisconfiguredError:
    return MisconfiguredError(f"git cannot be started ({one_line(stderr)}); install it.")


# A repository on a server.

TRANSFER_TIMEOUT = timedelta(hours=1)
"""Time limit of a transfer; a stalled one ends after 30 s (http.lowSpeedTime)."""

REMOTE_QUERY_TIMEOUT = timedelta(minutes=2)

REMOTE_TRIES = 3

REMOTE_WAIT_SECONDS = 1.0
"""The wait before the second try; it doubles."""


@dataclass(frozen=True, slots=True)
class Remote:
    """A repository on a server, and the token for it."""

    url: str
    token: str | None = field(default=None, repr=False)

    def fetch(
        self,
        into: Repository,
        refspecs: Sequence[str],
        options: Sequence[str] = (),
        timeout: timedelta = TRANSFER_TIMEOUT,
    ) -> None:
        """Fetch the refspecs, and the tags that point into them; `options` are git's."""
        with access(self.url, self.token) as way:
            into.run(
                *("fetch", "-q", "--no-auto-maintenance", "--no-write-fetch-head"),
                *("--no-recurse-submodules", *options, "--", self.url, *refspecs),
                timeout=timeout,
                access=way,
            )

    def head_of(self, through: Repository, ref: str) -> str | None:
        """Return the commit that a full ref names there; None if there is no such ref."""
        return self.heads_of(through, ref).get(ref)

    def heads_of(self, through: Repository, pattern: str) -> dict[str, str]:
        """Return the commits of the refs that match a pattern, such as refs/heads/*."""
        with access(self.url, self.token) as way:
            finished = through.run(
                *("ls-remote", "-q", "--refs", "--", self.url, pattern),
                timeout=REMOTE_QUERY_TIMEOUT,
                access=way,
            )
        found = re.findall(r"^([0-9a-f]{40,64})\t(\S+)$", finished.text, re.MULTILINE)
        return {name: sha for sha, name in found}

    def delete(self, through: Repository, ref: str, expected: str) -> None:
        """Delete a full ref there, unless it no longer names the commit `held`."""
        with access(self.url, self.token) as way:
            through.run(
                *("push", "--porcelain", "--no-verify", f"--force-with-lease={ref}:{expected}"),
                *("--", self.url, f":{ref}"),
                timeout=TRANSFER_TIMEOUT,
                access=way,
            )

    def push(self, source: Repository, sha: str, ref: str, expected: str | None) -> None:
        """Push `sha` to a full ref there, unless the ref no longer names `held` (None: no ref)."""
        with access(self.url, self.token) as way:
            source.run(
                *("push", "--porcelain", "--no-verify", "--no-recurse-submodules"),
                f"--force-with-lease={ref}:{expected or ''}",
                *("--", self.url, f"{sha}:{ref}"),
                timeout=TRANSFER_TIMEOUT,
                access=way,
            )


PROGRAM = Path(__file__).with_name("askpass.sh")


@contextmanager
def access(url: str, token: str | None) -> Generator[Access]:
    """Allow access to a remote while the block lasts; use the token for http(s) URLs only.

    No argument, variable or file holds the token. A URL with a user in it gets no token.
    """
    parts = urlsplit(url)
    if not token or parts.scheme not in {"http", "https"} or "@" in parts.netloc:
        yield Access()
        return
    # The token lives in memory that only this process and the command started with it can open.
    descriptor = os.memfd_create("token")
    try:
        os.write(descriptor, token.strip().encode())
        environment = {
            "GIT_ASKPASS": str(PROGRAM),
            "MULLIGAN_ASKPASS_SCHEME": parts.scheme,
            "MULLIGAN_ASKPASS_HOST": parts.netloc,
            "MULLIGAN_ASKPASS_FD": str(descriptor),
        }
        yield Access(environment, (descriptor,))
    finally:
        os.close(descriptor)


# The version of git.

VERSION_TIMEOUT = timedelta(seconds=30)

VERSION_OUTPUT = re.compile(r"git version (\d+)\.(\d+)")


def version(environment: Mapping[str, str]) -> tuple[int, int]:
    """Return git's major and minor version; MisconfiguredError if git does not report one."""
    finished = run(
        Command(
            argv=("git", "--version"),
            directory=Path("/"),
            environment={"PATH": environment.get("PATH", PATH)},
            timeout=VERSION_TIMEOUT,
        )
    )
    found = VERSION_OUTPUT.match(finished.text)
    if found is None:
        message = "The program `git` on this machine reports no version; install git."
        raise MisconfiguredError(message)
    return int(found[1]), int(found[2])
