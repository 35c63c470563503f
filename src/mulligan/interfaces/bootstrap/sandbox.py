"""Choose how agents, setup commands and checks run: confined, or plainly not."""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import structlog

from mulligan.agents.invocation import adapter_of, choose_network
from mulligan.config.operator import AgentSettings, Operator, SandboxMode
from mulligan.domain.errors import ConfigError, UnavailableError
from mulligan.domain.host import AS_ROOT, MIB, NOT_AS_ROOT, SandboxStatus, disk_shortage
from mulligan.sandbox.bubblewrap import Network
from mulligan.sandbox.probe import ProbeResult, probe_sandbox, unusable_paths
from mulligan.sandbox.sandbox import Sandbox, Unconfined
from mulligan.sandbox.user import is_root
from mulligan.storage.database import state_directory
from mulligan.storage.state_directory import disk_space_for

log = structlog.get_logger()


def disk_shortage_of(operator: Operator) -> str | None:
    """Say where there is too little room for an attempt to begin; None where there is enough."""
    return disk_shortage(map(disk_space_for, _places(operator)), operator.limits.free_mib * MIB)


def disk_full_error(operator: Operator) -> UnavailableError | None:
    """Say that a disk has run so full that whatever runs has to end; None while it has not."""
    with suppress(UnavailableError):
        least = operator.limits.free_mib * MIB // 2
        if short := disk_shortage(map(disk_space_for, _places(operator)), least):
            return UnavailableError(f"The disk ran full, so the command was stopped. {short}")
    return None


def _places(operator: Operator) -> tuple[Path, ...]:
    state = state_directory(operator.state.url)
    return (operator.workspace.root, *([state] if state else []))


def confine(operator: Operator, environment: Mapping[str, str]) -> Sandbox:
    """Give the sandbox that works here; ConfigError where one is required and none does.

    Whatever runs in it is stopped where a disk runs full.
    """
    watch = partial(disk_full_error, operator)
    if operator.sandbox.mode is SandboxMode.OFF:
        return Unconfined(watch)
    tried = try_sandbox(operator, environment)
    if tried.sandbox:
        return replace(tried.sandbox, watch=watch)
    if operator.sandbox.mode is SandboxMode.REQUIRED:
        message = f"sandbox: required cannot be kept. {tried.problem}"
        raise ConfigError(message)
    log.warning("not_confined", reason=str(tried.problem))
    return Unconfined(watch)


def warn_of_root() -> None:
    """Say in the log that Mulligan runs as root, where it does."""
    if is_root():
        log.warning("runs_as_root", reason=f"{AS_ROOT} {NOT_AS_ROOT}")


def network_for(settings: AgentSettings, operator: Operator, sandbox: Sandbox) -> Network:
    """Say what an agent may reach; without walls, that is whatever this machine does."""
    wanted = network_inside(settings, operator)
    return Network.OPEN if isinstance(sandbox, Unconfined) else wanted


def network_inside(settings: AgentSettings, operator: Operator) -> Network:
    """Say what an agent may reach from within the walls; ConfigError where that cannot be kept."""
    adapter = adapter_of(settings, operator.adapters)
    return choose_network(operator.sandbox.network, adapter, operator.sandbox.hosts)


def sandbox_status(operator: Operator, environment: Mapping[str, str]) -> SandboxStatus:
    """Say whether commands can be confined here, for the doctor."""
    named = (*operator.sandbox.read, *operator.sandbox.write)
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
    )


def try_sandbox(operator: Operator, environment: Mapping[str, str]) -> ProbeResult:
    """Try whether commands can be confined here, and hide from them what is Mulligan's."""
    app, github = operator.github.app, operator.github
    files = (state_directory(operator.state.url), github.token_file, app and app.private_key_file)
    own = (operator.workspace.root, *(each for each in files if each))
    return probe_sandbox(operator.sandbox, environment, tuple(each.absolute() for each in own))
