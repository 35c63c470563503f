"""The simulated GitHub with one small repository, reached by a call unless a test needs HTTP."""

import functools
import tempfile
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import requests

from github import Auth, Github
from github_simulator.bare_repository import git
from github_simulator.reply import Json
from mulligan.domain.issue import IssueRef
from world.git_objects import ObjectStore
from world.in_process import in_process
from world.issue_names import ref_of
from world.repositories import add_commit
from world.simulated_github import World

NAME = "acme/tools"
ROLES = {
    "ada": "admin",
    "mia": "maintain",
    "wes": "write",
    "tri": "triage",
    "rea": "read",
}
"""One person for each role; `zoe` has none. The token of each is `token-<login>`."""

Reach = Callable[[World], AbstractContextManager[str]]
"""Has a world answer, and gives the address: by a call, or over HTTP (`running`)."""


@dataclass(frozen=True)
class SimulatedGitHub:
    """A running simulator; `url` is where it answers."""

    world: World
    url: str
    bare: Path
    session: requests.Session = field(default_factory=requests.Session)

    def advance_one_second(self) -> None:
        """Advance the clock, so that the next acts are later: GitHub's times are whole seconds."""
        clock = self.world.stamps.clock
        later = replace(self.world.stamps, clock=lambda: clock() + timedelta(seconds=1))
        self.world.stamps = later

    def ask(
        self,
        method: str,
        path: str,
        *,
        by: str | None = "wes",
        body: Json = None,
        headers: dict[str, str] | None = None,
    ) -> requests.Response:
        """Send a request; a path that does not start with a slash is the repository's."""
        where = path if path.startswith("/") else f"/repos/{NAME}/{path}".rstrip("/")
        signed = {"authorization": f"Bearer token-{by}"} if by else {}
        return self.session.request(
            method,
            self.url + where,
            json=body,
            headers={**signed, **(headers or {})},
            timeout=120,
            allow_redirects=False,
        )

    def get(self, path: str, *, by: str | None = "wes", **headers: str) -> requests.Response:
        """Read; a header `if_none_match` is written with underscores."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.ask("GET", path, by=by, headers=named)

    def post(self, path: str, body: Json = None, *, by: str | None = "wes") -> requests.Response:
        return self.ask("POST", path, by=by, body=body)

    def patch(self, path: str, body: Json, *, by: str | None = "wes") -> requests.Response:
        return self.ask("PATCH", path, by=by, body=body)

    def client(self, login: str) -> Github:
        """Make a PyGithub client that neither waits nor repeats."""
        return Github(
            base_url=self.url,
            auth=Auth.Token(f"token-{login}"),
            retry=None,
            seconds_between_requests=0,
            seconds_between_writes=0,
        )

    def issue(self, title: str = "It is broken", author: str = "zoe") -> IssueRef:
        return ref_of(self.world.open_issue(NAME, title, "Please mend it.", author))


@functools.cache
def _template() -> tuple[tuple[Path, bytes | None], ...]:
    """Write the repository once for all tests of a process; a directory has no content."""
    with tempfile.TemporaryDirectory() as scratch:
        bare = Path(scratch, "tools.git")
        bare.mkdir()
        assert git(bare, "init", "--quiet", "--bare", "--template=", ".") is not None
        assert git(bare, "symbolic-ref", "HEAD", "refs/heads/main") is not None
        push(bare, "main", {"README.md": "# tools\n", "src/tool.py": "X = 1\n"}, start=None)
        assert git(bare, "config", "receive.autogc", "false") is not None
        return tuple(
            (each.relative_to(bare), each.read_bytes() if each.is_file() else None)
            for each in sorted(bare.rglob("*"))
        )


@contextmanager
def simulated_github(
    directory: Path, reach: Reach = in_process, **settings: bool
) -> Generator[SimulatedGitHub]:
    """Run a simulator with a repository of one commit, and close all of it afterwards."""
    bare = directory / "tools.git"
    bare.mkdir(parents=True)
    for path, content in _template():
        if content is None:
            (bare / path).mkdir()
        else:
            (bare / path).write_bytes(content)
    world = World()
    world.add_repository(NAME, bare, "main", ROLES, **settings)
    for login in (*ROLES, "zoe"):
        world.add_user(login, token=f"token-{login}")
    with reach(world) as url, requests.Session() as session:
        yield SimulatedGitHub(world, url, bare, session)


def push(
    bare: Path, branch: str, files: dict[str, str], *, start: str | None = "refs/heads/main"
) -> str:
    """Put a commit with these files on a branch, as a push would; give its id."""
    below = ObjectStore(bare).ref(start) if start else None
    wes = "Wes <wes@acme.example> 1767603600"
    message = f"Change {', '.join(files)}"
    return add_commit(bare, files, f"refs/heads/{branch}", message=message, who=wes, start=below)
