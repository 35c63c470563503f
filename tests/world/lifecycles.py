"""The life of one issue, in chapters that can begin again and again, on disk and on GitHub."""

import atexit
import copy
import os
import shutil
import subprocess
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from pydantic import JsonValue

from mulligan.domain.issue import IssueRef
from world.crash_points import CrashPointPipe, CrashPointWatcher
from world.place import TOKEN, MulliganInstallation, mulligan_installation
from world.processes import wait_until

TESTS = Path(__file__).parents[1]
FILES = {"notes.txt": "one\n"}
CHECK = "grep -qx two notes.txt || { echo not two but $(cat notes.txt); exit 1; }"
AGENT = """\
case $PATH in '{here}'/*) . '{here}/reach' ;; *) reach() {{ :; }} ;; esac
echo run >> '{here}/runs'
reach before agent || sleep 60
case $1 in
    mends) grep -q 'not two but half' && echo two > notes.txt || echo half > notes.txt ;;
    knows) echo two > notes.txt ;;
    fails) echo half > notes.txt ;;
    answers) echo two > notes.txt; grep -q 'add more' && echo more > more.txt ;;
esac
reach after agent || sleep 60
"""
"""A script that acts by its mood file; without its Mulligan it would run for a minute."""


@dataclass
class IssueLifecycle:
    """An issue that asks for work, and the processes that make passes over it."""

    here: MulliganInstallation
    ref: IssueRef
    desk: CrashPointPipe
    maker: subprocess.Popen[str]
    saved: dict[str, dict[str, object]] = field(default_factory=dict[str, dict[str, object]])

    @property
    def agent_runs(self) -> int:
        """Count the runs of the agent, as the agent does."""
        return len((self.desk.directory / "runs").read_text().splitlines())

    @property
    def said(self) -> str:
        """Return the output of the passes."""
        return (self.desk.directory / "said").read_text()

    def save(self, chapter: str) -> None:
        """Keep all there is, for `begin`, instead of what was kept under this name."""
        shutil.rmtree(self._kept(chapter), ignore_errors=True)
        self._copy(self.here.directory, self._kept(chapter))
        self.saved[chapter] = self._of_the_world(vars(self.here.world))

    def begin(self, chapter: str, mood: str) -> None:
        """Make everything as it was when the chapter was saved, and set the agent's mood."""
        shutil.rmtree(self.here.directory)
        self._copy(self._kept(chapter), self.here.directory)
        vars(self.here.world).update(self._of_the_world(self.saved[chapter]))
        self.here.configure(limits={})
        self.set_agent_behaviour(mood)
        for file in ("runs", "said"):
            (self.desk.directory / file).write_text("")

    def set_agent_behaviour(self, mood: str) -> None:
        """Make the agent fix what its prompt names (`mends`), know the fix anyway, or fail."""
        script = str(self.desk.directory / "agent")
        self.here.configure(agent={"kind": "command", "command": ["sh", script, mood]})

    def make_pass(self, watch: CrashPointWatcher | None = None, attempts: int = 0) -> int:
        """Make a pass; give its exit code, -9 where it was killed. Nothing of it is left."""
        watched = watch.over(self.here.world, self.desk) if watch else nullcontext()
        order = (self.here.config, self.desk.directory, attempts, "watched" if watch else "alone")
        assert self.maker.stdin
        with watched:
            self.maker.stdin.write("\t".join(map(str, order)) + "\n")
            self.maker.stdin.flush()
            worker = self._told("worker")
            if watch:
                watch.worker.set_result(worker)
            code = self._told("ended")
            wait_until(lambda: not working_below(self.here.directory))
        return code

    def _told(self, what: str) -> int:
        """Read one line of the maker's; a number that is taken for another would kill anybody."""
        assert self.maker.stdout
        word, _, number = self.maker.stdout.readline().partition(" ")
        assert word == what, word
        return int(number)

    def _kept(self, chapter: str) -> Path:
        return self.desk.directory / chapter

    def _of_the_world(self, state: dict[str, object]) -> dict[str, object]:
        """Copy what GitHub knows; its lock, its clock and its ids are shared by all copies."""
        shared = (self.here.world.lock, self.here.world.stamps, self.here.world.meter)
        return copy.deepcopy(state, {id(each): each for each in shared})

    def _copy(self, source: Path, target: Path) -> None:
        subprocess.run(["cp", "-a", str(source), str(target)], check=True)


def working_below(directory: Path) -> list[str]:
    """List the processes whose directory is somewhere below one; zombies have none."""
    found = list[str]()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                if (entry / "cwd").readlink().is_relative_to(directory):
                    found.append(entry.name)
    return found


@contextmanager
def issue_lifecycle(directory: Path, **policy: JsonValue) -> Generator[IssueLifecycle]:
    """Set up an issue that has just been labelled."""
    desk, home = CrashPointPipe(directory / "desk"), directory / "home"
    desk.prepare()
    (desk.directory / "agent").write_text(AGENT.format(here=desk.directory))
    home.mkdir()
    checks = [{"name": "two", "run": CHECK}]
    rules: dict[str, JsonValue] = {"review": {"settle": "0s"}, **policy}
    with mulligan_installation(home, FILES, checks, **rules) as here:
        # The agent says where it is, at a desk that no sandbox would show it.
        here.configure(sandbox="off")
        # All lives of a test run are lived within one hour of GitHub's.
        here.world.meter.limit = 10**9
        yield IssueLifecycle(here, here.issue(), desk, _pass_maker())


@cache
def _pass_maker() -> subprocess.Popen[str]:
    """Start the one process of this test worker that makes passes; it ends when the worker does."""
    maker = subprocess.Popen(
        [sys.executable, str(TESTS / "world" / "pass_maker.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(TESTS), "GITHUB_TOKEN": TOKEN},
        text=True,
    )
    stack = ExitStack()
    atexit.register(stack.close)
    stack.enter_context(maker)
    return maker
