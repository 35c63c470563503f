"""A token reaches the one server it is for, and shows nowhere else."""

import base64
import os
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from mulligan.domain.errors import DeniedError, UnavailableError, WorldError
from mulligan.git.repository import Remote, Repository, access
from world.repositories import git

TOKEN = "ghs_averysecrettoken"
SHA = "1" * 40


@dataclass
class Server:
    """A git server with one branch, behind a password; `spied` is where the token was seen.

    It answers its first requests with the statuses in `outage`.
    """

    url: str = ""
    outage: list[int] = field(default_factory=list[int])
    redirect: str = ""
    given: list[str] = field(default_factory=list[str])
    spied: set[str] = field(default_factory=set[str])


def spy() -> set[str]:
    """Look for the token in what any process shows: arguments, environment."""
    found = set[str]()
    for process in Path("/proc").glob("[0-9]*"):
        for name in ("cmdline", "environ"):
            try:
                text = (process / name).read_bytes()
            except OSError:
                continue
            if TOKEN.encode() in text and process.name != str(os.getpid()):
                found.add(str(process / name))
    return found


def packet(text: str) -> bytes:
    return f"{len(text) + 4:04x}{text}".encode()


@contextmanager
def serving(server: Server) -> Generator[Server]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
            return

        def do_GET(self) -> None:
            server.spied |= spy()
            if server.outage:
                self.send_response(server.outage.pop(0))
                self.end_headers()
                return
            given = self.headers.get("Authorization", "")
            if server.redirect:
                self.send_response(302)
                self.send_header("Location", server.redirect + self.path)
                self.end_headers()
                return
            said = base64.b64decode(given.removeprefix("Basic ")).decode()
            server.given += [said] if said else []
            if said == f"x-access-token:{TOKEN}":
                self._advertise()
                return
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="git"')
            self.end_headers()

        def _advertise(self) -> None:
            first = f"{SHA} refs/heads/main\0 agent=test\n"
            body = packet("# service=git-upload-pack\n") + b"0000" + packet(first) + b"0000"
            self.send_response(200)
            self.send_header("Content-Type", "application/x-git-upload-pack-advertisement")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.url = f"http://127.0.0.1:{http.server_address[1]}"
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
        thread.join()


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    git(tmp_path, "init", "-q", "--bare", "kept.git")
    return Repository("octo/calc", tmp_path / "kept.git", {"PATH": os.environ["PATH"]})


def test_the_token_is_given_to_the_server_and_shows_nowhere(
    repository: Repository, tmp_path: Path
) -> None:
    with serving(Server()) as server:
        remote = Remote(f"{server.url}/octo/calc.git", TOKEN)
        for _ in range(2):
            assert remote.head_of(repository, "refs/heads/main") == SHA
        assert remote.head_of(repository, "refs/heads/other") is None
    assert server.given == [f"x-access-token:{TOKEN}"] * 3
    assert server.spied == set()
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(TOKEN.encode() in path.read_bytes() for path in files)
    assert TOKEN not in repr(remote)


def test_without_a_token_a_person_is_asked_and_no_terminal(repository: Repository) -> None:
    with serving(Server()) as server, pytest.raises(DeniedError, match="credential"):
        Remote(f"{server.url}/octo/calc.git").head_of(repository, "refs/heads/main")
    assert server.given == []


def test_a_redirect_does_not_get_the_token(repository: Repository) -> None:
    with serving(Server()) as other, serving(Server(redirect=other.url)) as server:
        with pytest.raises(DeniedError):
            Remote(f"{server.url}/octo/calc.git", TOKEN).head_of(repository, "refs/heads/main")
        assert other.given == []


@pytest.mark.parametrize("outage", [[503, 403], [429], [500, 502]])
def test_an_outage_of_a_moment_is_waited_out(outage: list[int], repository: Repository) -> None:
    with serving(Server(outage=outage)) as server:
        remote = Remote(f"{server.url}/octo/calc.git", TOKEN)
        assert remote.head_of(repository, "refs/heads/main") == SHA
        assert server.outage == []


@pytest.mark.parametrize(
    ("outage", "kind", "left"),
    [
        ([403] * 9, DeniedError, 6),
        ([503] * 9, UnavailableError, 6),
        ([404] * 9, UnavailableError, 6),
    ],
)
def test_a_refusal_that_lasts_is_reported(
    outage: list[int],
    kind: type[WorldError],
    left: int,
    repository: Repository,
) -> None:
    with serving(Server(outage=outage)) as server:
        with pytest.raises(kind):
            Remote(f"{server.url}/octo/calc.git", TOKEN).head_of(repository, "refs/heads/main")
        assert len(server.outage) == left


@pytest.mark.parametrize(
    ("url", "token", "host"),
    [
        ("https://github.com/o/r.git", TOKEN, "github.com"),
        ("http://h:8080/o/r?x=1", TOKEN, "h:8080"),
        ("https://github.com/o/r.git", None, None),
        ("https://github.com/o/r.git", "", None),
        ("https://me@github.com/o/r.git", TOKEN, None),
        ("ssh://git@github.com/o/r.git", TOKEN, None),
        ("git@github.com:o/r.git", TOKEN, None),
        ("/srv/git/r.git", TOKEN, None),
        ("file:///srv/git/r.git", TOKEN, None),
    ],
)
def test_only_web_addresses_get_a_token(url: str, token: str | None, host: str | None) -> None:
    with access(url, token) as given:
        assert given.environment.get("MULLIGAN_ASKPASS_HOST") == host
        assert bool(given.environment) == bool(given.descriptors) == bool(host)
        assert TOKEN not in repr(given)
        for descriptor in given.descriptors:
            assert os.get_inheritable(descriptor) is False
    for descriptor in given.descriptors:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)
