"""Name the settings of the operator's file that take effect only after a restart. Pure."""

from operator import attrgetter

from mulligan.config.operator import Operator

RESTART_KEYS = (
    "poll.interval",
    "limits.concurrency",
    "limits.per_repository",
    "limits.lease",
    "limits.shutdown_grace",
    "state.url",
    "state.mirror",
    "engine",
    "dashboard.listen",
    "dashboard.hosts",
    "github.webhook_secret",
    "github.webhook_secret_file",
)
"""The settings that a daemon reads only at its start."""


def keys_that_need_restart(running: Operator, changed: Operator) -> tuple[str, ...]:
    """List the changed keys that a running daemon does not take over (DAEMON-5)."""
    values = ((key, attrgetter(key)) for key in RESTART_KEYS)
    return tuple(key for key, value in values if value(running) != value(changed))


def with_running_state(running: Operator, changed: Operator) -> Operator:
    """Return the changed configuration with the ledger that the daemon has locked."""
    return changed.model_copy(update={"state": running.state, "engine": running.engine})
