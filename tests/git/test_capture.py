"""What an agent left is read from git and the files, whatever the agent's own git says."""

import os
import shutil
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import pytest

from mulligan.config.policy import CommitSettings
from mulligan.domain.attempt import Change
from mulligan.domain.errors import MisconfiguredError, UnavailableError
from mulligan.domain.result import FileChange
from mulligan.git.worktrees import agent_git_directory
from mulligan.git.worktrees.attempt_worktree import Checkout, check_out_commit, diff_of
from mulligan.git.worktrees.worktrees import GitWorktrees
from mulligan.implement.commit_message import CommitText
from world.checkouts import (
    FILES,
    LITTER,
    REF,
    TEXT,
    calc_remote,
    contents,
    files_as_committed,
    run_in_worktree,
    set_up_in_worktree,
    worktrees_of,
)
from world.repositories import add_submodule, branch_head, commit_to, git, make_remote

SETTINGS = CommitSettings()
COMMIT = "echo one > README.md; git commit -qam one"


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return calc_remote(tmp_path / "remote.git")


@pytest.fixture
def worktrees(tmp_path: Path, remote: Path) -> GitWorktrees:
    return worktrees_of(tmp_path / "work", remote)


def counted(change: Change) -> tuple[FileChange, ...]:
    """Give the changed files without what else is told of them."""
    nothing = {"mode": None, "size": None, "link": None}
    return tuple(file.model_copy(update=nothing) for file in change.files)


def added(path: str, *, binary: bool = False, lines: int = 1) -> FileChange:
    counts = (None, None) if binary else (lines, 0)
    return FileChange(path=path, status="A", insertions=counts[0], deletions=counts[1])


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Generator[Checkout]:
    """Open one worktree for all tests that only look at the agent's git directory."""
    place = tmp_path_factory.mktemp("opened")
    with worktrees_of(place / "work", calc_remote(place / "remote.git")).open(REF) as tree:
        yield tree


@pytest.mark.parametrize(
    ("line", "commits"),
    [
        ("git commit -q --allow-empty -m two; git pack-refs --all; git gc -q", 2),
        ("git checkout -q -b b; echo b > b; git add b; git commit -qm b; git checkout -q main", 2),
        ("git branch -m renamed", 1),
        ("git checkout -q --detach; git branch -D mulligan/issue-12", 1),
        ("git symbolic-ref refs/heads/alias refs/heads/mulligan/issue-12", 1),
        ("git commit -q --amend -m two", 1),
        ("git commit -q --allow-empty -m two", 2),
        ("git checkout -q -b b main; git commit -q --allow-empty -m b; git merge -q -", 3),
        ("git tag v1; git reset -q --hard main; git tag | xargs git branch kept", 1),
        ("ln -sf /etc/passwd $(git rev-parse --git-dir)/refs/heads/passwd", 1),
        ("echo nonsense > $(git rev-parse --git-dir)/refs/heads/nonsense", 1),
        (f"echo {'1' * 40} > $(git rev-parse --git-dir)/refs/heads/missing", 1),
        ("echo ref: refs/heads/../../../x > $(git rev-parse --git-dir)/HEAD", 1),
        (r"printf 'ref: refs/\0' > $(git rev-parse --git-dir)/HEAD", 1),
        ("echo /etc > $(git rev-parse --git-dir)/objects/info/alternates", 1),
        ("cd $(git rev-parse --git-dir); mkfifo objects/00 objects/pack/x.idx refs/heads/x", 1),
    ],
)  # fmt: skip
def test_the_agents_own_commits_are_counted_after(
    opened: Checkout, line: str, commits: int
) -> None:
    own = opened.worktree.paths.agent_git_dir
    check_out_commit(opened.worktree, opened.refs, opened.start_sha)
    run_in_worktree(opened, "git reset -q --hard", COMMIT, line)
    opened.worktree.cleaner.only_files(own)
    with_objects = replace(opened.worktree.git, alternates=(own / "objects",))
    assert agent_git_directory.read(own, with_objects, opened.start_sha).commits == commits


@pytest.mark.parametrize("line", ["echo ref: refs/heads/../../../x", r"printf 'ref: refs/\0'"])
def test_work_on_a_branch_that_cannot_be_is_a_change_beside_the_commits(
    worktrees: GitWorktrees, line: str
) -> None:
    with worktrees.open(REF) as tree:
        run_in_worktree(tree, COMMIT, f"{line} > $(git rev-parse --git-dir)/HEAD")
        assert tree.capture(TEXT, SETTINGS).commits == 2


@pytest.mark.deep
def test_refs_of_a_thousand_levels_are_survived(worktrees: GitWorktrees) -> None:
    levels = "import os; [(os.mkdir('d'), os.chdir('d')) for level in range(1500)]"
    with worktrees.open(REF) as tree:
        run_in_worktree(
            tree, COMMIT, f'cd $(git rev-parse --git-dir)/refs/heads; python3 -c "{levels}"'
        )
        assert tree.capture(TEXT, SETTINGS).commits == 1
        # pytest could not clear away what Mulligan can.
        tree.worktree.cleaner.set_aside(tree.worktree.paths.agent_git_dir, tree.worktree.paths.name)
        tree.worktree.cleaner.empty(tree.worktree.paths.name)


def test_an_agent_cannot_have_other_repositories_of_this_machine_read(
    worktrees: GitWorktrees, tmp_path: Path
) -> None:
    other = make_remote(tmp_path / "other.git", {"secret": "secret\n"})
    with worktrees.open(REF) as tree:
        run_in_worktree(
            tree,
            f"cd $(git rev-parse --git-dir); echo {other}/objects >> objects/info/alternates",
            f"echo {branch_head(other, 'main')} > refs/heads/theirs; git log theirs",
        )
        assert tree.capture(TEXT, SETTINGS).commits == 0


def test_commits_that_the_repository_had_already_are_not_the_agents(
    worktrees: GitWorktrees, remote: Path
) -> None:
    side = commit_to(remote, {"side": "side\n"}, "side")
    git(remote, "tag", "v0", side)
    commit_to(remote, {"merged": "side\n"}, "main")
    git(remote, "update-ref", "refs/heads/main", git(remote, "commit-tree", "main^{tree}", "-p",
        "main", "-p", side, "-m", "merge"))  # fmt: skip
    with worktrees.open(REF) as tree:
        assert run_in_worktree(tree, "git tag") == "v0"
        run_in_worktree(tree, "git branch old v0; git checkout -q v0")
        assert tree.capture(TEXT, SETTINGS).commits == 0


def test_a_commit_of_an_ignored_file_is_work_and_litter_is_not(worktrees: GitWorktrees) -> None:
    with worktrees.open(REF) as tree:
        run_in_worktree(
            tree,
            "mkdir -p build/a .claude; echo x | tee build/a/on_purpose build/by_chance gone.log",
            "touch .aider.chat .claude/y; git add -f build/a/on_purpose gone.log .aider.chat",
            "git add -f .claude; git commit -qm forced; rm gone.log",
        )
        change = tree.capture(TEXT, SETTINGS)
        assert counted(change) == (added("build/a/on_purpose"),)
        assert change.head_sha
        tree.check_out(change.head_sha)
        assert "build/by_chance" not in contents(tree.path)


def test_an_agent_of_ones_own_litters_too(worktrees: GitWorktrees) -> None:
    own = replace(worktrees, litter=(*LITTER, ".tinker/"))
    with own.open(REF) as tree:
        run_in_worktree(tree, "mkdir -p .tinker src/.tinker; touch .tinker/a src/.tinker/b")
        change = tree.capture(TEXT, SETTINGS)
        assert (change.head_sha, change.commits) == (None, 0)
        assert change.ignored_files == (".tinker/a", "src/.tinker/b")
    with own.open(REF) as tree:
        assert not (tree.path / ".tinker").exists()
        run_in_worktree(
            tree,
            "mkdir .tinker; touch .tinker/a; echo x > new",
            "git add -f .tinker; git commit -qm forced",
        )
        assert counted(tree.capture(TEXT, SETTINGS)) == (added("new"),)


def test_an_agent_that_wrote_only_what_git_ignores_is_told_apart(worktrees: GitWorktrees) -> None:
    with worktrees.open(REF) as tree:
        run_in_worktree(
            tree, "mkdir -p build/a .claude; touch build/a/x own.log .claude/y .aider.chat"
        )
        run_in_worktree(tree, "cp -p README.md build/copy; touch -d 2001-01-01 build/copy")
        change = tree.capture(TEXT, SETTINGS)
    assert (change.head_sha, change.commits) == (None, 0)
    names = ("build/a/x", "build/copy", "own.log", ".aider.chat", ".claude/y")
    assert change.ignored_files == names


def test_ignored_files_are_not_looked_for_where_there_is_a_change(worktrees: GitWorktrees) -> None:
    with worktrees.open(REF) as tree:
        run_in_worktree(tree, "touch own.log new")
        assert tree.capture(TEXT, SETTINGS).ignored_files == ()


def test_what_set_up_lines_wrote_is_not_the_agents(tmp_path: Path, remote: Path) -> None:
    worktrees = worktrees_of(tmp_path / "work", remote)
    with worktrees.open(REF) as tree:
        set_up_in_worktree(tree, "echo installed > deps.log")
        (tree.private / "home-of-the-agent").mkdir()
        assert tree.capture(TEXT, SETTINGS).ignored_files == ()
        run_in_worktree(tree, "echo more >> deps.log")
        assert tree.capture(TEXT, SETTINGS).ignored_files == ("deps.log",)
        run_in_worktree(tree, "rm -rf $HOME")
        assert tree.capture(TEXT, SETTINGS).ignored_files == ("deps.log",)


def test_a_few_names_of_ignored_files_are_enough(worktrees: GitWorktrees) -> None:
    with worktrees.open(REF) as tree:
        run_in_worktree(tree, r"mkdir build; touch build/{1..300} $'bad\xff.log'")
        ignored = tree.capture(TEXT, SETTINGS).ignored_files
    assert len(ignored) == 20
    assert ignored[0] == "bad\ufffd.log"


def test_names_in_an_agents_tree_that_lead_out_of_it_are_left_alone(
    worktrees: GitWorktrees, tmp_path: Path
) -> None:
    (tmp_path / "precious").write_text("mine")
    with worktrees.open(REF) as tree:
        run_in_worktree(
            tree,
            "blob=$(echo x | git hash-object -w --stdin)",
            f'sub=$(printf "100644 blob $blob\\tprecious\\n" | git mktree)',  # noqa: F541
            'tree=$(printf "040000 tree $sub\\t..\\n" | git mktree)',
            "git update-ref HEAD $(git commit-tree $tree -p HEAD -m out)",
            "ln -s ../../.. up; echo x > new",
        )
        change = tree.capture(TEXT, SETTINGS)
    assert {file.path for file in change.files} == {"new", "up"}


def test_odd_names_and_kinds_are_all_told(worktrees: GitWorktrees) -> None:
    with worktrees.open(REF) as tree:
        run_in_worktree(
            tree,
            "echo x > $'new\\nline'; echo x > $'bad\\xff'; echo x > -rf; ln -s /etc/passwd link",
            r"printf '\0\1' > binary; git mv src/calc.py src/moved.py; chmod +x README.md",
            "truncate -s 5M large",
        )
        change = tree.capture(TEXT, SETTINGS)
    assert counted(change) == (
        added("-rf"),
        FileChange(path="README.md", status="M", insertions=0, deletions=0),
        added("bad\ufffd"),
        added("binary", binary=True),
        added("large", binary=True),
        added("link"),
        added("new\nline"),
        FileChange(
            path="src/moved.py", status="R", insertions=0, deletions=0, old_path="src/calc.py"
        ),
    )
    told = {file.path: (file.mode, file.size, file.link) for file in change.files}
    assert told["link"] == ("120000", 11, "/etc/passwd")
    assert told["README.md"] == ("100755", 6, None)
    assert told["large"] == ("100644", 5 * 1024**2, None)
    assert b"rename from src/calc.py" in change.diff
    assert b"Binary files /dev/null and b/large differ" in change.diff


@pytest.mark.deep
def test_of_many_links_some_are_told_without_where_they_lead(worktrees: GitWorktrees) -> None:
    with worktrees.open(REF) as tree:
        run_in_worktree(tree, "for n in {1..203}; do ln -s to-$n link-$n; done")
        files = tree.capture(TEXT, SETTINGS).files
    assert sum(file.link is None for file in files) == 3
    assert next(file for file in files if file.path == "link-1").link == "to-1"


def test_a_diff_without_end_is_cut(worktrees: GitWorktrees) -> None:
    with worktrees.open(REF) as tree:
        run_in_worktree(tree, "seq 1000 > many")
        change = tree.capture(TEXT, SETTINGS)
        cut = diff_of(tree.worktree, change.start_sha, str(change.head_sha), limit=1000)
    omitted = len(change.diff) - 1000
    assert cut == change.diff[:1000] + f"\n[... {omitted} bytes omitted]\n".encode()


def test_work_is_kept_on_a_branch_of_the_mirror(worktrees: GitWorktrees, tmp_path: Path) -> None:
    with worktrees.open(REF) as tree:
        run_in_worktree(tree, "echo new > new")
        change = tree.capture(TEXT, SETTINGS)
    mirror = tmp_path / "work" / REF.repository / "mirror.git"
    assert git(mirror, "rev-parse", f"refs/heads/{REF.branch}") == change.head_sha


def test_a_worktree_that_the_agent_deleted_is_all_deletions(worktrees: GitWorktrees) -> None:
    with worktrees.open(REF) as tree:
        run_in_worktree(tree, "rm -rf $PWD")
        change = tree.capture(TEXT, SETTINGS)
    assert {(file.path, file.status) for file in change.files} == {(name, "D") for name in FILES}


def test_a_submodule_that_is_taken_out_is_told(worktrees: GitWorktrees, remote: Path) -> None:
    add_submodule(remote, "vendor")
    with worktrees.open(REF) as tree:
        run_in_worktree(tree, "rmdir vendor")
        change = tree.capture(TEXT, SETTINGS)
    assert [(file.path, file.status) for file in change.files] == [("vendor", "D")]
    assert b"-Subproject commit" in change.diff


@pytest.mark.parametrize("has_set_up", [True, False])
def test_what_set_up_lines_installed_is_there_for_the_checks(
    tmp_path: Path, remote: Path, *, has_set_up: bool
) -> None:
    worktrees = worktrees_of(tmp_path / "work", remote)
    with worktrees.open(REF) as opened:
        line = "echo installed > deps.log; touch not-ignored"
        tree = set_up_in_worktree(opened, line) if has_set_up else opened
        run_in_worktree(tree, "rm -f not-ignored; echo agent > deps.log; echo agent > own.log")
        run_in_worktree(tree, "echo new > new; mkdir .claude; touch .claude/y")
        change = tree.capture(TEXT, SETTINGS)
        assert change.head_sha
        for _ in range(2):
            run_in_worktree(tree, "touch about; echo check > deps.log; touch check.log")
            tree.check_out(change.head_sha)
            kept = {"deps.log"} if has_set_up else set[str]()
            assert contents(tree.path).keys() - files_as_committed().keys() == {"new", *kept}
            assert run_in_worktree(tree, "git status --porcelain", "cat new") == "new"
            if has_set_up:
                assert (tree.path / "deps.log").read_text() == "installed\n"
    with worktrees.open(REF) as tree:
        assert not (tree.path / "deps.log").exists()


@pytest.mark.parametrize(
    "settings",
    [CommitSettings(name="", email="a@example.org"), CommitSettings(name=".,;", email="x@y.z")],
)
def test_an_identity_that_git_refuses_needs_the_operator(
    worktrees: GitWorktrees, settings: CommitSettings
) -> None:
    with worktrees.open(REF) as tree:
        run_in_worktree(tree, "echo new > new")
        with pytest.raises(MisconfiguredError, match=r"commit\.name"):
            tree.capture(TEXT, settings)


def test_a_full_disk_is_not_taken_for_work_of_the_agent(
    worktrees: GitWorktrees, tmp_path: Path
) -> None:
    wrapper = tmp_path / "bin" / "git"
    wrapper.parent.mkdir()
    wrapper.write_text(
        '#!/bin/sh\ncase "$*" in *" add -A "*) echo "error: x: No space left on device"; exit 1;; '
        f'esac\nexec {shutil.which("git")} "$@"\n'
    )
    wrapper.chmod(0o755)
    full = replace(worktrees, environment={"PATH": f"{wrapper.parent}:{os.environ['PATH']}"})
    with full.open(REF) as tree:
        run_in_worktree(tree, "echo new > new")
        with pytest.raises(UnavailableError, match="free some space"):
            tree.capture(TEXT, SETTINGS)


def test_text_that_git_could_not_take_is_made_fit(worktrees: GitWorktrees, tmp_path: Path) -> None:
    with worktrees.open(REF) as tree:
        run_in_worktree(tree, "echo new > new")
        text = CommitText("sub\0ject\ud800 \x1b[31m", "bo\0dy", "not a login")
        change = tree.capture(text, CommitSettings(name="M\0x", email="m@example.org"))
    mirror = tmp_path / "work" / REF.repository / "mirror.git"
    assert git(mirror, "show", "-s", "--format=%an|%B", str(change.head_sha)).rstrip() == (
        "Mx|subject [31m\n\nbody"
    )


RAN_TESTS = (
    "mkdir -p src/__pycache__ web/node_modules/x .pytest_cache; touch src/__pycache__/calc.pyc",
    "touch web/node_modules/x/index.js src/deep/.DS_Store .coverage .pytest_cache/v src/old.pyc",
)
LEFT_BY_TESTS = (
    *(".coverage", ".pytest_cache/", "src/__pycache__/", "src/deep/.DS_Store", "src/old.pyc"),
    "web/node_modules/",
)
UNIGNORING = {name: text for name, text in FILES.items() if name != ".gitignore"}


@pytest.mark.parametrize("committed", [":", "git add -A", "git add -f -A", "git add -f src"])
def test_what_tools_leave_is_no_part_of_the_change(tmp_path: Path, committed: str) -> None:
    remote = make_remote(tmp_path / "plain.git", UNIGNORING)
    with worktrees_of(tmp_path / "plain", remote).open(REF) as tree:
        run_in_worktree(tree, *RAN_TESTS, "mkdir build; echo x > build/new", committed)
        run_in_worktree(tree, "git commit -qm tests", check=False)
        change = tree.capture(TEXT, SETTINGS)
        assert (counted(change), change.leftovers) == ((added("build/new"),), LEFT_BY_TESTS)
    with worktrees_of(tmp_path / "plain", remote).open(REF) as tree:
        assert contents(tree.path) == files_as_committed(UNIGNORING)
        run_in_worktree(tree, *RAN_TESTS, committed)
        run_in_worktree(tree, "git commit -qm tests", check=False)
        change = tree.capture(TEXT, SETTINGS)
        assert (change.head_sha, change.leftovers) == (None, ())
        assert "src/__pycache__/calc.pyc" in change.ignored_files


def test_what_the_repository_ignores_and_what_set_up_left_is_not_named(tmp_path: Path) -> None:
    remote = make_remote(tmp_path / "plain.git", {**FILES, ".gitignore": "*.pyc\n"})
    with worktrees_of(tmp_path / "plain", remote).open(REF) as opened:
        tree = set_up_in_worktree(opened, "mkdir -p node_modules/x; echo 1 > node_modules/x/a")
        (tree.private / "home-of-the-agent").mkdir()
        assert (tree.path / "node_modules/x/a").exists()
        assert tree.capture(TEXT, SETTINGS) == Change(tree.start_sha, None, 0)
        run_in_worktree(tree, "touch new a.pyc .DS_Store")
        change = tree.capture(TEXT, SETTINGS)
        assert (counted(change), change.leftovers) == ((added("new", lines=0),), (".DS_Store",))
        run_in_worktree(tree, "touch node_modules/x/b node_modules/x/c")
        assert tree.capture(TEXT, SETTINGS).leftovers == (".DS_Store", "node_modules/")


def test_what_looks_left_by_tools_is_work_where_the_repository_tracks_such_files(
    tmp_path: Path,
) -> None:
    tracked = {"action/node_modules/x/index.js": "1\n", "tests/broken.pyc": "1\n", **UNIGNORING}
    remote = make_remote(tmp_path / "plain.git", {**tracked, ".gitignore": "*.log\n"})
    with worktrees_of(tmp_path / "plain", remote).open(REF) as tree:
        run_in_worktree(
            tree,
            "cd action/node_modules; echo 2 > x/index.js; mkdir y; echo 1 | tee y/new y/a.log",
            "cd ../..; echo 2 > tests/broken.pyc; echo 1 > tests/other.pyc; touch .DS_Store",
            "mkdir src/__pycache__; echo 1 > src/__pycache__/a.pyc; git clone -q . node_modules",
            "git clone -q . copy",
        )
        change = tree.capture(TEXT, SETTINGS)
    assert [(file.status, file.path) for file in change.files] == [
        ("M", "action/node_modules/x/index.js"),
        ("A", "action/node_modules/y/new"),
        ("M", "tests/broken.pyc"),
        ("A", "tests/other.pyc"),
    ]
    assert change.leftovers == (".DS_Store", "src/__pycache__/")
    assert change.nested == ("copy",)


SIGNATURE = "Signature: 8a477f597d28d172789f06886806bc55"
MARKED = (
    f"mkdir -p target/debug; (echo '{SIGNATURE}'; echo '# x') > target/CACHEDIR.TAG",
    "echo x > target/debug/a; mkdir -p 'my env/lib'; echo home=x > 'my env/pyvenv.cfg'",
    f"git clone -q . 'my env/x'; echo '{SIGNATURE}' > 'my env/lib/CACHEDIR.TAG'",
)


@pytest.mark.parametrize("committed", [":", "git add -A", "git add -f -A"])
def test_a_directory_that_a_tool_marked_is_no_part_of_the_change(
    tmp_path: Path, committed: str
) -> None:
    remote = make_remote(tmp_path / "plain.git", UNIGNORING)
    with worktrees_of(tmp_path / "plain", remote).open(REF) as tree:
        run_in_worktree(tree, *MARKED, "mkdir cache; echo x | tee cache/CACHEDIR.TAG", committed)
        run_in_worktree(tree, "git -c user.name=a -c user.email=a@b commit -qm x", check=False)
        change = tree.capture(TEXT, SETTINGS)
        assert counted(change) == (added("cache/CACHEDIR.TAG"),)
        assert (change.leftovers, change.nested) == (("my env/", "target/"), ())
    with worktrees_of(tmp_path / "plain", remote).open(REF) as tree:
        assert contents(tree.path) == files_as_committed(UNIGNORING)
        run_in_worktree(tree, *MARKED)
        change = tree.capture(TEXT, SETTINGS)
        assert (change.head_sha, change.ignored_files) == (None, ("my env/", "target/"))


def test_a_marked_directory_that_the_base_tracks_is_work(tmp_path: Path) -> None:
    tracked = {"target/CACHEDIR.TAG": f"{SIGNATURE}\n", "a/.b.swp": "x\n", **UNIGNORING}
    remote = make_remote(tmp_path / "plain.git", tracked)
    with worktrees_of(tmp_path / "plain", remote).open(REF) as tree:
        run_in_worktree(tree, "echo x > target/new; echo x > .c.swp; echo x > a.orig")
        change = tree.capture(TEXT, SETTINGS)
    assert [file.path for file in change.files] == [".c.swp", "target/new"]
    assert change.leftovers == ("a.orig",)


OWN_COMMIT = "git add -A && git -c user.name=a -c user.email=a@b commit -qm fix"
FIX = f"echo fixed > README.md; {OWN_COMMIT}"


@pytest.mark.parametrize(
    ("lines", "nested"),
    [
        (f"git worktree add -q .worktrees/x; cd .worktrees/x; {FIX}", (".worktrees/x",)),
        (f"git worktree add -q build/x; cd build/x; {FIX}", ("build/x",)),
        (f"git clone -q . copy; cd copy; {FIX}", ("copy",)),
        (f"git clone -q . copy; git -C copy checkout -q --detach; cd copy; {FIX}", ("copy",)),
        (f"git clone -q . copy; (cd copy; {FIX}); {OWN_COMMIT}", ("copy",)),
        ("git clone -q --bare . bare", ("bare",)),
        ("git clone -q --mirror . deep/bare.git; git -C deep/bare.git gc -q", ("deep/bare.git",)),
        ("git init -q new/one; echo x > new/one/x", ("new/one",)),
        ("mkdir a; git clone -q . a/b; echo x > a/b/x", ("a/b",)),
        ("git clone -q . a; git clone -q . a/b; git clone -q . c; chmod 0 a/b", ("a", "c")),
        ("git clone -q . $'odd\\n*[x] \\xff'; git clone -q . :x", (":x", "odd\n*[x] \ufffd")),
    ],
)
def test_a_repository_of_its_own_in_the_tree_is_no_part_of_the_change(
    worktrees: GitWorktrees, lines: str, nested: tuple[str, ...]
) -> None:
    with worktrees.open(REF) as tree:
        run_in_worktree(tree, f"({lines})", "echo x > beside")
        change = tree.capture(TEXT, SETTINGS)
        assert (counted(change), change.nested) == ((added("beside"),), nested)
    with worktrees.open(REF) as tree:
        assert contents(tree.path) == files_as_committed()
        run_in_worktree(tree, f"({lines})")
        change = tree.capture(TEXT, SETTINGS)
        assert (change.head_sha, change.files, change.nested) == (None, (), nested)


@pytest.mark.parametrize(
    ("lines", "commits", "named"),
    [
        (f"git checkout -qb fix; {FIX}; git checkout -q -", 1, ("fix",)),
        (f"git checkout -qb fix; {FIX}; git checkout -q main; git gc -q", 1, ("fix",)),
        ("echo fixed > README.md; git stash -q", 0, ("stash",)),
        ("echo fixed > new; git stash -qu", 0, ("stash",)),
        (f"git checkout -q --detach; {FIX}; git checkout -q -", 0, 1),
        (f"{FIX}; git reset -q --hard HEAD~1", 0, 1),
        (f"git worktree add -q $HOME/x; cd $HOME/x; {FIX}", 1, ("x",)),
        (f"git worktree add -qb x $HOME/x; cd $HOME/x; {FIX}", 1, ("x",)),
        (f"git worktree add -qb y z; (cd z; {FIX}); git worktree remove z", 1, ("y",)),
        (f"git worktree add -q --detach $HOME/x; cd $HOME/x; {FIX}", 0, 1),
        # Nothing is left anywhere, or HEAD has it.
        ("git checkout -qb fix; git commit -q --allow-empty -m x; git checkout -q -", 1, ()),
        (f"{FIX}; git revert -n HEAD; git commit -qm back", 2, ()),
        (f"{FIX}; git checkout -q HEAD~1 -- .", 2, ()),
        ("git branch other", 0, ()),
        ("git update-ref refs/stash HEAD; echo x > .git/logs/HEAD", 0, ()),
    ],
)
def test_work_that_is_not_checked_out_is_named(
    worktrees: GitWorktrees, lines: str, commits: int, named: tuple[str, ...] | int
) -> None:
    with worktrees.open(REF) as tree:
        run_in_worktree(tree, f"({lines})", check="logs" not in lines)
        change = tree.capture(TEXT, SETTINGS)
    assert (change.head_sha, change.commits) == (None, commits)
    if isinstance(named, int):
        assert [len(name) for name in change.not_checked_out] == [10] * named
    else:
        assert change.not_checked_out == named


def test_a_repository_in_a_directory_that_the_base_tracks_hides_no_work(
    worktrees: GitWorktrees,
) -> None:
    with worktrees.open(REF) as tree:
        run_in_worktree(tree, f"cd src; git init -q .; echo x > new; {OWN_COMMIT}")
        change = tree.capture(TEXT, SETTINGS)
    assert [file.path for file in change.files] == ["src/new"]
    assert change.nested == ()


def test_a_repository_that_setup_commands_left_is_not_named(worktrees: GitWorktrees) -> None:
    with worktrees.open(REF) as tree:
        run_in_worktree(tree, "git clone -q . dependency")
        tree.private.mkdir(exist_ok=True)
        (tree.private / "agent").touch()
        run_in_worktree(tree, "echo x > beside")
        change = tree.capture(TEXT, SETTINGS)
    assert (counted(change), change.nested) == ((added("beside"),), ())


def test_a_directory_of_the_round_before_is_tracked_too(worktrees: GitWorktrees) -> None:
    with worktrees.open(REF) as tree:
        run_in_worktree(tree, "mkdir package; echo 1 > package/a")
        tree.check_out(str(tree.capture(TEXT, SETTINGS).head_sha), for_agent=True)
        run_in_worktree(tree, "cd package; git init -q .; echo 2 > a; echo 2 > b")
        change = tree.capture(TEXT, SETTINGS)
    assert [(file.path, file.insertions) for file in change.files] == [
        ("package/a", 1),
        ("package/b", 1),
    ]
    assert change.nested == ()
