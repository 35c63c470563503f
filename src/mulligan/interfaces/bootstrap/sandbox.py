"""Choose the sandbox for agents, setup commands and checks, and measure free disk space."""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import structlog

from mulligan.agents.invocation import adapter_of, choose_network
from mulligan.config.certificates import read_certificates
from mulligan.config.operator import STATE_HOME, AgentSettings, Operator, SandboxMode
from mulligan.domain.errors import ConfigError, DiskFullError, UnavailableError
from mulligan.domain.host import (
    AS_ROOT,
    MIB,
    NOT_AS_ROOT,
    CommandNetworkStatus,
    DiskSpace,
    Network,
    SandboxStatus,
    disk_shortage,
)
from mulligan.git.worktrees.naming import image_directory
from mulligan.interfaces.bootstrap.clock_and_backoff import SystemClock
from mulligan.interfaces.bootstrap.stores import publishing_redactor_of
from mulligan.sandbox.client_configuration import client_configuration
from mulligan.sandbox.image_store import ImageStore
from mulligan.sandbox.operator_network import CA_FILE_KEY, operator_network
from mulligan.sandbox.probe import (
    LayerChoice,
    ProbeResult,
    choose_layers,
    probe_sandbox,
    unusable_paths,
)
from mulligan.sandbox.sandbox import Sandbox, Unconfined
from mulligan.sandbox.user import is_root
from mulligan.storage.database import state_directory
from mulligan.storage.state_directory import disk_space_for

log = structlog.get_logger()

TO_GO_WITHOUT = (
    "Or write `sandbox: off` in mulligan.yml: agents, setup commands and checks then"
    " have all rights of Mulligan's user."
)


def disk_shortage_of(operator: Operator, *, with_paths: bool = False) -> str:
    """Return why the disk has too little space for an attempt (limits.free_mib), "" if not.

    Issues show this, so it names no path of the machine, unless `with_paths`.
    """
    disks = (replace(disk, use="") if with_paths else disk for disk in _disks(operator))
    return disk_shortage(disks, operator.limits.free_mib * MIB)


def disk_full_error(operator: Operator) -> DiskFullError | None:
    """Return the error that stops commands when half of limits.free_mib is left, or None."""
    with suppress(UnavailableError):
        least = operator.limits.free_mib * MIB // 2
        for disk in _disks(operator):
            if short := disk_shortage([disk], least):
                message = f"The disk ran full, so the command was stopped. {short}"
                return DiskFullError(message, disk.path, lacks_files=disk.free >= least)
    return None


def _disks(operator: Operator) -> Iterator[DiskSpace]:
    workspace = disk_space_for(operator.workspace.root)
    yield replace(workspace, use="the workspace (workspace.root)")
    if state := state_directory(operator.state.url):
        yield replace(disk_space_for(state), use="the ledger (state.url)")


def confine(operator: Operator, environment: Mapping[str, str]) -> Sandbox:
    """Return the sandbox for this machine; ConfigError if none works, unless it is off.

    Its commands are stopped when a disk runs full. It is a ConfigError, too, if they could not have
    the certificates of `sandbox.ca_file`.
    """
    if operator.sandbox.ca_file:
        read_certificates(operator.sandbox.ca_file, CA_FILE_KEY)
    watch = partial(disk_full_error, operator)
    if operator.sandbox.mode is SandboxMode.OFF:
        return Unconfined(watch)
    tried = try_sandbox(operator, environment)
    if tried.sandbox:
        return replace(tried.sandbox, watch=watch)
    message = f"No sandbox works here: {tried.problem}"
    if operator.sandbox.mode is SandboxMode.AUTO:
        message = f"{message} {TO_GO_WITHOUT}"
    raise ConfigError(message)


def with_layers(
    sandbox: Sandbox, operator: Operator, environment: Mapping[str, str]
) -> LayerChoice:
    """Choose how commands get what setup commands left as a layer, after a trial.

    Otherwise each one needs a copy, which takes as long as copying takes; the log says why.
    """
    choice = choose_layers(sandbox, operator.workspace.root, environment)
    if choice.problem and not isinstance(sandbox, Unconfined):
        log.info("layers_unavailable", reason=f"{COPIES} {choice.problem}.")
    return choice


def image_store(
    operator: Operator,
    environment: Mapping[str, str],
    sandbox: Sandbox,
    root: Path | None = None,
) -> ImageStore:
    """Return where images are unpacked: below `root`, by default the workspace."""
    images = {each.name: each.policy.get("image") for each in operator.repositories}
    return ImageStore(
        image_directory((root or operator.workspace.root).absolute()),
        environment,
        SystemClock().now,
        operator.sandbox.images,
        {name: image for name, image in images.items() if isinstance(image, str)},
        operator.sandbox.image_mib * MIB,
        operator.limits.free_mib * MIB,
        NEEDS_SANDBOX if isinstance(sandbox, Unconfined) else "",
        operator.sandbox.builds,
        publishing_redactor_of(operator, environment),
        partial(disk_full_error, operator),
    )


NEEDS_SANDBOX = "It needs the sandbox; remove `sandbox: off`, or `image` from the policy."

COPIES = "Each setup command, check and agent gets a copy of what the setup commands left:"


def why_no_sandbox(operator: Operator, environment: Mapping[str, str]) -> str:
    """Return why no sandbox works here, or an empty string. Only for the bundled demo agent."""
    return str(try_sandbox(operator, environment).problem or "")


def warn_of_root() -> None:
    """Log a warning if Mulligan runs as root."""
    if is_root():
        log.warning("runs_as_root", reason=f"{AS_ROOT} {NOT_AS_ROOT}")


def network_for(settings: AgentSettings, operator: Operator, sandbox: Sandbox) -> Network:
    """Return the network access of an agent; without a sandbox it is open."""
    wanted = network_inside(settings, operator)
    return Network.OPEN if isinstance(sandbox, Unconfined) else wanted


def network_inside(settings: AgentSettings, operator: Operator) -> Network:
    """Return the network access of an agent in a sandbox; ConfigError if not enforceable."""
    adapter = adapter_of(settings, operator.adapters)
    return choose_network(operator.sandbox.network, adapter, operator.sandbox.hosts)


def sandbox_status(operator: Operator, environment: Mapping[str, str]) -> SandboxStatus:
    """Report for `doctor` whether the sandbox works here, and which paths it cannot use."""
    settings = operator.sandbox
    named = (*settings.read, *settings.write, *((settings.ca_file,) if settings.ca_file else ()))
    missing = tuple(str(path) for path in named if not os.access(path, os.F_OK))
    tried = try_sandbox(operator, environment)
    if tried.problem:
        return SandboxStatus(available=False, reason=tried.problem.message, fix=tried.problem.fix)
    closed = unusable_paths(tried.sandbox) if tried.sandbox else ()
    return SandboxStatus(
        available=True,
        calls_filtered=tried.filters,
        missing=missing,
        closed=tuple(path for path in closed if path not in missing),
        copies=choose_layers(tried.sandbox, operator.workspace.root, environment).problem
        if tried.sandbox
        else "",
    )


def command_network_status(
    operator: Operator, environment: Mapping[str, str]
) -> CommandNetworkStatus:
    """Report for `doctor` on sandbox.env and sandbox.registries; each registry gets one request."""
    network = operator_network(operator.sandbox, environment)
    return CommandNetworkStatus(
        unset=tuple(name for name in operator.sandbox.env if not environment.get(name)),
        exposed=network.exposed(),
        secret_files=tuple(map(str, client_configuration().secret)),
        registry_problems=network.problems(),
    )


def try_sandbox(operator: Operator, environment: Mapping[str, str]) -> ProbeResult:
    """Try the sandbox on this machine; it hides Mulligan's own files from commands."""
    app, github = operator.github.app, operator.github
    files = (
        state_directory(operator.state.url),
        github.token_file,
        github.webhook_secret_file,
        app and app.private_key_file,
        github.signing_key_file,
    )
    home = Path(STATE_HOME).expanduser()
    own = (home, operator.workspace.root, *(each for each in files if each))
    return probe_sandbox(operator.sandbox, environment, tuple(each.absolute() for each in own))
