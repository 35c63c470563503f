"""Which files the setup commands depend on: their inputs (SETUP-2). Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import translate

from mulligan.domain.errors import UnavailableError
from mulligan.domain.globs import globs
from mulligan.domain.result import CheckResult


class SetUpError(UnavailableError):
    """A setup command failed before the agent started; `failed` has the end of its output."""

    def __init__(self, message: str, failed: CheckResult) -> None:
        super().__init__(message)
        self.failed = failed


KNOWN_INPUTS = (
    # Python
    *("pyproject.toml", "setup.py", "setup.cfg", "Pipfile", "Pipfile.lock", "poetry.lock"),
    *("uv.lock", "pdm.lock", "pylock*.toml", "environment.yml", "environment.yaml"),
    *("*requirements*.txt", "*requirements*.in", "*constraints*.txt", ".python-version"),
    # JavaScript
    *("package.json", "package-lock.json", "npm-shrinkwrap.json", ".npmrc", "yarn.lock"),
    *(".yarnrc", ".yarnrc.yml", "pnpm-lock.yaml", "pnpm-workspace.yaml", "bun.lock", "bun.lockb"),
    *("deno.json", "deno.jsonc", "deno.lock", ".nvmrc", ".node-version"),
    # Rust, Go
    *("Cargo.toml", "Cargo.lock", "rust-toolchain", "rust-toolchain.toml"),
    *("go.mod", "go.sum", "go.work", "go.work.sum"),
    # Java and its relatives
    *("pom.xml", "build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"),
    *("gradle.properties", "gradle.lockfile", "gradle-wrapper.properties", "libs.versions.toml"),
    *("build.sbt", "deps.edn", "project.clj"),
    # Ruby, PHP, .NET, Elixir, Swift, Dart
    *("Gemfile", "Gemfile.lock", "*.gemspec", ".ruby-version", "composer.json", "composer.lock"),
    *("*.csproj", "*.fsproj", "packages.lock.json", "Directory.Packages.props", "global.json"),
    *("nuget.config", "mix.exs", "mix.lock", "Package.swift", "Package.resolved"),
    *("pubspec.yaml", "pubspec.lock"),
    # Any
    *(".tool-versions", "mise.toml", ".mise.toml", "flake.nix", "flake.lock", "shell.nix"),
)
"""Names of manifests and lock files, in any directory."""

READ_BY = {
    "make": ("Makefile", "makefile", "GNUmakefile"),
    "just": ("justfile", "Justfile", ".justfile"),
    "task": ("Taskfile.yml", "Taskfile.yaml"),
    "tox": ("tox.ini",),
}
"""Files that a program reads without an argument."""

_KNOWN = re.compile("|".join(map(translate, KNOWN_INPUTS)))

WORD = re.compile(r"[\w./+@-]+")


def select_inputs(
    paths: Iterable[str], lines: Sequence[str], patterns: Sequence[str]
) -> frozenset[str]:
    """Choose the inputs of setup commands among the paths of a tree.

    These are the paths that `patterns` match, written as in .gitignore. Without patterns, they are
    the known manifests and lock files, and the files that a command names.
    """
    if patterns:
        return globs(tuple(patterns)).select(paths)
    found = frozenset(paths)
    return named_files(found, lines) | frozenset(filter(is_manifest, found))


def named_files(paths: Iterable[str], lines: Sequence[str]) -> frozenset[str]:
    """Choose the paths that a command names, or that its program reads without an argument."""
    words = {word for line in lines for word in WORD.findall(line)}
    named = {word.removeprefix("./") for word in words}.union(
        *(READ_BY[word] for word in words & READ_BY.keys())
    )
    return frozenset(named.intersection(paths))


def is_manifest(path: str) -> bool:
    """Return whether a path has the name of a manifest or lock file."""
    return _KNOWN.fullmatch(path.rpartition("/")[2]) is not None


def key_inputs(
    blobs: Mapping[str, str], lines: Sequence[str], patterns: Sequence[str]
) -> Mapping[str, str]:
    """Return the inputs with their contents; the whole tree if there are none (SETUP-2).

    `blobs` names the content of each path of the tree.
    """
    found = select_inputs(blobs, lines, patterns)
    return {path: blobs[path] for path in sorted(found or blobs)}
