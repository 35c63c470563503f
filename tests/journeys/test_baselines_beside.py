"""The tests run on the base branch beside the agent, in the sandbox (BASELINE-1)."""

import os
import signal
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path

import pytest
from pydantic import JsonValue

from mulligan.domain.outcome import Outcome
from mulligan.domain.result import OnBase
from world.confined import sandbox
from world.place import MulliganInstallation, mulligan_installation
from world.processes import wait_until
from world.repositories import git

FILES = {"shop.py": "PRICE = 1\n", ".gitignore": "build/\n"}
SET_UP: list[JsonValue] = ["mkdir -p build ~/cache", "touch build/made ~/cache/made"]
RUN = (
    "if test -e notes.py; then where=change; else where=base; fi;"
    " echo $where begins >> {told}; sh {script} $where; code=$?;"
    " echo $where ends >> {told}; exit $code"
)
"""Tells in a file on which tree it runs; a change has notes.py."""

WAIT = """
import time
def wait_for(line):
    for _ in range(3000):
        if line in open({told!r}).read().splitlines():
            return
        time.sleep(0.01)
    raise SystemExit(f'waited in vain for {{line}}')
def tell(line):
    open({told!r}, 'a').write(line + '\\n')
"""
WORK = "pathlib.Path('notes.py').write_text('NOTES = 1\\n')\ntell('agent ends')\n"


class Stage:
    """An installation with a sandbox, in which agent and check tell what they do, in order."""

    def __init__(self, here: MulliganInstallation, shared: Path) -> None:
        self.here, self.shared = here, shared
        self.ref = here.issue()

    @property
    def told(self) -> list[str]:
        return (self.shared / "told").read_text().splitlines()

    def check(self, script: str) -> None:
        """Have the check run this; its first argument is `base` or `change`."""
        (self.shared / "check.sh").write_text(script)

    def agent(self, source: str) -> None:
        self.here.agent(WAIT.format(told=str(self.shared / "told")) + source)
        (self.here.directory / "agent.py").chmod(0o644)

    def left(self) -> list[str]:
        """List what is left of the checkout of the base branch."""
        root = self.here.worktree.parent
        places = (root, root / "trash", root / "mirror.git" / "worktrees")
        return [path.name for place in places for path in place.glob("base-of-*")]


@pytest.fixture
def stage(tmp_path: Path, request: pytest.FixtureRequest) -> Generator[Stage]:
    sandbox()
    tmp_path.chmod(0o755)
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "told").touch()
    for place in (shared, shared / "told"):
        place.chmod(0o777)
    run = RUN.format(told=shared / "told", script=shared / "check.sh")
    tests = {"name": "tests", "run": run, "kind": "test"}
    policy: dict[str, JsonValue] = {
        "setup": SET_UP,
        "flaky_reruns": 0,
        **getattr(request, "param", {}),
    }
    with mulligan_installation(tmp_path, FILES, [tests], **policy) as here:
        here.configure(sandbox={"mode": "required", "network": "none", "write": [str(shared)]})
        yield Stage(here, shared)


def processes_of(stage: Stage) -> list[str]:
    """List the commands that still run the check, from outside their sandbox."""
    wanted, found = os.fsencode(stage.shared / "check.sh"), list[str]()
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if wanted in (argv := place.read_bytes()):
                found.append(argv.decode(errors="replace"))
    return found


SEES = "pwd; ls -A .; ls -A build ~; git rev-parse HEAD; git branch --show-current"
WAITS = "until grep -q 'agent {what}' {told}; do sleep 0.05; done"


def test_the_base_runs_beside_the_agent_and_neither_sees_the_other(stage: Stage) -> None:
    wait = WAITS.format(what="looked", told=stage.shared / "told")
    stage.check(f"[ $1 = base ] || exit 1\n{wait}\n({SEES}) > {stage.shared}/seen-by-base")
    look = f"find {stage.here.directory} -name 'base?of*'; cat /proc/[0-9]*/cmdline"
    stage.agent(f"""
wait_for('base begins')
found = subprocess.run(['sh', '-c', {look!r}], capture_output=True).stdout
pathlib.Path('seen').write_bytes(found)
pathlib.Path('build/mine').touch()
pathlib.Path(os.environ['HOME'], 'mine').touch()
tell('agent looked')
wait_for('base ends')
{WORK}""")
    assert stage.here.run("once").returncode == 3
    (first, *later) = stage.here.attempts(stage.ref)
    assert stage.told[:6] == [
        *("base begins", "agent looked", "base ends", "agent ends"),
        *("change begins", "change ends"),
    ]
    mirror = stage.here.worktree.parent / "mirror.git"
    seen_by_agent = git(mirror, "show", f"{first.head_sha}:seen")
    assert "agent.py" in seen_by_agent
    assert "base-of" not in seen_by_agent
    assert "check.sh" not in seen_by_agent
    assert (stage.shared / "seen-by-base").read_text().split() == [
        *("/mulligan/worktree", ".git", ".gitignore", "build", "shop.py"),
        *("/mulligan/home:", "cache", "build:", "made", first.start_sha, stage.ref.branch),
    ]
    # The attempts after the first one know the result, and run the base no more.
    assert stage.told.count("base begins") == 1
    checks = [meta.checks[0] for meta in (first, *later)]
    assert [(check.on_base, check.runs) for check in checks] == [(OnBase.PASSES, 1)] * 3
    assert (stage.left(), processes_of(stage)) == ([], [])


def test_an_agent_that_ends_first_has_its_change_judged_by_the_base_that_runs(
    stage: Stage,
) -> None:
    wait = WAITS.format(what="ends", told=stage.shared / "told")
    stage.check(f"[ $1 = change ] || {{ {wait}; }}\nexit 1")
    stage.agent(f"wait_for('base begins')\n{WORK}")
    stage.here.run("once")
    (first, *_) = stage.here.attempts(stage.ref)
    assert first.checks[0].on_base is OnBase.FAILS
    # A failure counts as pre-existing after a second run, which comes after the agent.
    assert stage.told.count("base begins") == 2
    assert stage.told.index("base ends") > stage.told.index("agent ends")


SLEEPS = "[ $1 = change ] || sleep 600"


@pytest.mark.parametrize("ends", ["raise SystemExit(1)", "pass"])
def test_an_agent_that_fails_or_changes_nothing_ends_the_base(stage: Stage, ends: str) -> None:
    stage.check(SLEEPS)
    stage.agent(f"wait_for('base begins')\n{ends}\n")
    stage.here.run("once")
    assert "base ends" not in stage.told
    assert (stage.left(), processes_of(stage)) == ([], [])
    events = stage.here.run("debug", "events", "--issue", str(stage.ref)).stdout
    assert "baseline_recorded" not in events


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_what_ends_mulligan_ends_the_base(stage: Stage, end: signal.Signals) -> None:
    stage.check(SLEEPS)
    stage.agent("wait_for('base begins')\ntime.sleep(600)\n")
    ended = stage.here.start("once")
    wait_until(lambda: "base begins" in stage.told and bool(processes_of(stage)))
    ended.send_signal(end)
    ended.communicate(timeout=120)
    wait_until(lambda: processes_of(stage) == [])
    # Only a process that is killed leaves files, for the next attempt to remove.
    assert bool(stage.left()) is (end is signal.SIGKILL)
    stage.check("true")
    stage.agent(f"wait_for('base ends')\n{WORK}")
    assert stage.here.run("once").returncode == 0
    assert stage.here.attempts(stage.ref)[-1].outcome is Outcome.SUCCEEDED
    assert (stage.left(), stage.told.count("base begins")) == ([], 2)


@pytest.mark.parametrize(
    ("stage", "is_off"),
    [({"baseline": "on-failure"}, False), ({"baseline": False}, True)],
    indirect=["stage"],
)
def test_a_policy_keeps_the_base_from_running_beside(stage: Stage, *, is_off: bool) -> None:
    stage.check("[ $1 = base ]")
    stage.agent(WORK)
    stage.here.run("once")
    (first, *_) = stage.here.attempts(stage.ref)
    assert first.checks[0].on_base is (None if is_off else OnBase.PASSES)
    base = [] if is_off else ["base begins", "base ends"]
    assert stage.told[: 3 + len(base)] == ["agent ends", "change begins", "change ends", *base]
