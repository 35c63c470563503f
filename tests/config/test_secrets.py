"""Which values of a configuration are secrets."""

import pytest

from mulligan.config.operator import Operator
from mulligan.config.secrets import secrets_of

pytestmark = pytest.mark.pure

SETTINGS = {
    "github": {"token": "ghp-like-value"},
    "repositories": [{"name": "a/b", "clone_url": "https://m:p%40ss@host/a/b.git"}],
    "agent": {"command": ["agent"], "env": ["MODEL_KEY", "LANG", "PLACE", "NONE"]},
    "state": {"url": "postgresql://mulligan:the-password@db/m"},
}
ENVIRONMENT = {"MODEL_KEY": "model-key", "LANG": "C.UTF-8", "PLACE": "/a/b", "OTHER_KEY": "not-its"}


def test_the_file_the_addresses_and_the_agents_variables_hold_secrets() -> None:
    found = secrets_of(Operator.model_validate(SETTINGS), ENVIRONMENT)
    assert set(found) == {
        "ghp-like-value",
        "p%40ss",
        "p@ss",
        "the-password",
        "model-key",
    }


def test_registries_and_variables_of_the_sandbox_hold_secrets() -> None:
    registry = {"host": "a.example", "user": "ci", "password": "pass-of-index"}
    sandbox = {"env": ["PIP_INDEX_URL", "NPM_TOKEN", "CI_NAME"], "registries": [registry]}
    environment = {
        "PIP_INDEX_URL": "https://ci:in%2Dthe-url@a.example/simple",
        "NPM_TOKEN": "token-of-npm",
        "CI_NAME": "farm",
    }
    settings = SETTINGS | {"sandbox": sandbox, "github": {}}
    found = set(secrets_of(Operator.model_validate(settings), environment))
    assert {"pass-of-index", "in%2Dthe-url", "in-the-url", "token-of-npm"} <= found
    assert not {"farm", "ci", "a.example"} & found


@pytest.mark.parametrize("name", ["password", "sslpassword"])
def test_a_password_may_stand_among_the_settings_of_an_address(name: str) -> None:
    url = f"postgresql://db/m?sslmode=require&{name}=a%20pass%2Bword&user=mulligan"
    found = secrets_of(Operator.model_validate(SETTINGS | {"state": {"url": url}}), {})
    assert {"a pass+word", "a%20pass%2Bword"} <= set(found)
    assert "mulligan" not in found


def test_an_address_that_is_none_has_no_secret() -> None:
    settings = {
        "repositories": [{"name": "a/b", "clone_url": "http://[::1"}],
        "agent": {"command": ["agent"]},
    }
    assert secrets_of(Operator.model_validate(settings), {}) == ()
