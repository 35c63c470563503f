"""Find out which repository and commit this installation of Mulligan is of."""

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import mulligan
from mulligan.errors import MulliganError
from mulligan.git.repository import Repository
from mulligan.starter.source import Source, recorded, source_at
from mulligan.wiring.bench import Environment
from mulligan.wiring.clone import origin_in

HERE = Path(mulligan.__file__).parents[2]
"""The checkout, where it runs from one."""


def installed_from(environment: Environment, checkout: Path = HERE) -> Source | None:
    """Say where it came from, as its installer noted, or as its checkout shows; None if neither."""
    return recorded(_noted()) or _checked_out(environment, checkout)


def _noted() -> str | None:
    try:
        return distribution("mulligan").read_text("direct_url.json")
    except PackageNotFoundError:
        return None


def _checked_out(environment: Environment, checkout: Path) -> Source | None:
    """Name the commit that is checked out, if it is known to be on its remote as well."""
    if not (checkout / ".git").is_dir():
        return None
    git = Repository("Mulligan's checkout", checkout / ".git", environment)
    try:
        commit = git.line("rev-parse", "--verify", "HEAD")
        if not git.line("for-each-ref", "--count=1", "--contains", commit, "refs/remotes"):
            return None
    except MulliganError:
        return None
    return source_at(origin_in(checkout), commit)
