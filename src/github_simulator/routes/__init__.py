"""Routes of the simulated GitHub, one module for each kind of resource."""

from github_simulator import pages
from github_simulator.request import Handler
from github_simulator.routes import accounts, commits, graphql, issues, pulls

ROUTES: tuple[tuple[str, str, Handler], ...] = (
    *accounts.ROUTES,
    *issues.ROUTES,
    *pulls.ROUTES,
    *commits.ROUTES,
    *graphql.ROUTES,
    *pages.ROUTES,
)
"""Method, path and handler; the first match counts."""
