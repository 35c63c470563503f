"""What looks like a secret is the same wherever it is looked for."""

import pytest

from mulligan.checks.guards.secrets import refused_kinds
from mulligan.text.redact import Redactor
from mulligan.text.secret_shapes import is_secret, passwords_in
from world.tokens import KEY, OF_SERVICES, TOKENS, letters

pytestmark = pytest.mark.pure


@pytest.mark.parametrize("token", TOKENS, ids=lambda token: token[:12])
def test_a_token_is_known_by_its_shape(token: str) -> None:
    for text in (f"a {token} b", f"key={token}", f'{{"key": "{token}"}}', f"x\n{token}\ny"):
        assert Redactor().text(text) == text.replace(token, "[redacted]")


def test_a_token_has_three_parts_whatever_follows() -> None:
    part = f"eyJ{letters(30)}"
    shown = Redactor().text(f"{part}.{part}.{part}.{letters(43)}")
    assert shown == f"[redacted].{letters(43)}"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://ada:pass@host/x", "https://ada:[redacted]@host/x"),
        ("postgresql://m:p%40ss@db:5432/m", "postgresql://m:[redacted]@db:5432/m"),
        ("Authorization: Bearer abc.def-ghi", "Authorization: Bearer [redacted]"),
        ('"authorization": "token 0123456789"', '"authorization": "token [redacted]"'),
        (
            f"AWS_SECRET_ACCESS_KEY={letters(40)} x",
            "AWS_SECRET_ACCESS_KEY=[redacted] x",
        ),
        ("hooks.slack.com/services/T0/B0/" + letters(24), "hooks.slack.com/services/[redacted]"),
        (f"+{KEY}".replace("\n", "\n+"), "+[redacted]"),
    ],
)
def test_of_an_address_or_a_header_only_the_secret_goes(text: str, shown: str) -> None:
    assert Redactor().text(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "a task-list of ask-me-anything-about-risk-and-tasks",
        "sk-fading-circle-of-many-small-words",
        "commit 0123456789abcdef0123456789abcdef01234567",
        "http://localhost:4901/path and git@github.com:a/b.git",
        "from a import sha256 as npm_install; AKIA; eyJ; xox; ghp_short",
        "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----",
        "Authorization: none",
        f"a-file-with-a-long-name.eyJ{letters(20)}.{letters(20)}",
        "",
    ],
)
def test_what_only_looks_a_little_like_it_stays(text: str) -> None:
    assert Redactor().text(text) == text


@pytest.mark.parametrize(("token", "kind"), OF_SERVICES.items(), ids=lambda text: text[:12])
def test_a_token_that_is_removed_from_text_is_refused_in_a_change(token: str, kind: str) -> None:
    for line in (f'key = "{token}"', token, f"A={token} # x"):
        assert set(refused_kinds(line)) == {kind}


REFUSED_ONLY = {
    f"aws_password = '{letters(40)}'": "AWS key",
    "A3TXIOSFODNN7EXAMPLE": "AWS key",
    "https://hooks.slack.com/services/T01/B02/aB3dE5gH7j": "Slack token",
}


@pytest.mark.parametrize(("line", "kind"), REFUSED_ONLY.items(), ids=lambda text: text[:12])
def test_a_secret_by_its_place_is_refused(line: str, kind: str) -> None:
    assert set(refused_kinds(line)) == {kind}


@pytest.mark.parametrize(
    "line",
    [
        f"ghp_{letters(20)}",
        f"sk-{letters(48)}",
        "sk-learn-2 and sk-ant-nothing",
        "pypi-server-of-a-company-with-a-long-name",
        "npm_config_registry",
        "xoxb-no-digits-here",
    ],
)
def test_a_token_that_is_too_short_to_be_real_is_not_refused(line: str) -> None:
    assert set(refused_kinds(line)) == set()


@pytest.mark.parametrize(
    ("address", "found"),
    [
        ("https://ada:p%40ss@host/x", {"p%40ss", "p@ss"}),
        ("postgresql://db/m?password=abc&sslmode=require", {"abc"}),
        ("https://ada@host/x", set[str]()),
        ("git@github.com:a/b.git", set[str]()),
        ("http://[::1", set[str]()),
    ],
)
def test_the_password_of_an_address_is_found(address: str, found: set[str]) -> None:
    assert passwords_in(address) == found


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("ANTHROPIC_API_KEY", "x", True),
        ("github_token", "x", True),
        ("DB_PASSWORD", "x", True),
        ("DATABASE_DSN", "x", True),
        ("ENDPOINT", "a1B2c3D4e5F6g7H8i9J0k1L2", True),
        ("PASSES", "3", False),
        ("NODE_ENV", "production", False),
        ("ANTHROPIC_MODEL", "claude-of-the-fourth-20250929", False),
        ("GIT_AUTHOR_NAME", "Ada Lovelace", False),
        ("HOME_OF_IT", "/srv/a1B2c3D4e5F6g7H8i9J0k1L2/b", False),
        ("WORDS", "a long value that somebody has thought up 1", False),
    ],
)
def test_a_secret_is_told_from_a_setting(name: str, value: str, secret: bool) -> None:  # noqa: FBT001 - a column of the table
    assert is_secret(name, value) is secret
