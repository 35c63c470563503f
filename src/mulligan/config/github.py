"""The key `github` of `mulligan.yml`: where GitHub is, and who Mulligan is there."""

from pydantic import Field, SecretStr, ValidationInfo, field_validator

from mulligan.config.settings import LocalPath, Settings


class AppSettings(Settings):
    """A GitHub App that Mulligan acts as, with either of the two keys."""

    id: int | str
    """Its App ID or client ID."""
    private_key_file: LocalPath | None = None
    """The file that holds its private key, as GitHub gave it."""
    private_key: SecretStr | None = Field(default=None, validate_default=True)
    """The key itself, given as $NAME (an environment variable)."""

    @field_validator("private_key")
    @classmethod
    def _one_key(cls, key: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        if (key is None) is (info.data.get("private_key_file") is None):
            message = "name either the file of the app's private key or the key itself as $NAME"
            raise ValueError(message)
        return key


class GitHubSettings(Settings):
    """Where GitHub is, and who Mulligan is there."""

    api_url: str = "https://api.github.com"
    """The REST API's address; GitHub Enterprise: https://HOST/api/v3."""
    token: SecretStr | None = None
    """A token, given as $NAME (an environment variable); never written here."""
    token_file: LocalPath | None = None
    """A file that holds the token, instead."""
    app: AppSettings | None = Field(default=None, validate_default=True)
    """A GitHub App to act as, instead of a token; it is installed on each repository."""
    ca_file: LocalPath | None = None
    """The certificates to trust, in PEM form, where GitHub Enterprise has its own authority."""

    @field_validator("app")
    @classmethod
    def _one_of_them(cls, app: AppSettings | None, info: ValidationInfo) -> AppSettings | None:
        others = (app, info.data.get("token"), info.data.get("token_file"))
        if sum(each is not None for each in others) > 1:
            message = "name one of token, token_file and app"
            raise ValueError(message)
        return app
