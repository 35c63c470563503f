"""What the simulated GitHub answers, one module for each kind of resource."""

from mulligan.simulator.call import Handler
from mulligan.simulator.routes import (
    accounts,
    apps,
    comments,
    commits,
    events,
    graphql,
    issues,
    labels,
    manifests,
    pages,
    pulls,
    reviews,
    runs,
)

ROUTES: tuple[tuple[str, str, Handler], ...] = (
    *accounts.ROUTES,
    *apps.ROUTES,
    *manifests.ROUTES,
    *comments.ROUTES,
    *events.ROUTES,
    *labels.ROUTES,
    *issues.ROUTES,
    *pulls.ROUTES,
    *reviews.ROUTES,
    *runs.ROUTES,
    *commits.ROUTES,
    *graphql.ROUTES,
    *pages.ROUTES,
)
"""Method, path and handler; of two that match, the first is taken."""
