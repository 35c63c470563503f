"""Accounts, repositories and roles of the simulated GitHub."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from github_simulator.records import App, Apps, IssueName, TokenGrant, User
from github_simulator.reply import ErrorReply
from world.simulated import NAME, SimulatedGitHub, simulated_github

NOON, SECOND = datetime(2025, 3, 1, 12, 0, tzinfo=UTC), timedelta(seconds=1)


@pytest.mark.parametrize(
    ("login", "legacy", "role"),
    [
        ("acme", "admin", "admin"),
        ("ada", "admin", "admin"),
        ("mia", "write", "maintain"),
        ("wes", "write", "write"),
        ("tri", "read", "triage"),
        ("rea", "read", "read"),
        ("zoe", "read", "read"),
    ],
)
def test_permission_has_the_legacy_word_and_the_role(
    github: SimulatedGitHub, login: str, legacy: str, role: str
) -> None:
    answer = github.get(f"collaborators/{login}/permission").json()
    assert (answer["permission"], answer["role_name"]) == (legacy, role)
    assert answer["user"]["login"] == login


def test_permission_of_nobody_is_a_404(github: SimulatedGitHub) -> None:
    answer = github.get("collaborators/nobody/permission")
    assert (answer.status_code, answer.json()["message"]) == (404, "nobody is not a user")


def test_permission_is_shown_to_those_who_may_push(github: SimulatedGitHub) -> None:
    for login in ("tri", "rea", "zoe"):
        answer = github.get("collaborators/ada/permission", by=login)
        assert answer.status_code == 403
        words = "Must have push access to view collaborator permission."
        assert answer.json()["message"] == words
    assert github.get("collaborators/ada/permission", by=None).status_code == 401


def test_a_stranger_has_no_role_on_a_private_repository(tmp_path: Path) -> None:
    with simulated_github(tmp_path, private=True) as github:
        answer = github.get("collaborators/zoe/permission").json()
        assert (answer["permission"], answer["role_name"]) == ("none", "none")


def test_roles_can_be_given_and_taken(github: SimulatedGitHub) -> None:
    github.world.set_role(NAME, "zoe", "maintain")
    assert github.get("collaborators/zoe/permission").json()["role_name"] == "maintain"
    github.world.set_role(NAME, "zoe", "none")
    assert github.get("collaborators/zoe/permission").json()["role_name"] == "read"


def test_a_repository_is_shown_with_the_askers_rights(github: SimulatedGitHub) -> None:
    shown = github.get("", by="tri").json()
    assert shown["full_name"] == NAME
    assert (shown["default_branch"], shown["archived"]) == ("main", False)
    assert shown["permissions"] == {
        "admin": False,
        "maintain": False,
        "push": False,
        "triage": True,
        "pull": True,
    }
    assert "permissions" not in github.get("", by=None).json()
    assert shown["clone_url"] == github.bare.as_uri()


def test_open_issues_are_counted(github: SimulatedGitHub) -> None:
    github.issue()
    github.world.close(github.issue(), "ada")
    assert github.get("").json()["open_issues_count"] == 1


def test_accounts_say_what_they_are(github: SimulatedGitHub) -> None:
    github.world.add_user("robot", "Bot", token="token-robot")
    assert github.get("/user", by="robot").json()["type"] == "Bot"


@pytest.mark.pure
def test_a_token_of_an_app_reaches_its_repositories_until_it_expires() -> None:
    grant = TokenGrant(NOON, frozenset({"acme/tools"}))
    grant.check("/repos/Acme/Tools/issues/1", NOON - SECOND)
    grant.check("/user", NOON - SECOND)
    for path, now, status in (
        ("/repos/acme/other/issues/1", NOON - SECOND, 403),
        ("/repos/acme/tools", NOON, 401),
    ):
        with pytest.raises(ErrorReply) as refused:
            grant.check(path, now)
        assert refused.value.status == status


@pytest.mark.pure
def test_an_app_is_known_by_its_number_and_named_like_its_account() -> None:
    app = App(7, User(9, "helper[bot]", "Bot"), "PEM", 1, frozenset({"acme/tools"}))
    apps = Apps()
    apps.add(app)
    assert apps.known == {"7": app}
    assert (app.slug, str(IssueName("acme/tools", 3))) == ("helper", "acme/tools#3")
