"""Routes of the simulated GitHub, one module for each kind of resource."""

from github_simulator.request import Handler
from github_simulator.routes import (
    accounts,
    commits,
    git_http,
    graphql,
    issues,
    pulls,
    rules,
    uploads,
)

ROUTES: tuple[tuple[str, str, Handler], ...] = (
    *accounts.ROUTES,
    *issues.ROUTES,
    *pulls.ROUTES,
    *commits.ROUTES,
    *rules.ROUTES,
    *graphql.ROUTES,
    *uploads.ROUTES,
    *git_http.ROUTES,
)
"""Method, path and handler of the API; the first match counts."""
