"""One process that polls a thousand idle repositories, whose GitHub answers `304 Not Modified`."""

import os
import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from time import sleep

import pytest
import yaml
from pydantic import TypeAdapter

from world.ledgers import migrated
from world.place import BIN
from world.repositories import make_remote

REPOSITORIES = int(os.environ.get("REPOSITORIES", "1000"))
LATENCY = float(os.environ.get("LATENCY", "0.1"))
"""Seconds until that GitHub answers."""
PASSES = 2
MAX_MEGABYTES = 300
MAX_CPU = 0.01
"""Seconds of CPU of Mulligan's own process for one repository."""
SCRIPT = Path(__file__).with_name("many_repositories.py")


class Unchanged(BaseHTTPRequestHandler):
    """Answers each list: empty at first, and unchanged from then on."""

    protocol_version = "HTTP/1.1"
    latency = 0.0

    def do_GET(self) -> None:
        sleep(self.latency)
        known = self.headers["If-None-Match"]
        self.send_response(304 if known else 200)
        self.send_header("ETag", f'"{self.path}"')
        self.send_header("Content-Type", "application/json; charset=utf-8")
        self.send_header("Content-Length", "0" if known else "2")
        self.end_headers()
        self.wfile.write(b"" if known else b"[]")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Log nothing."""


@contextmanager
def unchanged_github(latency: float) -> Generator[str]:
    handler = type("Handler", (Unchanged,), {"latency": latency})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        Thread(target=server.serve_forever, args=(0.1,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def write_config(place: Path, url: str) -> Path:
    """Configure all repositories, with the same remote, and copies of one mirror of it."""
    remote, work = make_remote(place / "remote.git", {"a.txt": "a\n"}), place / "work"
    names = [f"owner-{number % 50}/repository-{number}" for number in range(REPOSITORIES)]
    policy = {"checks": [{"name": "test", "run": "true"}]}
    config = place / "mulligan.yml"
    repositories = [
        {"name": name, "clone_url": str(remote), "base_branch": "main", "policy": policy}
        for name in names
    ]
    settings = {
        "github": {"api_url": url, "token": "$GITHUB_TOKEN"},
        "agent": {"kind": "command", "command": ["true"]},
        "state": {"url": migrated(place / "mulligan.db")},
        "workspace": {"root": str(work)},
        "sandbox": "off",
    }
    config.write_text(yaml.safe_dump({**settings, "repositories": repositories[:1]}))
    run(config, 1)
    for name in names[1:]:
        shutil.copytree(work / names[0], work / name)
    config.write_text(yaml.safe_dump({**settings, "repositories": repositories}))
    return config


@dataclass(frozen=True)
class Pass:
    """What a pass took; `cpu` is without the processes of git."""

    seconds: float
    cpu: float
    megabytes: float


@dataclass(frozen=True)
class Polled:
    """The seconds between two passes of a daemon with so many repositories, and the passes."""

    interval: float
    passes: list[Pass]


def run(config: Path, passes: int) -> Polled:
    done = subprocess.run(
        [BIN / "python", SCRIPT, config, str(passes)],
        env={"PATH": os.environ["PATH"], "HOME": str(config.parent), "GITHUB_TOKEN": "x"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return TypeAdapter(Polled).validate_json(done.stdout)


@pytest.mark.timeout(1800)
def test_a_pass_over_a_thousand_repositories(tmp_path: Path) -> None:
    with unchanged_github(LATENCY) as url:
        found = run(write_config(tmp_path, url), PASSES)
    about = f"{REPOSITORIES} repositories, answers after {LATENCY} s, every {found.interval} s"
    print(f"\n{about}: {found.passes}")  # noqa: T201 - what a benchmark is for
    last = found.passes[-1]
    assert last.seconds <= found.interval
    assert last.megabytes <= MAX_MEGABYTES
    assert last.cpu / REPOSITORIES <= MAX_CPU
