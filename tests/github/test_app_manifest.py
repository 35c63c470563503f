"""A GitHub App is made from a manifest that asks for what Mulligan needs, and no more."""

import html
import json
import re
from collections.abc import Generator

import pytest

from github_simulator.app import running
from mulligan.domain.errors import DeniedError
from mulligan.github.app import convert, manifest, page, web_url
from mulligan.github.client import Client, RetrySettings
from world.simulated_github import World


@pytest.mark.parametrize(
    ("api", "web"),
    [
        ("https://api.github.com", "https://github.com"),
        ("https://ghe.acme.example/api/v3", "https://ghe.acme.example"),
        ("https://ghe.acme.example:8443/api/v3/", "https://ghe.acme.example:8443"),
        ("https://api.octocorp.ghe.com", "https://octocorp.ghe.com"),
        ("https://api.example.com/api/v3", "https://api.example.com"),
    ],
)
def test_the_web_is_beside_the_api(api: str, web: str) -> None:
    assert web_url(api) == web


def test_it_asks_for_no_more_than_is_needed() -> None:
    asked = manifest("m" * 50, "https://github.com/acme", "http://127.0.0.1:1/back")
    assert asked["name"] == "m" * 34
    assert asked["default_permissions"] == {
        **dict.fromkeys(("contents", "issues", "pull_requests", "checks"), "write"),
        **dict.fromkeys(("metadata", "statuses", "actions"), "read"),
    }
    assert asked["hook_attributes"] == {"url": "https://github.com/acme", "active": False}
    assert (asked["default_events"], asked["public"]) == ([], False)


def test_what_is_in_the_manifest_cannot_leave_its_place() -> None:
    asked = manifest("\"'><script>", "https://github.com", "http://127.0.0.1:1/back")
    text = page("https://github.com", "a/b c", "the state", asked)
    assert "<script>" not in text
    action, value = re.findall(r'(?:action|value)="([^"]*)"', text)
    assert html.unescape(action) == (
        "https://github.com/organizations/a%2Fb%20c/settings/apps/new?state=the+state"
    )
    assert json.loads(html.unescape(value)) == asked
    mine = page("https://github.com", None, "s", asked)
    assert 'action="https://github.com/settings/apps/new?state=s"' in mine


@pytest.fixture
def client() -> Generator[Client]:
    world = World()
    world.apps.manifests["code"] = json.dumps({"name": "Mull Igan", "url": "https://x.example"})
    with running(world) as url:
        made = Client(url, lambda _: None, RetrySettings(attempts=1))
        yield made
        made.close()


def test_a_code_is_exchanged_once(client: Client) -> None:
    made = convert(client, "code")
    assert made.install_url.endswith("/apps/mull-igan/installations/new")
    assert made.pem.startswith("-----BEGIN RSA PRIVATE KEY-----")
    assert "PRIVATE KEY" not in repr(made)
    with pytest.raises(DeniedError, match="Start again with `mulligan init --app`"):
        convert(client, "code")
