"""GitHub token: where it comes from, its kind, and the account it belongs to."""

import re
from collections.abc import Callable

from mulligan.config.operator import GitHubSettings
from mulligan.domain.errors import ForbiddenError, MisconfiguredError
from mulligan.github.answers import NotFoundError
from mulligan.github.client import Client
from mulligan.github.graphql import VIEWER, VIEWER_QUERY
from mulligan.github.shapes import ACCOUNT

Note = tuple[str, str]
"""A note on the token, and what to do about it."""

ACTIONS_LOGIN = "github-actions[bot]"
"""The login of GITHUB_TOKEN in a workflow."""

CLASSIC = (
    "The token is a classic one: it has all rights of its account, in every repository.",
    (
        "A fine-grained token, or an App (github.app), can be kept to the repositories that are "
        "served; a classic one needs the scope repo."
    ),
)

FINE_GRAINED = (
    "The token is fine-grained, and GitHub does not tell what it may do.",
    (
        "It needs read and write access to Contents, Issues and Pull requests of each repository, "
        "and read access to Checks, Commit statuses and Actions where watch_ci is on."
    ),
)

INSTALLATION = (
    (
        "The token is that of a workflow run (GITHUB_TOKEN) or of an App's installation: it ends "
        "with the job, or after an hour."
    ),
    (
        "Let a long-lived worker act as an App itself (github.app). Pull requests that "
        "GITHUB_TOKEN opens start no workflows, and GitHub stops schedules after 60 days without "
        "activity in the repository."
    ),
)

USER_TO_SERVER = (
    "The token is one that an application was given for a person, which may end within hours.",
    "Use a fine-grained token, or an App (github.app).",
)

TOKEN_NOTES = {
    "ghp_": CLASSIC,
    "github_pat_": FINE_GRAINED,
    "ghs_": INSTALLATION,
    "gho_": USER_TO_SERVER,
    "ghu_": USER_TO_SERVER,
}


class TokenCredentials:
    """Implements Credentials for one token; reads a token file each time, so that it may change."""

    def __init__(self, settings: GitHubSettings) -> None:
        self._settings = settings

    def git_token(self, repository: str) -> str | None:
        """One token serves every repository."""
        return self.api_token(repository)

    def api_token(self, repository: str | None) -> str | None:
        """Return the token for the API, or None; MisconfiguredError if the value is no token."""
        del repository
        token = self._read().strip()
        if not re.fullmatch(r"[!-~]*", token):
            raise MisconfiguredError("The token contains invalid characters; fix github.token.")
        return token or None

    def close(self) -> None:
        """Do nothing: there is no connection to close."""

    def login(self) -> str | None:
        """Return None: GitHub reports whose token it is."""
        return None

    def notes(self) -> tuple[Note, ...]:
        """Return the notes on a token of this kind."""
        return token_notes(self.api_token(None))

    def _read(self) -> str:
        settings = self._settings
        if settings.token:
            return settings.token.get_secret_value()
        if settings.token_file is None:
            return ""
        try:
            return settings.token_file.read_text(encoding="utf-8")
        except (OSError, UnicodeError) as error:
            raise MisconfiguredError(
                f"{settings.token_file} could not be read; fix github.token_file."
            ) from error


class Identity:
    """Mulligan's login, read once: by REST for a user's token, by GraphQL for an App's (403)."""

    def __init__(self, client: Client, known: Callable[[], str | None] | None = None) -> None:
        """Call `known` first: it may return the login without a request."""
        self._client = client
        self._known = known
        self._login: str | None = None

    def login(self) -> str:
        """Return the login of Mulligan's comments; `slug[bot]` for an App."""
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


def token_notes(token: str | None) -> tuple[Note, ...]:
    """Return the notes on a token by its prefix; none for an unknown prefix."""
    return tuple(note for start, note in TOKEN_NOTES.items() if (token or "").startswith(start))
