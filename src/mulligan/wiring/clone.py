"""Look at a clone on this machine, and at the labels of its repository, to propose a start."""

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from mulligan.config.operator import Operator
from mulligan.config.policy import Labels
from mulligan.errors import UsageError
from mulligan.github.labels import looks
from mulligan.starter.files import KINDS
from mulligan.starter.origin import Origin, origin_of
from mulligan.starter.tree import READ, Tree, fits
from mulligan.wiring.bench import HASTE, open_github
from mulligan.wiring.redaction import redactor_of

DEEPEST = 3
MOST_FILES = 20_000
MOST_BYTES = 256 * 1024
PASSED_OVER = frozenset(
    {".git", ".venv", "venv", "node_modules", "target", "build", "dist", "vendor"}
)


def read_tree(directory: Path) -> Tree:
    """Read the names of a repository's files, and the text of those that say how it is checked."""
    paths = [path for path, _ in zip(_paths(directory, 1), range(MOST_FILES), strict=False)]
    names = {path.relative_to(directory).as_posix(): path for path in paths}
    texts = {
        name: text
        for name, path in names.items()
        if any(fits(name, pattern) for pattern in READ) and (text := _text(path))
    }
    return Tree(frozenset(names), texts)


def git_config(directory: Path) -> str:
    """Give the text of a clone's git configuration; UsageError where it is no clone."""
    place = directory / ".git"
    if not place.exists():
        message = f"{directory} is not the top of a git repository; name the directory of a clone."
        raise UsageError(message)
    return _text(place / "config")


def origin_in(directory: Path) -> Origin | None:
    """Read which repository a clone is of; None where it does not say."""
    return origin_of(git_config(directory))


def agent_here(environment: Mapping[str, str]) -> str | None:
    """Name the first coding agent that is installed here."""
    path = environment.get("PATH", os.defpath)
    return next((kind for kind in KINDS if shutil.which(kind, path=path)), None)


def missing_labels(
    operator: Operator, environment: Mapping[str, str], repository: str, labels: Labels
) -> tuple[str, ...]:
    """List which of Mulligan's labels a repository does not have."""
    with open_github(operator, redactor_of(operator, environment), HASTE) as github:
        there = {name.casefold() for name in github.tracker.label_names(repository)}
    return tuple(look.name for look in looks(labels) if look.name.casefold() not in there)


def create_labels(
    operator: Operator, environment: Mapping[str, str], repository: str, labels: Labels
) -> None:
    """Create Mulligan's labels where a repository does not have them, with colour and meaning."""
    with open_github(operator, redactor_of(operator, environment), HASTE) as github:
        there = {name.casefold() for name in github.tracker.label_names(repository)}
        for look in looks(labels):
            if look.name.casefold() not in there:
                github.tracker.create_label(repository, look)


def _paths(directory: Path, depth: int) -> Iterator[Path]:
    """List the files of a directory and of those below it; links are not followed."""
    for entry in sorted(os.scandir(directory), key=lambda each: each.name):
        if entry.is_file(follow_symlinks=False):
            yield Path(entry.path)
        elif depth < DEEPEST and entry.is_dir(follow_symlinks=False) and _counts(entry.name):
            yield from _paths(Path(entry.path), depth + 1)


def _counts(directory: str) -> bool:
    return directory not in PASSED_OVER


def _text(path: Path) -> str:
    try:
        with path.open("rb") as opened:
            return opened.read(MOST_BYTES).decode(errors="replace")
    except OSError:
        return ""
