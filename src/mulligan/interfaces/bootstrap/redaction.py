"""Build the redactor that removes the configuration's secrets from every text."""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from mulligan.agents.environment import secrets_given
from mulligan.agents.invocation import adapter_of
from mulligan.config.operator import Operator
from mulligan.config.secrets import secrets_of
from mulligan.domain.errors import ConfigError
from mulligan.sandbox.bubblewrap import WORKTREE
from mulligan.text.redact import Redactor


def redactor_of(operator: Operator, environment: Mapping[str, str]) -> Redactor:
    """Build the redactor; an unreadable file is reported where its secret is needed."""
    values, github = secrets_of(operator, environment), operator.github
    with suppress(ConfigError):
        adapter = adapter_of(operator.agent, operator.adapters)
        values = (*values, *secrets_given(adapter, environment))
    for place in filter(None, (github.token_file, github.webhook_secret_file)):
        with suppress(OSError, UnicodeError):
            values = (*values, place.read_text(encoding="utf-8").strip())
    return Redactor(values)


def without_machine_paths(redactor: Redactor, root: Path, state: Path | None) -> Redactor:
    """Make paths relative to the worktree, or to $WORKSPACE (`root`) or $STATE (`state`)."""
    places = [pair for each in {root, root.resolve()} for pair in _worktree_places(each)]
    named = ((root, "$WORKSPACE"), (root.resolve(), "$WORKSPACE"), (state, "$STATE"))
    places += [(_place(path), name) for path, name in named if path]
    return replace(redactor, places=tuple(places))


def _worktree_places(root: Path) -> Iterator[tuple[re.Pattern[str], str]]:
    """Find the worktree of any issue, outside (git/worktrees/naming.py) and in a sandbox."""
    trees = rf"{re.escape(str(root))}(?:/[\w.-]+){{2}}/issue-\d+|{WORKTREE}"
    tree = rf"(?<![\w./-])(?:file://)?(?:{trees})"
    yield re.compile(f"{tree}/"), ""
    yield re.compile(rf"{tree}(?![\w-]|\.\w)"), "."


def _place(path: Path) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w./-])(?:file://)?{re.escape(str(path))}(?![\w-]|\.\w)")
