"""A whole Mulligan: a GitHub on loopback, a repository, an agent, and the real command line."""

import os
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent
from threading import Thread
from typing import IO, TypeVar

import yaml
from pydantic import JsonValue, TypeAdapter

from github_simulator.app import running
from mulligan.config.load import load_operator
from mulligan.config.operator import Operator
from mulligan.domain.host import AS_ROOT
from mulligan.domain.issue import IssueRef
from mulligan.domain.result import WorkerResultMeta
from world.confined import usable_mode
from world.fork_server import ForkedProcess, run_forked, start_forked
from world.issue_names import ref_of
from world.ledgers import migrated, url_of
from world.repositories import git, make_remote
from world.simulated_github import World

NAME = "acme/tools"
TOKEN = "token-of-the-bot"
MAINTAINER = "ada"
JSON: TypeAdapter[JsonValue] = TypeAdapter(JsonValue)
BIN = Path(sys.executable).parent
T = TypeVar("T")


@dataclass
class MulliganInstallation:
    """Where a journey happens. `agent` may be rewritten between two runs."""

    directory: Path
    world: World
    url: str
    bare: Path
    settings: dict[str, JsonValue]
    environment: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def config(self) -> Path:
        return self.directory / "mulligan.yml"

    @property
    def worktree(self) -> Path:
        return self.directory / "work" / NAME / "issue-1"

    def configure(self, **settings: JsonValue) -> None:
        self.settings |= settings
        self.config.write_text(yaml.safe_dump(self.settings))

    def agent(self, source: str) -> None:
        """Make the agent a Python script; `prompt` is what it read on standard input."""
        opening = "import os, pathlib, subprocess, sys\nprompt = sys.stdin.read()\n"
        (self.directory / "agent.py").write_text(opening + dedent(source))

    def operator(self) -> Operator:
        """Read the configuration as Mulligan does."""
        return load_operator(self.config, self.environment)

    def agent_started(self) -> bool:
        """Return whether an agent has written `started` into its home, where only it may write."""
        return any(self.worktree.parent.glob("*.run/agent-*/home/started"))

    def issue(self, title: str = "Mend it", body: str = "Please mend it.") -> IssueRef:
        """Open an issue and have the maintainer put the label on."""
        ref = ref_of(self.world.open_issue(NAME, title, body, "zoe"))
        self.world.label(ref, "mulligan", MAINTAINER)
        return ref

    def start(self, *arguments: str, said: int | IO[str] = subprocess.PIPE) -> ForkedProcess:
        """Start a command of Mulligan."""
        arguments = (*arguments, "--config", str(self.config))
        return start_forked(arguments, self.directory, self._environment, said)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command of Mulligan to its end; the warning for root is taken off its errors."""
        arguments = (*arguments, "--config", str(self.config))
        done = run_forked(arguments, self.directory, self._environment)
        lines = done.stderr.splitlines(keepends=True)
        done.stderr = "".join(line for line in lines if AS_ROOT not in line)
        return done

    @property
    def _environment(self) -> dict[str, str]:
        path = f"{BIN}:{os.environ['PATH']}"
        return {"PATH": path, "HOME": str(self.directory)} | self.environment

    def ask(self, *arguments: str) -> JsonValue:
        """Run a command that prints JSON."""
        done = self.run(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        return JSON.validate_json(done.stdout)

    def attempts(self, ref: IssueRef) -> list[WorkerResultMeta]:
        found = self.ask("inspect", str(ref))
        assert isinstance(found, dict)
        listed = found["attempts"]
        assert isinstance(listed, list)
        return [WorkerResultMeta.model_validate(each) for each in listed]

    def prompt(self, ref: IssueRef, attempt: int) -> str:
        done = self.run("inspect", str(ref), "--attempt", str(attempt), "--prompt")
        assert done.returncode == 0, done.stderr
        return done.stdout

    def comments(self, ref: IssueRef) -> list[str]:
        return [comment.body for comment in self.world.comments_of(ref)]

    def branch_files(self, ref: IssueRef) -> set[str]:
        return set(git(self.bare, "ls-tree", "-r", "--name-only", ref.branch).splitlines())


@contextmanager
def left_later(context: AbstractContextManager[T]) -> Generator[T]:
    """Enter a context, and leave it without waiting: a server takes 0.15 s to end."""
    entered = context.__enter__()
    try:
        yield entered
    finally:
        Thread(target=context.__exit__, args=(None, None, None)).start()


@contextmanager
def mulligan_installation(
    directory: Path,
    files: Mapping[str, str] | Path,
    checks: Sequence[Mapping[str, JsonValue]] = (),
    **policy: JsonValue,
) -> Generator[MulliganInstallation]:
    """Set up a repository, of files or bare already, with checks, and a GitHub that shows it."""
    bare = files if isinstance(files, Path) else make_remote(directory / "remote.git", files)
    branch, ledger = git(bare, "symbolic-ref", "--short", "HEAD"), directory / "mulligan.db"
    world = World()
    world.add_user("mulligan-bot", "Bot", TOKEN)
    roles = {MAINTAINER: "admin", "wes": "write", "tri": "triage", "mulligan-bot": "write"}
    world.add_repository(NAME, bare, branch, roles)
    world.add_user("zoe")
    with left_later(running(world)) as url:
        made = MulliganInstallation(directory, world, url, bare, {})
        made.environment["GITHUB_TOKEN"] = TOKEN
        wanted: dict[str, JsonValue] = {"checks": [dict(check) for check in checks], **policy}
        made.configure(
            github={"api_url": url, "token": "$GITHUB_TOKEN"},
            repositories=[{"name": NAME, "clone_url": str(bare), "policy": wanted}],
            agent={"kind": "command", "command": [sys.executable, str(directory / "agent.py")]},
            state={"url": url_of(ledger) if ledger.exists() else migrated(ledger)},
            workspace={"root": str(directory / "work")},
            sandbox=usable_mode(),
            dashboard="off",
        )
        yield made
