"""What is planted in git works on plain `git worktree`, and does Mulligan no harm (SECURITY-2)."""

from datetime import timedelta
from pathlib import Path

import pytest

from attacks.plants import AGENT, GIT_ATTACKS, WORK, Planter, shell
from mulligan.config.policy import CommitSettings
from mulligan.domain.errors import WorldError
from mulligan.domain.issue import IssueRef
from mulligan.git.worktrees.attempt_worktree import Checkout
from mulligan.git.worktrees.worktrees import GitWorktrees
from mulligan.sandbox.process import Command
from mulligan.sandbox.sandbox import CommandAccess
from world.checkouts import (
    REF,
    REPOSITORY,
    TEXT,
    calc_remote,
    contents,
    files_as_committed,
    worktrees_of,
)
from world.confined import sandbox
from world.repositories import branch_head, git, run_git

OTHER = IssueRef(REPOSITORY, 13)
NAIVE = """
git status -s; git diff --stat; git diff; git add -A; git status -s; git commit -qm work
git push -q origin HEAD:refs/heads/mulligan/issue-12
git fetch -q origin; git reset -q --hard origin/main; git clean -qfdx
cd ..; git -C repository worktree add -q --detach ../issue-13 origin/main
"""
"""What a program does that keeps worktrees of one clone and believes what it finds there."""

WITHOUT_A_SANDBOX = {
    "41-filter.smudge",
    "41-insteadOf",
    "42-commondir",
    "45-locks",
    "45-objects",
}
"""What works on Mulligan's own git directory, for an agent who is let look for it."""


@pytest.fixture
def planter(tmp_path: Path) -> Planter:
    remote = calc_remote(tmp_path / "remote.git")
    made = Planter(tmp_path, remote, str(branch_head(remote, "main")))
    made.prepare()
    return made


@pytest.fixture
def worktrees(planter: Planter) -> GitWorktrees:
    return worktrees_of(planter.place / "work", planter.remote)


def harm(planter: Planter, *trees: Path) -> list[str]:
    """List what an attack has brought about; the trees ought to be clean."""
    pushed = run_git(planter.remote, "cat-file", "blob", f"{REF.branch}:README.md").stdout
    clean = files_as_committed()
    return [
        *(["a planted program was started"] if planter.marker.exists() else []),
        *(["the work did not arrive"] if pushed != "changed\n" else []),
        *(f"{tree.name} is not clean" for tree in trees if contents(tree) != clean),
    ]


def naively(attack: str | None, planter: Planter) -> list[str]:
    """Let an agent work, and attack, in a plain worktree of a clone."""
    place = planter.place
    git(place, "clone", "-q", "--no-hardlinks", str(planter.remote), "repository")
    git(place / "repository", "worktree", "add", "-q", "--detach", str(place / "issue-12"), "HEAD")
    tree, common = place / "issue-12", place / "repository" / ".git"
    own = common / "worktrees" / "issue-12"
    shell(tree, WORK + (planter.script(attack, tree, common, own) if attack else ""))
    shell(tree, NAIVE)
    return harm(planter, tree, place / "issue-13")


def finish(worktrees: GitWorktrees, tree: Checkout) -> None:
    """Do with an agent's work what the attempt does."""
    change = tree.capture(TEXT, CommitSettings())
    if change.head_sha:
        tree.check_out(change.head_sha)
        worktrees.push(REF, change.head_sha, None)


def look_around(worktrees: GitWorktrees, planter: Planter) -> list[str]:
    """Go on with another issue; tell of the harm that was done."""
    with worktrees.open(OTHER) as other:
        return harm(planter, other.path)


def test_without_an_attack_the_naive_way_does_its_work(planter: Planter) -> None:
    assert naively(None, planter) == []


TOGETHER = {
    "what git would start": (
        *("41-hooks", "41-core.hooksPath", "41-core.fsmonitor", "41-filter.clean"),
        *("41-filter.smudge", "41-diff.external", "41-gpg.program", "41-receivepack"),
        *("41-uploadpack", "41-insteadOf", "41-pushurl", "41-include.path", "41-config.worktree"),
    ),
    "what git would believe": (
        *("41-diff.textconv", "41-diff.command", "43-nested-repository", "44-replace"),
        *("46-skip-worktree", "45-locks"),
    ),
    "another git directory": ("42-commondir", "45-objects"),
    "another repository": ("42-pointer",),
}
"""All attacks, in groups that do not undo each other."""


def test_no_attack_is_left_out() -> None:
    assert sorted(attack for group in TOGETHER.values() for attack in group) == sorted(GIT_ATTACKS)


@pytest.mark.parametrize("group", TOGETHER)
def test_none_works_on_mulligans_worktree(
    group: str, planter: Planter, worktrees: GitWorktrees
) -> None:
    with worktrees.open(REF) as tree:
        decoy = tree.worktree.paths.agent_git_dir
        shell(tree.path, WORK)
        for attack in TOGETHER[group]:
            shell(tree.path, planter.script(attack, tree.path, decoy, decoy))
        # The agent's own git may have met what was planted before.
        planter.marker.unlink(missing_ok=True)
        finish(worktrees, tree)
    assert look_around(worktrees, planter) == []


@pytest.mark.deep
@pytest.mark.parametrize("attack", GIT_ATTACKS)
def test_it_works_on_a_plain_worktree_and_not_on_mulligans(
    attack: str, planter: Planter, worktrees: GitWorktrees
) -> None:
    with worktrees.open(REF) as tree:
        decoy = tree.worktree.paths.agent_git_dir
        shell(tree.path, WORK + planter.script(attack, tree.path, decoy, decoy))
        finish(worktrees, tree)
    assert look_around(worktrees, planter) == []
    git(planter.remote, "update-ref", "-d", f"refs/heads/{REF.branch}")
    shell(planter.place, "rm -rf own")
    assert naively(attack, planter), "the attack itself does not work"


def mirror_of(tree: Checkout) -> tuple[Path, Path]:
    return tree.worktree.mirror.paths.mirror, tree.worktree.paths.git_dir


def attack_the_mirror(worktrees: GitWorktrees, planter: Planter, *attacks: str) -> list[str]:
    """Let an agent look for Mulligan's own git directory; give the harm, a failure among it."""
    try:
        with worktrees.open(REF) as tree:
            for attack in attacks:
                shell(tree.path, planter.script(attack, tree.path, *mirror_of(tree)))
            shell(tree.path, WORK)
            # The agent's own git may have met what was planted before.
            planter.marker.unlink(missing_ok=True)
            finish(worktrees, tree)
        return look_around(worktrees, planter)
    except WorldError as error:
        return [str(error)]


def test_without_a_sandbox_most_of_it_fails_on_mulligans_own_git_directory(
    planter: Planter, worktrees: GitWorktrees
) -> None:
    others = [attack for attack in GIT_ATTACKS if attack not in WITHOUT_A_SANDBOX]
    assert attack_the_mirror(worktrees, planter, *others) == []


@pytest.mark.deep
@pytest.mark.parametrize("attack", sorted(WITHOUT_A_SANDBOX))
def test_without_a_sandbox_these_work_as_the_page_says(
    attack: str, planter: Planter, worktrees: GitWorktrees
) -> None:
    assert attack_the_mirror(worktrees, planter, attack)


def test_inside_the_sandbox_none_reaches_mulligans_own_git_directory(
    planter: Planter, worktrees: GitWorktrees
) -> None:
    walls = sandbox((planter.place / "work",))
    with worktrees.open(REF) as tree:
        reach = CommandAccess(
            read=(*tree.readable, planter.place / "program"), write=(tree.path, *tree.writable)
        )
        scripts = [planter.script(attack, tree.path, *mirror_of(tree)) for attack in GIT_ATTACKS]
        lines = "\n".join(f"( {script} ) < /dev/null > /dev/null 2>&1" for script in scripts)
        command = Command(
            ("bash", "-c", f"{lines}\n{WORK}"), tree.path, AGENT, timedelta(seconds=20)
        )
        ended = walls.run(command, reach)
        assert ended.exit_code == 0, ended.text
        finish(worktrees, tree)
    assert look_around(worktrees, planter) == []
