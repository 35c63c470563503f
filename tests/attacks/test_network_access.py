"""An agent with `network: model` calls its model and nothing else, and never has the key."""

import json
import os
import re
import socket
import sys
import time
from collections.abc import Generator
from pathlib import Path

import pytest

from attacks.test_inside_the_sandbox import LOOK
from mulligan.agents.environment import PLACEHOLDER
from mulligan.agents.invocation import OperatorAgents
from mulligan.agents.runner import CommandAgent
from mulligan.config.adapters import Adapter, Service
from mulligan.config.operator import AgentSettings
from mulligan.domain.attempt import AgentRun, Task
from mulligan.domain.errors import MisconfiguredError
from mulligan.domain.host import Network
from mulligan.domain.image import Image
from mulligan.domain.outcome import Outcome
from mulligan.implement.ports import Worktree
from world.checkouts import REF, calc_remote, worktrees_of
from world.confined import sandbox
from world.images import PYTHON, assembled_image
from world.model import ScriptedModel, serve_model
from world.model_script import Turn, conversation

TOKEN, KEY = "ghs_only_for_mulligan", "sk_only_for_the_model"
PROBER = Path(__file__).with_name("prober.py")
SERVICES = {
    "anthropic": Service(
        url="https://api.model.example/v1",
        url_variable="MODEL_URL",
        keys={"MODEL_KEY": "x-api-key: {key}"},
    )
}


@pytest.fixture
def tree(tmp_path: Path) -> Generator[Worktree]:
    for name, secret in (("token", TOKEN), ("model-key", KEY)):
        (tmp_path / name).write_text(secret)
    with worktrees_of(tmp_path / "work", calc_remote(tmp_path / "remote.git")).open(REF) as opened:
        yield opened


@pytest.fixture
def model() -> Generator[ScriptedModel]:
    with serve_model(conversation(Turn("Hi."))) as made:
        yield made


@pytest.fixture(params=["the system", "an image"])
def image(request: pytest.FixtureRequest) -> Image | None:
    return assembled_image() if request.param == "an image" else None


def task_in(tree: Worktree, image: Image | None = None) -> Task:
    return Task(
        issue=str(REF),
        attempt=1,
        fix_round=0,
        prompt="Mend it.",
        directory=tree.path,
        private=tree.private,
        log=tree.private.parent / "agent.log",
        manifest_hash="",
        readable=tree.readable,
        writable=tree.writable,
        image=image,
    )


def agent(
    place: Path, model: ScriptedModel, *argv: str, url: str = "", hosts: tuple[str, ...] = ()
) -> CommandAgent:
    """Give an agent as an operator describes it, whose variables are set where Mulligan runs."""
    adapter = Adapter(
        program=argv[0],
        arguments=argv[1:],
        environment=("MODEL_KEY", "MODEL_URL"),
        services=SERVICES,
    )
    outer = {
        "PATH": os.environ["PATH"],
        "GITHUB_TOKEN": TOKEN,
        "MODEL_KEY": KEY,
        "MODEL_URL": url or f"{model.address}/v1",
    }
    own = OperatorAgents({"probe": adapter}, {}, hosts)
    walls = sandbox((place, place / "work"))
    settings = AgentSettings(kind="probe")
    return CommandAgent(settings, outer, sandbox=walls, network=Network.MODEL, own=own)


def log_of(task: Task) -> str:
    return task.log.with_name("egress.log").read_text()


def test_the_model_is_reached_with_the_key_and_nothing_else_is(
    tree: Worktree, model: ScriptedModel, tmp_path: Path, image: Image | None
) -> None:
    task, name = task_in(tree, image), f"mulligan-test-{os.getpid()}"
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind(f"\0{name}")
        abstract.listen()
        python = PYTHON if image else sys.executable
        argv = (python, str(PROBER), str(tcp.getsockname()[1]), name)
        run: AgentRun = agent(tmp_path, model, *argv).run(task)
    came = json.loads((tree.path / "came.json").read_text())
    assert came.pop("the model") == "Hi."
    assert [headers["x-api-key"] for headers in model.headers] == [KEY]
    assert "403" in came.pop("https")
    assert "Forbidden" in came.pop("http")
    assert "403" in came.pop("metadata")
    assert "ConnectionRefused" in came.pop("tcp")
    assert "unreachable" in came.pop("internet")
    assert "unreachable" in came.pop("udp")
    assert "ConnectionRefused" in came.pop("abstract")
    assert "not permitted" in came.pop("raw")
    assert "not supported" in came.pop("packet")
    assert "gaierror" in came.pop("resolve")
    assert came == {}
    hosts = ("exfiltration.example", "plain.example", "169.254.169.254")
    assert run.facts.refused_hosts == hosts
    assert [line.split()[2] for line in log_of(task).splitlines()] == ["passed", *["refused"] * 3]
    assert KEY not in log_of(task)


def test_no_credential_is_anywhere_around_an_agent_that_calls_its_model(
    tree: Worktree, model: ScriptedModel, tmp_path: Path, image: Image | None
) -> None:
    """It searches while the proxy is there and has been used; what it finds it prints."""
    python = PYTHON if image else sys.executable
    tool = tmp_path / "look.py"
    tool.write_text(LOOK)
    tops = (str(tmp_path), "/tmp", "/run", "/etc", "/var", "/home", "/root")  # noqa: S108 - inside
    line = " ".join((python, str(tool), "$HOME", *tops))
    call = f"{python} {PROBER} 1 none"
    task = task_in(tree, image)
    script = f"import os; os.system({call!r}); os.system({line!r})"
    agent(tmp_path, model, python, "-c", script, str(tool), str(PROBER)).run(task)
    assert task.log.read_text() == "looked\n"
    assert [headers["x-api-key"] for headers in model.headers] == [KEY]


def test_what_it_has_are_a_placeholder_and_addresses_of_its_own(
    tree: Worktree, model: ScriptedModel, tmp_path: Path
) -> None:
    task = task_in(tree)
    agent(tmp_path, model, "/bin/sh", "-c", "env; ls /run").run(task)
    said = task.log.read_text().splitlines()
    given = dict(line.split("=", 1) for line in said if "=" in line)
    assert given["MODEL_KEY"] == PLACEHOLDER
    assert given["MODEL_URL"] == "http://127.0.0.1:3128/anthropic/v1"
    assert given["HTTPS_PROXY"] == given["http_proxy"] == "http://127.0.0.1:3128"
    assert "GITHUB_TOKEN" not in given
    assert "LC_CTYPE" not in given
    # It has nothing but the port: not even a socket in /run.
    assert "=" in said[-1]


def test_a_program_finds_nothing_odd_about_how_it_is_led_out(
    tree: Worktree, model: ScriptedModel, tmp_path: Path
) -> None:
    task = task_in(tree)
    line = "ls /proc/$$/fd; cat /proc/$$/task/$$/children; grep SigIgn /proc/$$/status; exit 7"
    run = agent(tmp_path, model, "/bin/sh", "-c", f"{line}").run(task)
    *descriptors, ignored = task.log.read_text().split()
    assert descriptors[:3] == ["0", "1", "2"]
    ours = re.search(r"^SigIgn:\s*(\w+)", Path("/proc/self/status").read_text(), re.MULTILINE)
    # Whoever started the tests may have them ignore a signal.
    assert ours
    assert (run.exit_code, int(ignored, 16) & ~int(ours[1], 16)) == (7, 0)


def test_a_program_that_is_not_inside_is_named(
    tree: Worktree, model: ScriptedModel, tmp_path: Path
) -> None:
    fault = agent(tmp_path, model, "no-such-agent").run(task_in(tree)).fault
    assert fault is not None
    assert fault.outcome is Outcome.MISCONFIGURED
    assert "'no-such-agent' cannot be started in the sandbox" in fault.reason


def test_an_address_that_is_none_is_named(
    tree: Worktree, model: ScriptedModel, tmp_path: Path
) -> None:
    with pytest.raises(MisconfiguredError, match="MODEL_URL is not the address of a model"):
        agent(tmp_path, model, "true", url="localhost:80").run(task_in(tree))


GIT = ("git", "ls-remote", "https://github.com/octocat/hello-world")
SIX = ("-i", "https://packages.example/simple", "six")
PIP = (sys.executable, *("-m", "pip", "download", "--retries", "0", "--no-input"), *SIX)


@pytest.mark.parametrize(
    ("argv", "host"),
    [(GIT, "github.com"), pytest.param(PIP, "packages.example", marks=pytest.mark.deep)],
)
def test_git_and_pip_do_not_get_out(
    argv: tuple[str, ...], host: str, tree: Worktree, model: ScriptedModel, tmp_path: Path
) -> None:
    run = agent(tmp_path, model, *argv).run(task_in(tree))
    assert run.exit_code != 0
    assert run.facts.refused_hosts == (host,)


LINGER = """
import array, ctypes, os, socket, stat, struct
def give_away(line, held):
    wire = array.array("i", [held.fileno()])
    line.sendmsg([b"G"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, wire)])
    held.close()
places = set()
for top in ("/run", "/tmp", "/var", os.environ["HOME"], os.getcwd()):
    for directory, _, names in os.walk(top):
        places.update(os.path.join(directory, name) for name in names)
places = [each for each in places if stat.S_ISSOCK(os.lstat(each).st_mode)]
lines = [socket.socket(socket.AF_UNIX) for _ in range(2 * len(places))]
for number, line in enumerate(lines):
    line.connect(places[number // 2])
# Also what another process has open here, such as the first one.
for pid in filter(str.isdigit, os.listdir("/proc")):
    if pid != str(os.getpid()):
        try:
            process = os.pidfd_open(int(pid))
            for number in range(64):
                taken = ctypes.CDLL(None).syscall(438, process, number, 0)
                if taken > 0 and stat.S_ISSOCK(os.fstat(taken).st_mode):
                    lines += [socket.socket(fileno=taken)] * 2
        except OSError:
            continue
server = socket.create_server(("127.0.0.1", 0))
one, other = socket.create_connection(server.getsockname()), server.accept()[0]
one.setblocking(False)
try:
    while True:
        one.send(bytes(65536))
except BlockingIOError:
    pass
# Whoever closes it last waits until the other one has read everything.
one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 10))
if lines:
    give_away(lines[1], one)
    give_away(lines[0], other)
print(len(lines), "ways", flush=True)
os._exit(0)
"""


def test_nothing_that_an_agent_sends_holds_the_proxy(
    tree: Worktree, model: ScriptedModel, tmp_path: Path
) -> None:
    """A Unix socket would deliver descriptors, which whoever receives them has to close."""
    task, began = task_in(tree), time.monotonic()
    run = agent(tmp_path, model, sys.executable, "-c", LINGER).run(task)
    assert time.monotonic() - began < 9
    assert (run.exit_code, task.log.read_text()) == (0, "0 ways\n")
