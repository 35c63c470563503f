"""Every command of the front page and the quickstart, typed by a new user on a new machine.

The clone of Mulligan and HOME are new. The commands are those that the pages show, and those that
the commands before them print as the next step. The simulated GitHub stands for GitHub, and a
script called `claude` for the agent.
"""

import json
import os
import re
import shutil
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from github_simulator.app import running
from world.repositories import git
from world.shell import Shell, Typed, shell
from world.simulated_github import World
from world.starts import SAMPLES

pytestmark = [pytest.mark.deep, pytest.mark.timeout(1200)]

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", ROOT / "docs" / "quickstart.md")
FENCE = re.compile(r"^```(?:console)?\n(.*?)^```", re.MULTILINE | re.DOTALL)
NAME, TOKEN = "acme/hello", "token-of-the-bot"
MOST_SECONDS = 300
"""From the clone of Mulligan to the first pull request on one's own repository."""

PRACTICE = 5
"""How many commands of the quickstart are those of the practice; the first is the front page's."""

CLAUDE = """\
#!/usr/bin/env python3
import json, pathlib, sys
if "--version" in sys.argv:
    sys.exit(print("2.1.197 (Claude Code)"))
sys.stdin.read()
pathlib.Path("NOTES.md").write_text("Fixed.\\n")
usage = {"input_tokens": 1000, "output_tokens": 50}
said = {"type": "result", "subtype": "success", "is_error": False, "result": "Wrote it."}
print(json.dumps({**said, "num_turns": 1, "total_cost_usd": 0.01, "usage": usage}))
"""
YES = (r"\[y/N\] ", "y\n")
ISSUE = "# Write a note\n\nSay in NOTES.md that it is fixed.\n"


def shown(page: Path) -> list[str]:
    """List the commands of a page's blocks, without their comments."""
    lines = "\n".join(FENCE.findall(page.read_text())).splitlines()
    typed = (line.removeprefix("$ ").partition("  #")[0].strip() for line in lines)
    return [line for line in typed if re.match(r"(\.venv/bin/)?(mulligan|make|cd) ", line)]


@dataclass(frozen=True)
class NewUser:
    """A new HOME with a clone of Mulligan, installed."""

    home: Path
    seconds: float

    @property
    def environment(self) -> dict[str, str]:
        """What their shell has; CI is not set, whoever runs this test."""
        path = f"{self.home}/bin:{self.home}/mulligan/.venv/bin:{os.environ['PATH']}"
        passed = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        return {**passed, "PATH": path, "HOME": str(self.home)}


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> NewUser:
    home = tmp_path_factory.mktemp("home")
    began = time.monotonic()
    git(home, "clone", "--quiet", str(ROOT), "mulligan")
    made = NewUser(home, 0)
    with shell(home, made.environment) as bash:
        assert bash.type("cd mulligan && make install").code == 0
    (home / "bin").mkdir()
    agent = home / "bin" / "claude"
    agent.write_text(CLAUDE)
    agent.chmod(0o755)
    return NewUser(home, time.monotonic() - began)


def test_the_front_page_runs_as_it_stands(user: NewUser) -> None:
    install, demo = shown(PAGES[0])[:2]
    again, simulate, once, status, prompt = shown(PAGES[1])[:PRACTICE]
    assert (demo, install) == ("make demo", again)
    with shell(user.home, user.environment) as first, shell(user.home, user.environment) as second:
        for bash in (first, second):
            bash.type("cd mulligan")
        assert first.type(install).code == 0
        done = first.type(demo, ("Press any key", "q"))
        assert done.code == 0
        assert "needs human review (HITL)" in done.text
        first.terminal.press(f"{simulate}\n")
        first.terminal.wait_for("Press Ctrl-C")
        passed, sent = second.type(once), second.type(prompt)
        listed = second.type(status, ("press q to quit", "q"))
        first.terminal.press("\x03")
    assert_unwrapped(done)
    assert [each.code for each in (passed, listed, sent)] == [3, 0, 0]
    assert "→ pull request http" in passed.text
    assert "/pull/" in listed.text
    assert "test_divide_by_zero" in sent.text


PROJECTS = {
    "Python": "python-unittest",
    "Node": "node-npm",
    "without tests": None,
}


@dataclass(frozen=True)
class OwnProject:
    """The user's own repository `hello`: its remote, and GitHub with one labelled issue."""

    world: World
    url: str
    bare: Path


@contextmanager
def own_project(user: NewUser, sample: str | None) -> Generator[OwnProject]:
    """Make the repository and its clone below ~/src, and label an issue on GitHub."""
    source, bare = user.home / "src", user.home / "hello.git"
    for left in (source, bare, user.home / ".local"):  # the last holds Mulligan's ledger
        shutil.rmtree(left, ignore_errors=True)
    clone = source / "hello"
    if sample:
        shutil.copytree(SAMPLES / sample, clone)
    else:
        clone.mkdir(parents=True)
        (clone / "notes.txt").write_text("hello\n")
    (source / "issue.md").write_text(ISSUE)
    git(user.home, "init", "--quiet", "--bare", "--initial-branch", "main", str(bare))
    git(clone, "init", "--quiet", "--initial-branch", "main")
    git(clone, "add", ".")
    git(clone, "commit", "--quiet", "--message", "Begin")
    git(clone, "push", "--quiet", str(bare), "main")
    git(clone, "remote", "add", "origin", f"git@github.com:{NAME}.git")
    (user.home / ".gitconfig").write_text(
        f'[url "{bare}"]\n  insteadOf = git@github.com:{NAME}.git\n'
        "[user]\n  name = Maya\n  email = maya@example.com\n[push]\n  default = current\n"
    )
    world = World()
    world.add_user("mulligan-bot", "Bot", TOKEN)
    world.add_repository(NAME, bare, "main", {"maya": "admin", "mulligan-bot": "write"})
    with running(world) as url:
        yield OwnProject(world, url, bare)


@pytest.mark.parametrize("project", PROJECTS)
def test_ones_own_repository_gets_a_pull_request_within_minutes(
    user: NewUser, project: str, capsys: pytest.CaptureFixture[str]
) -> None:
    sample = PROJECTS[project]
    began, here = time.monotonic(), user.home / "src"
    with own_project(user, sample) as own, shell(user.home, user.environment) as bash:
        assert bash.type("cd ~/src").code == 0
        init, rehearse, doctor, once = shown(PAGES[0])[2:6]
        done = bash.type(init, YES)
        assert (done.code, "Wrote mulligan.yml" in done.text) == (0, True), done.text
        assert_unwrapped(done)
        steps = next_steps(done)
        assert bash.type(rehearse).code == 0
        point_at(own, here / "mulligan.yml")
        for line in steps:
            step = bash.type(line.replace("…", TOKEN))
            assert step.code == 0, step.text
        assert any(line.endswith("doctor") for line in steps)
        ref = own.world.open_issue(NAME, "Write a note", "Please.", "maya")
        own.world.label(ref, "mulligan", "maya")
        assert bash.type(doctor).code == 0
        ended = bash.type(once)
        assert ended.code == 0, ended.text
        assert_unwrapped(ended)
        (pull,) = own.world.pulls_of(NAME)
        minutes = (user.seconds + time.monotonic() - began) / 60
        with capsys.disabled():
            sys.stdout.write(f"\n{project}: {minutes:.1f} min to pull request #{pull.number}\n")
        assert minutes * 60 <= MOST_SECONDS
        type_the_quickstart(bash, str(ref))


def type_the_quickstart(bash: Shell, issue: str) -> None:
    """Type the commands of the quickstart too."""
    cd, init, *lines = shown(PAGES[1])[PRACTICE:]
    assert (cd, init) == ("cd ~/src", "mulligan init hello")
    bash.type(cd)
    # By now there is a token, so that it offers to create the labels.
    assert "Created 1 label." in bash.type(init, YES).text
    for line in lines:
        done = bash.type(line)
        assert done.code == 0, done.text
    page = PAGES[1].read_text()
    for line in ("mulligan doctor", "mulligan work OWNER/NAME#1 --dry-run"):
        assert f"`{line}`" in page
    tried = bash.type(f"mulligan work '{issue}' --dry-run")
    assert "Dry run: nothing was written" in tried.text


def next_steps(done: Typed) -> list[str]:
    """List the commands that an output shows as the next steps."""
    return re.findall(r"^   (\S.*)$", done.text.partition("\nNext:\n")[2], re.MULTILINE)


def point_at(own: OwnProject, config: Path) -> None:
    """Name the simulated GitHub in mulligan.yml: the real one needs no such line."""
    text = config.read_text()
    text = text.replace("github:\n", f"github:\n  api_url: {own.url}\n")
    config.write_text(
        text.replace(f"- name: {NAME}\n", f"- name: {NAME}\n    clone_url: {own.bare}\n")
    )


def assert_unwrapped(done: Typed) -> None:
    """Every command that is shown stands whole on one line: it can be copied."""
    shown_lines = re.findall(r"^ {2,3}(\S*mulligan .*|git -C .*)$", done.text, re.MULTILINE)
    assert shown_lines or "once" in done.line
    for line in shown_lines:
        assert line.count("'") % 2 == 0
        assert not line.endswith(("--config", "--attempt", "-C"))


def test_every_command_of_both_pages_is_typed_above() -> None:
    front, quick = map(shown, PAGES)
    assert front[2:] == [
        "mulligan init hello",
        "mulligan rehearse issue.md hello",
        "mulligan doctor",
        "mulligan once",
    ]
    assert [line.split()[0] for line in quick[PRACTICE:]][:1] == ["cd"]
    assert json.dumps(quick).count("mulligan ") == len(quick) - 2
