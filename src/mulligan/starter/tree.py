"""What is known of a repository when a configuration is proposed for it. Pure."""

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

import yaml
from pydantic import JsonValue, TypeAdapter, ValidationError

READ = (
    *("*.toml", "*.cfg", "*.ini", "*.txt", "package.json", "composer.json", "noxfile.py"),
    *("Makefile", "makefile", "GNUmakefile", "Rakefile", "Gemfile", "CMakeLists.txt"),
    *(
        "build.gradle",
        "build.gradle.kts",
        "pom.xml",
        "go.mod",
        "meson.build",
        ".pre-commit-config.y*ml",
    ),
    *(".github/workflows/*.yml", ".github/workflows/*.yaml", ".gitlab-ci.yml"),
    *("requirements/*.txt", "tests/requirements.txt", "test_*.py", "tests/*.py", "test/*.py"),
)
"""Patterns of the files whose text is looked at; the names of all others are enough."""

MAPPING: TypeAdapter[dict[str, JsonValue]] = TypeAdapter(dict[str, JsonValue])
SIMPLE = re.compile(r"[^$&|;<>`\\\n]+")
"""A shell line that does one thing, with nothing of the CI's own in it."""


@dataclass(frozen=True, slots=True)
class Tree:
    """The paths of a repository's files, down to a few levels, and the text of small ones."""

    paths: frozenset[str]
    texts: Mapping[str, str] = field(default_factory=dict[str, str])

    def has(self, *patterns: str) -> bool:
        """Tell whether a file has one of these names; `*` stands for anything but no slash."""
        return any(fits(path, pattern) for pattern in patterns for path in self.paths)

    def first(self, *names: str) -> str | None:
        """Name the first of these files that is there."""
        return next((name for name in names if name in self.paths), None)

    def text(self, name: str) -> str:
        """Give the text of a file; nothing where there is none."""
        return self.texts.get(name, "")

    def mapping(self, name: str) -> dict[str, JsonValue]:
        """Read a JSON or TOML file; nothing where it is none."""
        try:
            found: object = (
                tomllib.loads(self.text(name))
                if name.endswith(".toml")
                else json.loads(self.text(name) or "{}")
            )
            return MAPPING.validate_python(found)
        except (ValueError, ValidationError, RecursionError):
            return {}

    def says(self, pattern: str, *names: str) -> bool:
        """Tell whether a regular expression is found in one of the files that `names` fit."""
        texts = (text for path, text in self.texts.items() if any(fits(path, n) for n in names))
        return any(re.search(pattern, text, re.MULTILINE) for text in texts)

    def in_ci(self, pattern: str) -> str | None:
        """Give the first simple line of the repository's CI that is such a command, whole."""
        wanted = re.compile(pattern)
        return next((line for line in self._ci_lines() if wanted.fullmatch(line)), None)

    def _ci_lines(self) -> list[str]:
        texts = (self.texts[path] for path in sorted(self.texts) if path.startswith(".github/work"))
        lines = [line.strip() for text in texts for run in _runs(text) for line in run.splitlines()]
        return [line for line in lines if SIMPLE.fullmatch(line)]


def part(value: JsonValue, *keys: str) -> JsonValue:
    """Go down into a mapping; None where there is no such key."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def keys_of(value: JsonValue) -> list[str]:
    """List the keys of a mapping, in order; none where it is none."""
    return list(value) if isinstance(value, dict) else []


def texts_of(value: JsonValue) -> list[str]:
    """List the texts of a list; none where it is none."""
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def fits(path: str, pattern: str) -> bool:
    """Tell whether a path has the form of a pattern, where `*` is anything but a slash."""
    return path.count("/") == pattern.count("/") and fnmatchcase(path, pattern)


def _as_written(text: str) -> object:
    """Read YAML with every scalar as text, since `on` is a key here and no truth."""
    return yaml.load(text, yaml.BaseLoader)  # noqa: S506 - makes texts, lists and mappings only


def _runs(workflow: str) -> list[str]:
    """List what the steps of a GitHub workflow run."""
    try:
        jobs = part(MAPPING.validate_python(_as_written(workflow)), "jobs")
    except (yaml.YAMLError, ValidationError, RecursionError):
        return []
    steps = [part(job, "steps") for job in jobs.values()] if isinstance(jobs, dict) else []
    found = [part(step, "run") for each in steps if isinstance(each, list) for step in each]
    return [run for run in found if isinstance(run, str)]
