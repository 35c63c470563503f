"""The token that Mulligan has for GitHub, as the configuration names it."""

import re

from mulligan.config.github import GitHubSettings
from mulligan.errors import MisconfiguredError
from mulligan.github.tokens import Note, notes_on


class TokenCredentials:
    """The port Credentials over one token; a token file is read each time, so it may change."""

    def __init__(self, settings: GitHubSettings) -> None:
        self._settings = settings

    def git_token(self, repository: str) -> str | None:
        """Give the token for git; one token serves every repository."""
        return self.api_token(repository)

    def api_token(self, repository: str | None) -> str | None:
        """Give the token for the API, None for none; MisconfiguredError where it is no token."""
        del repository
        token = self._read().strip()
        if not re.fullmatch(r"[!-~]*", token):
            message = "The token has characters that no token has; mend github.token."
            raise MisconfiguredError(message)
        return token or None

    def close(self) -> None:
        """Close nothing: no connection is held."""

    def login(self) -> str | None:
        """Leave it to GitHub to say whose token it is."""
        return None

    def notes(self) -> tuple[Note, ...]:
        """Say what is good to know about a token of this kind."""
        return notes_on(self.api_token(None))

    def _read(self) -> str:
        settings = self._settings
        if settings.token:
            return settings.token.get_secret_value()
        if settings.token_file is None:
            return ""
        try:
            return settings.token_file.read_text(encoding="utf-8")
        except (OSError, UnicodeError) as error:
            message = f"{settings.token_file} cannot be read; mend github.token_file."
            raise MisconfiguredError(message) from error
