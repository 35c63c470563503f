"""A server on loopback with scripted answers: complete, broken, slow, or redirecting."""

import contextlib
import json
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True)
class Reply:
    """One answer. `length` lies about the body's size; `drip` is the pause after each byte."""

    status: int = 200
    content: object = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    raw: bytes | None = None
    length: int | None = None
    drip: float = 0.0
    silence: float = 0.0

    @property
    def body(self) -> bytes:
        return json.dumps(self.content).encode() if self.raw is None else self.raw


@dataclass(frozen=True)
class RecordedRequest:
    """One request that came in."""

    verb: str
    path: str
    headers: Mapping[str, str]
    content: object

    def __str__(self) -> str:
        return f"{self.verb} {self.path}"


@dataclass
class FaultyServer:
    """`url` is where it listens; the last reply is given again and again."""

    url: str
    replies: list[Reply]
    seen: list[RecordedRequest] = field(default_factory=list[RecordedRequest])

    @property
    def asked(self) -> list[str]:
        """Name what was asked, verb and path without the query."""
        return [str(seen).partition("?")[0] for seen in self.seen]


@contextlib.contextmanager
def faulty_server(replies: Sequence[Reply]) -> Generator[FaultyServer]:
    """Run a server that gives these replies, one for each request, in order."""
    told = FaultyServer("", list(replies))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
            return

        def _answer(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            sent = self.rfile.read(size)
            content = json.loads(sent) if sent else None
            headers = {name.lower(): value for name, value in self.headers.items()}
            told.seen.append(RecordedRequest(self.command, self.path, headers, content))
            reply = told.replies[0] if len(told.replies) == 1 else told.replies.pop(0)
            with contextlib.suppress(ConnectionError):
                _send(self, reply)

        do_GET = do_POST = do_PATCH = do_DELETE = _answer  # noqa: N815 - the base's names

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    told.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield told
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _send(handler: BaseHTTPRequestHandler, reply: Reply) -> None:
    time.sleep(reply.silence)
    handler.send_response(reply.status)
    for name, value in reply.headers.items():
        handler.send_header(name, value)
    size = len(reply.body) if reply.length is None else reply.length
    handler.send_header("Content-Length", str(size))
    handler.end_headers()
    if not reply.drip:
        handler.wfile.write(reply.body)
    for byte in reply.body if reply.drip else b"":
        handler.wfile.write(bytes([byte]))
        handler.wfile.flush()
        time.sleep(reply.drip)
    if reply.length is not None:
        handler.close_connection = True
