"""What takes git too long to read is refused for its size, and is not a fault of the machine."""

import time
from collections.abc import Generator
from datetime import timedelta
from pathlib import Path

import pytest

from mulligan.config.policy import CommitSettings, Scope
from mulligan.domain.attempt import Change
from mulligan.domain.errors import UnavailableError
from mulligan.git.worktrees import attempt_worktree, sizes
from mulligan.git.worktrees.attempt_worktree import Checkout
from world.checkouts import REF, TEXT, calc_remote, run_in_worktree, worktrees_of

SETTINGS = CommitSettings()
MIB = 1024**2


@pytest.fixture
def tree(tmp_path: Path) -> Generator[Checkout]:
    with worktrees_of(tmp_path / "work", calc_remote(tmp_path / "remote.git")).open(REF) as made:
        yield made


def sparse(path: Path, size: int) -> None:
    with path.open("wb") as file:
        file.truncate(size)


def captured(tree: Checkout, scope: Scope = sizes.DEFAULT_SCOPE) -> Change:
    """Capture, within a second or so."""
    began = time.monotonic()
    change = tree.capture(TEXT, SETTINGS, scope)
    assert time.monotonic() - began < 20
    return change


def test_a_sparse_file_of_a_terabyte_is_named_and_not_read(tree: Checkout) -> None:
    sparse(tree.path / "huge", 10**12)
    change = captured(tree)
    assert (change.head_sha, change.too_large) == (None, (("huge", 10**12),))
    assert change.tree_changed


@pytest.mark.parametrize("name", ["src/calc.py", "-rf", "new\nline", "a[b]*", "kept.log"])
def test_the_rest_of_the_change_is_there(name: str, tree: Checkout) -> None:
    """Also for a tracked file, and for one that git ignores and the agent committed."""
    run_in_worktree(tree, "echo x > kept.log; git add -f kept.log; git commit -qm kept")
    (tree.path / "kept.log").unlink()
    sparse(tree.path / name, 10**11)
    (tree.path / "small").write_text("x")
    change = captured(tree)
    assert [file.path for file in change.files] == ["small"]
    assert change.too_large == ((name, 10**11),)


def test_what_git_ignores_and_what_is_tracked_may_be_large(tree: Checkout) -> None:
    (tree.path / ".gitignore").write_text("build/\n")
    (tree.path / "build").mkdir()
    sparse(tree.path / "build" / "huge", 10**12)
    change = captured(tree)
    assert (change.too_large, [file.path for file in change.files]) == ((), [".gitignore"])


def test_a_large_file_within_the_scope_is_part_of_the_change(tree: Checkout) -> None:
    (tree.path / "large").write_bytes(bytes(6 * MIB))
    change = captured(tree, Scope(max_file_bytes=7 * MIB))
    assert [(file.path, file.size) for file in change.files] == [("large", 6 * MIB)]


@pytest.mark.parametrize(
    ("count", "size", "why"),
    [(600, 5 * MIB, "bytes in 600 files"), (1001, 10**9, "1001 files are larger")],
)
def test_too_much_in_all_is_not_read(count: int, size: int, why: str, tree: Checkout) -> None:
    for number in range(count):
        sparse(tree.path / str(number), size)
    change = captured(tree)
    assert change.head_sha is None
    assert why in change.unread
    assert change.tree_changed


def test_too_many_names_are_not_read(tree: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "NAMES_BYTES", 1000)
    for number in range(300):
        (tree.path / f"{number}-{'x' * 20}").touch()
    assert captured(tree, Scope(max_changed_files=1)).unread.startswith("There are too many")
    assert len(captured(tree, Scope(max_changed_files=100)).files) == 300


def slow_ignore_rules(place: Path) -> None:
    """Git compares every name with every rule."""
    rules = "".join(f"/x{number}*y*\n" for number in range(100_000))
    (place / ".gitignore").write_text(rules)
    for number in range(10_000):
        (place / f"x{number}").touch()


@pytest.mark.parametrize("reads", ["measure", "add"])
def test_what_slows_git_down_is_the_agents_fault(
    reads: str, tree: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = {"measure": (sizes, "LIST_TIMEOUT"), "add": (attempt_worktree, "RESET_TIMEOUT")}
    monkeypatch.setattr(*limits[reads], timedelta(seconds=1))
    slow_ignore_rules(tree.path)
    monkeypatch.setattr(sizes, "NAMES_BYTES", 10**9)
    change = tree.capture(TEXT, SETTINGS)
    assert (change.head_sha, change.unread) == (None, attempt_worktree.UNREAD)
    assert not (tree.path / "x1").exists()


def test_a_machine_that_is_slow_itself_is_nobodys_fault(
    tree: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sizes, "LIST_TIMEOUT", timedelta(seconds=1))
    monkeypatch.setattr(attempt_worktree, "QUICK_SECONDS", 0.0)
    slow_ignore_rules(tree.path)
    with pytest.raises(UnavailableError, match="took too long"):
        tree.capture(TEXT, SETTINGS)
