"""A signed delivery has its repository polled; any other gets an answer, and nothing happens."""

import hmac
import json
from collections.abc import Generator
from hashlib import sha256
from pathlib import Path

import pytest

from mulligan.config.operator import GitHubSettings
from mulligan.domain.errors import ConfigError, UnavailableError
from mulligan.interfaces.dashboard.webhook import MAX_BYTES, Webhook, webhook_secret
from world.dashboards import Dashboard, HttpAnswer, serve_dashboard

SECRET = "it-is-a-secret-of-32-characters!"
LABELLED = json.dumps({"action": "labeled", "repository": {"full_name": "octo/one"}})


@pytest.fixture(scope="module")
def dashboard(tmp_path_factory: pytest.TempPathFactory) -> Generator[Dashboard]:
    with serve_dashboard(tmp_path_factory.mktemp("served"), webhook_secret=SECRET) as made:
        yield made


def signed(body: str, secret: str = SECRET) -> str:
    return f"sha256={hmac.new(secret.encode(), body.encode(), sha256).hexdigest()}"


def deliver(dashboard: Dashboard, body: str, signature: str) -> HttpAnswer:
    named = {"host": "mulligan.public.example", "x_hub_signature_256": signature}
    return dashboard.ask("/webhook", "POST", body, authorization="", **named)


def test_a_signed_delivery_has_its_repository_polled_and_a_replay_no_more(
    dashboard: Dashboard,
) -> None:
    dashboard.hinted.clear()
    for _ in range(2):
        assert deliver(dashboard, LABELLED, signed(LABELLED)).status == 202
    assert dashboard.hinted == ["octo/one", "octo/one"]


@pytest.mark.parametrize(
    ("body", "signature", "status"),
    [
        (LABELLED, "", 401),
        (LABELLED, "sha256=", 401),
        (LABELLED, f"sha256={'é' * 64}", 401),
        (LABELLED, signed(LABELLED).upper(), 401),
        (LABELLED, signed(LABELLED, "another secret of some length"), 401),
        (LABELLED, signed(LABELLED, ""), 401),
        (LABELLED + " ", signed(LABELLED), 401),
        (" " * (MAX_BYTES + 1), signed(" " * (MAX_BYTES + 1)), 413),
        ("payload=%7B%7D", signed("payload=%7B%7D"), 415),
        ("[" * 100_000, signed("[" * 100_000), 415),
        ('{"repository": "octo/one"}', signed('{"repository": "octo/one"}'), 415),
        ('{"zen": "ping"}', signed('{"zen": "ping"}'), 200),
    ],
)
def test_what_is_forged_or_odd_hints_at_nothing(
    dashboard: Dashboard, body: str, signature: str, status: int
) -> None:
    dashboard.hinted.clear()
    try:
        given = deliver(dashboard, body, signature.encode("latin-1").decode("latin-1")).status
    except (BrokenPipeError, ConnectionResetError):
        given = 413  # It answers and closes while a body that is too large still arrives.
    assert (given, dashboard.hinted) == (status, [])


def test_a_repository_that_is_not_configured_is_refused(dashboard: Dashboard) -> None:
    body = json.dumps({"repository": {"full_name": "octo/two"}})
    assert deliver(dashboard, body, signed(body)).status == 404


def test_without_a_secret_every_delivery_is_refused(tmp_path: Path) -> None:
    with serve_dashboard(tmp_path) as dashboard:
        given = deliver(dashboard, LABELLED, signed(LABELLED, ""))
    assert given.status == 404
    assert "github.webhook_secret" in given.text
    assert dashboard.hinted == []


def test_only_post_goes_without_the_key(dashboard: Dashboard) -> None:
    assert dashboard.ask_without_key("/webhook").status == 303
    assert dashboard.ask_without_key("/webhook", "PUT").status == 405


def test_a_fleet_without_its_database_asks_github_to_deliver_later() -> None:
    def away(_name: str) -> bool:
        message = "The database cannot be reached."
        raise UnavailableError(message)

    answer = Webhook(SECRET, away).pass_on(LABELLED.encode(), signed(LABELLED))
    assert (answer.status_code, answer.body) == (503, b"The database cannot be reached.\n")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"webhook_secret": "too short"}, "too short; use 16"),
        ({"webhook_secret_file": "gone"}, "could not be read"),
        ({"webhook_secret_file": "empty"}, "too short"),
    ],
)
def test_a_secret_that_cannot_be_used_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], said: str
) -> None:
    (tmp_path / "empty").write_text("\n")
    monkeypatch.chdir(tmp_path)
    given = GitHubSettings.model_validate(settings)
    with pytest.raises(ConfigError, match=said):
        webhook_secret(given)


def test_a_secret_comes_from_the_environment_or_a_file(tmp_path: Path) -> None:
    place = tmp_path / "secret"
    place.write_text(f"{SECRET}\n")
    for settings in ({"webhook_secret": SECRET}, {"webhook_secret_file": place}):
        assert webhook_secret(GitHubSettings.model_validate(settings)) == SECRET
    assert webhook_secret(GitHubSettings()) == ""
