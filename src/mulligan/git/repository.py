"""Hand git a token so that no argument, no environment and no file holds it."""

import os
import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

from mulligan.config.settings import format_duration
from mulligan.domain.errors import MisconfiguredError, UnavailableError
from mulligan.git.faults import fault_of, one_line
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
"""What old commits of well-known repositories have wrong, and does no harm."""

SETTINGS = {
    # Nothing that a repository names is started, and nothing outside it is read.
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
    # Files are what the commit says, and the index hides nothing.
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
    # Larger files are streamed, and binary to a diff; git would hold them in memory whole.
    "core.bigFileThreshold": "16m",
    # A stalled server would be waited for without end.
    "http.lowSpeedLimit": "1000",
    "http.lowSpeedTime": "30",
    "fetch.fsckObjects": "true",
    **{f"fetch.fsck.{mistake}": "ignore" for mistake in TOLERATED_FSCK_ERRORS},
    "push.followTags": "false",
    "push.gpgSign": "false",
}

HARDENED = tuple(part for key, value in SETTINGS.items() for part in ("-c", f"{key}={value}"))

COMMAND_TIMEOUT = timedelta(minutes=2)
"""How long plumbing may take; on a healthy disk it takes milliseconds."""

NO_SUCH_PROGRAM = 127
"""What env(1) exits with where it does not find git."""

# A repository on this machine.


@dataclass(frozen=True, slots=True)
class GitOutput:
    """What git's plumbing answered."""

    exit_code: int
    output: bytes
    stderr: str

    @property
    def text(self) -> str:
        """Give the output as text, without the newline at its end."""
        return self.output.decode(errors="replace").rstrip("\n")


@dataclass(frozen=True, slots=True)
class Access:
    """What a command of git is given so that it may use a remote."""

    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    descriptors: tuple[int, ...] = ()


TO_REACH_REMOTES = (
    *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
    *("HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO", "SSH_AUTH_SOCK"),
)
"""What git may have of the outer environment besides PATH, when it talks to a remote."""


@dataclass(frozen=True, slots=True)
class Repository:
    """A git directory of Mulligan's own, and the files it is a view of.

    `outer` is the environment that was handed down; `borrowed` are further object directories
    that are read from; `name` is what errors call it.
    """

    name: str
    git_dir: Path
    outer: Mapping[str, str] = field(repr=False)
    work_tree: Path | None = None
    alternates: tuple[Path, ...] = ()
    extra: Mapping[str, str] = field(default_factory=dict[str, str])

    def query(self, *arguments: str) -> GitOutput:
        """Run plumbing that may say no; a missing git or a time-out is still an error."""
        try:
            # Half of Mulligan's commands never call git, and importing this takes 80 ms.
            from git.cmd import Git  # noqa: PLC0415
        except ImportError as error:
            raise _no_git(str(error)) from error

        variables = [f"{name}={value}" for name, value in self._environment().items()]
        # GitPython adds its own process's environment: env takes all of it away again.
        code, output, said = Git(self.work_tree or self.git_dir).execute(
            ["env", "-i", *variables, "git", *HARDENED, *arguments],
            with_extended_output=True,
            with_exceptions=False,
            stdout_as_string=False,
            strip_newline_in_stdout=False,
            kill_after_timeout=COMMAND_TIMEOUT.total_seconds(),
        )
        if said.startswith("Timeout:"):
            raise self._too_long(arguments, COMMAND_TIMEOUT)
        if code == NO_SUCH_PROGRAM:
            raise _no_git(said)
        return GitOutput(code, output, said)

    def read(self, *arguments: str) -> bytes:
        """Run plumbing; give its standard output."""
        answer = self.query(*arguments)
        if answer.exit_code:
            raise fault_of(answer.stderr, self._doing(arguments))
        return answer.output

    def line(self, *arguments: str) -> str:
        """Run plumbing; give its answer of one line."""
        return self.read(*arguments).decode(errors="replace").rstrip("\n")

    def attempt(
        self, *arguments: str, patience: timedelta, access: Access | None = None
    ) -> Finished:
        """Run what may take long or fail; a time-out is an UnavailableError."""
        command = self._command(arguments, patience)
        if access:
            reaching = {name: self.outer[name] for name in TO_REACH_REMOTES if name in self.outer}
            command = replace(
                command,
                environment={**command.environment, **reaching, **access.environment},
                pass_fds=access.descriptors,
            )
        finished = run(command)
        if finished.stopped_by:
            raise self._too_long(arguments, patience)
        return finished

    def run(self, *arguments: str, patience: timedelta, access: Access | None = None) -> Finished:
        """Run what may take long; anything but success is an error."""
        finished = self.attempt(*arguments, patience=patience, access=access)
        if finished.exit_code:
            raise fault_of(finished.text, self._doing(arguments))
        return finished

    def stream(self, *arguments: str, into: Path, limit: int, patience: timedelta) -> Finished:
        """Run git with its output going to a file, of which it fills at most `limit` bytes."""
        command = self._command(arguments, patience)
        return run(replace(command, log=into, max_log_bytes=limit))

    def _command(self, arguments: tuple[str, ...], patience: timedelta) -> Command:
        return Command(
            argv=["git", *HARDENED, *arguments],
            directory=self.work_tree or self.git_dir,
            environment=self._environment(),
            timeout=patience,
        )

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

    def _too_long(self, arguments: tuple[str, ...], patience: timedelta) -> UnavailableError:
        message = (
            f"{self._doing(arguments)} took longer than {format_duration(patience)}; "
            "it is tried again later."
        )
        return UnavailableError(message)


def _quoted(path: Path) -> str:
    """Quote a path so that git takes a colon in it as part of it."""
    escaped = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _no_git(said: str) -> MisconfiguredError:
    return MisconfiguredError(f"git cannot be started ({one_line(said)}); install it.")


# A repository on a server.

TRANSFER_TIMEOUT = timedelta(hours=1)
"""How long a transfer may take; a stalled one is given up after 30 s (http.lowSpeedTime)."""

REMOTE_QUERY_TIMEOUT = timedelta(minutes=2)


@dataclass(frozen=True, slots=True)
class Remote:
    """Where fetches come from and pushes go to."""

    url: str
    token: str | None = field(default=None, repr=False)

    def fetch(self, into: Repository, refspecs: Sequence[str]) -> None:
        """Fetch what the refspecs name, and the tags on it."""
        with access(self.url, self.token) as way:
            into.run(
                *("fetch", "-q", "--no-auto-maintenance", "--no-write-fetch-head"),
                *("--no-recurse-submodules", "--", self.url, *refspecs),
                patience=TRANSFER_TIMEOUT,
                access=way,
            )

    def head_of(self, through: Repository, ref: str) -> str | None:
        """Read which commit a full ref names there; None where there is no such ref."""
        with access(self.url, self.token) as way:
            finished = through.run(
                "ls-remote",
                "-q",
                "--refs",
                "--",
                self.url,
                ref,
                patience=REMOTE_QUERY_TIMEOUT,
                access=way,
            )
        found = re.search(rf"^([0-9a-f]{{40,64}})\t{re.escape(ref)}$", finished.text, re.MULTILINE)
        return found[1] if found else None

    def heads_of(self, through: Repository, pattern: str) -> dict[str, str]:
        """Read which commits the refs of a pattern name there, such as refs/heads/*."""
        with access(self.url, self.token) as way:
            finished = through.run(
                "ls-remote",
                "-q",
                "--refs",
                "--",
                self.url,
                pattern,
                patience=REMOTE_QUERY_TIMEOUT,
                access=way,
            )
        found = re.findall(r"^([0-9a-f]{40,64})\t(\S+)$", finished.text, re.MULTILINE)
        return {name: sha for sha, name in found}

    def delete(self, through: Repository, ref: str, held: str) -> None:
        """Delete a full ref there, unless it is no longer `held`."""
        with access(self.url, self.token) as way:
            through.run(
                *("push", "--porcelain", "--no-verify", f"--force-with-lease={ref}:{held}"),
                *("--", self.url, f":{ref}"),
                patience=TRANSFER_TIMEOUT,
                access=way,
            )

    def push(self, source: Repository, sha: str, ref: str, held: str | None) -> None:
        """Make a full ref there be `sha`, unless it is no longer `held` (None: not there)."""
        with access(self.url, self.token) as way:
            source.run(
                *("push", "--porcelain", "--no-verify", "--no-recurse-submodules"),
                f"--force-with-lease={ref}:{held or ''}",
                *("--", self.url, f"{sha}:{ref}"),
                patience=TRANSFER_TIMEOUT,
                access=way,
            )


PROGRAM = Path(__file__).with_name("askpass.sh")


@contextmanager
def access(url: str, token: str | None) -> Generator[Access]:
    """Give access to a remote while the context lasts; a token goes to http(s) URLs only.

    A URL that names its own user is left to it.
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

LOCK_WAIT = timedelta(seconds=30)

VERSION_OUTPUT = re.compile(r"git version (\d+)\.(\d+)")


def version(environment: Mapping[str, str]) -> tuple[int, int]:
    """Ask git for its version; MisconfiguredError where there is none."""
    asked = run(
        Command(
            argv=("git", "--version"),
            directory=Path("/"),
            environment={"PATH": environment.get("PATH", PATH)},
            timeout=LOCK_WAIT,
        )
    )
    found = VERSION_OUTPUT.match(asked.text)
    if found is None:
        message = "What is called git on this machine does not tell its version; install git."
        raise MisconfiguredError(message)
    return int(found[1]), int(found[2])
