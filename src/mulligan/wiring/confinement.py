"""Choose how agents, set-up lines and checks are run: confined, or said plainly that not."""

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import structlog

from mulligan.agent.invocation import adapter_of
from mulligan.agent.services import choose_network
from mulligan.config.operator import AgentSettings, Operator, SandboxMode
from mulligan.domain.machine import AS_ROOT, NOT_AS_ROOT, Walls
from mulligan.errors import ConfigError
from mulligan.sandbox.confinement import Network
from mulligan.sandbox.probe import Tried, closed_to, try_out
from mulligan.sandbox.sandbox import Sandbox, Unconfined
from mulligan.sandbox.user import is_root
from mulligan.state.database import state_directory
from mulligan.wiring.room import ran_full

log = structlog.get_logger()


def confine(operator: Operator, environment: Mapping[str, str]) -> Sandbox:
    """Give the sandbox that works here; ConfigError where one is required and none does.

    Whatever runs in it is stopped where a disk runs full.
    """
    watch = partial(ran_full, operator)
    if operator.sandbox.mode is SandboxMode.OFF:
        return Unconfined(watch)
    tried = try_sandbox(operator, environment)
    if tried.sandbox:
        return replace(tried.sandbox, watch=watch)
    if operator.sandbox.mode is SandboxMode.REQUIRED:
        message = f"sandbox: required cannot be kept. {tried.trouble}"
        raise ConfigError(message)
    log.warning("not_confined", reason=str(tried.trouble))
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


def look_at_walls(operator: Operator, environment: Mapping[str, str]) -> Walls:
    """Say whether commands can be confined here, for the doctor."""
    named = (*operator.sandbox.read, *operator.sandbox.write)
    missing = tuple(str(path) for path in named if not os.access(path, os.F_OK))
    tried = try_sandbox(operator, environment)
    if tried.trouble:
        return Walls(stand=False, why_not=tried.trouble.said, cure=tried.trouble.cure)
    closed = closed_to(tried.sandbox) if tried.sandbox else ()
    return Walls(
        stand=True,
        filtered=tried.filters,
        missing=missing,
        closed=tuple(path for path in closed if path not in missing),
    )


def try_sandbox(operator: Operator, environment: Mapping[str, str]) -> Tried:
    """Try whether commands can be confined here, and hide from them what is Mulligan's."""
    app, github = operator.github.app, operator.github
    files = (state_directory(operator.state.url), github.token_file, app and app.private_key_file)
    own = (operator.workspace.root, *(each for each in files if each))
    return try_out(operator.sandbox, environment, tuple(each.absolute() for each in own))
