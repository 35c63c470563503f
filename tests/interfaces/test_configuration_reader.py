"""A configuration that cannot be used is read again, also if its file does not change."""

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from mulligan.config.load import load_operator
from mulligan.config.operator import Operator
from mulligan.domain.errors import ConfigError, MulliganError, UnavailableError
from mulligan.interfaces.cli.run import configuration_reader

TEXT = "repositories: [{name: acme/tools}]\nagent: {kind: command, command: [agent]}\n"


class Builds:
    """Raises these errors, one for each call; None is a call that succeeds, as are all later."""

    def __init__(self, *errors: MulliganError | None) -> None:
        self.errors = [*errors]

    def __call__(self, operator: Operator) -> Operator:
        if self.errors and (error := self.errors.pop(0)):
            raise error
        return operator


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GITHUB_TOKEN", "token")
    made = tmp_path / "mulligan.yml"
    made.write_text(TEXT)
    return made


@pytest.mark.parametrize(
    ("error", "event"),
    [
        (ConfigError("bubblewrap is not installed."), "configuration_refused"),
        (UnavailableError("The database is away."), "configuration_not_loaded"),
    ],
)
def test_a_reload_is_tried_until_it_works(error: MulliganError, event: str, path: Path) -> None:
    reload = configuration_reader(path, running(path), Builds(None, error, error))
    assert reload()
    path.write_text(f"{TEXT}# changed\n")
    with capture_logs() as logs:
        found = [reload() for _ in range(4)]
    assert [each["event"] for each in logs] == [event] * 2
    assert found == [None, None, running(path), None]


def running(path: Path) -> Operator:
    return load_operator(path, {"GITHUB_TOKEN": "token"})
