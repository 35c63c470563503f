"""Paths, branch names, litter and attribute lines are what git makes of them."""

from pathlib import Path

import pytest

from mulligan.domain.issue import IssueRef
from mulligan.git.worktrees.naming import (
    BRANCH,
    TOOL_LEFTOVERS,
    binary_attribute,
    image_directory,
    leftover_in,
    repository_paths,
    set_up_cache,
    worktree_paths,
)
from world.checkouts import LITTER
from world.repositories import git, run_git

pytestmark = pytest.mark.pure


def test_everything_of_a_repository_lies_in_its_own_directory() -> None:
    place = worktree_paths(Path("/srv"), IssueRef("octo/calc", 12))
    assert place.repository == repository_paths(Path("/srv"), "octo/calc")
    names = {
        str(path.relative_to("/srv/octo/calc"))
        for path in (
            *(place.tree, place.agent_git_dir, place.private, place.lock, place.git_dir),
            *(place.repository.mirror, place.repository.mirror_lock, place.repository.trash),
            *(place.repository.submodules, place.repository.lfs),
        )
    }
    assert names == {
        *("issue-12", "issue-12.git", "issue-12.run", "issue-12.lock"),
        *("mirror.git/worktrees/issue-12", "mirror.git", "mirror.lock", "trash"),
        *("submodules", "lfs"),
    }
    assert place.all_paths == (place.tree, place.git_dir, place.agent_git_dir, place.private)
    assert set_up_cache(Path("/srv")) == Path("/srv/.set-up")
    assert image_directory(Path("/srv")) == Path("/srv/.images")


def test_no_path_of_a_second_worktree_is_one_of_any_issue() -> None:
    one, twelve = (worktree_paths(Path("/srv"), IssueRef("octo/calc", n)) for n in (1, 12))
    paths = [{*each.all_paths} for each in (one, twelve, one.beside, twelve.beside)]
    assert len(set[Path]().union(*paths)) == sum(map(len, paths))
    # The trash of an owner is found by the beginning of its name.
    assert not one.beside.name.startswith(f"{one.name}-")


@pytest.mark.parametrize(
    ("path", "litter"),
    [
        (".aider.chat.history.md", True),
        ("src/.aider.tags.cache.v4/x", True),
        (".claude/settings.json", True),
        ("a/b/.gemini/c/d", True),
        (".claude", False),
        ("claude/x", False),
        ("README.md", False),
        ("x.aider", False),
    ],
)
def test_litter_is_known_by_its_name(path: str, *, litter: bool) -> None:
    assert bool(leftover_in(path, LITTER)) is litter


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("__pycache__/a.cpython-311.pyc", "__pycache__/"),
        ("src/a/__pycache__/b/c", "src/a/__pycache__/"),
        ("a.pyc", "a.pyc"),
        ("a\nb/c.pyc", "a\nb/c.pyc"),
        ("web/node_modules/left-pad/node_modules/x/build/a.js", "web/node_modules/"),
        ("tool.egg-info/PKG-INFO", "tool.egg-info/"),
        ("docs/.DS_Store", "docs/.DS_Store"),
        (".coverage", ".coverage"),
        *(
            (f"src/{name}", f"src/{name}")
            for name in ("a.c.orig", "a.c.rej", "a.c~", ".a.c.swp", "Thumbs.db", "nohup.out")
        ),
        *((name, name) for name in ("npm-debug.log", "yarn-error.log")),
        *(
            (f"web/{name}a", f"web/{name}")
            for name in (".parcel-cache/", ".next/", ".terraform/", "htmlcov/")
        ),
        *((work, "") for work in ("node_modules", "__pycache__", ".venv", ".coveragerc", "a.py")),
        *(
            (f"{work}/a", "")
            for work in ("build", "dist", "vendor", "target", "venv", "bin", "out")
        ),
        *(
            (work, "")
            for work in (
                "",
                "orig",
                "a.orig.c",
                "a~b",
                "a.swp",
                "debug.log",
                ".next",
                "pyc",
                "a.pycx",
                "x.DS_Store",
                "node_modules.md",
                "a.egg-info",
            )
        ),
    ],
)
def test_what_tools_leave_is_known_by_names_that_nobody_gives(path: str, found: str) -> None:
    assert leftover_in(path, TOOL_LEFTOVERS) == found


BRANCHES = [
    *("main", "release/1.0", "a.b", "feature/ü", "x@y", "a-b", "@x", "mulligan/issue-1"),
    *("", "-x", "/x", "x/", "x.", "a..b", "a//b", "a b", "a~b", "a^b", "a:b", "a?b", "a*b", "a[b"),
    *("a\\b", "a.lock", "a.lock/b", ".a", "a/.b", "a@{b", "a\tb", "a\x7fb", "+x"),
]


@pytest.mark.parametrize("name", BRANCHES)
def test_a_branch_name_is_what_git_takes_for_one(name: str, tmp_path: Path) -> None:
    git_says = run_git(tmp_path, "check-ref-format", "--branch", name).returncode == 0
    assert bool(BRANCH.fullmatch(name)) == git_says


@pytest.mark.parametrize(
    "name", ["plain.txt", "w in[1].txt", 'q"uote\\.txt', "st*r?.txt", "ü\n.txt", "!x.txt", "#x.txt"]
)
def test_an_attribute_line_means_just_that_path(name: str, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / ".git" / "info").mkdir(exist_ok=True)
    line = binary_attribute(f"dir/{name}".encode())
    (tmp_path / ".git" / "info" / "attributes").write_bytes(b"* text\n" + line + b"\n")
    others = ("dir/other.txt", f"dir/{name}x", name)
    for path, text in ((f"dir/{name}", "unset"), *((other, "set") for other in others)):
        assert git(tmp_path, "check-attr", "-z", "text", "--", path).split("\0")[2] == text
