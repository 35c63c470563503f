"""What an issue costs from its label to its pull request, and what an idle daemon takes.

The simulated GitHub runs on the same machine, and answers over HTTP.
"""

import os
import subprocess
import time
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import psutil
import pytest
from pydantic import JsonValue

from bench.figures import Bench
from mulligan.domain.events import AgentFinished, AttemptStarted, Published, RecordedEvent
from mulligan.domain.issue import IssueRef
from world.confined import usable_mode
from world.ledgers import open_ledger_url
from world.place import BIN, MulliganInstallation, mulligan_installation
from world.processes import wait_until

ISSUES = 10
QUEUED = int(os.environ.get("QUEUED", "40"))
FILES = {f"src/part_{number}.py": f"PART = {number}\n" for number in range(50)}
WORK = "pathlib.Path('src/part_0.py').write_text(f'PART = {os.getpid()}\\n')\n"
LIBRARIES = (
    "typer, rich.console, yaml, pydantic, sqlalchemy, alembic, github, git, requests, tenacity, "
    "apscheduler.schedulers.background, structlog, prometheus_client, starlette.applications, "
    "uvicorn, jinja2, httpx, pathspec, markdown_it, pygal"
)
"""What a daemon with the dashboard has in memory, without Mulligan."""
RAW = """\
git -C {mirror} fetch -q origin main
git -C {mirror} worktree add -q -f --detach {tree} origin/main
cd {tree}
echo "RAW = {number}" > src/part_0.py
git add -A
git -c user.name=A -c user.email=a@example.org commit -q -m x
git diff HEAD~1 > /dev/null
git push -q origin HEAD:refs/heads/raw-{number}
"""
"""What git alone must do for an issue."""


@contextmanager
def installation(place: Path, sandbox: JsonValue, workers: int) -> Generator[MulliganInstallation]:
    place.mkdir()
    with mulligan_installation(place, FILES, [{"name": "test", "run": "true"}]) as here:
        here.agent(WORK)
        here.configure(sandbox=sandbox, limits={"concurrency": workers, "per_repository": workers})
        yield here


def publish(here: MulliganInstallation, issues: int) -> dict[IssueRef, Sequence[RecordedEvent]]:
    """Have Mulligan publish so many issues; return what its ledger recorded of each."""
    refs = [here.issue(f"Mend it {number}") for number in range(issues)]
    done = here.run("once")
    assert done.returncode == 0, done.stderr
    state = here.settings["state"]
    assert isinstance(state, dict)
    with open_ledger_url(str(state["url"])) as ledger:
        return {ref: ledger.events(ref) for ref in refs}


def at(recorded: Sequence[RecordedEvent], kind: type[AttemptStarted | Published]) -> datetime:
    return next(each.at for each in recorded if isinstance(each.event, kind))


def added(recorded: Sequence[RecordedEvent]) -> float:
    """Return the seconds from the start of the attempt to the pull request, without the agent."""
    agent = sum(
        each.event.duration_ms for each in recorded if isinstance(each.event, AgentFinished)
    )
    whole = at(recorded, Published) - at(recorded, AttemptStarted)
    return whole.total_seconds() - agent / 1000


@pytest.mark.timeout(600)
def test_what_an_attempt_adds_until_its_pull_request(tmp_path: Path, bench: Bench) -> None:
    with installation(tmp_path / "plain", "off", 1) as here:
        _, *plain = publish(here, ISSUES).values()
        requests = [each for each in here.world.requests if each.path != "/rate_limit"]
        status = [seconds([BIN / "mulligan", "status", "--config", here.config]) for _ in range(5)]
        shown = [seconds([BIN / "mulligan", "--help"]) for _ in range(5)]
    bench.figure("seconds of mulligan --help", shown, most=0.25)
    bench.figure("seconds of mulligan status", status, most=0.5)
    bench.figure("seconds an attempt adds, start to pull request", [*map(added, plain)], most=0.6)
    charged = sum(each.counted for each in requests)
    bench.figure("requests of an issue, ten in one `once`", [len(requests) / ISSUES], most=40)
    bench.figure("charged requests of an issue", [charged / ISSUES], most=15)
    if (mode := usable_mode()) != "off":
        # With a host to reach, the agent has the proxy.
        sandbox: JsonValue = {"mode": mode, "hosts": ["model.example.org"]}
        with installation(tmp_path / "confined", sandbox, 1) as here:
            _, *confined = publish(here, ISSUES).values()
            assert list(here.directory.rglob("*egress*"))
        name = "seconds an attempt adds, with sandbox and proxy"
        bench.figure(name, [*map(added, confined)], most=1)


@pytest.mark.timeout(900)
def test_queued_issues_beside_git_alone(tmp_path: Path, bench: Bench) -> None:
    with installation(tmp_path / "queue", "off", 2) as here:
        recorded = publish(here, QUEUED).values()
        begun = min(at(each, AttemptStarted) for each in recorded)
        taken = (max(at(each, Published) for each in recorded) - begun).total_seconds()
        mirror = tmp_path / "mirror"
        run(f"git clone -q --no-checkout {here.bare} {mirror}")
        started = time.perf_counter()
        with ThreadPoolExecutor(2) as pool:
            lines = (
                RAW.format(mirror=mirror, tree=tmp_path / f"tree-{number}", number=number)
                for number in range(QUEUED)
            )
            list(pool.map(run, lines))
        raw = time.perf_counter() - started
    bench.figure(f"git alone / Mulligan, {QUEUED} queued issues", [raw / taken], least=0.8)


def seconds(command: list[str | Path]) -> float:
    started = time.perf_counter()
    subprocess.run(command, env=os.environ | {"GITHUB_TOKEN": "x"}, check=True, capture_output=True)
    return time.perf_counter() - started


def run(line: str) -> None:
    environment = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": "/dev/null"}
    subprocess.run(["sh", "-ec", line], env=environment, check=True, capture_output=True)


@pytest.mark.timeout(300)
def test_an_idle_daemon_beside_its_libraries(tmp_path: Path, bench: Bench) -> None:
    with installation(tmp_path / "idle", "off", 1) as here:
        here.configure(dashboard={"listen": "127.0.0.1:0"}, poll={"interval": "1s"})
        command = [BIN / "mulligan", "run", "--config", here.config]
        home = {"PATH": f"{BIN}:{os.environ['PATH']}", "HOME": str(here.directory)}
        with subprocess.Popen(
            command, env=home | here.environment, stderr=subprocess.DEVNULL
        ) as daemon:
            try:
                wait_until(lambda: polls(here) >= 10)
                idle = memory_of(daemon.pid)
            finally:
                daemon.terminate()
    waits = f"import {LIBRARIES}; print(flush=True); input()"
    with subprocess.Popen(
        [BIN / "python", "-c", waits], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as plain:
        assert plain.stdout
        plain.stdout.readline()
        libraries = memory_of(plain.pid)
        plain.communicate(b"\n")
    bench.figure("MB of an idle daemon with the dashboard", [idle])
    bench.figure("idle daemon / its libraries, memory", [idle / libraries], most=1.5)


def polls(here: MulliganInstallation) -> int:
    return sum(each.path.endswith("/issues/comments") for each in here.world.requests)


def memory_of(process: int) -> float:
    """Return the megabytes of a process, without its children."""
    return psutil.Process(process).memory_info().rss / 1e6
