"""The files of a repository from which `mulligan init` makes its proposal. Pure."""

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from pydantic import JsonValue, TypeAdapter

FILES_TO_READ = (
    *(
        "*.toml",
        ".*.toml",
        "*.cfg",
        "*.ini",
        "*.txt",
        "package.json",
        "composer.json",
        "noxfile.py",
    ),
    *("Makefile", "makefile", "GNUmakefile", "Rakefile", "Gemfile", "CMakeLists.txt"),
    *(
        "build.gradle",
        "build.gradle.kts",
        "pom.xml",
        "go.mod",
        "meson.build",
        ".pre-commit-config.y*ml",
    ),
    *(".github/workflows/*.yml", ".github/workflows/*.yaml", "action.yml", "action.yaml"),
    *(".devcontainer/devcontainer.json", ".devcontainer.json"),
    *(".gitmodules", ".gitattributes", "*/.gitattributes", "*/*/.gitattributes"),
    *(".github/*/action.yml", ".github/actions/*/action.yml", ".github/actions/*/action.yaml"),
    *("requirements/*.txt", "tests/requirements.txt", "test_*.py", "tests/*.py", "test/*.py"),
)
"""Patterns of the files to read; of all others only the names are used."""


@dataclass(frozen=True, slots=True)
class RepositoryFiles:
    """The paths of a repository's files, down to a few levels, and the text of small ones."""

    paths: frozenset[str]
    texts: Mapping[str, str] = field(default_factory=dict[str, str])

    def has(self, *patterns: str) -> bool:
        """Return whether a file matches one of these patterns; `*` matches anything but a slash."""
        return any(matches_pattern(path, pattern) for pattern in patterns for path in self.paths)

    def first(self, *names: str) -> str | None:
        """Return the first of these files that exists."""
        return next((name for name in names if name in self.paths), None)

    def text(self, name: str) -> str:
        """Return the text of a file; empty if there is none."""
        return self.texts.get(name, "")

    def mapping(self, name: str) -> dict[str, JsonValue]:
        """Parse a JSON or TOML file; empty if it is missing or invalid."""
        try:
            found: object = (
                tomllib.loads(self.text(name))
                if name.endswith(".toml")
                else json.loads(self.text(name) or "{}")
            )
            return MAPPING.validate_python(found)
        except (ValueError, RecursionError):
            return {}

    def says(self, pattern: str, *names: str) -> bool:
        """Return whether a regular expression occurs in one of the files that match `names`."""
        texts = (
            text
            for path, text in self.texts.items()
            if any(matches_pattern(path, n) for n in names)
        )
        return any(re.search(pattern, text, re.MULTILINE) for text in texts)


def matches_pattern(path: str, pattern: str) -> bool:
    """Return whether a path matches a pattern, where `*` matches anything but a slash."""
    return path.count("/") == pattern.count("/") and fnmatchcase(path, pattern)


MAPPING: TypeAdapter[dict[str, JsonValue]] = TypeAdapter(dict[str, JsonValue])


def part(value: JsonValue, *keys: str) -> JsonValue:
    """Return the value at a path of keys; None if a key is missing."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def mapping_of(value: JsonValue) -> dict[str, JsonValue]:
    """Return a mapping; empty for anything else."""
    return value if isinstance(value, dict) else {}


def keys_of(value: JsonValue) -> list[str]:
    """List the keys of a mapping, in order; empty for anything else."""
    return list(mapping_of(value))


def texts_of(value: JsonValue) -> list[str]:
    """List the texts in a list; empty for anything else."""
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


@dataclass(frozen=True, slots=True)
class Machine:
    """What is installed here: the versions of Python (`3.12`) and Node (`22`), and programs.

    A version is empty if the program is missing.
    """

    python: str = ""
    node: str = ""
    programs: frozenset[str] = frozenset()
