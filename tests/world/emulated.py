"""The npm package `emulate` as GitHub: nobody here wrote it; it has no GraphQL, no ETag."""

import fcntl
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest
import requests
from pydantic import JsonValue

from mulligan.github.shapes import ANYTHING
from world.confined import usable_mode
from world.people import REFERENCE, GitHubUsers
from world.place import MAINTAINER, TOKEN, MulliganInstallation
from world.processes import free_port
from world.repositories import make_remote
from world.simulated_github import World

PINNED = Path(__file__).parent / "emulate"
CACHE = Path(__file__).parents[2] / ".venv" / "emulate"
START_TIMEOUT = 300.0
SEED = f"""\
tokens:
  {TOKEN}: {{login: mulligan-bot, scopes: [repo]}}
  token-of-ada: {{login: ada, scopes: [repo]}}
  token-of-wes: {{login: wes, scopes: [repo]}}
  token-of-zoe: {{login: zoe, scopes: [repo]}}
github:
  users: [{{login: mulligan-bot}}, {{login: ada}}, {{login: wes}}, {{login: zoe}}]
"""
PUSH_HOOK = """\
#!{python}
# A push tells GitHub of a branch, so this one is told too; commits cannot be told.
import json, sys, urllib.request
for line in sys.stdin:
    old, new, ref = line.split()
    body = json.dumps({{"ref": ref, "sha": "{sha}"}}).encode()
    signed = {{"authorization": "Bearer token-of-ada"}}
    urllib.request.urlopen(urllib.request.Request("{refs}", body, signed), timeout=120).close()
"""


class Emulate(GitHubUsers):
    """A running server, and what a person does there."""


def installation_on(
    emulate: Emulate, directory: Path, name: str, files: dict[str, str], **policy: JsonValue
) -> MulliganInstallation:
    """Set up a repository there, and a Mulligan that serves it; the issues are Ada's to label."""
    repository = f"{MAINTAINER}/{name}"
    made: JsonValue = {"name": name, "auto_init": True}
    emulate.ask(ANYTHING, "POST", "/user/repos", made)
    for login in ("mulligan-bot", "wes"):
        path = f"/repos/{repository}/collaborators/{login}"
        emulate.ask(ANYTHING, "PUT", path, {"permission": "push"})
    bare = make_remote(directory / "remote.git", files)
    start = emulate.ask(REFERENCE, "GET", f"/repos/{repository}/git/ref/heads/main")
    hook = bare / "hooks" / "post-receive"
    refs = f"{emulate.url}/repos/{repository}/git/refs"
    hook.write_text(PUSH_HOOK.format(python=sys.executable, sha=start.target.sha, refs=refs))
    hook.chmod(0o755)
    here = MulliganInstallation(directory, World(), emulate.url, bare, {}, {"GITHUB_TOKEN": TOKEN})
    here.configure(
        github={"api_url": emulate.url, "token": "$GITHUB_TOKEN"},
        repositories=[{"name": repository, "clone_url": str(bare), "policy": policy}],
        agent={"command": [sys.executable, str(directory / "agent.py")]},
        state={"url": f"sqlite:///{directory}/mulligan.db"},
        workspace={"root": str(directory / "work")},
        sandbox=usable_mode(),
    )
    return here


@contextmanager
def emulating(directory: Path) -> Generator[Emulate]:
    """Run the server on a free port of this machine until the block ends."""
    (directory / "seed.yaml").write_text(SEED)
    log = directory / "emulate.log"
    port = free_port()
    arguments = ["--service", "github", "--port", str(port), "--seed", "seed.yaml"]
    with (
        log.open("wb") as said,
        subprocess.Popen(
            [_needed("node"), str(_installed()), "start", *arguments],
            cwd=directory,
            env={"PATH": os.environ["PATH"], "HOME": str(directory)},
            stdout=said,
            stderr=subprocess.STDOUT,
        ) as server,
    ):
        try:
            # It names itself so in its answers.
            url = f"http://localhost:{port}"
            _await(lambda: _answers(url) or server.poll() is not None)
            assert server.poll() is None, log.read_text()
            yield Emulate(url)
        finally:
            server.terminate()


def _installed() -> Path:
    """Give the program, installed as it is pinned; whoever comes first installs for all."""
    wanted = (PINNED / "package-lock.json").read_bytes()
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = CACHE / "installed.json"
        if not done.exists() or done.read_bytes() != wanted:
            for name in ("package.json", "package-lock.json"):
                shutil.copy(PINNED / name, CACHE / name)
            _install()
            done.write_bytes(wanted)
    return CACHE / "node_modules" / "emulate" / "dist" / "index.js"


def _install() -> None:
    options = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    done = subprocess.run(
        [_needed("npm"), "ci", *options],
        cwd=CACHE,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if done.returncode != 0:
        _skip_test(f"npm cannot install it: {done.stderr.strip().splitlines()[:1]}")


def _needed(program: str) -> str:
    found = shutil.which(program)
    return found or _skip_test(f"{program} is not installed here")


def _skip_test(reason: str) -> NoReturn:
    # A journey that is skipped in CI would never be missed.
    say = pytest.fail if os.environ.get("CI") else pytest.skip
    say(f"emulate: {reason}")


def _answers(url: str) -> bool:
    try:
        return requests.get(f"{url}/rate_limit", timeout=1).ok
    except requests.ConnectionError:
        return False


def _await(happened: Callable[[], bool]) -> None:
    until = time.monotonic() + START_TIMEOUT
    while not happened():
        assert time.monotonic() < until, "emulate does not answer"
        time.sleep(0.05)
