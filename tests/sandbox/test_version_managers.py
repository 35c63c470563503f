"""Version managers find their directories by variables, as their documentation names them."""

import os
from pathlib import Path

import pytest

from mulligan.sandbox.programs import variables_of_managers
from mulligan.sandbox.version_managers import manager_variables


@pytest.mark.pure
@pytest.mark.parametrize(
    ("environment", "used", "variables"),
    [
        ({"HOME": "/home/u"}, ("rustup",), {"RUSTUP_HOME": "/home/u/.rustup"}),
        (
            {"HOME": "/home/u", "RUSTUP_HOME": "/srv/rust"},
            ("rustup",),
            {"RUSTUP_HOME": "/srv/rust"},
        ),
        ({"HOME": "/home/u"}, ("mise",), {"MISE_DATA_DIR": "/home/u/.local/share/mise"}),
        ({"HOME": "/h", "XDG_DATA_HOME": "/data"}, ("mise",), {"MISE_DATA_DIR": "/data/mise"}),
        (
            {"HOME": "/h", "XDG_DATA_HOME": "/data"},
            ("pyenv", "asdf"),
            {"ASDF_DATA_DIR": "/h/.asdf", "PYENV_ROOT": "/h/.pyenv"},
        ),
        ({"HOME": "/home/u", "PYENV_ROOT": "relative"}, ("pyenv",), {}),
        ({}, ("rustup", "pyenv"), {}),
        ({"HOME": "/home/u"}, (), {}),
    ],
)
def test_each_manager_in_use_has_its_variable(
    environment: dict[str, str], used: tuple[str, ...], variables: dict[str, str]
) -> None:
    assert manager_variables(environment, lambda program, _: program in used) == variables


def test_a_manager_is_in_use_if_the_path_leads_to_it(tmp_path: Path) -> None:
    for name in (".rustup", ".pyenv/shims", ".volta/bin", ".nvm", "bin"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "bin" / "rustup").touch(mode=0o755)
    path = ":".join([str(tmp_path / "bin"), str(tmp_path / ".pyenv/shims"), os.defpath])
    assert variables_of_managers({"HOME": str(tmp_path), "PATH": path}) == {
        "RUSTUP_HOME": str(tmp_path / ".rustup"),
        "PYENV_ROOT": str(tmp_path / ".pyenv"),
    }


def test_a_directory_that_cannot_be_read_is_skipped() -> None:
    # Root may read everything; a name that is too long fails for root, too.
    variables = variables_of_managers({"PATH": "/usr/bin", "RUSTUP_HOME": f"/{'x' * 300}"})
    assert "RUSTUP_HOME" not in variables
