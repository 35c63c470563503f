"""The syntax of files, each read once for all tests of a process."""

import ast
from functools import cache
from pathlib import Path


@cache
def tree_of(file: Path) -> ast.Module:
    """Parse a file of the repository, which no test changes."""
    return ast.parse(file.read_text())
