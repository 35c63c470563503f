"""Show a browser on this machine one page, and hear of the one answer that it comes back with."""

import re
import secrets
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import timedelta
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from mulligan.config.settings import format_duration
from mulligan.errors import UnavailableError

HOST = "127.0.0.1"
BACK = "/back"
CODE = re.compile(r"[A-Za-z0-9_.-]{1,200}")
HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
}
THANKS = "That was all; go back to the terminal."
SECOND = "An answer came already; go back to the terminal."
STRANGE = "This answer belongs to another request; open the address that the terminal shows."
NOWHERE = "There is nothing here; open the address that the terminal shows."


class Porch:
    """A page at `address`; the answer that bears its `state` ends the waiting."""

    def __init__(self, port: int) -> None:
        self.state = secrets.token_urlsafe(32)
        self.host = f"{HOST}:{port}"
        self.page = ""
        self._heard = threading.Event()
        self._code = ""

    @property
    def address(self) -> str:
        """Give the address for the browser."""
        return f"http://{self.host}/"

    @property
    def back(self) -> str:
        """Give the address to come back to."""
        return f"http://{self.host}{BACK}"

    def wait(self, limit: timedelta) -> str:
        """Give the code of the answer; UnavailableError where none comes in time."""
        if not self._heard.wait(limit.total_seconds()):
            time = format_duration(limit)
            message = f"No browser came back within {time}, so nothing was written; begin again."
            raise UnavailableError(message)
        return self._code

    def answer(self, host: str, target: str) -> tuple[HTTPStatus, str]:
        """Answer a request for `target`; one that names another host was led here by a page."""
        parts = urlsplit(target)
        if host == self.host and parts.path == "/":
            return HTTPStatus.OK, self.page
        if host != self.host or parts.path != BACK:
            return HTTPStatus.NOT_FOUND, NOWHERE
        given = parse_qs(parts.query)
        state, code = given.get("state", [""])[0], given.get("code", [""])[0]
        is_ours = secrets.compare_digest(state.encode(), self.state.encode())
        if not is_ours or not CODE.fullmatch(code):
            return HTTPStatus.BAD_REQUEST, STRANGE
        if self._heard.is_set():
            return HTTPStatus.CONFLICT, SECOND
        self._code = code
        self._heard.set()
        return HTTPStatus.OK, THANKS


def _handler(answer: Callable[[str, str], tuple[HTTPStatus, str]]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 10

        def do_GET(self) -> None:
            status, text = answer(self.headers.get("Host", ""), self.path)
            body = text.encode()
            self.send_response(status)
            for name, value in {**HEADERS, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
            """Say nothing: the target of the answer has a secret in it."""

    return Handler


@contextmanager
def open_porch() -> Generator[Porch]:
    """Listen on a free port of loopback; afterwards neither a thread nor a socket is left."""
    server = ThreadingHTTPServer((HOST, 0), BaseHTTPRequestHandler)
    porch = Porch(server.server_address[1])
    server.RequestHandlerClass = _handler(porch.answer)
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), name="porch")
    thread.start()
    try:
        yield porch
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
