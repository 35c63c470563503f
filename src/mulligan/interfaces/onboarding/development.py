"""What the manifest of a Python project lists for its development, as arguments of pip. Pure."""

import re
from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from mulligan.interfaces.onboarding.tree import part, texts_of

GROUPS = ("test", "tests", "testing", "dev", "lint", "typing")


def requirements(settings: Mapping[str, JsonValue]) -> Iterator[str]:
    """Yield those of the usual groups of a pyproject.toml: standard, PDM's, uv's and Poetry's."""
    whole = dict(settings)
    standard = part(whole, "dependency-groups")
    for name in GROUPS:
        yield from _of_group(standard, name, frozenset())
        yield from texts_of(part(whole, "tool", "pdm", "dev-dependencies", name))
    yield from texts_of(part(whole, "tool", "uv", "dev-dependencies"))
    poetry = part(whole, "tool", "poetry")
    yield from _of_poetry(part(poetry, "dev-dependencies"))
    for name in GROUPS:
        yield from _of_poetry(part(poetry, "group", name, "dependencies"))


def _of_group(groups: JsonValue, name: str, outer: frozenset[str]) -> Iterator[str]:
    """Yield the requirements of a group, and of those that it includes (PEP 735)."""
    entries = part(groups, name)
    for entry in entries if isinstance(entries, list) and name not in outer else []:
        if isinstance(entry, str):
            yield entry
        elif included := part(entry, "include-group"):
            yield from _of_group(groups, str(included), outer | {name})


def _of_poetry(dependencies: JsonValue) -> Iterator[str]:
    """Yield the dependencies that have a version; others have a path or an address."""
    for name, each in (dependencies if isinstance(dependencies, dict) else {}).items():
        versions = each if isinstance(each, str) else part(each, "version")
        if isinstance(versions, str) and name != "python":
            extras = ",".join(texts_of(part(each, "extras")))
            wanted = ",".join(filter(None, map(_specifier, versions.split(","))))
            markers = part(each, "markers")
            yield "".join(
                (
                    name,
                    f"[{extras}]" if extras else "",
                    wanted,
                    f"; {markers}" if isinstance(markers, str) else "",
                )
            )


def _specifier(version: str) -> str:
    """Return a constraint of Poetry as pip writes it; `^` and `~` keep the first numbers.

    https://python-poetry.org/docs/dependency-specification/
    """
    text = version.strip()
    found = re.fullmatch(r"(\^|~(?!=))?(\d+(?:\.\d+)*)", text)
    if found is None:
        return "" if text == "*" else re.sub(r"\s", "", text)
    sign, number = found.groups()
    parts = [int(each) for each in number.split(".")]
    match sign:
        case None:
            return f"=={number}"
        case "~":
            kept = min(len(parts), 2)
        case _:
            kept = next((at for at, each in enumerate(parts, 1) if each), len(parts))
    end = [*parts[: kept - 1], parts[kept - 1] + 1]
    return f">={number},<{'.'.join(map(str, end))}"
