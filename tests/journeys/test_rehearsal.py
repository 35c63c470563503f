"""An issue from a file is worked on in a local repository; no GitHub, and no trace in the clone."""

import os
import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from world.confined import usable_mode
from world.fork_server import run_forked
from world.place import BIN
from world.repositories import git

POLICY = "checks: [{name: two, run: grep -qx two notes.txt, kind: test}]\n"
ISSUE = "Intro.\n\n# Say two\n\nPlease make notes.txt say two.\n"
MENDS = """
    told = sys.stdin.read()
    assert "Say two" in told
    pathlib.Path("notes.txt").write_text("two\\n" if "earlier" in told.lower() else "half\\n")
"""
WHO = ("-c", "user.name=ada", "-c", "user.email=ada@localhost")


UNCONFINED = """
sandbox: off
agent: {kind: command, command: [replaced]}
repositories: [{name: acme/tools}]
"""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    made = tmp_path / "my tools"
    made.mkdir()
    git(made, "init", "--quiet", "--initial-branch", "trunk")
    (made / "notes.txt").write_text("one\n")
    git(made, "add", ".")
    git(made, *WHO, "commit", "--quiet", "--message", "One")
    (made / ".github").mkdir()
    (made / ".github" / "mulligan.yml").write_text(POLICY)
    (tmp_path / "ISSUE.md").write_text(ISSUE)
    return made


def rehearse(clone: Path, agent: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    script = clone.parent / "agent.py"
    if agent:
        script.write_text("import pathlib, sys\n" + dedent(agent))
    if agent and usable_mode() == "off":
        (clone.parent / "mulligan.yml").write_text(UNCONFINED)
    named = ["--agent", f"{sys.executable} {script}"] if agent else []
    (clone.parent / "tmp").mkdir(exist_ok=True)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(clone.parent),
        "TMPDIR": str(clone.parent / "tmp"),
    }
    words = ["rehearse", "ISSUE.md", str(clone), *named, *arguments]
    return run_forked(words, clone.parent, environment, str(BIN / "mulligan"))


def state_of(clone: Path) -> tuple[str, ...]:
    questions = (("status", "--porcelain"), ("for-each-ref",), ("log", "--oneline", "--all"))
    return tuple(git(clone, *question) for question in questions)


def test_the_second_try_succeeds_and_the_clone_is_untouched(clone: Path) -> None:
    before = state_of(clone)
    done = rehearse(clone, MENDS)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "attempt 2 of 3" in done.stdout
    assert "(not opened, since this is a rehearsal)" in done.stdout
    assert state_of(clone) == before
    lines = done.stdout.splitlines()
    diff = next(line for line in lines if line.startswith("The last change: "))
    assert "+two" in Path(diff.partition(": ")[2]).read_text()
    for line in (line.strip() for line in lines):
        if line.startswith(("git -C", str(BIN))):
            subprocess.run(["sh", "-c", line], check=True, capture_output=True)
    assert git(clone, "show", "mulligan/issue-1:notes.txt") == "two"


def test_without_checks_it_claims_no_success_and_can_be_removed(clone: Path) -> None:
    (clone / ".github" / "mulligan.yml").write_text("checks: []\n")
    done = rehearse(clone, 'pathlib.Path("notes.txt").write_text("two\\n")\n', "--diff")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Succeeded" not in done.stdout
    assert "    Not verified: No check is configured: nothing was verified.\n" in done.stdout
    assert "\n-one\n+two\n" in done.stdout
    assert "  ! No check is configured: nothing was verified.\n" in done.stdout
    remove = next(line for line in done.stdout.splitlines() if line.startswith("  rm -rf "))
    inspect = next(line for line in done.stdout.splitlines() if " inspect " in line)
    seen = subprocess.run(["sh", "-c", inspect], check=True, capture_output=True, text=True)
    assert "attempt 1  Not verified" in seen.stdout
    subprocess.run(["sh", "-c", remove], check=True)
    assert list((clone.parent / "tmp").glob("mulligan-rehearsal-*")) == []


@pytest.mark.deep
def test_an_agent_that_never_does_it_fails_and_ends_with_a_person(clone: Path) -> None:
    once = rehearse(clone, "pass\n", "--attempts", "1")
    assert "\nThis was the limit of 1 attempt (`--attempts`).\n" in once.stdout
    assert once.returncode == 1, once.stdout + once.stderr
    assert "Exit code 1: the rehearsal ended without a change" in once.stdout
    done = rehearse(clone, "pass\n", "--attempts", "3")
    assert done.returncode == 3, done.stdout + done.stderr
    assert "The comment on the issue would be:" in done.stdout
    assert "Your options" in done.stdout
    assert done.stdout.endswith("\nExit code 3: an issue needs human review.\n")


@pytest.mark.deep
def test_the_agent_may_come_from_the_operators_file(clone: Path) -> None:
    (clone.parent / "mulligan.yml").write_text(
        "github: {token: $GITHUB_TOKEN}\nrepositories: [{name: acme/other}]\n"
        f"agent: {{kind: command, command: [{sys.executable}, {clone.parent}/agent.py]}}\n"
    )
    (clone.parent / "agent.py").write_text(
        "import pathlib\npathlib.Path('notes.txt').write_text('two')\n"
    )
    done = rehearse(clone, "", "--attempts", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "✓ two" in done.stdout
    assert "attempt 2" not in done.stdout


@pytest.mark.parametrize(
    ("break_it", "arguments", "said"),
    [
        ("", [], "No agent is configured. Add --agent KIND"),
        ("heading", ["--agent", "x"], "has no heading. Add one"),
        ("file", ["--agent", "x"], "No file 'ISSUE.md'. Write the issue into a Markdown file"),
        ("branch", ["--agent", "x"], "has no branch checked out. Check out"),
        ("clone", ["--agent", "x"], "is not the top directory of a git repository"),
        ("", ["--agent", "'"], "is not a valid command line"),
    ],
)
def test_what_cannot_be_rehearsed_is_one_sentence(
    clone: Path, break_it: str, arguments: list[str], said: str
) -> None:
    match break_it:
        case "heading":
            (clone.parent / "ISSUE.md").write_text("```\n# not a heading\n```\n")
        case "file":
            (clone.parent / "ISSUE.md").unlink()
        case "branch":
            git(clone, "checkout", "--quiet", "--detach")
        case "clone":
            (clone / ".git").rename(clone / "git")
        case _:
            pass
    done = rehearse(clone, "", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert list((clone.parent / "tmp").iterdir()) == []


def test_a_setup_command_that_fails_can_be_diagnosed(clone: Path) -> None:
    line = "printf '  error: no wheel\\n  ╰─> [1 line]\\n'; exit 7"
    (clone / ".github" / "mulligan.yml").write_text(f'setup: ["{line}"]\n')
    done = rehearse(clone, "pass\n")
    assert done.returncode == 1
    output = "      │   error: no wheel\n      │   [1 line]\n"
    assert done.stdout.count(output) == 1
    assert "Summary\n" in done.stdout
    log = re.search(r"^The output of the setup commands: (.*)$", done.stdout, re.MULTILINE)
    assert log
    assert "╰─> [1 line]" in Path(log[1]).read_text()
    command = (
        f"inspect local/my-tools#1 --log setup --config {Path(log[1]).parents[6]}/mulligan.yml"
    )
    assert command in done.stdout
