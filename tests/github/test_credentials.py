"""The token comes from the environment or a file, and is one."""

from pathlib import Path

import pytest
from pydantic import SecretStr

from mulligan.config.operator import GitHubSettings
from mulligan.domain.errors import MisconfiguredError
from mulligan.github.credentials import TokenCredentials


def test_one_token_serves_git_and_the_api() -> None:
    credentials = TokenCredentials(GitHubSettings(token=SecretStr(" t0ken\n")))
    assert credentials.git_token("octo/calc") == "t0ken"
    assert credentials.api_token(None) == "t0ken"


def test_no_token_is_none() -> None:
    assert TokenCredentials(GitHubSettings()).git_token("octo/calc") is None
    assert TokenCredentials(GitHubSettings(token=SecretStr(""))).api_token(None) is None


def test_a_token_file_is_read_each_time(tmp_path: Path) -> None:
    file = tmp_path / "token"
    credentials = TokenCredentials(GitHubSettings(token_file=file))
    file.write_text("first\n")
    assert credentials.api_token(None) == "first"
    file.write_text("second\n")
    assert credentials.api_token(None) == "second"


def test_a_token_file_that_is_gone_is_named(tmp_path: Path) -> None:
    credentials = TokenCredentials(GitHubSettings(token_file=tmp_path / "token"))
    with pytest.raises(MisconfiguredError, match=r"fix github\.token_file"):
        credentials.api_token(None)


@pytest.mark.parametrize("token", ["two\nlines", "a space", "pässword"])
def test_what_cannot_be_a_token_is_not_sent(token: str) -> None:
    with pytest.raises(MisconfiguredError, match=r"fix github\.token"):
        TokenCredentials(GitHubSettings(token=SecretStr(token))).api_token(None)
