"""Make: its targets, where they are called what everybody calls them. Pure."""

import re

from mulligan.starter.proposal import Proposal, lint, suite, types
from mulligan.starter.tree import Tree

FILES = ("GNUmakefile", "makefile", "Makefile")
TARGET = re.compile(r"^([A-Za-z][\w-]*)\s*:(?!=)", re.MULTILINE)
LINT, TYPES = ("lint",), ("typecheck", "types", "mypy")
INSTALL = ("deps", "setup", "bootstrap", "install-dev")


def propose(tree: Tree) -> Proposal | None:
    """Propose what the Makefile has of tests, lint and types."""
    file = tree.first(*FILES)
    targets = TARGET.findall(tree.text(file)) if file else []
    wanted = [*_tests(tree, targets), *_of(targets, LINT), *_of(targets, TYPES)]
    makers = {
        name: (lint if name in LINT else types if name in TYPES else suite) for name in wanted
    }
    checks = tuple(makers[name](f"make {name}", f"{file}") for name in wanted)
    setup = tuple(f"make {name}" for name in _of(targets, INSTALL))
    return Proposal("make", setup, checks) if checks else None


def is_used(tree: Tree) -> bool:
    """Tell whether the CI tests by make."""
    return tree.in_ci(r"make (?:-\S+ )*(?:test|check|tests)\b.*") is not None


def _tests(tree: Tree, targets: list[str]) -> list[str]:
    """Prefer the target that CI runs."""
    in_ci = [name for name in ("test", "tests", "check") if tree.in_ci(rf"make {name}")]
    return [name for name in in_ci if name in targets][:1] or _of(
        targets, ("test", "tests", "check")
    )


def _of(targets: list[str], names: tuple[str, ...]) -> list[str]:
    return [name for name in names if name in targets][:1]
