"""How agents and checks are run follows from the configuration and from what works here."""

import os
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from mulligan.config.load import load_operator
from mulligan.config.operator import Operator
from mulligan.errors import ConfigError
from mulligan.sandbox.sandbox import Bubblewrap, Unconfined
from mulligan.wiring.confinement import confine
from world.confined import sandbox

WITHOUT = {"PATH": "/nowhere"}
CONFIGURATION = """
repositories: [{{name: o/r}}]
agent: {{command: [sh]}}
github: {{token_file: {place}/token}}
state: {{url: "sqlite:///{place}/state/mulligan.db"}}
workspace: {{root: "{place}/work"}}
sandbox: {sandbox}
"""


def operator(place: Path, sandbox: str) -> Operator:
    config = place / "mulligan.yml"
    config.write_text(CONFIGURATION.format(place=place, sandbox=sandbox))
    return load_operator(config, {})


def test_where_it_works_it_is_used_and_hides_what_is_mulligans(tmp_path: Path) -> None:
    sandbox()
    chosen = confine(operator(tmp_path, "{read: [/srv], limits: {processes: 77}}"), os.environ)
    assert isinstance(chosen, Bubblewrap)
    assert set(chosen.hidden) == {tmp_path / name for name in ("state", "work", "token")}
    assert (chosen.common.read, chosen.bounds.processes) == ((Path("/srv"),), 77)


def test_where_it_does_not_work_that_is_said(tmp_path: Path) -> None:
    with capture_logs() as logs:
        assert isinstance(confine(operator(tmp_path, "auto"), WITHOUT), Unconfined)
    assert [entry["event"] for entry in logs] == ["not_confined"]
    assert "bubblewrap is not installed" in logs[0]["reason"]
    assert "apt-get install bubblewrap" in logs[0]["reason"]


def test_where_it_is_required_nothing_starts_without(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"required cannot be kept. bubblewrap is not installed"):
        confine(operator(tmp_path, "required"), WITHOUT)


def test_off_is_off_and_no_warning(tmp_path: Path) -> None:
    with capture_logs() as logs:
        assert isinstance(confine(operator(tmp_path, "off"), os.environ), Unconfined)
    assert logs == []


def test_the_model_alone_cannot_be_reached_yet(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot let an agent reach its model alone; write open"):
        operator(tmp_path, "{network: model}")
