"""What does not belong into a worktree is found, and cleared away whatever it is."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mulligan.domain.errors import UnavailableError
from mulligan.git.worktrees.files import MAX_DELETED_HERE, MAX_PATH_CHARS, TreeCleaner


@pytest.fixture
def broom(tmp_path: Path) -> TreeCleaner:
    return TreeCleaner(tmp_path / "trash", {"PATH": f".:relative:{os.environ['PATH']}"})


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    tree = tmp_path / "tree"
    (tree / "a" / "b").mkdir(parents=True)
    (tree / "a" / "file").write_text("kept")
    (tree / "a" / "link").symlink_to("/etc")
    return tree


def make_fifo(tree: Path) -> None:
    os.mkfifo(tree / "a" / "b" / "fifo")


def make_repository(tree: Path) -> None:
    (tree / "a" / "b" / ".git" / "objects").mkdir(parents=True)


def make_git_file(tree: Path) -> None:
    (tree / "a" / ".git").write_text("gitdir: /etc")


def make_git_link(tree: Path) -> None:
    (tree / ".git").symlink_to("/etc")


def close_directory(tree: Path) -> None:
    (tree / "a" / "b").chmod(0o000)


def make_long_path(tree: Path) -> None:
    (tree / Path(*["d" * 200] * (MAX_PATH_CHARS // 200 + 1))).mkdir(parents=True)


@pytest.mark.parametrize(
    "spoil",
    [make_fifo, make_repository, make_git_file, make_git_link, close_directory, make_long_path],
)
def test_what_git_does_not_see_is_found_and_cleared(
    spoil: Callable[[Path], None], tree: Path, broom: TreeCleaner
) -> None:
    assert broom.find_unexpected(tree) == ""
    spoil(tree)
    assert broom.find_unexpected(tree).startswith(str(tree))
    broom.clean(tree)
    assert broom.find_unexpected(tree) == ""
    assert (tree / "a" / "file").read_text() == "kept"
    assert (tree / "a" / "link").is_symlink()


@pytest.mark.parametrize("kind", ["file", "link", "closed", "many files"])
def test_anything_can_be_set_aside_and_deleted(
    kind: str, tmp_path: Path, broom: TreeCleaner
) -> None:
    place, outside = tmp_path / "place", tmp_path / "outside"
    outside.mkdir(mode=0o500)
    match kind:
        case "file":
            place.write_text("x")
        case "link":
            place.symlink_to(outside)
        case "closed":
            (place / "below" / "x").mkdir(parents=True)
            (place / "below").chmod(0o000)
            place.chmod(0o000)
        case _:
            place.mkdir()
            for number in range(MAX_DELETED_HERE + 1):
                (place / str(number)).touch()
    broom.set_aside(place, "issue-1")
    assert not os.path.lexists(place)
    broom.empty("issue-12")
    broom.empty("issue-1")
    assert list((tmp_path / "trash").iterdir()) == []
    assert outside.stat().st_mode & 0o777 == 0o500


def test_nothing_is_set_aside_of_what_is_missing(tree: Path, broom: TreeCleaner) -> None:
    broom.set_aside(tree / "missing", "issue-1")

    assert not broom.trash.exists()


def test_what_others_set_aside_is_left_to_them(tree: Path, broom: TreeCleaner) -> None:
    broom.set_aside(tree, "issue-12")
    broom.empty("issue-1")
    assert len(list(broom.trash.iterdir())) == 1


def test_what_cannot_be_moved_is_named(tree: Path, broom: TreeCleaner) -> None:
    broom.trash.write_text("in the way")
    with pytest.raises(UnavailableError, match="could not be moved"):
        broom.set_aside(tree, "issue-1")


def test_only_litter_is_removed_by_name(tree: Path, broom: TreeCleaner) -> None:
    (tree / "a" / ".aider.x").mkdir()
    (tree / ".aider.y").write_text("y")
    (tree / ".claude").write_text("a file of that name")
    (tree / "a" / ".claude" / "x").mkdir(parents=True)
    broom.remove(tree, (".aider*", ".claude/"))
    left = {str(path.relative_to(tree)) for path in tree.rglob("*")}
    assert left == {"a", "a/b", "a/file", "a/link", ".claude"}
