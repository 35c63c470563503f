"""A fleet on several hosts: its speed, its requests, and what is lost or doubled when hosts fail.

Each worker is a process in a network namespace of its own, with PostgreSQL, GitHub and git at
addresses that a cut link or route takes away from it. It needs root. The agent sleeps, so that
two processors can show what many machines do: the figures measure Mulligan, and no agent.
`make bench-fleet` runs it.
"""

import hmac
import http.client
import json
import os
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import LiteralString
from zipfile import ZipFile

import psutil
import psycopg
import pytest
import yaml
from hatchling.builders.wheel import WheelBuilder

from github_simulator.app import running
from mulligan.config.operator import Limits
from mulligan.domain.events import AgentStarted, AttemptCompleted, AttemptStarted, RecordedEvent
from mulligan.domain.issue import IssueRef
from mulligan.domain.outcome import Outcome
from mulligan.interfaces.bootstrap.clock_and_backoff import SystemClock
from mulligan.storage import HEAD
from mulligan.storage.database import clock_of, open_database
from mulligan.storage.jobs import JobQueue, open_jobs, working
from world.issue_names import ref_of
from world.ledgers import open_ledger_url
from world.postgres import PASSWORD, Server, replica, server
from world.processes import free_port
from world.repositories import make_remote
from world.simulated_github import World

pytestmark = [
    pytest.mark.deep,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(os.geteuid() != 0, reason="namespaces need root"),
]

BIN, ROOT = Path(sys.executable).parent, Path(__file__).parents[2]
GITHUB, DATABASE, STANDBY, BRIDGE = "10.77.0.1", "10.77.0.2", "10.77.0.3", "mulligan-br"
ISSUES = int(os.environ.get("ISSUES", "300"))
FEW = min(36, ISSUES)
MIGRATIONS = "src/mulligan/storage/migrations"
WAKE = signal.SIGCONT
HOOK_PORT, HOOK_SECRET = 8787, "it-is-a-secret-of-32-characters!"
REVIEW = ["mulligan:review"]
STUCK_SECONDS = 240
RATE_LIMIT = 15_000
"""Points an hour, as an organisation on GitHub Enterprise Cloud has; 300 issues need 6,000."""
TOKEN, BOT, MAINTAINER = "token-of-the-bot", "mulligan-bot", "ada"
AGENT = """
import os, pathlib, sys, time
sys.stdin.read()
time.sleep({seconds})
pathlib.Path("notes.txt").write_text(os.environ["MULLIGAN_ISSUE"])
"""


def say(**figures: object) -> None:
    print(json.dumps(figures, default=str), flush=True)  # noqa: T201 - what a benchmark is for


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


@pytest.fixture(scope="module")
def network() -> Generator[None]:
    """Make a bridge with the addresses of GitHub, of the database and of its replica."""
    ip("link", "add", BRIDGE, "type", "bridge")
    try:
        for address in (GITHUB, DATABASE, STANDBY):
            ip("addr", "add", f"{address}/24", "dev", BRIDGE)
        ip("link", "set", BRIDGE, "up")
        yield
    finally:
        ip("link", "del", BRIDGE)


@pytest.fixture(scope="module")
def postgres(network: None) -> Generator[Server]:
    """Run a server with PostgreSQL's default limit of connections."""
    with server(DATABASE, max_connections="100") as made:
        yield made


@dataclass
class Host:
    """A machine with one worker."""

    name: str
    number: int
    process: subprocess.Popen[bytes]
    output: Path

    @property
    def log(self) -> str:
        return self.output.read_text()

    @property
    def worker(self) -> str:
        return f":{self.process.pid}"

    def link(self, state: str) -> None:
        """Take the whole network away, or give it back."""
        ip("link", "set", f"mul{self.number}", state)

    def database(self, *, reachable: bool) -> None:
        """Take the way to the database away, or give it back."""
        what = "del" if reachable else "add"
        inside = ["netns", "exec", self.name, "ip"]
        ip(*inside, "route", what, "blackhole", f"{DATABASE}/32")

    def freeze(self, number: signal.Signals) -> None:
        """Stop or continue the worker and all that it started, as a host that is suspended."""
        worker = psutil.Process(self.process.pid)
        for each in (worker, *worker.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                each.send_signal(number)


@dataclass
class Site:
    """A GitHub with repositories, a database, and the hosts that work there."""

    directory: Path
    url: str
    world: World
    repositories: list[str]
    settings: dict[str, object]
    secret: str
    stack: ExitStack
    labelled: dict[IssueRef, datetime] = field(default_factory=dict[IssueRef, datetime])
    connections: list[int] = field(default_factory=list[int])
    agents: list[Counter[str]] = field(default_factory=list[Counter[str]])
    _hosts: int = 0
    _events: list[RecordedEvent] = field(default_factory=list[RecordedEvent])

    def issues(self, count: int) -> list[IssueRef]:
        """Open issues with the label, spread over the repositories."""
        refs = list[IssueRef]()
        for number in range(len(self.labelled), len(self.labelled) + count):
            name = self.repositories[number % len(self.repositories)]
            ref = ref_of(self.world.open_issue(name, f"Mend {number}", "Please.", "zoe"))
            self.world.label(ref, "mulligan", MAINTAINER)
            self.labelled[ref] = datetime.now(UTC)
            refs.append(ref)
        return refs

    def start(self, role: str = "all", package: Path | None = None, poll: str = "5s") -> Host:
        """Start a host; with `package`, its worker is the Mulligan of that directory."""
        self._hosts += 1
        number, name = self._hosts, f"mulligan-{self._hosts}"
        home = self.directory / name
        home.mkdir()
        own = (
            self.settings
            | {"workspace": {"root": str(home / "work")}}
            | {"poll": {"interval": poll}}
        )
        (home / "mulligan.yml").write_text(yaml.safe_dump(own))
        ip("netns", "add", name)
        self.stack.callback(ip, "netns", "del", name)
        ip("link", "add", f"mul{number}", "type", "veth", "peer", "name", "eth0", "netns", name)
        self.stack.callback(ip, "link", "del", f"mul{number}")
        ip("link", "set", f"mul{number}", "master", BRIDGE, "up")
        inside = ["netns", "exec", name, "ip"]
        ip(*inside, "addr", "add", f"10.77.0.{10 + number}/24", "dev", "eth0")
        ip(*inside, "link", "set", "eth0", "up")
        ip(*inside, "link", "set", "lo", "up")
        command = ["ip", "netns", "exec", name, sys.executable, "-m", "mulligan", "run"]
        command += ["--config", str(home / "mulligan.yml")]
        command += ["--role", role] if own["engine"] == "fleet" else []
        environment = {
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "HOME": str(home),
            "GITHUB_TOKEN": TOKEN,
            "MULLIGAN_STATE": self.secret,
            "HOOK_SECRET": HOOK_SECRET,
            **({"PYTHONPATH": str(package)} if package else {}),
        }
        log = self.stack.enter_context((home / "log").open("wb"))
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment, cwd=home)
        self.stack.callback(end, process)
        return Host(name, number, process, home / "log")

    def events(self) -> list[RecordedEvent]:
        """Read what is new: the fleet needs the processors."""
        with open_ledger_url(self.url) as ledger:
            self._events += ledger.events(after=self._events[-1].seq if self._events else 0)
        return self._events

    def ask(self, query: LiteralString) -> str:
        with psycopg.connect(self.url) as line:
            row = line.execute(query).fetchone()
        return str(row[0]) if row else ""

    def polls(self, host: Host) -> bool:
        """Return whether a host has the right to poll."""
        return self.ask("SELECT worker FROM pollers").endswith(host.worker)

    def migrate_to(self, version: str) -> None:
        with psycopg.connect(self.url) as line:
            line.execute("UPDATE mulligan_version SET version_num = %s", [version])

    def agents_at_work(self) -> Counter[str]:
        """Count the processes of agents that run, by repository; a suspended one does not."""
        found = Counter[str]()
        for each in psutil.process_iter():
            with suppress(psutil.Error, KeyError):  # one that ends has no environment
                is_agent = str(self.directory / "agent.py") in each.cmdline()
                if is_agent and each.status() != psutil.STATUS_STOPPED:
                    found[IssueRef.parse(each.environ()["MULLIGAN_ISSUE"]).repository] += 1
        return found

    def done(self, refs: list[IssueRef]) -> int:
        return sum(self.world.labels_of(ref) == REVIEW for ref in refs)

    def wait_for(self, refs: list[IssueRef]) -> float:
        """Wait until all are in review, as long as there is progress; give the seconds it took."""
        began = time.monotonic()
        self.until(lambda: self.done(refs) == len(refs))
        return time.monotonic() - began

    def until(self, happened: Callable[[], bool]) -> None:
        """Wait as long as the ledger grows: on a busy machine, the clock says nothing."""
        known, since = "", time.monotonic()
        while not happened():
            with suppress(psycopg.OperationalError):  # a test may have stopped PostgreSQL
                known, before = self.ask("SELECT max(seq) FROM events"), known
                since = since if known == before else time.monotonic()
            if time.monotonic() - since > STUCK_SECONDS:
                labels = {str(ref): self.world.labels_of(ref) for ref in self.labelled}
                say(unfinished={ref: each for ref, each in labels.items() if each != REVIEW})
                pytest.fail(f"Nothing was recorded for {STUCK_SECONDS} s.")
            time.sleep(0.5)

    def label_to_start(self, refs: list[IssueRef], slots: int) -> float:
        """Give the median seconds from the label to the first attempt, for those with a slot."""
        first = dict[IssueRef, datetime]()
        for each in self.events():
            if isinstance(each.event, AttemptStarted):
                first.setdefault(each.issue, each.at)
        waited = sorted((first[ref] - self.labelled[ref]).total_seconds() for ref in refs)
        return statistics.median(waited[:slots])

    @contextmanager
    def watched(self) -> Generator[None]:
        """Count the connections and the agents, twice a second."""
        ended = threading.Event()

        def watch() -> None:
            clients = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'mulligan'"
            while not ended.wait(0.5):
                self.agents.append(self.agents_at_work())
                with suppress(psycopg.OperationalError):
                    self.connections.append(int(self.ask(clients)))

        thread = threading.Thread(target=watch)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


def end(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGCONT)
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextmanager
def site(
    directory: Path,
    postgres: Server,
    repositories: int,
    engine: str = "fleet",
    seconds: float = 1.0,
    **limits: int,
) -> Generator[Site]:
    """Set up everything but the hosts."""
    directory.mkdir()
    world = World()
    world.meter.limit = RATE_LIMIT
    world.add_user(BOT, "Bot", TOKEN)
    world.add_user("zoe")
    names = [f"acme/tool-{number}" for number in range(repositories)]
    remotes = directory / "remotes"
    remotes.mkdir()
    for name in names:
        bare = make_remote(remotes / f"{name.partition('/')[2]}.git", {"notes.txt": "one\n"})
        world.add_repository(name, bare, "main", {MAINTAINER: "admin", BOT: "write"})
    agent = directory / "agent.py"
    agent.write_text(AGENT.format(seconds=seconds))
    with postgres.fresh() as local, ExitStack() as stack:
        database = local.partition("?")[0].rpartition("/")[2]
        address = stack.enter_context(running(world, host=GITHUB))
        git = ["git", "daemon", "--export-all", "--enable=receive-pack", f"--listen={GITHUB}"]
        port = free_port()
        git += [f"--port={port}", f"--base-path={remotes}", str(remotes)]
        daemon = subprocess.Popen(git, stderr=subprocess.DEVNULL, start_new_session=True)
        stack.callback(lambda: (os.killpg(daemon.pid, signal.SIGTERM), daemon.wait()))
        settings: dict[str, object] = {
            "github": {
                "api_url": address,
                "token": "$GITHUB_TOKEN",
                "webhook_secret": "$HOOK_SECRET",
            },
            "repositories": [
                {"name": name, "clone_url": f"git://{GITHUB}:{port}/{name.partition('/')[2]}.git"}
                for name in names
            ],
            "agent": {"kind": "command", "command": [sys.executable, str(agent)]},
            "state": {"url": "$MULLIGAN_STATE"},
            "engine": engine,
            "limits": {"shutdown_grace": "5s", **limits},
            "sandbox": "off",
            "dashboard": f"0.0.0.0:{HOOK_PORT}",
        }
        secret = postgres.loopback(database)
        yield Site(directory, local, world, names, settings, secret, stack)


def peak_per_issue(events: list[RecordedEvent]) -> int:
    """Count the attempts at one issue that were under way at the same time."""
    under_way, most = Counter[IssueRef](), 0
    for each in events:
        match each.event:
            case AttemptStarted():
                under_way[each.issue] += 1
            case AttemptCompleted():
                under_way[each.issue] -= 1
            case _:
                continue
        most = max(most, under_way[each.issue])
    return most


def until(happened: Callable[[], bool], seconds: float = 600) -> None:
    timeout = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < timeout
        time.sleep(0.2)


def requests_a_minute(at: Site, seconds: float) -> float:
    before = len(at.world.requests)
    time.sleep(seconds)
    return (len(at.world.requests) - before) * 60 / seconds


@pytest.mark.parametrize("engine", ["fleet", "polling"])
def test_idle_requests_by_workers(tmp_path: Path, postgres: Server, engine: str) -> None:
    """With a job engine, requests do not grow with the workers."""
    rates = dict[int, float]()
    with site(tmp_path / "site", postgres, 3, engine) as at, at.watched():
        hosts = list[Host]()
        for count in (1, 3, 20):
            while len(hosts) < count:
                hosts.append(at.start(poll="1s"))
            until(lambda count=count: at.connections[-1:] >= [3 * count])
            time.sleep(10)
            rates[count] = requests_a_minute(at, 20)
        say(bench="idle", engine=engine, requests_a_minute=rates, connections=max(at.connections))
    if engine == "fleet":
        assert max(rates.values()) <= 1.1 * rates[1]
        assert max(at.connections) <= 60


@pytest.mark.parametrize("engine", ["fleet", "polling"])
def test_webhook_to_agent(tmp_path: Path, postgres: Server, engine: str) -> None:
    """A delivery reaches a worker that does not poll, and its hint the one that does.

    The first issue of a repository on a worker also waits for its clone.
    """
    with site(tmp_path / "site", postgres, 3, engine) as at:
        at.start("all", poll="1h")
        until(lambda: len(at.world.requests) > 8)
        receiving = at.start("worker", poll="1h") if engine == "fleet" else None
        address = f"10.77.0.{receiving.number + 10 if receiving else 11}"
        until(lambda: deliver(address, "acme/none") == 404)
        waited, known = dict[str, list[float]](first=[], later=[]), set[tuple[str, str]]()
        for _ in range(15):
            time.sleep(2)
            (ref,) = at.issues(1)
            began = datetime.now(UTC)
            assert deliver(address, ref.repository) == 202
            until(lambda ref=ref: at.done([ref]) == 1)
            worker, started = agent_started(at.events(), ref)
            visited = (worker, ref.repository)
            of_worker = "later" if visited in known else "first"
            known.add(visited)
            waited[of_worker].append((started - began).total_seconds())
        say(
            bench="webhook_to_agent",
            engine=engine,
            median={what: statistics.median(each) for what, each in waited.items()},
            worst={what: max(each) for what, each in waited.items()},
            load=os.getloadavg()[0],
        )
        assert max(waited["later"]) <= 1


def deliver(address: str, repository: str) -> int:
    """Send a delivery as GitHub does; give the status of the answer, or 0."""
    body = json.dumps({"repository": {"full_name": repository}})
    signature = hmac.new(HOOK_SECRET.encode(), body.encode(), sha256).hexdigest()
    line = http.client.HTTPConnection(address, HOOK_PORT, timeout=10)
    try:
        line.request("POST", "/webhook", body, {"X-Hub-Signature-256": f"sha256={signature}"})
        return line.getresponse().status
    except OSError:
        return 0
    finally:
        line.close()


def agent_started(events: list[RecordedEvent], ref: IssueRef) -> tuple[str, datetime]:
    """Give the worker that began the attempt, and when its agent started."""
    own = [each for each in events if each.issue == ref]
    worker = next(e.event.worker for e in own if isinstance(e.event, AttemptStarted))
    return worker, next(e.at for e in own if isinstance(e.event, AgentStarted))


def test_throughput_of_three_workers(tmp_path: Path, postgres: Server) -> None:
    """The agent sleeps 45 s; each worker works on four issues at a time."""
    rates = dict[str, float]()
    for engine, count in (("fleet", 1), ("fleet", 3), ("polling", 3)):
        name = f"{engine}-{count}"
        with (
            site(
                tmp_path / name, postgres, 12, engine, seconds=45, concurrency=4, per_repository=4
            ) as at,
            at.watched(),
        ):
            hosts = [at.start() for _ in range(count)]
            until(lambda at=at: len(at.world.requests) > 60)
            time.sleep(5)
            before, refs = len(at.world.requests), at.issues(16 * count)
            took = at.wait_for(refs)
            rates[name] = len(refs) / took
            say(
                bench="throughput",
                engine=engine,
                workers=len(hosts),
                issues=len(refs),
                seconds=round(took, 1),
                issues_a_minute=round(60 * rates[name], 1),
                requests_an_issue=round((len(at.world.requests) - before) / len(refs), 1),
                label_to_start=round(at.label_to_start(refs, 4 * count), 2),
                connections=max(at.connections),
                load=os.getloadavg()[0],
            )
    ratio = rates["fleet-3"] / rates["fleet-1"]
    say(bench="throughput", ratio=round(ratio, 2))
    assert ratio >= 2.7


def test_nothing_is_lost_or_doubled_when_hosts_fail(tmp_path: Path, postgres: Server) -> None:
    """Three workers share 300 issues in 30 repositories; each failure hits one of them."""
    with (
        site(tmp_path / "site", postgres, 30, seconds=8, concurrency=4, fleet=10) as at,
        at.watched(),
    ):
        hosts, refs = [at.start() for _ in range(3)], list[IssueRef]()
        for failure in FAILURES:
            refs += at.issues(ISSUES // len(FAILURES))
            at.until(lambda: sum(len(begun_by(at.events(), host)) for host in hosts) >= len(hosts))
            victim = max(hosts, key=lambda host: len(begun_by(at.events(), host)))
            fail(at, victim, failure)
            if victim.process.poll() is not None:
                hosts.remove(victim)
                hosts.append(at.start())
        report(at, refs, at.wait_for(refs))


@dataclass(frozen=True)
class Failure:
    """What happens to a host, and how it ends."""

    name: str
    begin: Callable[[Host], object]
    end: Callable[[Host], object]


FAILURES = (
    Failure("killed", lambda host: (host.process.kill(), host.process.wait()), lambda _: None),
    Failure("frozen", lambda host: host.freeze(signal.SIGSTOP), lambda host: host.freeze(WAKE)),
    Failure("no network", lambda host: host.link("down"), lambda host: host.link("up")),
    Failure(
        "no database",
        lambda host: host.database(reachable=False),
        lambda host: host.database(reachable=True),
    ),
)


def fail(at: Site, victim: Host, failure: Failure) -> None:
    """Let a host fail until other hosts have begun what it had begun."""
    polled = at.polls(victim)
    failure.begin(victim)
    when, begun = datetime.now(UTC), begun_by(at.events(), victim)
    at.until(lambda: begun <= taken_over(at.events(), when, victim).keys())
    waited = taken_over(at.events(), when, victim)
    seconds = sorted(round(waited[ref], 1) for ref in begun)
    say(failure=failure.name, polled=polled, taken_over=seconds, load=os.getloadavg()[0])
    assert seconds[-1] <= 60
    failure.end(victim)


def test_nothing_is_lost_or_doubled_when_postgresql_restarts(tmp_path: Path, network: None) -> None:
    """It is restarted, crashes, and is away for 20 seconds, each time while agents run."""
    with (
        server(DATABASE) as own,
        site(tmp_path / "site", own, 30, seconds=8, concurrency=4, fleet=12) as at,
        at.watched(),
    ):
        for _ in range(3):
            at.start()
        refs = at.issues(FEW)
        for how, seconds in ((signal.SIGINT, 1), (signal.SIGQUIT, 1), (signal.SIGINT, 20)):
            busy(at)
            own.stop(how)
            time.sleep(seconds)
            own.start()
            time.sleep(5)
        report(at, refs, at.wait_for(refs))


def test_nothing_is_lost_or_doubled_when_a_replica_is_promoted(
    tmp_path: Path, network: None
) -> None:
    """The host of the primary server vanishes while agents run."""
    settings = {"wal_level": "replica", "max_wal_senders": "4", "synchronous_commit": "on"}
    with (
        server(DATABASE, **settings) as primary,
        replica(primary, STANDBY) as standby,
        site(tmp_path / "site", primary, 30, seconds=8, concurrency=4, fleet=12) as at,
        at.watched(),
    ):
        name = at.url.partition("?")[0].rpartition("/")[2]
        hosts = f"host={DATABASE},{STANDBY}&port={primary.port},{standby.port}"
        at.secret = (
            f"postgresql://mulligan:{PASSWORD}@/{name}?{hosts}&target_session_attrs=read-write"
        )
        for _ in range(3):
            at.start()
        refs = at.issues(FEW)
        busy(at)
        began = time.monotonic()
        ip("addr", "del", f"{DATABASE}/24", "dev", BRIDGE)
        try:
            primary.stop(signal.SIGQUIT)
            time.sleep(5)
            standby.execute("SELECT pg_promote()")
            at.url = standby.url(name)
            known = len(at.events())
            until(lambda: len(at.events()) > known)
            say(bench="failover", seconds_to_the_next_event=round(time.monotonic() - began, 1))
            report(at, refs, at.wait_for(refs))
        finally:
            ip("addr", "add", f"{DATABASE}/24", "dev", BRIDGE)


def test_nothing_is_lost_or_doubled_when_pollers_fail(tmp_path: Path, postgres: Server) -> None:
    """The poller is frozen and woken late; then the next one is cut off from the database."""
    with (
        site(tmp_path / "site", postgres, 30, seconds=8, concurrency=4, fleet=12) as at,
        at.watched(),
    ):
        frozen = at.start("poller")
        until(lambda: at.polls(frozen))
        cut_off = at.start("poller")
        for _ in range(2):
            at.start("worker")
        refs = at.issues(FEW)
        busy(at)
        began = time.monotonic()
        frozen.freeze(signal.SIGSTOP)
        until(lambda: at.polls(cut_off))
        after_freeze = time.monotonic() - began
        refs += at.issues(6)
        time.sleep(5)
        frozen.freeze(signal.SIGCONT)
        busy(at)
        began = time.monotonic()
        cut_off.database(reachable=False)
        until(lambda: at.polls(frozen))
        after_cut = time.monotonic() - began
        refs += at.issues(6)
        time.sleep(5)
        cut_off.database(reachable=True)
        say(bench="pollers", frozen=round(after_freeze, 1), cut_off=round(after_cut, 1))
        report(at, refs, at.wait_for(refs))
        assert "event=poller_stopped" in frozen.log
        assert max(after_freeze, after_cut) <= 30


def test_nothing_is_lost_or_doubled_in_a_rolling_upgrade(tmp_path: Path, postgres: Server) -> None:
    """Workers of an older wheel are replaced one by one, and one comes back."""
    commit, package = oldest_beside_this(tmp_path)
    with (
        site(tmp_path / "site", postgres, 30, seconds=8, concurrency=4, fleet=12) as at,
        at.watched(),
    ):
        older = [at.start(package=package) for _ in range(3)]
        newer = list[Host]()
        refs = list[IssueRef]()
        for host in [*older]:
            refs += at.issues(12)
            busy(at)
            end(host.process)
            newer.append(at.start())
        older.append(at.start(package=package))
        refs += at.issues(12)
        took = at.wait_for(refs)
        workers = [e.event.worker for e in at.events() if isinstance(e.event, AttemptStarted)]
        begun = {
            version: sum(worker.endswith(host.worker) for worker in workers for host in hosts)
            for version, hosts in (("older", older), ("newer", newer), ("back", older[-1:]))
        }
        say(bench="upgrade", older=commit, attempts=begun)
        report(at, refs, took)
        assert min(begun.values()) > 0


def test_workers_end_when_a_newer_version_migrates_the_ledger(
    tmp_path: Path, postgres: Server
) -> None:
    """No newer version exists, so the number of the migration alone changes, and back."""
    with (
        site(tmp_path / "site", postgres, 12, seconds=8, concurrency=4, fleet=12) as at,
        at.watched(),
    ):
        hosts = [at.start() for _ in range(3)]
        refs = at.issues(12)
        busy(at)
        began = time.monotonic()
        at.migrate_to("9999")
        known = at.ask("SELECT max(seq) FROM events")
        codes = [host.process.wait(120) for host in hosts]
        took = time.monotonic() - began
        assert codes == [2, 2, 2]
        assert all("was written by a newer Mulligan; use that" in host.log for host in hosts)
        assert at.agents_at_work().total() == 0
        assert at.ask("SELECT max(seq) FROM events") == known
        at.migrate_to(HEAD)
        say(bench="migrated", seconds_until_all_workers_ended=round(took, 1))
        for _ in range(3):
            at.start()
        report(at, refs, at.wait_for(refs))


def oldest_beside_this(directory: Path) -> tuple[str, Path]:
    """Build and unpack the wheel of the oldest commit with all migrations of today."""
    source, package = directory / "source", directory / "package"
    git = ["git", "-C", str(ROOT)]
    added = [*git, "log", "-1", "--diff-filter=A", "--format=%h", "--", MIGRATIONS]
    commit = subprocess.run(added, check=True, capture_output=True, text=True).stdout.strip()
    if not commit:
        pytest.skip("this is no clone of the repository, or a shallow one")
    source.mkdir()
    archive = subprocess.run([*git, "archive", commit], check=True, capture_output=True)
    subprocess.run(["tar", "x", "-C", str(source)], check=True, input=archive.stdout)
    (wheel,) = WheelBuilder(str(source)).build(directory=str(directory), versions=["standard"])
    with ZipFile(wheel) as content:
        content.extractall(package)
    return commit, package


def busy(at: Site) -> None:
    """Wait until agents run on more than one host."""
    until(lambda: at.agents_at_work().total() >= 5)
    say(bench="busy", agents=at.agents_at_work().total(), done=at.done([*at.labelled]))


def report(at: Site, refs: list[IssueRef], took: float) -> None:
    """Say what came of the issues, and check that nothing is lost or doubled."""
    events = at.events()
    pulls = Counter(
        (name, pull.title) for name in at.repositories for pull in at.world.pulls_of(name)
    )
    outcomes = Counter(
        each.event.meta.outcome for each in events if isinstance(each.event, AttemptCompleted)
    )
    verdicts = Counter(
        (each.issue, each.event.meta.number, each.event.meta.outcome)
        for each in events
        if isinstance(each.event, AttemptCompleted)
    )
    of_fleet = max(each.total() for each in at.agents)
    of_repository = max(max(each.values(), default=0) for each in at.agents)
    say(
        bench="failures",
        issues=len(refs),
        finished=at.done(refs),
        pull_requests=pulls.total(),
        seconds_after_the_last_failure=round(took),
        peak_per_issue=peak_per_issue(events),
        peak_of_fleet=of_fleet,
        peak_per_repository=of_repository,
        points_an_issue=round(at.world.meter.window(BOT).used / len(refs), 1),
        connections=max(at.connections),
        outcomes={str(outcome): count for outcome, count in outcomes.items()},
    )
    assert at.done(refs) == len(refs)
    assert set(pulls.values()) == {1}
    assert max(verdicts.values()) == 1
    assert pulls.total() == len(refs)
    assert peak_per_issue(events) == 1
    assert set(outcomes) <= {Outcome.SUCCEEDED, Outcome.INTERRUPTED, Outcome.INFRASTRUCTURE}
    assert of_repository <= 1
    assert of_fleet <= 12


def begun_by(events: list[RecordedEvent], host: Host) -> set[IssueRef]:
    """Give the issues whose attempt on this host is under way."""
    found = set[IssueRef]()
    for each in events:
        match each.event:
            case AttemptStarted(worker=worker) if worker.endswith(host.worker):
                found.add(each.issue)
            case AttemptStarted() | AttemptCompleted():
                found.discard(each.issue)
            case _:
                continue
    return found


def taken_over(events: list[RecordedEvent], when: datetime, failed: Host) -> dict[IssueRef, float]:
    """Give the seconds from a failure until other hosts began an attempt at each issue."""
    found = dict[IssueRef, float]()
    for each in events:
        match each.event:
            case AttemptStarted(worker=worker) if not worker.endswith(failed.worker):
                if each.at > when:
                    found.setdefault(each.issue, (each.at - when).total_seconds())
            case _:
                continue
    return found


def queue_at(url: str, stack: ExitStack, **limits: int) -> JobQueue:
    database = stack.enter_context(open_database(url, 1))
    clock = clock_of(database, SystemClock())
    return open_jobs(database, clock, Limits.model_validate(limits), lambda: BOT)


def test_deferred_to_started(postgres: Server) -> None:
    with postgres.fresh() as url, ExitStack() as stack:
        queue = queue_at(url, stack, per_repository=64)
        lease = queue.lead("poller")
        assert lease
        arrived, times = threading.Event(), list[float]()

        def visit(_ref: IssueRef, _job: int) -> None:
            times.append(time.perf_counter())
            arrived.set()

        stack.enter_context(working(url, visit, 2))
        waited = list[float]()
        time.sleep(1)
        for number in range(1, 101):
            arrived.clear()
            began = time.perf_counter()
            queue.defer(lease, [IssueRef("acme/tool", number)])
            assert arrived.wait(30)
            waited.append((times[-1] - began) * 1000)
            time.sleep(0.02)
        median, worst = statistics.median(waited), max(waited)
        say(bench="deferred_to_started", median_ms=round(median, 1), worst_ms=round(worst, 1))
        assert median <= 50


def test_fetching_with_many_waiting(postgres: Server) -> None:
    """What waits for a slot is not in Procrastinate's queue, so fetching costs the same."""
    costs = dict[int, dict[str, float]]()
    for waiting in (100, 10_000):
        with postgres.fresh() as url, ExitStack() as stack:
            queue = queue_at(url, stack, per_repository=64, fleet=20)
            lease = queue.lead("poller")
            assert lease
            refs = [IssueRef(f"acme/tool-{n % 300}", n) for n in range(1, waiting + 1)]
            queue.defer(lease, refs)
            line = stack.enter_context(psycopg.connect(url, autocommit=True))
            line.execute("INSERT INTO procrastinate_workers DEFAULT VALUES")
            fetch, fill = list[float](), list[float]()
            for _ in range(40):
                began = time.perf_counter()
                row = line.execute(
                    "SELECT id, lock FROM procrastinate_fetch_job_v2('{mulligan.visits.1}', 1)"
                ).fetchone()
                fetch.append((time.perf_counter() - began) * 1000)
                assert row
                assert row[0]
                line.execute("SELECT procrastinate_finish_job_v1(%s, 'succeeded', true)", [row[0]])
                began = time.perf_counter()
                queue.fill(row[0])
                fill.append((time.perf_counter() - began) * 1000)
            costs[waiting] = {
                "fetch_ms": round(statistics.median(fetch), 2),
                "next_ms": round(statistics.median(fill), 2),
            }
    say(bench="waiting", costs=costs)
    assert costs[10_000]["fetch_ms"] <= 1.5 * costs[100]["fetch_ms"]


def test_thirty_workers_on_the_default_of_connections(tmp_path: Path, postgres: Server) -> None:
    with site(tmp_path / "site", postgres, 8, seconds=1, concurrency=1) as at, at.watched():
        for _ in range(30):
            at.start()
        refs = at.issues(8)
        took = at.wait_for(refs)
        say(bench="thirty", seconds=round(took, 1), connections=max(at.connections))
        assert max(at.connections) <= 90
