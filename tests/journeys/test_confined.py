"""From label to pull request in the sandbox: agent and checks see the worktree and little else."""

import os
from collections.abc import Generator
from pathlib import Path

import pytest
from pydantic import JsonValue

from mulligan.domain.host import AS_ROOT
from mulligan.domain.outcome import Outcome
from world.confined import sandbox
from world.place import TOKEN, MulliganInstallation, mulligan_installation
from world.repositories import git

LOOK = """
here = pathlib.Path(sys.argv[0]).parent
seen = sorted(str(each.relative_to(here)) for each in here.rglob('*') if each.is_file())
pathlib.Path('seen').write_text('\\n'.join(name for name in seen if '/objects/' not in name))
"""
CHECK = "! cat ../../../../token ../../../../mulligan.db && test -s seen"


@pytest.fixture
def here(tmp_path: Path) -> Generator[MulliganInstallation]:
    sandbox()
    # It is named in sandbox.read; pytest makes it for root alone.
    tmp_path.chmod(0o755)
    with mulligan_installation(
        tmp_path, {"notes.txt": "one\n"}, [{"name": "look", "run": CHECK}]
    ) as made:
        (tmp_path / "token").write_text(TOKEN)
        made.configure(sandbox={"mode": "required", "network": "none", "read": [str(tmp_path)]})
        yield made


def test_even_a_directory_that_shows_mulligans_state_does_not(here: MulliganInstallation) -> None:
    here.agent(LOOK)
    ref = here.issue()
    assert here.run("once").returncode == 0
    (meta,) = here.attempts(ref)
    assert meta.outcome is Outcome.SUCCEEDED
    work = "work/acme/tools/issue-1"
    seen = git(here.bare, "show", f"{ref.branch}:seen").splitlines()
    others = [name for name in seen if not name.startswith((f"{work}.git/", f"{work}.run/agent-"))]
    assert others == ["agent.py"]


TOUCH = """
number = os.environ["MULLIGAN_ATTEMPT"]
pathlib.Path("ids").write_text(pathlib.Path("/proc/self/status").read_text())
pathlib.Path("notes.txt").open("a").write(number)
pathlib.Path(f"left-{number}").write_text("")
pathlib.Path("made/by-set-up").open("a").write(number)
subprocess.run(["git", "rm", "-q", "gone.txt"], check=True)
subprocess.run(["git", "add", "-A"], check=True)
subprocess.run(["git", "commit", "-q", "-m", "Mine"], check=True)
pathlib.Path(os.environ["HOME"], "mine").write_text("")
pathlib.Path(os.environ["MULLIGAN_REPORT"]).write_text('{"summary": "all done"}')
if previous := os.environ.get("MULLIGAN_PREVIOUS_DIFF"):
    pathlib.Path("before").write_text(pathlib.Path(previous).read_text())
"""
SECOND = "touch by-check made/by-check && echo >> notes.txt && grep -q 2 notes.txt"


@pytest.mark.parametrize("umask", [pytest.param(0o022, marks=pytest.mark.deep), 0o077], ids=oct)
def test_whoever_runs_commands_attempts_follow_each_other(umask: int, tmp_path: Path) -> None:
    """What one attempt owned is Mulligan's to reset, and the next attempt's to change."""
    sandbox()
    setup: list[JsonValue] = ["mkdir -p made && touch made/by-set-up"]
    files = {"notes.txt": "one\n", "gone.txt": "x\n", ".gitignore": "made/\n"}
    check: dict[str, JsonValue] = {"name": "second", "run": SECOND}
    before = os.umask(umask)
    try:
        with mulligan_installation(tmp_path, files, [check], setup=setup) as here:
            here.configure(sandbox={"mode": "required", "network": "none"})
            here.agent(TOUCH)
            (tmp_path / "agent.py").chmod(0o644)
            ref = here.issue()
            started = here.start("once")
            said = started.communicate(timeout=120)
            assert started.returncode == 0, said
            assert said[1].count(AS_ROOT) == (os.getuid() == 0)
            outcomes = [meta.outcome for meta in here.attempts(ref)]
            assert outcomes == [Outcome.CHECKS_FAILED, Outcome.SUCCEEDED]
            assert here.branch_files(ref) == {
                *(".gitignore", "before", "ids", "left-2", "notes.txt"),
            }
            assert git(here.bare, "show", f"{ref.branch}:notes.txt") == "one\n2"
            (ids,) = [
                line.split()[1:]
                for line in git(here.bare, "show", f"{ref.branch}:ids").splitlines()
                if line.startswith("Uid:")
            ]
            assert set(ids) == {str(os.getuid() or 65530)}
    finally:
        os.umask(before)
