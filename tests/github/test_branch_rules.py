"""The rules of branches, read as GitHub serves them; a refusal is never "no rules" (RULES-1)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from github_simulator.world import Fault
from mulligan.domain.branch_rules import BranchRule, ClassicProtection
from mulligan.domain.errors import ForbiddenError, WorldError
from mulligan.github.branch_rules import RuleReader
from world.simulated import NAME
from world.trackers import BOT, TrackerEnvironment, tracker_environment

BRANCH = "mulligan/issue-1"


@pytest.fixture
def office(tmp_path: Path) -> Iterator[TrackerEnvironment]:
    with tracker_environment(tmp_path) as found:
        yield found


@pytest.fixture
def reader(office: TrackerEnvironment) -> RuleReader:
    return office.tracker.rules


def test_each_rule_of_a_branch_is_read_with_its_parameters(
    office: TrackerEnvironment, reader: RuleReader
) -> None:
    world = office.hub.world
    about = {"operator": "regex", "pattern": "^fix", "negate": True}
    world.add_rule(NAME, "commit_message_pattern", ["mulligan/*"], about)
    world.add_rule(NAME, "file_path_restriction", ["*"], {"restricted_file_paths": ["a", "b"]})
    world.add_rule(NAME, "max_file_size", ["*"], {"max_file_size": 3})
    world.add_rule(NAME, "required_signatures", ["main"])
    assert reader.rules(NAME, BRANCH) == [
        BranchRule("commit_message_pattern", "regex", "^fix", negated=True, source=NAME),
        BranchRule("file_path_restriction", paths=("a", "b"), source=NAME),
        BranchRule("max_file_size", limit=3, source=NAME),
    ]
    assert [rule.kind for rule in reader.rules(NAME, "main")][-1] == "required_signatures"


def test_a_rule_that_mulligans_account_may_bypass_does_not_count(
    office: TrackerEnvironment, reader: RuleReader
) -> None:
    office.hub.world.add_rule(NAME, "creation", ["*"], bypassed_by=[BOT])
    office.hub.world.add_rule(NAME, "update", ["*"], bypassed_by=["wes"])
    assert [rule.kind for rule in reader.rules(NAME, BRANCH)] == ["update"]
    # Without an answer about the bypass, the rule counts.
    office.hub.world.faults = lambda _, path: Fault(403) if "/rulesets/" in path else None
    assert [rule.kind for rule in reader.rules(NAME, BRANCH)] == ["creation", "update"]


@pytest.mark.parametrize("status", [403, 404])
def test_a_refusal_is_an_error(office: TrackerEnvironment, reader: RuleReader, status: int) -> None:
    office.hub.world.faults = lambda _, path: Fault(status) if "/rules/" in path else None
    with pytest.raises(WorldError):
        reader.rules(NAME, BRANCH)


def test_the_classic_protection_is_for_administrators(
    office: TrackerEnvironment, reader: RuleReader
) -> None:
    world = office.hub.world
    assert reader.protection(NAME, "main") is None
    world.protect(NAME, "main", "required_signatures")
    with pytest.raises(WorldError) as refused:
        reader.protection(NAME, "main")
    assert not isinstance(refused.value, ForbiddenError)
    world.set_role(NAME, BOT, "admin")
    assert reader.protection(NAME, "main") == ClassicProtection(signatures=True)


def test_the_signing_keys_of_an_account_are_compared_without_comments(
    office: TrackerEnvironment, reader: RuleReader
) -> None:
    assert reader.signing_keys(BOT) == []
    office.hub.world.add_signing_key(BOT, "ssh-ed25519 AAAA mulligan@host")
    assert reader.signing_keys(BOT) == ["ssh-ed25519 AAAA"]
