"""Changed settings that a running daemon does not take over are named by key."""

import pytest
from pydantic import JsonValue

from mulligan.config.operator import Engine, Operator
from mulligan.config.restart import RESTART_KEYS, keys_that_need_restart, with_running_state

pytestmark = pytest.mark.pure
BASE: dict[str, JsonValue] = {
    "repositories": [{"name": "acme/tools"}],
    "agent": {"kind": "command", "command": ["agent"]},
    "state": {"url": "postgresql://one/mulligan"},
}
CHANGES: dict[str, dict[str, JsonValue]] = {
    "poll.interval": {"poll": {"interval": "5m"}},
    "limits.concurrency": {"limits": {"concurrency": 7}},
    "limits.per_repository": {"limits": {"per_repository": 7}},
    "limits.lease": {"limits": {"lease": "7m"}},
    "limits.shutdown_grace": {"limits": {"shutdown_grace": "7m"}},
    "state.url": {"state": {"url": "postgresql://two/mulligan"}},
    "state.mirror": {"state": {"url": "postgresql://one/mulligan", "mirror": True}},
    "engine": {"engine": "polling"},
    "dashboard.listen": {"dashboard": "off"},
    "dashboard.hosts": {"dashboard": {"hosts": ["mulligan.example.org"]}},
    "github.webhook_secret": {"github": {"webhook_secret": "it-is-a-secret-of-32-characters!"}},
    "github.webhook_secret_file": {"github": {"webhook_secret_file": "/etc/webhook-secret"}},
}


def configured(**changes: JsonValue) -> Operator:
    return Operator.model_validate({**BASE, **changes})


@pytest.mark.parametrize("key", RESTART_KEYS)
def test_a_setting_that_is_read_once_is_named(key: str) -> None:
    changed = configured(**CHANGES[key])
    assert keys_that_need_restart(configured(), changed) == (key,)
    assert with_running_state(configured(), changed).state == configured().state


def test_other_settings_need_no_restart() -> None:
    changed = configured(limits={"interruptions": 9}, trust={"permission": "maintain"})
    assert keys_that_need_restart(configured(), changed) == ()
    assert with_running_state(configured(), changed) == changed


def test_a_ledger_on_postgresql_has_a_job_engine_unless_it_is_set_off() -> None:
    assert configured().engine is Engine.FLEET
    assert configured(engine="polling").engine is Engine.POLLING
    assert configured(state={"url": "sqlite:////mulligan.db"}).engine is Engine.POLLING
