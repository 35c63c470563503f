"""What a protected name leads to is protected like the name: git's own trees, read by Mulligan."""

from collections.abc import Generator, Mapping

import pytest

from mulligan.checks.guards import violations
from mulligan.config.policy import CommitSettings, Scope
from mulligan.domain.attempt import Change
from mulligan.domain.protected import Protected
from mulligan.domain.result import FileChange, GuardKind
from mulligan.git.worktrees.attempt_worktree import Checkout
from world.checkouts import REF, TEXT, run_in_worktree, worktrees_of
from world.repositories import git, make_remote

FILES = {
    "docs/guide.md": "Be careful.\n",
    "docs/claude/rules.md": "No.\n",
    "tools/ci/x.yml": "on: push\n",
    "src/a.py": "x = 1\n",
}
LINKS = {
    "AGENTS.md": "docs/guide.md",
    "GEMINI.md": "docs/latest",
    "docs/latest": "./guide.md",
    ".claude": "docs/claude",
    "CLAUDE.md": "/etc/hosts",
    "sub/AGENTS.md": "../../outside.md",
    ".github/workflows": "../tools/ci",
    "QWEN.md": "docs/new.md",
    "plain": "src",
}


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Generator[Checkout]:
    place = tmp_path_factory.mktemp("links")
    remote, clone = make_remote(place / "remote.git", FILES), place / "clone"
    git(place, "clone", "-q", str(remote), str(clone))
    for name, target in LINKS.items():
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        (clone / name).symlink_to(target)
    git(clone, "add", "-A")
    git(clone, "commit", "-qm", "Links")
    git(clone, "push", "-q", "origin", "HEAD:main")
    with worktrees_of(place / "work", remote).open(REF) as tree:
        yield tree


def refused(tree: Checkout, line: str, scope: Scope | None = None) -> dict[str | None, str]:
    """Run a line as the agent, and return what the guards say about the protected paths."""
    tree.check_out(tree.start_sha)
    run_in_worktree(tree, line)
    found = violations(tree.capture(TEXT, CommitSettings()), scope or Scope())
    return {each.path: each.message for each in found if each.kind is GuardKind.PROTECTED}


@pytest.mark.parametrize(
    ("line", "path", "name"),
    [
        ("echo obey > docs/guide.md", "docs/guide.md", "AGENTS.md"),
        ("echo obey > docs/claude/more.md", "docs/claude/more.md", ".claude/more.md"),
        ("git mv docs/claude/rules.md x", "docs/claude/rules.md", ".claude/rules.md"),
        ("ln -sfn ../src/a.py docs/latest", "docs/latest", "GEMINI.md"),
        ("echo obey > docs/new.md", "docs/new.md", "QWEN.md"),
        ("ln -s ../src/a.py docs/new.md", "docs/new.md", "QWEN.md"),
        ("echo on: push > tools/ci/y.yml", "tools/ci/y.yml", ".github/workflows/y.yml"),
        ("rm tools/ci/x.yml", "tools/ci/x.yml", ".github/workflows/x.yml"),
    ],
)
def test_what_a_protected_link_leads_to_must_not_change(
    opened: Checkout, line: str, path: str, name: str
) -> None:
    found = refused(opened, line)
    assert found[path].startswith(f"{path} must not change: {name} leads to it, and it ")
    assert found[path].endswith(").")
    assert refused(opened, line, Scope(protect=())) == {}


@pytest.mark.parametrize(
    "line",
    [
        "echo y > src/a.py",
        "echo y > outside.md",
        "ln -s docs/guide.md guide",
        "mkdir etc; echo > etc/hosts",
    ],
)
def test_other_files_change_as_before(opened: Checkout, line: str) -> None:
    assert refused(opened, line) == {}


def changed(*paths: str, links: Mapping[str, str], new: Mapping[str, str] | None = None) -> Change:
    files = [FileChange(path=path, status="M", mode="100644") for path in paths]
    made = (new or {}).items()
    files += [FileChange(path=path, status="A", mode="120000", link=link) for path, link in made]
    return Change("a" * 40, "b" * 40, 1, tuple(files), links=tuple(links.items()))


@pytest.mark.pure
@pytest.mark.parametrize(
    ("links", "path", "name"),
    [
        ({"AGENTS.md": "a", "a": "b", "b": "c/d"}, "c/d", "AGENTS.md"),
        ({"AGENTS.md": "a", "a": "b", "b": "c/d"}, "b", "AGENTS.md"),
        ({"AGENTS.md": "x/guide.md", "x": "docs"}, "docs/guide.md", "AGENTS.md"),
        ({"AGENTS.md": "x/guide.md", "x": "docs"}, "x", "AGENTS.md"),
        ({"AGENTS.md": "x/../guide.md", "x": "a/b"}, "a/guide.md", "AGENTS.md"),
        ({"AGENTS.md": "docs/guide.md"}, "docs", "AGENTS.md"),
        ({"AGENTS.md": "Docs/Guide.md"}, "docs/guide.MD", "AGENTS.md"),
        ({".github": "cfg", "cfg/workflows": "../ci"}, "ci/x.yml", ".github/workflows/x.yml"),
        ({".github": "cfg"}, "cfg/CODEOWNERS", ".github/CODEOWNERS"),
        ({".claude": "vendor/sub/claude"}, "vendor/sub", ".claude"),
        ({"sub/AGENTS.md": "../docs//./guide.md"}, "docs/guide.md", "sub/AGENTS.md"),
        ({"AGENTS.md": "a/b/c", "a/b": "../self/d", "self": "."}, "d/c", "AGENTS.md"),
    ],
)
def test_links_are_followed_as_the_system_does(links: dict[str, str], path: str, name: str) -> None:
    found = violations(changed(path, links=links), Scope())
    assert {(each.kind, each.path) for each in found} == {(GuardKind.PROTECTED, path)}
    assert f"{path} must not change: {name} leads to it" in found[0].message


@pytest.mark.pure
@pytest.mark.parametrize(
    ("links", "path"),
    [
        ({"AGENTS.md": "../../guide.md"}, "guide.md"),
        ({"AGENTS.md": "/docs/guide.md"}, "docs/guide.md"),
        ({"AGENTS.md": "x", "x": "/docs/guide.md"}, "docs/guide.md"),
        ({"AGENTS.md": "x", "x": "y", "y": "x"}, "docs/guide.md"),
        ({"AGENTS.md": "AGENTS.md"}, "docs/guide.md"),
        ({"AGENTS.md": "."}, "docs/guide.md"),
        ({"a/b": "."} | {f"a/{n}": "." for n in range(9)}, "a/x.py"),
        ({"guide": "docs/guide.md"}, "docs/guide.md"),
    ],
)
def test_links_that_lead_to_nothing_protect_nothing(links: dict[str, str], path: str) -> None:
    assert violations(changed(path, links=links), Scope()) == ()


@pytest.mark.pure
def test_a_new_link_is_no_way_around() -> None:
    """The base leads nowhere, and the change adds the place and where it leads."""
    change = changed("ci/x.yml", links={".github": "cfg"}, new={"cfg/workflows": "../ci"})
    found = {each.path: each.message for each in violations(change, Scope())}
    assert ".github/workflows/x.yml leads to it" in found["ci/x.yml"]


@pytest.mark.pure
@pytest.mark.parametrize(
    "path",
    [
        *(".env", "sub/.env", ".envrc", ".vscode/tasks.json", ".idea/runConfigurations/x.xml"),
        *(".devcontainer/devcontainer.json", ".devcontainer.json", ".husky/pre-commit"),
        *("lefthook.yml", ".pre-commit-config.yaml", ".github/settings.yml", ".gitpod.yml"),
        *(".github/dependabot.yml", "renovate.json", ".mergify.yml", "OWNERS", "mise.toml"),
    ],
)
def test_what_runs_when_a_person_opens_the_work_is_protected_if_asked_for(path: str) -> None:
    assert violations(changed(path, links={}), Scope()) == ()
    (found,) = violations(changed(path, links={}), Scope(protect=(Protected.AUTORUN,)))
    assert found.message.endswith("(scope.protect: autorun).")
    links = {path: f"{'../' * path.count('/')}docs/a.md"}
    assert violations(changed("docs/a.md", links=links), Scope(protect=(Protected.AUTORUN,)))
    assert violations(changed("docs/a.md", links=links), Scope()) == ()
