"""The image runs the demo, compose a worker, and a bare machine whatever the pages install.

`make image-check` runs this. It needs root, as Docker has, and leaves `mulligan:local` behind.
"""

import os
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Generator, Mapping
from pathlib import Path

import pytest
import yaml

from world.deployment import DEPLOY, MAPPING, ROOT, read_yaml
from world.runner import SHELL, STEPS

pytestmark = [pytest.mark.release, pytest.mark.timeout(1200)]
IMAGE = "mulligan:local"
PROJECT = "mulligan-check"
WORKER, SIMULATOR = f"{PROJECT}_worker_1", f"{PROJECT}-github"
BASE = "localhost/mulligan-base:trixie"
BASE_FROM_DEBIAN = """\
FROM scratch
ADD base.tar /
COPY ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
RUN python3 -m venv /usr/local
"""
"""Python and pip below /usr/local, as in the real base, and what this machine trusts."""
SANDBOX = re.findall(
    r"--security-opt (\w+=unconfined)", (ROOT / "docs" / "security.md").read_text()
)
BARE = r"""
ARG BASE
FROM ${BASE}
RUN apt-get update && apt-get install --yes --no-install-recommends git make procps sudo
RUN pip install pipx uv && git config --system safe.directory '*' && mkdir -p /etc/systemd/system
RUN useradd --create-home runner && echo 'runner ALL=(ALL) NOPASSWD: ALL' > /etc/sudoers.d/runner
USER runner
WORKDIR /home/runner
ENV PATH=/home/runner/.local/bin:$PATH SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt
"""
"""Python, what the pages ask for, and a user with the rights of one on GitHub's runners."""

RUNNER = r"""
export CI=true RUNNER_TEMP=~/temp GITHUB_ACTION_PATH=~/mulligan GITHUB_REPOSITORY=acme/calculator
export GITHUB_RUN_ID=1 GITHUB_RUN_ATTEMPT=1 GITHUB_EVENT_NAME=schedule
export GITHUB_OUTPUT=~/output GITHUB_STEP_SUMMARY=~/summary INPUT_LEASE=2m
export INPUT_AGENT=command INPUT_COMMAND="python3 /opt/scripted_agent.py"
mkdir ~/temp; sudo cp src/github_simulator/scripted_agent.py /opt
"""
PASS = r"""
PYTHONPATH=src ~/temp/mulligan/bin/python -m mulligan simulate --port 0 --directory ~/github &
until grep -qs limits ~/github/mulligan.yml; do sleep 1; done
export GITHUB_API_URL=$(sed -n 's/.*api_url: "\([^"]*\)".*/\1/p' ~/github/mulligan.yml)
export INPUT_GITHUB_TOKEN=$(cat ~/github/token)
%s
kill $!
sed -n 's/^Stage .*hitl/human review: &/p; s/^Pull request:/pull request/p' ~/summary
"""
OVERRIDE = {
    "services": {
        "worker": {
            "network_mode": "host",
            "security_opt": SANDBOX,
            "volumes": ["./practice:/practice"],
            "ulimits": {"nproc": 4096},
        }
    }
}
# Podman has no port beside the host's network, and no log driver of this name.
WITHOUT = "    ports: !reset []\n    logging: !override {driver: k8s-file}\n"


def run(*command: str | Path, at: Path = ROOT, environment: Mapping[str, str]) -> str:
    done = subprocess.run(
        command, cwd=at, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Give the environment in which podman and buildah work, also in a container of their own."""
    without_systemd = not Path("/run/systemd/system").is_dir()
    needed = ["buildah", "podman", "podman-compose"] + ["runc"] * without_systemd
    missing = [name for name in needed if shutil.which(name) is None]
    assert not missing, f"install {missing}; `make image-check` installs podman-compose"
    assert os.geteuid() == 0, "run it as root"
    environment = {**os.environ, "BUILDAH_ISOLATION": "chroot"}
    if without_systemd:
        made = tmp_path_factory.mktemp("engine") / "containers.conf"
        lines = ('runtime="runc"', 'cgroup_manager="cgroupfs"', 'events_logger="file"')
        made.write_text("\n".join(["[engine]", *lines, ""]))
        environment |= {"CONTAINERS_CONF": str(made), "DISABLE_HC_SYSTEMD": "true"}
    return environment


@pytest.fixture(scope="module")
def image(engine: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> str:
    """Build the image as docs/operating.md shows."""
    directory = tmp_path_factory.mktemp("base")
    wanted = os.environ.get("BASE") or base(engine, directory)
    began = time.monotonic()
    build = ("buildah", "bud", "--build-arg", f"BASE={wanted}", "-t", IMAGE)
    run(*build, "-f", "deploy/docker/Dockerfile", ".", environment=engine)
    size = run("podman", "image", "inspect", "-f", "{{.Size}}", IMAGE, environment=engine)
    took = f"{time.monotonic() - began:.0f} s to build, {int(size) / 1024**2:.0f} MiB"
    print(f"\n{IMAGE} on {wanted}: {took}")  # noqa: T201 - the report
    return IMAGE


def base(engine: dict[str, str], directory: Path) -> str:
    """Give the base that the Dockerfile names, or one like it where no registry can be reached."""
    dockerfile = (DEPLOY / "docker" / "Dockerfile").read_text()
    (named,) = re.findall(r"^ARG BASE=(\S+)$", dockerfile, re.MULTILINE)
    pull = ["buildah", "pull", f"docker.io/library/{named}"]
    if subprocess.run(pull, env=engine, capture_output=True, check=False).returncode == 0:
        return named
    kept = ["podman", "image", "exists", BASE]
    if subprocess.run(kept, env=engine, check=False).returncode:
        assert shutil.which("mmdebstrap"), f"{named} cannot be pulled; install mmdebstrap"
        packages = "--include=ca-certificates,python3,python3-venv"
        archive = str(directory / "base.tar")
        run("mmdebstrap", "--variant=minbase", packages, "trixie", archive, environment=engine)
        shutil.copy("/etc/ssl/certs/ca-certificates.crt", directory)
        (directory / "Dockerfile").write_text(BASE_FROM_DEBIAN)
        run("buildah", "bud", "-t", BASE, str(directory), environment=engine)
    return BASE


def test_the_demo_runs_in_it_with_the_sandbox(image: str, engine: dict[str, str]) -> None:
    options = [f"--security-opt={each}" for each in SANDBOX]
    limits = ("--ulimit=nofile=16384:16384", "--ulimit=nproc=4096:4096")
    hardened = ("--network=none", "--read-only", "--tmpfs=/tmp:exec", "--cap-drop=ALL")
    began = time.monotonic()
    start = ("podman", "run", "--rm", *limits, *hardened, *options, image)
    said = run(*start, "demo", environment=engine)
    print(f"\ndemo in the image: {time.monotonic() - began:.0f} s")  # noqa: T201 - the report
    assert "pull request http" in said
    assert "No sandbox works" not in said


@pytest.fixture(scope="module")
def bare(engine: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> str:
    """Build a machine without Mulligan."""
    directory = tmp_path_factory.mktemp("bare")
    wanted = os.environ.get("BASE") or base(engine, directory)
    (directory / "Dockerfile").write_text(BARE)
    build = ("buildah", "bud", "--build-arg", f"BASE={wanted}", "-t", f"localhost/{PROJECT}-bare")
    run(*build, str(directory), environment=engine)
    return f"localhost/{PROJECT}-bare"


def way(name: str) -> tuple[str, str]:
    """Give the commands that install Mulligan, as pages and action.yml have them, and a demo's."""
    if name == "action":
        runs = MAPPING.validate_python(read_yaml(ROOT / "action.yml")["runs"])
        steps = STEPS.validate_python(runs["steps"])
        one, two, three = [shlex.join([*SHELL, "-c", str(step["run"])]) for step in steps]
        return f"{RUNNER}{one}\n{two}", PASS % three
    needed = "sudo apt-get update -qq\nsudo apt-get install -qq --yes bubblewrap >&2\n"
    if name == "systemd":
        page = (ROOT / "docs" / "operating.md").read_text().partition("## With systemd")[2]
        block = page.partition("```console\n")[2].partition("```")[0].replace("$ ", "")
        demo = "cd /tmp\nsudo -u mulligan /opt/mulligan/bin/mulligan demo"
        return f"{needed}printf token | (set -e\n{block})", demo
    page = (ROOT / "README.md").read_text() + (ROOT / "docs" / "quickstart.md").read_text()
    assert f"`{name}`" in page or f"$ {name}\n" in page
    return f"{needed}{name}", "make demo" if name == "make install" else "mulligan demo"


@pytest.mark.parametrize(
    "name", ["make install", "pipx install .", "uv tool install .", "systemd", "action"]
)
def test_it_is_installed_on_a_bare_machine(name: str, bare: str, engine: dict[str, str]) -> None:
    limits = ("--ulimit=nofile=16384:16384", "--ulimit=nproc=4096:4096", "--network=host")
    options = [f"--security-opt={each}" for each in SANDBOX]
    install, demo = way(name)
    clone = f"--volume={ROOT}:/clone:ro"
    script = f"git clone -q /clone mulligan\ncd mulligan\nSECONDS=0\n{install}\n"
    script += f'echo "installed in $SECONDS s"\nSECONDS=0\n{demo}\necho "demo in $SECONDS s"'
    begin = ("podman", "run", "--rm", *limits, *options, clone, bare, "bash", "-euo", "pipefail")
    said = run(*begin, "-c", script, environment=engine)
    print(f"\n{name}: {re.findall('(?:installed|demo) in .*', said)}")  # noqa: T201 - the report
    assert "pull request http" in said
    assert "human review" in said
    assert "No sandbox works" not in said


@pytest.fixture
def compose(image: str, engine: dict[str, str], tmp_path: Path) -> Generator[Callable[..., str]]:
    """Give `docker compose`, beside a simulated GitHub, with its address in the configuration."""
    place, practice = tmp_path / "compose", tmp_path / "compose" / "practice"
    shutil.copytree(DEPLOY / "compose", place)
    practice.mkdir()
    os.chown(practice, 10001, 10001)
    started = ("podman", "run", "--detach", f"--name={SIMULATOR}", "--network=host")
    limits = ("--ulimit=nofile=4096:4096", "--ulimit=nproc=4096:4096", f"-v={practice}:/practice")
    simulate = ("simulate", "--port", "0", "--directory", "/practice")
    (place / "override.yml").write_text(yaml.safe_dump(OVERRIDE) + WITHOUT)

    def compose(*arguments: str) -> str:
        files = ("podman-compose", "-p", PROJECT, "-f", "compose.yml", "-f", "override.yml")
        return run(*files, *arguments, at=place, environment=engine)

    try:
        run(*started, *limits, image, *simulate, environment=engine)
        until(lambda: "simulated GitHub is running" in logs(engine, SIMULATOR))
        # Without the options that the page names, no sandbox works in a container.
        assert "This container cannot create namespaces" in logs(engine, SIMULATOR)
        made = read_yaml(practice / "mulligan.yml")
        example = read_yaml(place / "config/mulligan.yml")
        github, simulated = example["github"], made["github"]
        assert isinstance(github, dict)
        assert isinstance(simulated, dict)
        edited = {name: made[name] for name in ("repositories", "agent")}
        edited["github"] = {**github, "api_url": simulated["api_url"]}
        (place / "config/mulligan.yml").write_text(yaml.safe_dump(example | edited))
        token = shutil.copy(practice / "token", place / "github-token")
        os.chown(token, 10001, 10001)
        yield compose
    finally:
        compose("down", "--volumes")
        run("podman", "rm", "--force", "--time=30", SIMULATOR, environment=engine)


def logs(engine: dict[str, str], container: str) -> str:
    done = subprocess.run(
        ["podman", "logs", container], env=engine, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def until(happens: Callable[[], bool]) -> None:
    while not happens():
        time.sleep(1)


def test_a_worker_by_the_compose_file_works_stops_and_is_upgraded(
    compose: Callable[..., str], engine: dict[str, str]
) -> None:
    began = time.monotonic()
    compose("up", "--build", "--detach")
    ended = ("escalated", "published")
    until(lambda: sum(logs(engine, WORKER).count(f"action={each} ") for each in ended) == 6)
    print(f"\nsix issues by compose: {time.monotonic() - began:.0f} s")  # noqa: T201 - the report
    run("podman", "healthcheck", "run", WORKER, environment=engine)
    assert "Bubblewrap confines agents" in compose("exec", "-T", "worker", "mulligan", "doctor")
    status = compose("exec", "-T", "worker", "mulligan", "status", "--json")
    assert status.count('"stage": "review"') == 5
    assert status.count('"stage": "hitl"') == 1
    compose("stop")
    ended_with = run("podman", "inspect", "-f", "{{.State.ExitCode}}", WORKER, environment=engine)
    assert ended_with.strip() == "0"
    assert "event=stopped" in logs(engine, WORKER)
    # Another image and container, with the same volume.
    compose("build", "--no-cache")
    compose("up", "--detach", "--force-recreate")
    until(lambda: "event=started" in logs(engine, WORKER))
    assert compose("exec", "-T", "worker", "mulligan", "status", "--json") == status
