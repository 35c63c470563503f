"""An address on loopback that takes JSON and remembers it."""

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from pydantic import JsonValue, TypeAdapter

MAPPING: TypeAdapter[dict[str, JsonValue]] = TypeAdapter(dict[str, JsonValue])


@contextmanager
def webhook_receiver(*answers: int) -> Generator[tuple[str, list[dict[str, JsonValue]]]]:
    """Listen on loopback; the answers in order, then 200."""
    heard, left = list[dict[str, JsonValue]](), list(answers)

    class Ear(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["content-length"])
            heard.append(MAPPING.validate_python(json.loads(self.rfile.read(length))))
            self.send_response(left.pop(0) if left else 200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its own name
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Ear) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/secret", heard
        server.shutdown()
        thread.join()
