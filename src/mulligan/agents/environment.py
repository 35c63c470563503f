"""Decide which variables reach an agent: passed on, set, or replaced by a placeholder. Pure.

The environment of a run begins with `sandbox/programs.py: machine_variables`. Nothing else of
Mulligan's own environment reaches it. Inside the sandbox, HOME is `sandbox/bubblewrap.py: HOME`.
"""

from collections.abc import Mapping
from pathlib import Path

from mulligan.agents.invocation import address_inside, allowed_for, services_used
from mulligan.config.adapters import Adapter
from mulligan.config.operator import AgentSettings
from mulligan.domain.attempt import Task
from mulligan.domain.errors import MisconfiguredError
from mulligan.sandbox.egress_rules import ModelAccess, proxy_variables
from mulligan.text.secret_shapes import is_secret

PLACEHOLDER = "mulligan-adds-the-key"
"""The placeholder for a key in an agent's environment; not a secret."""

NOTHING: Mapping[str, str] = {}


def variables_of_run(
    machine: Mapping[str, str],
    home: Path,
    adapter: Adapter,
    passed: Mapping[str, str] = NOTHING,
    task: Mapping[str, str] = NOTHING,
) -> dict[str, str]:
    """Return the whole environment of a run; of variables with one name, the last one counts."""
    return {**machine, "HOME": str(home), **adapter.variables, **passed, **task}


def passed_variables(
    settings: AgentSettings, adapter: Adapter, environment: Mapping[str, str]
) -> dict[str, str]:
    """Return the variables that agent.env names, and those of the adapter that are set."""
    if missing := missing_variables(settings, environment):
        verb = "is" if len(missing) == 1 else "are"
        raise MisconfiguredError(
            f"agent.env names {', '.join(missing)}, which {verb} not set where Mulligan runs;"
            " set it there, or remove it from agent.env."
        )
    usual = [name for name in adapter.environment if name in environment]
    return {name: environment[name] for name in (*usual, *settings.env)}


def missing_variables(settings: AgentSettings, environment: Mapping[str, str]) -> tuple[str, ...]:
    """List the variables that agent.env names, and that are not set where Mulligan runs."""
    return tuple(name for name in settings.env if name not in environment)


def names_read(settings: AgentSettings, adapter: Adapter) -> frozenset[str]:
    """Return the names of all variables of Mulligan's environment that a run depends on."""
    return frozenset((*adapter.environment, *settings.env)) | keys_of(adapter)


def task_variables(task: Task, report: Path) -> dict[str, str]:
    """Return the variables that describe the task; they override the operator's."""
    variables = {
        "MULLIGAN_ISSUE": task.issue,
        "MULLIGAN_ATTEMPT": str(task.attempt),
        "MULLIGAN_FIX_ROUND": str(task.fix_round),
        "MULLIGAN_REPORT": str(report),
    }
    if task.previous_diff:
        variables["MULLIGAN_PREVIOUS_DIFF"] = str(task.previous_diff)
    if task.attachments:
        variables["MULLIGAN_ATTACHMENTS"] = str(task.attachments)
    return variables


# Keys and addresses of models


def keys_of(adapter: Adapter) -> frozenset[str]:
    """Return the names of the variables that hold a key of a service."""
    return frozenset(key for each in adapter.services.values() for key in each.keys)


def secrets_given(adapter: Adapter, environment: Mapping[str, str]) -> tuple[str, ...]:
    """List the secrets that reach an agent or its proxy by the adapter, without agent.env."""
    keys = keys_of(adapter)
    names = dict.fromkeys((*adapter.environment, *sorted(keys)))
    found = ((name, environment[name]) for name in names if environment.get(name))
    return tuple(value for name, value in found if name in keys or is_secret(name, value))


def variables_inside(
    adapter: Adapter, given: Mapping[str, str], environment: Mapping[str, str], port: int
) -> dict[str, str]:
    """Return the variables in the sandbox: addresses of the proxy, and placeholders for keys."""
    keys = keys_of(adapter)
    kept = {name: PLACEHOLDER if name in keys else value for name, value in given.items()}
    pointed = {
        each.url_variable: address_inside(name, each, environment, port)
        for name, each in services_used(adapter, environment).items()
        if each.url_variable
    }
    return {**proxy_variables(port), **kept, **pointed}


def model_access(adapter: Adapter, environment: Mapping[str, str], port: int) -> ModelAccess:
    """Return how another command calls an agent's model through the proxy, without the key."""
    allowed = allowed_for(adapter, environment, (), port)
    keys = {name: PLACEHOLDER for name in sorted(keys_of(adapter)) if environment.get(name)}
    return ModelAccess(allowed.routes, variables_inside(adapter, keys, environment, port))


def direct_model_access(adapter: Adapter, environment: Mapping[str, str]) -> ModelAccess:
    """Return how another command calls an agent's model without a sandbox: with the key."""
    urls = {each.url_variable for each in adapter.services.values()}
    names = sorted({*keys_of(adapter), *urls} & environment.keys())
    return ModelAccess((), {name: environment[name] for name in names})
