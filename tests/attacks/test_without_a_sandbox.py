"""Without bubblewrap exactly those attacks work that docs/security.md lists."""

import json
import os
import re
import sys
from dataclasses import asdict, replace
from datetime import timedelta
from pathlib import Path

from attacks.test_containment import TRICK_FILE, target
from attacks.tricks import TRICKS, TRICKS_IN_ORDER, Target
from mulligan.sandbox.process import Command
from mulligan.sandbox.sandbox import CommandAccess, Unconfined

__all__ = ["target"]
PAGE = Path(__file__).parents[2] / "docs" / "security.md"
SECTION = re.compile(r"\n## Without a sandbox\n.*?\n\n(- .*?)\n\n", re.DOTALL)


def listed() -> list[str]:
    """Read the list of the page: tricks by their names, with spaces."""
    found = SECTION.search(PAGE.read_text())
    assert found
    lines = found[1].splitlines()
    assert all(line.startswith(("- ", "  ")) for line in lines)
    words = " ".join(lines).replace("- ", "; ").split(";")
    return sorted(" ".join(each.split()) for each in words if each.strip())


def test_without_walls_what_is_listed_works_and_nothing_else(target: Target) -> None:
    """Try as an agent is run where nothing confines it: with an environment of its own."""
    command = Command(
        argv=(
            sys.executable,
            TRICK_FILE,
            ",".join(TRICKS_IN_ORDER),
            json.dumps(asdict(replace(target, hold=0))),
        ),
        directory=target.root / "work" / "issue-1",
        environment={"PATH": os.environ["PATH"]},
        timeout=timedelta(seconds=25),
    )
    ended = Unconfined().run(command, CommandAccess())
    assert sorted(ended.text.replace("_", " ").splitlines()) == listed()


def test_only_attacks_are_listed() -> None:
    assert set(listed()) <= {trick.replace("_", " ") for trick in TRICKS}
    assert len(set(listed())) == len(listed())
