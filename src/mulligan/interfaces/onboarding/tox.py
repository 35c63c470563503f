"""Which environments of tox one row of a workflow's matrix runs. Pure.

A plain `tox` in a workflow runs those of its Python, with the plugin tox-gh-actions; outside of
GitHub it would run all of them.
"""

import configparser
import itertools
import re
from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from mulligan.interfaces.onboarding.tree import Machine, RepositoryFiles, part, texts_of

ANY = "py"
"""The environment of tox for the Python that runs it."""

MAX_ENVIRONMENTS = 8


def environments_of(
    tree: RepositoryFiles, machine: Machine, variables: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the environments for this machine's Python and a step's variables, or `py`.

    The sections `gh-actions` and `gh-actions:env` of tox.ini map versions and variables to factors.
    """
    ini = _ini(tree)
    wanted = [_mapped(ini, "gh-actions", "python", machine.python) or _named_for(machine)]
    wanted += [
        factors
        for name, value in variables.items()
        if (factors := _mapped(ini, "gh-actions:env", name, value))
    ]
    names = dict.fromkeys(_listed(tree, ini))
    chosen = [name for name in names if all(_has_any(name, any_of) for any_of in wanted)]
    return tuple(chosen) if 0 < len(chosen) <= MAX_ENVIRONMENTS else (ANY,)


def _has_any(name: str, any_of: list[str]) -> bool:
    factors = set(name.split("-"))
    return any(set(each.split("-")) <= factors for each in any_of)


def _named_for(machine: Machine) -> list[str]:
    return [f"py{machine.python.replace('.', '')}", f"py{machine.python}", machine.python]


def _ini(tree: RepositoryFiles) -> configparser.RawConfigParser:
    found = configparser.RawConfigParser(strict=False, allow_no_value=True)
    legacy = part(tree.mapping("pyproject.toml"), "tool", "tox", "legacy_tox_ini")
    try:
        found.read_string(tree.text("tox.ini") or (legacy if isinstance(legacy, str) else ""))
    except configparser.Error:
        found.clear()
    return found


def _mapped(ini: configparser.RawConfigParser, section: str, option: str, value: str) -> list[str]:
    """Return the factors that a section maps a value to; none if it says nothing."""
    lines = ini.get(section, option, fallback="").splitlines()
    pairs = (line.partition(":") for line in lines)
    found = next((factors for key, _, factors in pairs if key.strip() == value), "")
    return [name for entry in _entries(found) for name in _expanded(entry)]


def _listed(tree: RepositoryFiles, ini: configparser.RawConfigParser) -> Iterator[str]:
    """Yield the names of `env_list`, in the form of INI or TOML."""
    text = ini.get("tox", "env_list", fallback=None) or ini.get("tox", "envlist", fallback=None)
    lists: tuple[JsonValue, ...] = (
        part(tree.mapping("tox.toml"), "env_list"),
        part(tree.mapping("pyproject.toml"), "tool", "tox", "env_list"),
    )
    for entry in _entries(text or ""):
        yield from _expanded(entry)
    for each in lists:
        yield from texts_of(each)


def _entries(text: str) -> Iterator[str]:
    """Yield the entries between commas and line ends that are not in braces."""
    without = re.sub(r"#.*", "", text)
    for found in re.finditer(r"(?:\{[^}]*\}|[^,\s{}])+", without):
        yield found[0]


def _expanded(entry: str) -> Iterator[str]:
    """Yield the names that braces stand for: `py{310,311}-{a,b}`, `3.1{0-5}`."""
    parts = re.split(r"\{([^}]*)\}", entry)
    choices = [
        [text] if number % 2 == 0 else [each for one in text.split(",") for each in _range(one)]
        for number, text in enumerate(parts)
    ]
    for each in itertools.product(*choices):
        yield "".join(each)


def _range(text: str) -> list[str]:
    found = re.fullmatch(r"\s*(\d+)-(\d+)\s*", text)
    if not found:
        return [text.strip()]
    return [str(number) for number in range(int(found[1]), int(found[2]) + 1)]
