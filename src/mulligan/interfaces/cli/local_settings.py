"""The settings of attempts in a clone without GitHub: for `rehearse` and `simulate --clone`."""

import shlex
from collections.abc import Mapping
from pathlib import Path

from pydantic import JsonValue, TypeAdapter

from mulligan.config.load import load_operator, load_policy, policy_in, read_content
from mulligan.domain.errors import UsageError
from mulligan.git.local_clone import LocalClone
from mulligan.interfaces.bootstrap.clone import BUILT_IN_AGENTS
from mulligan.interfaces.bootstrap.rehearsal import overrides_for, settings_file
from mulligan.interfaces.cli.setup import environment

SETTINGS: TypeAdapter[dict[str, JsonValue]] = TypeAdapter(dict[str, JsonValue])


def settings_for(
    clone: Path, agent: str | None, config: Path | None
) -> tuple[dict[str, JsonValue], dict[str, JsonValue]]:
    """Return the operator's settings that concern attempts, and the clone's policy.

    `agent` is a built-in kind or a command line; `config` is the operator's file, by default one of
    the usual ones. UsageError if there is no agent in either.
    """
    path = settings_file(config, clone, environment())
    operator = load_operator(path, environment(), needs_token=False) if path else None
    given = _attempt_settings(path) if path else {}
    if agent:
        given["agent"] = _agent(agent, given.get("agent"))
    if "agent" not in given:
        raise UsageError(
            "No agent is configured. Add --agent KIND, --agent 'PROGRAM …', or --config FILE."
        )
    policy = clone / policy_in(clone)
    overrides = overrides_for(operator, LocalClone(clone, environment()))
    return given, {**(_policy(policy) if policy.exists() else {}), **overrides}


def _attempt_settings(path: Path) -> dict[str, JsonValue]:
    """Return the operator's settings that concern attempts.

    They are as the file has them, so that secrets stay in variables.
    """
    content = read_content(path.read_bytes(), str(path))
    left_out = {"github", "repositories", "state", "workspace"}
    return {key: value for key, value in content.items() if key not in left_out}


def _agent(named: str, before: JsonValue) -> dict[str, JsonValue]:
    """Parse --agent; other settings of the agent come from the file."""
    kept = dict(before) if isinstance(before, Mapping) else {}
    if named in BUILT_IN_AGENTS:
        kept.pop("command", None)
        return {**kept, "kind": named}
    try:
        command: list[JsonValue] = [*shlex.split(named)]
    except ValueError as error:
        raise UsageError(
            f"--agent {named!r} is not a valid command line ({error}). Fix its quotes."
        ) from error
    return {**kept, "kind": "command", "command": command}


def _policy(path: Path) -> dict[str, JsonValue]:
    """Read the policy of the working tree, so that an uncommitted one can be tried."""
    dumped: object = load_policy(path.read_bytes(), {}, str(path)).model_dump(
        mode="json", exclude_unset=True
    )
    return SETTINGS.validate_python(dumped)
