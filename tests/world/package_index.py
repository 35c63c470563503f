"""A private package index on loopback: HTTPS from an authority of its own, with a password.

It serves one wheel to pip, one package to npm, and one repository to git. The addresses of files
are absolute.
"""

import base64
import gzip
import hashlib
import io
import json
import os
import subprocess
import tarfile
import zipfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path

from world.tls import Authority, serve_tls

USER, PASSWORD = "ci", "correct-horse-battery"
ENCODED = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()

WHEEL_NAME, TARBALL_NAME = "corporate-1.0-py3-none-any.whl", "corporate-1.0.0.tgz"

ARCHIVE_NAME = "corporate-1.0.tar.gz"

ARCHIVE = gzip.compress(b"a package " * 100, mtime=0)

HOST = "127.0.0.2"
"""On loopback, but not among the hosts that bypass every proxy."""


@dataclass(frozen=True)
class PackageIndex:
    """Its address, the certificate of its authority, and the methods and paths of its requests.

    `ranges` are the parts of files that it was asked for.
    """

    address: str
    ca_file: Path
    requests: list[str] = field(default_factory=list[str])
    denied: list[str] = field(default_factory=list[str])
    ranges: list[str] = field(default_factory=list[str])

    @property
    def host(self) -> str:
        return self.address.removeprefix("https://")


@contextmanager
def serve_package_index(directory: Path, host: str = HOST) -> Generator[PackageIndex]:
    """Serve while the block lasts; certificates are made in `directory`."""
    directory.mkdir(parents=True, exist_ok=True)
    authority = Authority(directory)
    requests, denied, ranges = list[str](), list[str](), list[str]()
    _make_repository(directory)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if self.headers.get("Authorization") != f"Basic {ENCODED}":
                denied.append(f"{self.command} {self.path}")
                self.answer(HTTPStatus.UNAUTHORIZED, b"who are you?")
                return
            requests.append(f"{self.command} {self.path}")
            if self.path.startswith("/lib.git/"):
                self.serve_git()
                return
            found = content_at(self.path, f"https://{self.headers['Host']}")
            status, body = (HTTPStatus.OK, found) if found else (HTTPStatus.NOT_FOUND, b"")
            if wanted := self.headers.get("Range"):
                ranges.append(wanted)
                first, _, last = wanted.removeprefix("bytes=").partition("-")
                status, body = HTTPStatus.PARTIAL_CONTENT, body[int(first) : int(last) + 1]
            self.answer(status, body)

        do_HEAD = do_POST = do_PUT = do_GET  # noqa: N815

        def serve_git(self) -> None:
            """Answer as `git http-backend`, which speaks CGI (RFC 3875)."""
            path, _, query = self.path.partition("?")
            if self.headers.get("Transfer-Encoding"):
                body = self.rfile.read(int(self.rfile.readline(), 16))
                self.rfile.read(len("\r\n0\r\n\r\n"))
            else:
                body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            done = subprocess.run(
                ["git", "http-backend"],
                input=body,
                capture_output=True,
                check=True,
                env={
                    "PATH": os.environ["PATH"],
                    "GIT_PROJECT_ROOT": str(directory),
                    "GIT_HTTP_EXPORT_ALL": "1",
                    "PATH_INFO": path,
                    "QUERY_STRING": query,
                    "REQUEST_METHOD": self.command,
                    "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                    "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                    "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
                    "REMOTE_USER": USER,
                },
            )
            head, _, content = done.stdout.partition(b"\r\n\r\n")
            self.wfile.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n")
            self.wfile.write(head + b"\r\n\r\n" + content)
            self.close_connection = True

        def answer(self, status: HTTPStatus, body: bytes) -> None:
            self.send_response(status)
            if status is HTTPStatus.UNAUTHORIZED:
                self.send_header("WWW-Authenticate", "Basic realm=index")
            kind = "text/html" if self.path.startswith("/simple/") else "application/json"
            self.send_header("Content-Type", kind)
            self.send_header("Accept-Ranges", "bytes")
            if self.path.startswith("/files/declared/"):
                self.send_header("Content-Encoding", "gzip")
            missing = 9 if self.path == "/broken" else 0
            self.send_header("Content-Length", str(len(body) + missing))
            self.close_connection = self.close_connection or bool(missing)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Keep still."""

    with serve_tls(authority.certificate(host), Handler, host) as address:
        yield PackageIndex(address, authority.ca_file, requests, denied, ranges)


def _make_repository(directory: Path) -> None:
    """Make `lib.git`, which is served to git."""
    work = directory / "lib"
    git = ("git", "-c", "user.name=ada", "-c", "user.email=ada@localhost")
    subprocess.run([*git, "init", "--quiet", str(work)], check=True)
    (work / "corporate.py").write_text("ANSWER = 42\n")
    for words in (("add", "."), ("commit", "--quiet", "--message", "Begin")):
        subprocess.run([*git, *words], cwd=work, check=True)
    bare = directory / "lib.git"
    subprocess.run([*git, "clone", "--quiet", "--bare", str(work), str(bare)], check=True)


def content_at(path: str, origin: str) -> bytes:
    """Return what the index has at a path; nothing for an unknown one."""
    match path:
        case "/":
            return b"{}"
        case "/simple/corporate/":
            digest = hashlib.sha256(wheel()).hexdigest()
            link = f"{origin}/files/{WHEEL_NAME}#sha256={digest}"
            return f'<a href="{link}">{WHEEL_NAME}</a>'.encode()
        case "/corporate":
            digest = base64.b64encode(hashlib.sha512(tarball()).digest()).decode()
            dist = {"tarball": f"{origin}/files/{TARBALL_NAME}", "integrity": f"sha512-{digest}"}
            version = {"name": "corporate", "version": "1.0.0", "dist": dist}
            tags = {"latest": "1.0.0"}
            packument = {"name": "corporate", "dist-tags": tags, "versions": {"1.0.0": version}}
            return json.dumps(packument).encode()
        case "/password":
            return PASSWORD.encode()
        case "/broken":
            return b"x"
        case _ if path.endswith(f"/{ARCHIVE_NAME}"):
            return ARCHIVE
        case _ if path == f"/files/{WHEEL_NAME}":
            return wheel()
        case _ if path == f"/files/{TARBALL_NAME}":
            return tarball()
        case _:
            return b""


def wheel() -> bytes:
    """Make the wheel, with the same bytes each time."""
    about = "Metadata-Version: 2.1\nName: corporate\nVersion: 1.0\n"
    made = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files = {
        "corporate.py": "ANSWER = 42\n",
        "corporate-1.0.dist-info/METADATA": about,
        "corporate-1.0.dist-info/WHEEL": made,
    }
    record = "".join(f"{name},,\n" for name in (*files, "corporate-1.0.dist-info/RECORD"))
    files["corporate-1.0.dist-info/RECORD"] = record
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(name), text)
    return written.getvalue()


def tarball() -> bytes:
    """Make the package for npm, with the same bytes each time."""
    manifest = json.dumps({"name": "corporate", "version": "1.0.0", "main": "index.js"}).encode()
    files = {"package/package.json": manifest, "package/index.js": b"module.exports = 42\n"}
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return gzip.compress(written.getvalue(), mtime=0)
