"""A repository's policy comes from its base branch, and the operator's keys go over it."""

from pathlib import Path

import pytest
from pydantic import JsonValue

from mulligan.config.policy import POLICY_FILES, Baseline, CommitSettings, Policy
from mulligan.domain.errors import MisconfiguredError
from mulligan.git.worktrees.base_policy import BasePolicies
from mulligan.git.worktrees.worktrees import GitWorktrees
from world.checkouts import REF, REPOSITORY, TEXT, calc_remote, run_in_worktree, worktrees_of
from world.repositories import commit_to

FILE, OTHER_FILE = POLICY_FILES
VALID = "max_issue_attempts: 2\nsetup: [make deps]\n"


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return calc_remote(tmp_path / "remote.git")


@pytest.fixture
def worktrees(tmp_path: Path, remote: Path) -> GitWorktrees:
    return worktrees_of(tmp_path / "work", remote)


def policies(worktrees: GitWorktrees, **overrides: JsonValue) -> BasePolicies:
    return BasePolicies(worktrees, {REPOSITORY: overrides})


def test_before_the_first_fetch_the_operators_keys_are_in_force(worktrees: GitWorktrees) -> None:
    assert policies(worktrees).in_force(REPOSITORY) == Policy()
    assert policies(worktrees, max_issue_attempts=5).in_force(REPOSITORY).max_issue_attempts == 5
    assert policies(worktrees).in_force("octo/other") == Policy()


def test_the_operators_keys_replace_those_of_the_file(
    worktrees: GitWorktrees, remote: Path
) -> None:
    sha = commit_to(remote, {FILE: VALID})
    assert policies(worktrees).fault(REPOSITORY) == ""
    worktrees.fetch_base(REPOSITORY)
    assert policies(worktrees).fault(REPOSITORY) == ""
    mixed = policies(worktrees, max_issue_attempts=5)
    for policy in (mixed.in_force(REPOSITORY), mixed.at(REPOSITORY, sha)):
        assert (policy.max_issue_attempts, policy.setup.run) == (5, ("make deps",))


def test_a_default_of_the_host_is_for_a_key_that_nobody_has_set(
    worktrees: GitWorktrees, remote: Path
) -> None:
    defaults: dict[str, JsonValue] = {"baseline": "on-failure"}
    host = BasePolicies(worktrees, {}, defaults)
    assert host.in_force(REPOSITORY).baseline is Baseline.ON_FAILURE
    for text, expected in (
        (VALID, Baseline.ON_FAILURE),
        ("baseline: on\n", Baseline.ON),
        ("baseline: maybe\n", Baseline.ON_FAILURE),
    ):
        sha = commit_to(remote, {FILE: text})
        worktrees.fetch_base(REPOSITORY)
        assert host.in_force(REPOSITORY).baseline is expected
        if expected is Baseline.ON:
            assert host.at(REPOSITORY, sha).baseline is expected
    operators = BasePolicies(worktrees, {REPOSITORY: {"baseline": "off"}}, defaults)
    assert operators.in_force(REPOSITORY).baseline is Baseline.OFF


def test_a_policy_may_have_the_other_ending(worktrees: GitWorktrees, remote: Path) -> None:
    sha = commit_to(remote, {OTHER_FILE: VALID})
    worktrees.fetch_base(REPOSITORY)
    assert policies(worktrees).in_force(REPOSITORY).max_issue_attempts == 2
    assert policies(worktrees).at(REPOSITORY, sha).max_issue_attempts == 2
    commit_to(remote, {OTHER_FILE: "what: 1\n"})
    worktrees.fetch_base(REPOSITORY)
    assert policies(worktrees).fault(REPOSITORY).startswith(f"{OTHER_FILE} of octo/calc")


def test_two_policies_are_an_invalid_one_that_names_both(
    worktrees: GitWorktrees, remote: Path
) -> None:
    sha = commit_to(remote, {FILE: VALID, OTHER_FILE: "max_issue_attempts: 3\n"})
    worktrees.fetch_base(REPOSITORY)
    said = f"octo/calc has {FILE} and {OTHER_FILE}. Mulligan reads one; delete the other."
    assert policies(worktrees).fault(REPOSITORY) == said
    assert policies(worktrees).in_force(REPOSITORY).max_issue_attempts == 2
    with pytest.raises(MisconfiguredError, match="delete the other"):
        policies(worktrees).at(REPOSITORY, sha)


def test_a_policy_is_the_one_of_its_commit(worktrees: GitWorktrees, remote: Path) -> None:
    old = commit_to(remote, {FILE: VALID})
    new = commit_to(remote, {FILE: None})
    worktrees.fetch_base(REPOSITORY)
    assert policies(worktrees).at(REPOSITORY, old).max_issue_attempts == 2
    assert policies(worktrees).at(REPOSITORY, new) == Policy()
    assert policies(worktrees).in_force(REPOSITORY) == Policy()


@pytest.mark.parametrize("text", ["max_issue_attempts: 99\n", "what: 1\n", ": : :\n", "- a\n"])
def test_an_invalid_policy_is_said_to_be_and_somebody_can_still_be_told(
    worktrees: GitWorktrees, remote: Path, text: str
) -> None:
    sha = commit_to(remote, {FILE: text})
    worktrees.fetch_base(REPOSITORY)
    with pytest.raises(MisconfiguredError, match=r"\.github/mulligan\.yml of octo/calc"):
        policies(worktrees).at(REPOSITORY, sha)
    assert policies(worktrees).fault(REPOSITORY).startswith(f"{FILE} of octo/calc")
    labels: JsonValue = {"hitl": "help"}
    assert policies(worktrees, labels=labels).in_force(REPOSITORY).labels.hitl == "help"


def test_several_mistakes_are_said_on_one_line(worktrees: GitWorktrees, remote: Path) -> None:
    sha = commit_to(remote, {FILE: "max_issue_attempts: 99\nwhat: 1\n"})
    worktrees.fetch_base(REPOSITORY)
    said = policies(worktrees).fault(REPOSITORY)
    assert said.startswith(f"{FILE} of octo/calc has 2 mistakes: line 1: max_issue_attempts is 99;")
    assert "\n" not in said
    with pytest.raises(MisconfiguredError) as caught:
        policies(worktrees).at(REPOSITORY, sha)
    assert str(caught.value) == said


def test_what_holds_of_an_invalid_file_is_in_force(worktrees: GitWorktrees, remote: Path) -> None:
    commit_to(remote, {FILE: "labels: {ready: robot}\nmax_issue_attempts: many\n"})
    worktrees.fetch_base(REPOSITORY)
    found = policies(worktrees, max_issue_attempts=4).in_force(REPOSITORY)
    assert (found.labels.ready, found.max_issue_attempts) == ("robot", 4)


def test_an_agents_policy_is_not_in_force(worktrees: GitWorktrees) -> None:
    with worktrees.open(REF) as tree:
        run_in_worktree(tree, f"mkdir .github; echo 'max_issue_attempts: 9' > {FILE}")
        change = tree.capture(TEXT, CommitSettings())
        tree.check_out(str(change.head_sha))
        assert policies(worktrees).in_force(REPOSITORY) == Policy()
        assert policies(worktrees).at(REPOSITORY, tree.start_sha) == Policy()
