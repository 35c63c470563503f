"""The compose file is one, holds no secret, and fits the image and the example beside it."""

import subprocess
from pathlib import Path

import pytest
from pydantic import BaseModel, ConfigDict, Field

from mulligan.config.settings import parse_duration
from world.deployment import DEPLOY, MARGIN, ROOT, example, judge, read_yaml

HERE = DEPLOY / "compose"
FILE, FLEET = HERE / "compose.yml", HERE / "fleet.yml"


class Worker(BaseModel):
    """What these tests look at."""

    model_config = ConfigDict(extra="allow")

    build: str
    restart: str
    stop_grace_period: str
    secrets: list[str]
    env_file: list[dict[str, str | bool]]
    volumes: list[str]
    read_only: bool
    cap_drop: list[str]
    security_opt: list[str]
    healthcheck: dict[str, str | list[str]]
    ports: list[str] = Field(default_factory=list[str])
    privileged: bool = False
    environment: dict[str, str] = Field(default_factory=dict[str, str])


class Compose(BaseModel):
    services: dict[str, Worker]
    secrets: dict[str, dict[str, str]]
    volumes: dict[str, dict[str, str]]


class Service(BaseModel):
    command: list[str] = Field(default_factory=list[str])
    extends: dict[str, str] = Field(default_factory=dict[str, str])


class Services(BaseModel):
    services: dict[str, Service]


class Targets(BaseModel):
    names: list[str]
    port: int


class Job(BaseModel):
    dns_sd_configs: list[Targets]


class Prometheus(BaseModel):
    scrape_configs: list[Job]


@pytest.fixture
def compose() -> Compose:
    return Compose.model_validate(read_yaml(FILE))


@pytest.fixture
def worker(compose: Compose) -> Worker:
    (worker,) = compose.services.values()
    return worker


def test_the_compose_specification_knows_all_of_it() -> None:
    judge("check-jsonschema", "--builtin-schema", "vendor.compose-spec", FILE, FLEET)


def test_the_worker_may_do_little(worker: Worker) -> None:
    assert worker.read_only
    assert not worker.privileged
    assert worker.cap_drop == ["ALL"]
    assert worker.security_opt == ["no-new-privileges:true"]


def test_docker_waits_longer_than_running_attempts_may_take(worker: Worker) -> None:
    grace = example("compose/config/mulligan.yml").limits.shutdown_grace
    assert parse_duration(worker.stop_grace_period) >= grace + MARGIN
    assert worker.restart == "unless-stopped"


def test_the_example_fits_what_is_mounted(compose: Compose, worker: Worker) -> None:
    operator = example("compose/config/mulligan.yml")
    assert operator.github.token_file == Path("/run/secrets") / worker.secrets[0]
    assert set(compose.secrets) == set(worker.secrets)
    mounts = dict(volume.split(":")[1::-1] for volume in worker.volumes)
    assert (HERE / mounts["/etc/mulligan"] / "mulligan.yml").is_file()
    assert mounts["/var/lib/mulligan"] in compose.volumes
    assert operator.workspace.root.is_relative_to("/var/lib/mulligan")
    assert operator.state.url == "sqlite:////var/lib/mulligan/mulligan.db"
    assert (HERE / worker.build / "Dockerfile").is_file()


def test_the_dashboard_is_published_on_loopback_and_asked_for_its_health(worker: Worker) -> None:
    address = example("compose/config/mulligan.yml").dashboard.address
    assert address is not None
    assert worker.ports == [f"127.0.0.1:{address[1]}:{address[1]}"]
    assert f"127.0.0.1:{address[1]}/healthz" in " ".join(worker.healthcheck["test"])


def test_what_is_secret_is_neither_in_the_file_nor_in_git(compose: Compose, worker: Worker) -> None:
    assert worker.environment == {}
    secret = [each["file"] for each in compose.secrets.values()]
    secret += [str(each["path"]) for each in worker.env_file]
    assert len(secret) == 2
    for path in secret:
        asked = ["git", "check-ignore", "-q", str(HERE / path)]
        assert subprocess.run(asked, cwd=ROOT, check=False).returncode == 0, path


def test_the_examples_differ_in_their_place_only() -> None:
    examples = [example("systemd/mulligan.yml"), example("compose/config/mulligan.yml")]
    place = {"github": None, "dashboard": None}
    both = [each.model_copy(update=place) for each in examples]
    assert both[0] == both[1]


def test_a_worker_of_a_fleet_may_as_little_as_one_alone(worker: Worker) -> None:
    services = read_yaml(FLEET)["services"]
    assert isinstance(services, dict)
    several = Worker.model_validate(services["worker"])
    shared = ("build", "restart", "stop_grace_period", "secrets", "env_file", "read_only")
    for name in (*shared, "cap_drop", "security_opt", "privileged", "environment", "healthcheck"):
        assert getattr(several, name) == getattr(worker, name), name
    # A volume with a name would be one for all, and the second worker would be refused.
    assert "/var/lib/mulligan" in several.volumes


def test_a_fleet_has_roles_that_mulligan_knows_and_prometheus_asks_each() -> None:
    services = Services.model_validate(read_yaml(FLEET)).services
    roles = {name: each.command for name, each in services.items() if each.command}
    assert roles == {role: ["run", "--role", role] for role in ("worker", "poller")}
    assert services["poller"].extends == {"service": "worker"}
    (job,) = Prometheus.model_validate(read_yaml(HERE / "prometheus.yml")).scrape_configs
    address = example("compose/config/mulligan.yml").dashboard.address
    assert address
    assert [(each.names, each.port) for each in job.dns_sd_configs] == [([*roles], address[1])]


def test_the_password_of_a_fleets_database_stays_out_of_git() -> None:
    secrets = read_yaml(FLEET)["secrets"]
    assert isinstance(secrets, dict)
    asked = ["git", "check-ignore", "-q", str(HERE / "database-password")]
    assert {"file": "./database-password"} in secrets.values()
    assert subprocess.run(asked, cwd=ROOT, check=False).returncode == 0
