"""Whom Mulligan acts as, whatever kind of token it was given: the one place that finds out."""

from collections.abc import Callable

from mulligan.github.answers import ForbiddenError, NotFoundError
from mulligan.github.client import Client
from mulligan.github.queries import VIEWER, VIEWER_QUERY
from mulligan.github.shapes import ACCOUNT

ACTIONS_LOGIN = "github-actions[bot]"
"""Whom GITHUB_TOKEN acts as."""


class Identity:
    """Asks once. A person's token tells its login by REST; an app's may not ask there (403)."""

    def __init__(self, client: Client, known: Callable[[], str | None] | None = None) -> None:
        """Ask `known` first, which may tell without GitHub's help whose token it is."""
        self._client = client
        self._known = known
        self._login: str | None = None

    def login(self) -> str:
        """Give the login that Mulligan's comments bear; `slug[bot]` for an app."""
        if self._login is None:
            self._login = (self._known() if self._known else None) or self._ask()
        return self._login

    def _ask(self) -> str:
        try:
            return self._client.read(ACCOUNT, "/user").login
        except ForbiddenError:
            return self._of_an_app()

    def _of_an_app(self) -> str:
        try:
            answer = self._client.query(VIEWER, VIEWER_QUERY, {})
        except (ForbiddenError, NotFoundError):
            return ACTIONS_LOGIN
        return answer.data.viewer.account.login
