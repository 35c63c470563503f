"""The demo's repository is a real one, its checks pass, and its policy is valid."""

from pathlib import Path

import pytest
import yaml

from github_simulator.bare_repository import BareRepository, SimulatorError, git
from github_simulator.records import IssueName
from github_simulator.seed import BOT, MAINTAINER, REPOSITORY, make_repository, seed
from mulligan.config.policy import Policy
from mulligan.domain.result import CheckKind
from world.processes import output_of
from world.simulated_github import World


def test_its_checks_pass_before_anything_is_changed(tmp_path: Path) -> None:
    bare = make_repository(tmp_path)
    output_of(f"git clone -q {bare} clone", tmp_path)
    policy = Policy.model_validate(
        yaml.safe_load((tmp_path / "clone/.github/mulligan.yml").read_text())
    )
    assert [check.kind for check in policy.checks] == [CheckKind.BUILD, CheckKind.TEST]
    for check in policy.checks:
        output_of(check.run, tmp_path / "clone")
    assert output_of("git status --porcelain", tmp_path / "clone") == "?? command.log"
    assert output_of("python3 -m calculator 6 / 4", tmp_path / "clone") == "1.5"


def test_its_history_is_the_same_everywhere(tmp_path: Path) -> None:
    one, other = make_repository(tmp_path / "one"), make_repository(tmp_path / "other")
    assert BareRepository(one).branches() == BareRepository(other).branches()
    authors = git(one, "log", "--format=%an", "main")
    assert authors == b"Maya Lindqvist\nSam Okafor\nMaya Lindqvist\n"


def test_a_maintainer_has_labelled_six_issues(tmp_path: Path) -> None:
    world = World()
    seeded = seed(world, tmp_path, "token")
    assert seeded.issues == tuple(IssueName(REPOSITORY, number) for number in range(1, 7))
    for ref in seeded.issues:
        assert "mulligan" in world.labels_of(ref)
        label = [event for event in world.events_of(ref) if event.label][-1]
        assert (label.actor.login, label.label and label.label[0]) == (MAINTAINER, "mulligan")
    assert (world.tokens["token"].login, world.tokens["token"].type) == (BOT, "Bot")
    assert "## Success criteria" in (world.issue_of(seeded.issues[0]).body or "")


def test_the_label_can_be_left_to_a_person(tmp_path: Path) -> None:
    world = World()
    seeded = seed(world, tmp_path, "token", ready_label=None)
    assert "mulligan" not in world.labels_of(seeded.issues[0])


def test_a_directory_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / f"{REPOSITORY}.git" / "HEAD").mkdir(parents=True)
    with pytest.raises(SimulatorError, match="name an empty directory"):
        make_repository(tmp_path)
