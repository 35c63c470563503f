"""The simulated GitHub as tests and the demo drive it: plain calls, no HTTP."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from github_simulator.bare_repository import BareRepository, SimulatorError, git
from github_simulator.json_shapes import RepositoryUrls, association
from github_simulator.records import Actor, IssueName, Permission
from github_simulator.reply import ErrorReply
from world.simulated import push
from world.simulated_github import World

NAME = "acme/tools"
NOON = datetime(2026, 1, 1, 12, 0, 0, 999_999, tzinfo=UTC)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Make a world that needs no git."""
    world = World(lambda: NOON)
    world.add_repository(NAME, tmp_path, "main", {"ada": "admin"})
    return world


def test_a_clock_can_be_handed_in_and_gives_whole_seconds(world: World) -> None:
    ref = world.open_issue(NAME, "Title", None, "zoe")
    assert world.issue_of(ref).created_at == NOON.replace(microsecond=0)


def test_an_issue_goes_through_its_life(world: World) -> None:
    ref = world.open_issue(NAME, "Title", "Body", "zoe", ["bug"])
    world.label(ref, "mulligan", "ada")
    world.unlabel(ref, "bug", "ada")
    assert world.labels_of(ref) == ["mulligan"]
    world.edit(ref, "zoe", body="Other")
    world.close(ref, "ada")
    world.reopen(ref, "zoe")
    for _ in range(2):
        world.set_lock(ref, "ada", locked=True)
    issue = world.issue_of(ref)
    assert (issue.body, issue.state, issue.locked) == ("Other", "open", True)
    kinds = [event.kind for event in world.events_of(ref)]
    assert kinds == ["labeled", "labeled", "unlabeled", "closed", "reopened", "locked"]


def test_what_is_not_there_is_said_plainly(world: World) -> None:
    with pytest.raises(ErrorReply, match="There is no issue acme/tools#9"):
        world.close(IssueName(NAME, 9), "ada")
    with pytest.raises(ErrorReply, match="There is no repository acme/none"):
        world.open_issue("acme/none", "Title", None, "ada")


def test_a_user_is_added_once(world: World) -> None:
    first = world.add_user("Robot", "Bot")
    assert world.add_user("robot", token="secret") is first
    assert world.tokens == {"secret": first}


def test_the_owner_is_told_from_collaborators_and_strangers(world: World) -> None:
    place = RepositoryUrls("http://127.0.0.1:1", world.repository(NAME))
    words = [association(place, world.add_user(login)) for login in ("acme", "ada", "zoe")]
    assert words == ["OWNER", "COLLABORATOR", "NONE"]


@pytest.mark.parametrize("role", list(Permission))
def test_a_role_reaches_what_it_includes(world: World, role: Permission) -> None:
    world.set_role(NAME, "zoe", role)
    by: Actor = world.doer(NAME, "zoe")
    assert by.may(role) or role is Permission.NONE
    assert by.may(Permission.WRITE) == role.reaches(Permission.WRITE)


def test_a_branch_that_moved_is_not_overwritten_by_a_merge(tmp_path: Path) -> None:
    bare = tmp_path / "bare.git"
    bare.mkdir()
    assert git(bare, "init", "--quiet", "--bare", ".") is not None
    start = push(bare, "main", {"a": "a"}, start=None)
    head = push(bare, "topic", {"b": "b"})
    moved = push(bare, "main", {"c": "c"})
    assert BareRepository(bare).merge(start, head, "Merge", into="main") is None
    assert BareRepository(bare).branches()["main"] == moved


def test_a_directory_that_is_no_repository_is_an_error_of_the_machine(tmp_path: Path) -> None:
    assert BareRepository(tmp_path).branches() == {}
    with pytest.raises(SimulatorError, match="cannot be used by git"):
        BareRepository(tmp_path).merge("main", "topic", "Merge")


@pytest.mark.parametrize(
    "done",
    [
        ("pack-refs", "--all"),
        ("update-ref", "-d", "refs/heads/topic/one"),
        ("symbolic-ref", "refs/heads/alias", "refs/heads/main"),
        ("tag", "topic", "main"),
    ],
    ids=lambda done: done[0],
)
def test_branches_are_those_that_git_lists(tmp_path: Path, done: tuple[str, ...]) -> None:
    bare = tmp_path / "bare.git"
    bare.mkdir()
    assert git(bare, "init", "--quiet", "--bare", ".") is not None
    push(bare, "main", {"a": "a"}, start=None)
    push(bare, "topic/one", {"b": "b"})
    for words in (done, ("pack-refs", "--all"), done):
        git(bare, *words)
        push(bare, "main", {"c": words[0]})
        (bare / "refs" / "heads" / "main.lock").write_text("a" * 40)
        repository = BareRepository(bare)
        assert repository.branches() == repository.listed_branches()
        (bare / "refs" / "heads" / "main.lock").unlink()
