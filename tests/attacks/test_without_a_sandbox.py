"""Without bubblewrap exactly those attacks work that docs/security.md lists."""

import json
import os
import re
import sys
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path

import pytest

from attacks.test_containment import TRICK_FILE, target
from attacks.tricks import TRICKS, Target
from mulligan.sandbox.process import Command
from mulligan.sandbox.sandbox import CommandAccess, Unconfined
from world.other_user import run_as_another_user

__all__ = ["target"]
PAGE = Path(__file__).parents[2] / "docs" / "security.md"
SECTION = re.compile(r"a test holds the list to that:\n\n(.*?)\n\n", re.DOTALL)


def listed() -> list[str]:
    """Read the list of the page: tricks by their names, with spaces."""
    found = SECTION.search(PAGE.read_text())
    assert found
    lines = found[1].splitlines()
    assert all(line.startswith(("- ", "  ")) for line in lines)
    words = " ".join(lines).replace("- ", "; ").split(";")
    return sorted(" ".join(each.split()) for each in words if each.strip())


def works(trick: str, target: Target) -> bool:
    """Try as an agent is run where nothing confines it: with an environment of its own."""
    command = Command(
        argv=(sys.executable, TRICK_FILE, trick, json.dumps(asdict(target))),
        directory=target.root / "work" / "issue-1",
        environment={"PATH": os.environ["PATH"]},
        timeout=timedelta(seconds=20),
    )
    return Unconfined().run(command, CommandAccess()).exit_code == 0


def test_without_walls_what_is_listed_works_and_nothing_else(target: Target) -> None:
    """Whatever ends Mulligan's stand-in comes last."""
    last = ("trace_mulligan", "freeze_mulligan", "kill_mulligan")
    tried = [*(trick for trick in TRICKS if trick not in last), *last]
    assert sorted(trick.replace("_", " ") for trick in tried if works(trick, target)) == listed()


@pytest.mark.skipif(os.getuid() != 0, reason="is not root, so all of these ran as a user already")
def test_the_list_is_the_same_for_a_user_who_is_not_root() -> None:
    assert "1 passed" in run_as_another_user(__file__, "what_is_listed")


def test_only_attacks_are_listed() -> None:
    assert set(listed()) <= {trick.replace("_", " ") for trick in TRICKS}
    assert len(set(listed())) == len(listed())
