"""Which rules of GitHub's refuse what Mulligan pushes, and what to do about each (RULES-1)."""

from dataclasses import replace

import pytest

from mulligan.domain.branch_rules import (
    BranchRule,
    ClassicProtection,
    Publication,
    accepts,
    find_obstacles,
    rules_of,
)
from mulligan.domain.host import Diagnosis, Level

pytestmark = pytest.mark.pure

OURS = Publication(
    branch="mulligan/issue-1",
    base="main",
    message="Add numbers (#1)\n\nIssue: acme/tools#1\n",
    email="bot@acme.example.org",
    max_file_bytes=5 * 1024**2,
)
EAGER = replace(OURS, merges=True, deletes=True)
SIGNED = replace(OURS, signs=True)


def pattern(kind: str, operator: str, text: str, *, negated: bool = False) -> BranchRule:
    return BranchRule(kind, operator, text, negated)


def obstacles(
    ours: Publication, branch: tuple[BranchRule, ...] = (), base: tuple[BranchRule, ...] = ()
) -> list[Diagnosis]:
    return list(find_obstacles("acme/tools", ours, branch, base))


@pytest.mark.parametrize(
    ("rule", "ours", "level", "message", "fix"),
    [
        (BranchRule("creation"), OURS, Level.FAULT, "to create branches", "`mulligan/**`"),
        (BranchRule("update"), OURS, Level.FAULT, "to push to branches", "bypass list"),
        (BranchRule("pull_request"), OURS, Level.FAULT, "requires a pull request", "Exclude"),
        (BranchRule("merge_queue"), OURS, Level.FAULT, "the merge queue", "Exclude"),
        (BranchRule("required_status_checks"), OURS, Level.FAULT, "status checks", "Exclude"),
        (BranchRule("non_fast_forward"), OURS, Level.WARNING, "forbids force pushes", "Exclude"),
        (BranchRule("required_linear_history"), EAGER, Level.WARNING, "linear", "update_branch"),
        (BranchRule("deletion"), EAGER, Level.WARNING, "deletion", "delete_branch: false"),
        (
            pattern("branch_name_pattern", "starts_with", "feature/"),
            OURS,
            Level.FAULT,
            "must start with `feature/`. It refuses Mulligan's, such as `mulligan/issue-1`.",
            "Exclude",
        ),
        (
            replace(BranchRule("creation"), source="acme"),
            OURS,
            Level.FAULT,
            "create",
            "(ruleset of acme)",
        ),
    ],
)
def test_a_rule_on_mulligans_branch_is_named_with_its_fix(
    rule: BranchRule, ours: Publication, level: Level, message: str, fix: str
) -> None:
    (found,) = obstacles(ours, branch=(rule,))
    assert (found.area, found.level) == ("acme/tools", level)
    assert message in found.message
    assert fix in found.fix
    # On the base branch, it is what Mulligan's pull request is for.
    assert obstacles(ours, base=(rule,)) == []


@pytest.mark.parametrize(
    "rule", [BranchRule("required_linear_history"), BranchRule("deletion"), BranchRule("new_kind")]
)
def test_a_rule_that_touches_nothing_of_mulligans_is_not_named(rule: BranchRule) -> None:
    assert obstacles(OURS, branch=(rule,), base=(rule,)) == []


@pytest.mark.parametrize(
    ("rule", "ours", "level", "message", "fix"),
    [
        (
            BranchRule("required_signatures"),
            OURS,
            Level.FAULT,
            "Mulligan's commits are not signed",
            "github.signing_key_file",
        ),
        (
            BranchRule("required_signatures"),
            replace(SIGNED, email="mulligan@bot.invalid"),
            Level.FAULT,
            "verifies no commit of mulligan@bot.invalid",
            "commit: {email: …}",
        ),
        (
            pattern("commit_message_pattern", "regex", r"^(feat|fix): "),
            OURS,
            Level.FAULT,
            "must match `^(feat|fix): `. It refuses Mulligan's, such as `Add numbers (#1)`.",
            "Change that rule",
        ),
        (
            pattern("commit_message_pattern", "contains", "acme/tools#", negated=True),
            OURS,
            Level.FAULT,
            "must not contain",
            "Change that rule",
        ),
        (
            pattern("commit_message_pattern", "regex", r"(?=a)b"),
            OURS,
            Level.NOTE,
            "Mulligan cannot read that pattern",
            "Check that it accepts `Add numbers (#1)`",
        ),
        (
            pattern("commit_author_email_pattern", "ends_with", "@acme.test"),
            OURS,
            Level.FAULT,
            "email addresses of commits must end with `@acme.test`",
            "commit: {email: …}",
        ),
        (
            pattern("committer_email_pattern", "ends_with", "@acme.test"),
            OURS,
            Level.FAULT,
            "bot@acme.example.org",
            "commit: {email: …}",
        ),
        (
            BranchRule("file_path_restriction", paths=("a", "b", "c", "d", "e", "f")),
            OURS,
            Level.NOTE,
            "change files: a, b, c, d, e, ….",
            "scope.deny",
        ),
        (
            BranchRule("file_extension_restriction", paths=("*.jar",)),
            OURS,
            Level.NOTE,
            "files that end with: *.jar.",
            "scope.deny",
        ),
        (BranchRule("max_file_path_length", limit=80), OURS, Level.NOTE, "80 characters", "longer"),
        (
            BranchRule("max_file_size", limit=1),
            OURS,
            Level.WARNING,
            "files over 1 MB",
            "max_file_bytes: 1048576",
        ),
    ],
)
def test_a_rule_on_commits_and_files_counts_on_both_branches_and_is_named_once(
    rule: BranchRule, ours: Publication, level: Level, message: str, fix: str
) -> None:
    (found,) = obstacles(ours, branch=(rule,), base=(rule,))
    assert found.level == level
    assert message in found.message
    assert fix in found.fix
    assert obstacles(ours, base=(rule,)) == [found]


@pytest.mark.parametrize(
    ("rule", "ours"),
    [
        (BranchRule("required_signatures"), SIGNED),
        (BranchRule("max_file_size", limit=5), OURS),
        (pattern("commit_message_pattern", "contains", "(#"), OURS),
        (pattern("commit_message_pattern", "ends_with", "tools#1"), OURS),
        (pattern("commit_message_pattern", "regex", "^WIP", negated=True), OURS),
    ],
)
def test_what_a_rule_accepts_is_not_named(rule: BranchRule, ours: Publication) -> None:
    assert obstacles(ours, branch=(rule,), base=(rule,)) == []


def test_an_operator_that_is_new_is_not_judged() -> None:
    assert accepts(pattern("commit_message_pattern", "sounds_like", "x"), "x") is None
    (found,) = obstacles(OURS, base=(pattern("commit_message_pattern", "sounds_like", "x"),))
    assert "must sounds_like `x`" in found.message


def test_a_classic_protection_stands_for_rules() -> None:
    assert rules_of(ClassicProtection()) == ()
    both = rules_of(ClassicProtection(signatures=True, linear_history=True))
    assert [rule.kind for rule in both] == ["required_signatures", "required_linear_history"]
