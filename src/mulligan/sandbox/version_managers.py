"""The directories of version managers, and the variables that name them to a command. Pure.

Version managers find their files below HOME, and commands have a HOME of their own.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class VersionManager:
    """A program that starts other programs from a directory of its own.

    `variable` names that directory; without it, it is `default` below HOME. None contains
    credentials: those are in ~/.cargo, ~/.config, ~/.npmrc or ~/.gem, which commands do not see.
    """

    program: str
    variable: str
    default: str


DATA = ".local/share/"
"""The default of XDG_DATA_HOME, below HOME (XDG Base Directory Specification)."""

VERSION_MANAGERS = (
    # https://rust-lang.github.io/rustup/environment-variables.html
    VersionManager("rustup", "RUSTUP_HOME", ".rustup"),
    # https://github.com/leanprover/elan, as rustup
    VersionManager("elan", "ELAN_HOME", ".elan"),
    # https://asdf-vm.com/manage/configuration.html
    VersionManager("asdf", "ASDF_DATA_DIR", ".asdf"),
    # https://mise.jdx.dev/directories.html
    VersionManager("mise", "MISE_DATA_DIR", f"{DATA}mise"),
    # https://docs.volta.sh/advanced/installers
    VersionManager("volta", "VOLTA_HOME", ".volta"),
    # https://github.com/Schniz/fnm/blob/master/docs/configuration.md
    VersionManager("fnm", "FNM_DIR", f"{DATA}fnm"),
    # https://github.com/nvm-sh/nvm
    VersionManager("nvm", "NVM_DIR", ".nvm"),
    # https://sdkman.io/install
    VersionManager("sdk", "SDKMAN_DIR", ".sdkman"),
    # https://github.com/pyenv/pyenv#environment-variables, and the managers derived from it or
    # from rbenv: https://github.com/rbenv/rbenv#environment-variables
    VersionManager("pyenv", "PYENV_ROOT", ".pyenv"),
    VersionManager("rbenv", "RBENV_ROOT", ".rbenv"),
    VersionManager("nodenv", "NODENV_ROOT", ".nodenv"),
    VersionManager("goenv", "GOENV_ROOT", ".goenv"),
    VersionManager("jenv", "JENV_ROOT", ".jenv"),
    VersionManager("phpenv", "PHPENV_ROOT", ".phpenv"),
    VersionManager("plenv", "PLENV_ROOT", ".plenv"),
)

VARIABLES = frozenset(each.variable for each in VERSION_MANAGERS)


def manager_variables(
    environment: Mapping[str, str], is_used: Callable[[str, str], bool]
) -> dict[str, str]:
    """Return the variables that name the directories of the version managers in use.

    `environment` is Mulligan's own. `is_used` gets a program and its directory: whether that
    exists, and the PATH leads to one of the two.
    """
    places = {each: _directory(each, environment) for each in VERSION_MANAGERS}
    return {
        each.variable: place
        for each, place in places.items()
        if place.startswith("/") and is_used(each.program, place)
    }


def _directory(manager: VersionManager, environment: Mapping[str, str]) -> str:
    home, data = environment.get("HOME", ""), environment.get("XDG_DATA_HOME", "")
    default = f"{home}/{manager.default}" if home else ""
    if data and manager.default.startswith(DATA):
        default = f"{data}/{manager.default.removeprefix(DATA)}"
    return environment.get(manager.variable) or default
