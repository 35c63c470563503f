"""Install the package managers that a CI job uses and this machine lacks. Pure.

GitHub's runners have some of them, and actions such as `astral-sh/setup-uv` install others. They
get a place of their own, since `poetry install` or `uv sync` changes the environment of the
project. Only their programs are added, after all others.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from shlex import quote

from mulligan.interfaces.onboarding.commands import SCRIPT_RUNNERS, TARGETS, words_of
from mulligan.interfaces.onboarding.tree import Machine, RepositoryFiles
from mulligan.interfaces.onboarding.workflows import CiStep

ON_PATH = 'export PATH="$PATH:$HOME/tools/bin" && '
"""What a line needs to find them."""

PYTHON = {"uv": "uv", "uvx": "uv", "poetry": "poetry", "pdm": "pdm", "hatch": "hatch"}
"""The package on PyPI of each program."""

NODE = ("pnpm", "yarn", "bun")
"""Programs that have the name of their package on npm."""

ACTION = re.compile(
    r"(?:setup|install|actions?)-(uv|poetry|pdm|hatch|pnpm|yarn|bun)(?=@)|^(pnpm)/action-setup(?=@)"
    r"|^pypa/(hatch)(?=@)"
)
"""An action that installs a package manager."""

PROGRAM = re.compile(r"(?:^|&& |\()([\w-]+)(?= )")
"""The program of a command in a line."""


def programs_of(line: str) -> set[str]:
    """Return the programs that a line starts."""
    return set(PROGRAM.findall(line))


def installable(machine: Machine) -> set[str]:
    """Return the package managers that can be installed with what this machine has."""
    by_npm = NODE if "npm" in machine.programs else ()
    return {*(PYTHON if machine.python else ()), *by_npm}


def wanted(lines: Iterable[str], steps: Iterable[CiStep]) -> dict[str, str]:
    """Return the package managers that a job's lines use, with the versions that its steps name.

    What the repository named, such as a session of nox, may use those of the job's actions.
    """
    brought = {
        found[1] or found[2] or found[3]: step.inputs.get("version", "")
        for step in steps
        if (found := ACTION.search(step.action))
    }
    used = dict[str, str]()
    for line in lines:
        started = programs_of(line) & {*PYTHON, *NODE}
        used |= {program: brought.get(PYTHON.get(program, program), "") for program in started}
        if _last_program(line) in TARGETS | SCRIPT_RUNNERS:
            used |= brought
    return used


def _last_program(line: str) -> str:
    return next(iter(words_of(line.rpartition("&& ")[2].rstrip(")"))), "")


def installing(programs: Mapping[str, str], tree: RepositoryFiles) -> Iterator[str]:
    """Yield the setup commands that install package managers; by program, their versions."""
    by_pip = {PYTHON[name]: version for name, version in programs.items() if name in PYTHON}
    by_npm = {name: version for name, version in programs.items() if name in NODE}
    if by_pip:
        packages = " ".join(quote(f"{name}{_pinned(each)}") for name, each in by_pip.items())
        tools = '"$HOME/tools"'
        yield f"python3 -m venv {tools} && {tools}/bin/pip install --quiet {packages}"
    if by_npm:
        named = " ".join(quote(_of_npm(name, each, tree)) for name, each in by_npm.items())
        yield f'npm install --global --silent --prefix "$HOME/tools" {named}'


VERSION = re.compile(r"v?(\d+(?:\.\d+)*)")


def _pinned(version: str) -> str:
    found = VERSION.fullmatch(version)
    if not found:
        return ""
    return f"=={found[1]}{'' if found[1].count('.') > 1 else '.*'}"


def _of_npm(name: str, version: str, tree: RepositoryFiles) -> str:
    """Return a package of npm in the version of `packageManager`, else in that of the action."""
    own = str(tree.mapping("package.json").get("packageManager") or "").partition("+")[0]
    manager, _, number = own.partition("@")
    number = number if manager == name and number else version
    if not (found := VERSION.fullmatch(number)):
        return name
    is_berry = name == "yarn" and not found[1].startswith("1.")
    return f"{'@yarnpkg/cli-dist' if is_berry else name}@{found[1]}"
