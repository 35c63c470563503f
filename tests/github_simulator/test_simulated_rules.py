"""The simulated GitHub refuses pushes that break the rules of a branch, and shows the rules."""

from pathlib import Path

import pytest
from pydantic import JsonValue

from world.repositories import git, run_git
from world.signing import make_key, public_key
from world.simulated import NAME, SimulatedGitHub

BRANCH = "topic/one"


@pytest.fixture
def clone(tmp_path: Path, github: SimulatedGitHub) -> Path:
    git(tmp_path, "clone", "-q", str(github.bare), "clone")
    place = tmp_path / "clone"
    git(place, "checkout", "-q", "-b", BRANCH)
    commit(place, "one")
    return place


def commit(clone: Path, name: str) -> None:
    (clone / name).write_text(name)
    git(clone, "add", name)
    git(clone, "commit", "-qm", f"Add {name}")


def push(clone: Path, *options: str) -> str:
    """Push the branch; give why it was refused, or an empty string."""
    done = run_git(clone, "push", "-q", *options, "origin", BRANCH)
    return done.stderr if done.returncode else ""


PATTERN: dict[str, JsonValue] = {"operator": "regex", "pattern": "^fix: "}


@pytest.mark.parametrize(
    ("kind", "parameters", "reason"),
    [
        ("creation", {}, "creations being restricted"),
        ("required_signatures", {}, "must have verified signatures"),
        ("commit_message_pattern", PATTERN, "commit_message_pattern"),
        ("committer_email_pattern", {"operator": "ends_with", "pattern": "@a"}, "committer"),
        ("commit_author_email_pattern", {"operator": "starts_with", "pattern": "x"}, "author"),
        ("branch_name_pattern", {"operator": "contains", "pattern": "/", "negate": True}, "name"),
        ("file_path_restriction", {"restricted_file_paths": ["o*"]}, "must not match: one"),
        ("max_file_size", {"max_file_size": 0}, "too large"),
    ],
)
def test_a_first_push_that_breaks_a_rule_is_refused(
    github: SimulatedGitHub, clone: Path, kind: str, parameters: dict[str, JsonValue], reason: str
) -> None:
    github.world.add_rule(NAME, kind, ["topic/*"], parameters)
    said = push(clone)
    assert "GH013: Repository rule violations" in said
    assert reason in said


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("update", "Cannot update"),
        ("non_fast_forward", "Cannot force-push"),
        ("deletion", "Cannot delete"),
        ("required_linear_history", "merge commits"),
        ("pull_request", "through a pull request"),
    ],
)
def test_a_later_push_that_breaks_a_rule_is_refused(
    github: SimulatedGitHub, clone: Path, kind: str, reason: str
) -> None:
    assert push(clone) == ""
    if kind == "required_linear_history":
        git(clone, "checkout", "-q", "main")
        commit(clone, "other")
        git(clone, "checkout", "-q", BRANCH)
        git(clone, "merge", "-q", "--no-ff", "--no-edit", "main")
    else:
        git(clone, "commit", "-q", "--amend", "-m", "Other")
    github.world.add_rule(NAME, kind, [BRANCH])
    options = ("--delete",) if kind == "deletion" else ("--force",)
    assert reason in push(clone, *options)


def test_what_keeps_the_rules_is_accepted(
    github: SimulatedGitHub, clone: Path, tmp_path: Path
) -> None:
    key = make_key(tmp_path / "key")
    github.world.add_signing_key("wes", public_key(key))
    github.world.protect(NAME, "main", "required_signatures")
    for kind in ("required_signatures", "required_linear_history", "non_fast_forward", "deletion"):
        github.world.add_rule(NAME, kind, ["topic/*"])
    github.world.add_rule(NAME, "creation", ["topic/*"], bypassed_by=["wes"])
    github.world.add_rule(NAME, "update", ["other"])
    assert "verified signatures" in push(clone)
    signing = ("-c", "gpg.format=ssh", "-c", f"user.signingKey={key}")
    git(clone, *signing, "commit", "-qS", "--amend", "-m", "Signed")
    assert push(clone) == ""
    assert run_git(clone, "push", "-q", "origin", "HEAD:main").returncode == 0


def test_githubs_own_merge_is_no_push(github: SimulatedGitHub, clone: Path) -> None:
    github.issue()
    assert push(clone) == ""
    github.world.add_rule(NAME, "pull_request", ["main"])
    github.world.add_rule(NAME, "required_signatures", ["main"])
    pull = {"title": "One", "head": BRANCH, "base": "main", "body": ""}
    number = github.ask("POST", f"/repos/{NAME}/pulls", body=pull).json()["number"]
    merged = github.ask("PUT", f"/repos/{NAME}/pulls/{number}/merge", body={})
    assert merged.json()["merged"] is True


def test_rules_and_protection_are_served(github: SimulatedGitHub) -> None:
    github.world.add_rule(NAME, "commit_message_pattern", ["topic/*"], PATTERN)
    (rule,) = github.ask("GET", f"/repos/{NAME}/rules/branches/topic%2Fone").json()
    assert (rule["type"], rule["parameters"]) == ("commit_message_pattern", PATTERN)
    assert github.ask("GET", f"/repos/{NAME}/rules/branches/main").json() == []
    shown = github.ask("GET", f"/repos/{NAME}/rulesets/{rule['ruleset_id']}").json()
    assert shown["current_user_can_bypass"] == "never"
    assert github.ask("GET", f"/repos/{NAME}/rulesets/1").status_code == 404
    branch = f"/repos/{NAME}/branches/main"
    assert github.ask("GET", branch).json()["protected"] is False
    assert github.ask("GET", f"/repos/{NAME}/branches/none").status_code == 404
    assert github.ask("GET", f"{branch}/protection", by="ada").status_code == 404
    github.world.protect(NAME, "main", "required_linear_history")
    assert github.ask("GET", branch).json()["protected"] is True
    assert github.ask("GET", f"{branch}/protection").status_code == 404
    found = github.ask("GET", f"{branch}/protection", by="ada").json()
    assert found["required_linear_history"]["enabled"] is True
    assert found["required_signatures"]["enabled"] is False
    assert github.ask("GET", "/users/nobody/ssh_signing_keys").status_code == 404
