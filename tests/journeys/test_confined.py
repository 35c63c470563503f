"""From label to pull request in the sandbox: agent and checks see the worktree and little else."""

from collections.abc import Generator
from pathlib import Path

import pytest

from mulligan.domain.outcome import Outcome
from world.confined import sandbox
from world.place import TOKEN, Place, place
from world.repositories import git

LOOK = """
here = pathlib.Path(sys.argv[0]).parent
seen = sorted(str(each.relative_to(here)) for each in here.rglob('*') if each.is_file())
pathlib.Path('seen').write_text('\\n'.join(name for name in seen if '/objects/' not in name))
"""
CHECK = "! cat ../../../../token ../../../../mulligan.db && test -s seen"


@pytest.fixture
def here(tmp_path: Path) -> Generator[Place]:
    sandbox()
    with place(tmp_path, {"notes.txt": "one\n"}, [{"name": "look", "run": CHECK}]) as made:
        (tmp_path / "token").write_text(TOKEN)
        made.configure(sandbox={"mode": "required", "network": "none", "read": [str(tmp_path)]})
        yield made


def test_even_a_directory_that_shows_mulligans_state_does_not(here: Place) -> None:
    here.agent(LOOK)
    ref = here.issue()
    assert here.run("once").returncode == 0
    (meta,) = here.attempts(ref)
    assert meta.outcome is Outcome.SUCCEEDED
    work = "work/acme/tools/issue-1"
    seen = git(here.bare, "show", f"{ref.branch}:seen").splitlines()
    others = [name for name in seen if not name.startswith((f"{work}.git/", f"{work}.run/agent-"))]
    assert others == ["agent.py", f"{work}/.git", f"{work}/notes.txt"]
