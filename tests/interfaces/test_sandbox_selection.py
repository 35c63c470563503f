"""How agents and checks are run follows from the configuration and from what works here."""

import os
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from mulligan.config.load import load_operator, load_policy
from mulligan.config.operator import AppSettings, Operator
from mulligan.domain.errors import ConfigError
from mulligan.domain.host import Network
from mulligan.interfaces.bootstrap.sandbox import confine, network_for
from mulligan.sandbox.sandbox import Bubblewrap, Unconfined
from world.confined import sandbox

WITHOUT = {"PATH": "/nowhere"}
STATE_HOME = Path("~/.local/state/mulligan").expanduser()
"""It holds what setup commands left for `check` and `rehearse`, whatever the configuration."""
COMMAND = "agent: {command: [sh]}"
CONFIGURATION = """
repositories: [{{name: o/r}}]
{agent}
github: {{token_file: {place}/token}}
state: {{url: "sqlite:///{place}/state/mulligan.db"}}
workspace: {{root: "{place}/work"}}
sandbox: {sandbox}
"""


def operator(place: Path, sandbox: str, agent: str = "") -> Operator:
    config = place / "mulligan.yml"
    written = CONFIGURATION.format(place=place, sandbox=sandbox, agent=agent or COMMAND)
    config.write_text(written)
    return load_operator(config, {})


def test_where_it_works_it_is_used_and_hides_what_is_mulligans(tmp_path: Path) -> None:
    sandbox()
    chosen = confine(operator(tmp_path, "{read: [/srv], limits: {processes: 77}}"), os.environ)
    assert isinstance(chosen, Bubblewrap)
    own = {tmp_path / name for name in ("state", "work", "token")}
    assert set(chosen.hidden_paths) == {*own, STATE_HOME}
    assert (chosen.common.read, chosen.limits.processes) == ((Path("/srv"),), 77)


@pytest.mark.parametrize("mode", ["auto", "off"])
def test_a_file_without_certificates_is_refused_before_an_attempt(
    tmp_path: Path, mode: str
) -> None:
    (tmp_path / "empty.pem").touch()
    made = operator(tmp_path, f"{{mode: {mode}, ca_file: {tmp_path}/empty.pem}}")
    with pytest.raises(ConfigError, match=r"sandbox\.ca_file names .*empty\.pem"):
        confine(made, os.environ)


def test_the_key_of_an_app_is_hidden_as_a_token_is(tmp_path: Path) -> None:
    sandbox()
    made = operator(tmp_path, "auto")
    app = AppSettings(id=7, private_key_file=tmp_path / "app.pem")
    signing = {"signing_key_file": tmp_path / "signing-key"}
    github = made.github.model_copy(update={"token_file": None, "app": app, **signing})
    chosen = confine(made.model_copy(update={"github": github}), os.environ)
    assert isinstance(chosen, Bubblewrap)
    own = {tmp_path / name for name in ("state", "work", "app.pem", "signing-key")}
    assert set(chosen.hidden_paths) == {*own, STATE_HOME}


def test_where_it_does_not_work_nothing_starts_and_the_cures_are_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"No sandbox works here: bubblewrap is not") as caught:
        confine(operator(tmp_path, "auto"), WITHOUT)
    assert "apt-get install bubblewrap" in str(caught.value)
    assert "`sandbox: off`" in str(caught.value)


def test_a_repository_has_no_say_in_it() -> None:
    with pytest.raises(ConfigError, match="sandbox"):
        load_policy(b"sandbox: off", {}, "mulligan.yml")


def test_where_it_is_required_nothing_starts_without(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"No sandbox works here: bubblewrap is not installed"):
        confine(operator(tmp_path, "required"), WITHOUT)


def test_off_is_off_and_no_warning(tmp_path: Path) -> None:
    with capture_logs() as logs:
        assert isinstance(confine(operator(tmp_path, "off"), os.environ), Unconfined)
    assert logs == []


CLAUDE = "agent: {kind: claude}"


@pytest.mark.parametrize(
    ("written", "agent", "network"),
    [
        ("required", "", Network.OPEN),
        ("required", CLAUDE, Network.MODEL),
        ("{network: open}", CLAUDE, Network.OPEN),
        ("{hosts: [model.example]}", "", Network.MODEL),
    ],
)
def test_an_agent_reaches_its_model_alone_where_it_is_known(
    written: str, agent: str, network: Network, tmp_path: Path
) -> None:
    made = operator(tmp_path, written, agent)
    assert network_for(made.agent, made, sandbox()) is network
    assert network_for(made.agent, made, Unconfined()) is Network.OPEN


def test_a_model_that_nobody_knows_cannot_be_all_there_is(tmp_path: Path) -> None:
    made = operator(tmp_path, "{network: model}")
    with pytest.raises(
        ConfigError, match="the configuration does not say where sh finds its model"
    ):
        network_for(made.agent, made, Unconfined())


@pytest.mark.parametrize("host", ["https://a.example", "a b", "*.a.example", "", "a.example:x"])
def test_a_host_is_a_name_and_nothing_more(host: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="write a host as NAME or NAME:PORT"):
        operator(tmp_path, f"{{hosts: ['{host}']}}")
