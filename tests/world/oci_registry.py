"""A registry of images on loopback, that gives what a directory in the OCI layout has."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread


@contextmanager
def serve_images(layout: Path) -> Generator[int]:
    """Serve a layout under the name `tools` and the tag `1`; give the port."""
    index = json.loads((layout / "index.json").read_bytes())
    digest: str = index["manifests"][0]["digest"]
    media_type: str = index["manifests"][0]["mediaType"]

    class Registry(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(with_body=True)

        def do_HEAD(self) -> None:
            self._answer(with_body=False)

        def _answer(self, *, with_body: bool) -> None:
            asked = self.path.rpartition("/")[2]
            blob = layout / "blobs" / "sha256" / asked.removeprefix("sha256:")
            is_manifest = "/manifests/" in self.path
            if self.path == "/v2/":
                code, kind, body = 200, "application/json", b"{}"
            elif self.path == "/v2/tools/manifests/1" or asked == digest:
                blob = layout / "blobs" / "sha256" / digest.removeprefix("sha256:")
                code, kind, body = 200, media_type, blob.read_bytes()
            elif "/tools/blobs/" in self.path and blob.is_file():
                code, kind, body = 200, "application/octet-stream", blob.read_bytes()
            else:
                error = "MANIFEST_UNKNOWN" if is_manifest else "NAME_UNKNOWN"
                told = {"errors": [{"code": error, "message": "manifest unknown"}]}
                code, kind, body = 404, "application/json", json.dumps(told).encode()
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Docker-Distribution-Api-Version", "registry/2.0")
            self.end_headers()
            if with_body:
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Registry)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
