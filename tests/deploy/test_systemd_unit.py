"""The systemd unit is right, hardened, and leaves open what has to stay open."""

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from mulligan.config.operator import SandboxLimits
from mulligan.config.settings import parse_duration
from mulligan.interfaces.cli.exit_codes import Exit
from mulligan.sandbox.egress import MAX_CONNECTIONS, RESERVED_DESCRIPTORS
from world.deployment import DEPLOY, MARGIN, example, flags_exist, judge
from world.place import BIN

UNIT = DEPLOY / "systemd" / "mulligan.service"
INSTALLED = "/opt/mulligan/bin/mulligan"
STATE = Path("/var/lib/mulligan")
WORST = 40
"""The exposure, in tenths, beyond which `systemd-analyze security` fails; an empty unit has 96."""


def settings() -> Iterator[tuple[str, str]]:
    for line in UNIT.read_text().splitlines():
        if found := re.fullmatch(r"(\w+)=(.*)", line):
            yield found[1], found[2]


SETTINGS = dict(settings())


def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace(INSTALLED, str(BIN / "mulligan")))
    said = judge("systemd-analyze", "verify", "--man=no", "--recursive-errors=no", unit)
    assert [line for line in said.splitlines() if UNIT.name in line] == []


def test_systemd_finds_the_unit_hardened() -> None:
    judge("systemd-analyze", "security", "--offline=true", f"--threshold={WORST}", UNIT)


def test_nothing_is_set_twice() -> None:
    assert len(list(settings())) == len(SETTINGS)


def test_what_the_unit_starts_is_a_command() -> None:
    program, _, command = SETTINGS["ExecStart"].partition(" ")
    assert program == INSTALLED
    flags_exist(command)


def test_systemd_waits_longer_than_running_attempts_may_take() -> None:
    grace = example("systemd/mulligan.yml").limits.shutdown_grace
    assert grace == timedelta(seconds=30)
    assert parse_duration(SETTINGS["TimeoutStopSec"]) >= grace + MARGIN
    assert SETTINGS["KillMode"] == "mixed"


def test_mulligan_and_its_agents_have_limits_together() -> None:
    most = 2 * MAX_CONNECTIONS * example("systemd/mulligan.yml").limits.concurrency
    assert int(SETTINGS["LimitNOFILE"]) > RESERVED_DESCRIPTORS + most
    assert int(SETTINGS["TasksMax"]) > SandboxLimits().processes
    assert 0 < int(SETTINGS["MemoryMax"].removesuffix("%")) < 100


def test_a_mistake_in_the_configuration_is_not_tried_again() -> None:
    assert SETTINGS["Restart"] == "on-failure"
    assert SETTINGS["RestartPreventExitStatus"].split() == [str(Exit.USAGE.value)]


def test_the_example_fits_the_unit() -> None:
    operator = example("systemd/mulligan.yml")
    credential = SETTINGS["LoadCredential"].partition(":")[0]
    assert operator.github.token_file == Path(f"/run/credentials/{UNIT.name}/{credential}")
    assert SETTINGS["StateDirectory"] == STATE.name
    assert operator.workspace.root.is_relative_to(STATE)
    assert operator.state.url == f"sqlite:///{STATE}/mulligan.db"


@pytest.mark.parametrize(
    "setting",
    [
        "DynamicUser",
        "ProcSubset",
        "ProtectHostname",
        "ProtectKernelLogs",
        "ProtectKernelTunables",
        "RestrictNamespaces",
        "RestrictSUIDSGID",
    ],
)
def test_what_bubblewrap_needs_is_named_and_left_open(setting: str) -> None:
    assert setting not in SETTINGS
    assert re.search(rf"^# .*\b{setting}\b", UNIT.read_text(), re.MULTILINE)


def test_bubblewrap_may_mount_and_set_up_a_network_of_its_own() -> None:
    assert "AF_NETLINK" in SETTINGS["RestrictAddressFamilies"].split()
    refused = SETTINGS["SystemCallFilter"]
    assert refused.startswith("~")
    assert {"@mount", "@privileged"}.isdisjoint(refused[1:].split())
