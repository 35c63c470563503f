"""Git LFS objects come verified, and the token goes to the LFS server alone (WORKTREE-5)."""

import json
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
import responses

from mulligan.domain.errors import ForbiddenError, ShutdownError, UnavailableError
from mulligan.domain.lfs import LfsObject
from mulligan.github import lfs
from mulligan.github.lfs import LfsDownloads
from mulligan.sandbox.cancellation import SHUTDOWN
from world.lfs import oid_of

CONTENT = b"content\n" * 1000
WANTED = LfsObject(oid_of(CONTENT), len(CONTENT))
BATCH = "/octo/calc.git/info/lfs/objects/batch"
ENDLESS = "/endless"
Answer = tuple[int, Mapping[str, str], bytes]


@dataclass
class Server:
    """A server on loopback; `answers` maps paths to answers, and `seen` has every request."""

    url: str = ""
    answers: dict[str, Callable[[], Answer]] = field(
        default_factory=dict[str, Callable[[], Answer]]
    )
    seen: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    @property
    def endpoint(self) -> str:
        return f"{self.url}/octo/calc.git/info/lfs"

    def offer(self, href: str, header: Mapping[str, str] | None = None) -> None:
        action = {"href": href, "header": dict(header or {})}
        self.batch({"oid": WANTED.oid, "size": 1, "actions": {"download": action}})

    def batch(self, *objects: Mapping[str, object], transfer: str = "basic") -> None:
        body = json.dumps({"transfer": transfer, "objects": objects}).encode()
        self.answers[BATCH] = lambda: (200, {}, body)

    def send(self, path: str, content: bytes, status: int = 200) -> str:
        self.answers[path] = lambda: (status, {}, content)
        return self.url + path

    def redirect(self, path: str, to: str, status: int = 307) -> str:
        self.answers[path] = lambda: (status, {"location": to}, b"")
        return self.url + path


@contextmanager
def serving() -> Generator[Server]:
    made = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            made.seen.append((self.path, self.headers.get("authorization", "")))
            self.rfile.read(int(self.headers.get("content-length", 0)))
            status, headers, body = made.answers.get(self.path, lambda: (404, {}, b""))()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            with suppress(OSError):
                self.wfile.write(body)
                while self.path == ENDLESS:
                    self.wfile.write(CONTENT)

        do_POST = do_GET  # noqa: N815 - the name that the library calls

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's
            del format, args

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        made.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield made
        server.shutdown()
        thread.join()


@pytest.fixture
def server() -> Generator[Server]:
    with serving() as made:
        yield made


@pytest.fixture
def other() -> Generator[Server]:
    with serving() as made:
        yield made


def download(server: Server, tmp_path: Path, *wanted: LfsObject, seconds: float = 20) -> bytes:
    until = time.monotonic() + seconds
    got = LfsDownloads().download(server.endpoint, "secret", wanted or (WANTED,), tmp_path, until)
    return b"".join(file.read_bytes() for _, file in got)


BASIC = "Basic eC1hY2Nlc3MtdG9rZW46c2VjcmV0"


def test_the_token_goes_to_the_server_and_not_to_the_download(
    server: Server, other: Server, tmp_path: Path
) -> None:
    server.offer(other.send("/there", CONTENT), {"X-Signed": "1"})
    assert download(server, tmp_path) == CONTENT
    assert server.seen == [(BATCH, BASIC)]
    assert other.seen == [("/there", "")]


def test_many_objects_are_asked_for_in_parts(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lfs, "PER_BATCH", 1)
    second = LfsObject(oid_of(b"two"), 3)
    contents = {WANTED.oid: CONTENT, second.oid: b"two"}
    server.batch(
        *(
            {"oid": oid, "actions": {"download": {"href": server.send(f"/{oid}", content)}}}
            for oid, content in contents.items()
        )
    )
    assert download(server, tmp_path, WANTED, second) == CONTENT + b"two"
    assert [path for path, _ in server.seen] == [BATCH, f"/{WANTED.oid}", BATCH, f"/{second.oid}"]


@pytest.mark.parametrize(
    "content", [CONTENT[::-1], CONTENT + b"x", CONTENT[:-1], b"", CONTENT * 5000]
)
def test_other_content_is_refused_and_not_kept(
    content: bytes, server: Server, tmp_path: Path
) -> None:
    server.offer(server.send("/there", content))
    with pytest.raises(UnavailableError, match="sent other content"):
        download(server, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_endless_download_ends_at_the_size(server: Server, tmp_path: Path) -> None:
    server.offer(server.send(ENDLESS, CONTENT))
    with pytest.raises(UnavailableError, match="sent other content"):
        download(server, tmp_path)


def test_a_redirect_to_another_host_never_gets_the_token(
    server: Server, other: Server, tmp_path: Path
) -> None:
    server.redirect(BATCH, f"{other.url}{BATCH}")
    with pytest.raises(UnavailableError, match="redirects to another host"):
        download(server, tmp_path)
    assert other.seen == []


def test_a_renamed_repository_is_followed(server: Server, tmp_path: Path) -> None:
    server.offer(server.send("/there", CONTENT))
    server.answers["/new"] = server.answers[BATCH]
    server.redirect(BATCH, "/new")
    assert download(server, tmp_path) == CONTENT
    assert server.seen[1] == ("/new", BASIC)


def test_headers_of_a_download_stay_at_its_host(
    server: Server, other: Server, tmp_path: Path
) -> None:
    other.send("/end", CONTENT)
    server.redirect("/middle", f"{other.url}/end", 302)
    server.redirect("/there", "/middle", 302)
    server.offer(f"{server.url}/there", {"Authorization": "RemoteAuth x"})
    assert download(server, tmp_path) == CONTENT
    assert server.seen[1:] == [("/there", "RemoteAuth x"), ("/middle", "RemoteAuth x")]
    assert other.seen == [("/end", "")]


@pytest.mark.parametrize("path", ["/there", BATCH])
def test_redirects_end(path: str, server: Server, tmp_path: Path) -> None:
    server.offer(f"{server.url}/there")
    server.redirect(path, path)
    with pytest.raises(UnavailableError, match="too often"):
        download(server, tmp_path)


@responses.activate
def test_a_download_without_tls_is_refused(tmp_path: Path) -> None:
    action = {"href": "http://evil.example/x"}
    body = {"objects": [{"oid": WANTED.oid, "actions": {"download": action}}]}
    responses.post("https://lfs.example/objects/batch", json=body)
    until = time.monotonic() + 20
    with pytest.raises(UnavailableError, match="is not https"):
        list(LfsDownloads().download("https://lfs.example", None, [WANTED], tmp_path, until))


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (401, b"", "answered 401; check the credential"),
        (403, b'{"message": "over its data\\nquota"}', r"answered 403 \(over its data quota\)"),
        (404, b'{"message": "Not found"}', r"answered 404 \(Not found\); it is tried again"),
        (500, b"<html>", "answered 500; it is tried again"),
        (200, b"<html>", "cannot be read"),
        (200, b'{"objects": []}', "does not have the object"),
        (200, b'{"objects": [], "transfer": "tus"}', "has no transfer `basic`"),
        (200, b" " * (lfs.MAX_ANSWER + 1), "too long"),
    ],
)
def test_an_answer_without_objects(
    status: int, body: bytes, words: str, server: Server, tmp_path: Path
) -> None:
    server.send(BATCH, body, status)
    with pytest.raises((UnavailableError, ForbiddenError), match=words):
        download(server, tmp_path)


def test_an_object_that_the_server_does_not_have(server: Server, tmp_path: Path) -> None:
    error = {"code": 410, "message": "removed"}
    server.batch({"oid": WANTED.oid, "error": error})
    with pytest.raises(UnavailableError, match=r"does not have the object .* \(410 removed\)"):
        download(server, tmp_path)


def test_a_failed_download(server: Server, tmp_path: Path) -> None:
    server.offer(server.send("/there", b"", 503))
    with pytest.raises(UnavailableError, match="answered 503 for the Git LFS object"):
        download(server, tmp_path)
    server.offer("http://127.0.0.1:9/x")
    with pytest.raises(UnavailableError, match="connection refused"):
        download(server, tmp_path)


def test_the_time_has_a_limit(server: Server, tmp_path: Path) -> None:
    server.offer(server.send("/there", CONTENT))
    with pytest.raises(UnavailableError, match="in time"):
        download(server, tmp_path, seconds=0)


def test_a_shutdown_ends_a_download(server: Server, tmp_path: Path) -> None:
    server.offer(server.send("/there", CONTENT))
    SHUTDOWN.set()
    try:
        with pytest.raises(ShutdownError):
            download(server, tmp_path)
    finally:
        SHUTDOWN.clear()
    assert server.seen == []
