"""`mulligan init` looks at a clone, shows what it would write, and leaves alone what is there."""

import os
import pty
import subprocess
from collections.abc import Generator
from pathlib import Path

import pytest

from github_simulator.records import IssueName
from github_simulator.world import Fault
from mulligan.config.load import load_policy
from world.confined import usable_mode
from world.place import BIN, NAME, MulliganInstallation, mulligan_installation
from world.pseudo_terminal import on_a_terminal
from world.repositories import git
from world.samples import is_as_documented
from world.simulated import push
from world.starts import clone, run_mulligan

PROGRAMS = {
    "c-make": "cc --version",
    "cpp-cmake": "cmake --version",
    "go": "go version",
    "node-npm": "npm --version",
    "php-phpunit": "phpunit --version",
    "python-unittest": "python3 --version",
    "ruby-rake": "rake --version",
    "rust": "cargo --version",
}
"""Samples whose checks need nothing but one program, and how that one shows that it works.

Go compiles its library first, which takes longer than all others together.
"""


@pytest.mark.parametrize(
    "sample",
    [pytest.param(each, marks=pytest.mark.deep) if each == "go" else each for each in PROGRAMS],
)
def test_proposed_checks_run(tmp_path: Path, sample: str) -> None:
    probe = ["sh", "-c", PROGRAMS[sample]]
    if subprocess.run(
        probe, env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)}, check=False
    ).returncode:
        pytest.skip(f"{PROGRAMS[sample]!r} does not work on this machine")
    here = clone(tmp_path, sample)
    assert run_mulligan(here, "init", "--yes").returncode == 0
    git(here, "add", "--all")
    git(here, "commit", "--quiet", "--message", "Begin")
    done = run_mulligan(here, "check", *(["--here"] if usable_mode() == "off" else []))
    assert done.returncode == 0, done.stdout + done.stderr
    assert load_policy((here / ".github" / "mulligan.yml").read_bytes(), {}, "written").checks


def test_both_files_are_written_and_the_second_run_has_nothing_to_do(tmp_path: Path) -> None:
    here = clone(tmp_path, "node-npm", "git@github.com:octocat/hello.git")
    first = run_mulligan(here, "init", "--yes")
    assert (first.returncode, first.stderr) == (0, "")
    assert "+    run: npm test # from scripts.test of package.json" in first.stdout
    assert "  - name: octocat/hello\n" in (tmp_path / "mulligan.yml").read_text()
    assert f"doctor --config {tmp_path}/mulligan.yml" in first.stdout
    second = run_mulligan(here, "init", "--yes", "--config", "../mulligan.yml")
    assert second.returncode == 0
    assert second.stdout.splitlines()[-1] == "Nothing to do."


@pytest.mark.parametrize("name", ["mulligan.yml", "mulligan.yaml"])
def test_what_is_there_is_left_as_it_is(tmp_path: Path, name: str) -> None:
    here = clone(tmp_path, "node-npm", "git@github.com:octocat/hello.git")
    written = "checks: [{name: mine, run: 'true'}]\n"
    (here / ".github").mkdir()
    (here / ".github" / name).write_text(written)
    done = run_mulligan(here, "init", "--yes")
    assert f".github/{name} already exists, with 1 check." in done.stdout
    assert [file.name for file in (here / ".github").iterdir()] == [name]
    assert (here / ".github" / name).read_text() == written
    (here / ".github" / "mulligan.yml").write_text(written)
    (here / ".github" / "mulligan.yaml").write_text(written)
    both = run_mulligan(here, "init", "--yes")
    assert "has .github/mulligan.yml and .github/mulligan.yaml" in both.stderr


GH = """#!/bin/sh
[ "$*" = "auth token" ] && [ -n "$HOME" ] && echo gho_of_maya
"""


def test_the_token_of_gh_is_taken_into_a_private_file(tmp_path: Path) -> None:
    here = clone(tmp_path, "node-npm", "git@github.com:octocat/hello.git")
    (tmp_path / "bin").mkdir()
    gh = tmp_path / "bin" / "gh"
    gh.write_text(GH)
    gh.chmod(0o755)
    path = f"{tmp_path}/bin:{BIN}:{os.environ['PATH']}"
    done = run_mulligan(here, "init", "--yes", "--gh-token", PATH=path)
    assert done.returncode == 0, done.stderr
    token = tmp_path / "mulligan-token"
    assert (token.read_text(), token.stat().st_mode & 0o777) == ("gho_of_maya\n", 0o600)
    assert f"  token_file: {token}\n" in (tmp_path / "mulligan.yml").read_text()
    assert "gho_of_maya" not in done.stdout
    assert "Set a token" not in done.stdout
    again = run_mulligan(here, "init", "--gh-token", "-c", "../mulligan.yml", PATH=path)
    assert again.returncode == 2
    assert "../mulligan.yml already exists." in again.stderr


@pytest.mark.parametrize(
    ("script", "words"),
    [(None, "The program `gh` was not found."), ("#!/bin/sh\nexit 1\n", "gave no token")],
)
def test_a_gh_without_a_token_is_reported(tmp_path: Path, script: str | None, words: str) -> None:
    here = clone(tmp_path, "node-npm", "git@github.com:octocat/hello.git")
    (tmp_path / "bin").mkdir()
    if script:
        (tmp_path / "bin" / "gh").write_text(script)
        (tmp_path / "bin" / "gh").chmod(0o755)
    done = run_mulligan(here, "init", "--yes", "--gh-token", PATH=f"{tmp_path}/bin:/usr/bin:/bin")
    assert done.returncode == 2
    assert words in done.stderr
    assert not (tmp_path / "mulligan.yml").exists()


def test_a_second_repository_is_added_to_the_file_that_is_there(tmp_path: Path) -> None:
    here = clone(tmp_path, "node-npm", "git@github.com:octocat/hello.git")
    file = tmp_path / "mulligan.yml"
    file.write_text(
        "# mine\nrepositories:\n  - name: octocat/first  # kept\nagent: {kind: codex}\n"
    )
    done = run_mulligan(here, "init", "--yes")
    assert (done.returncode, done.stderr) == (0, "")
    assert file.read_text() == (
        "# mine\nrepositories:\n  - name: octocat/hello\n  - name: octocat/first  # kept\n"
        "agent: {kind: codex}\n"
    )
    assert "mulligan.yml names codex." in done.stdout
    assert "Install the agent codex, or name another one.\n   npm install" in done.stdout


def test_nothing_is_written_where_nobody_can_be_asked(tmp_path: Path) -> None:
    here = clone(tmp_path, "node-npm")
    done = run_mulligan(here, "init")
    assert done.returncode == 2
    assert "+++ .github/mulligan.yml" in done.stdout
    assert done.stderr == (
        "mulligan: Nothing was written, because there is no terminal to confirm on. To"
        " write the files, add --yes.\n"
    )
    assert not (here / ".github").exists()


@pytest.mark.parametrize(("answer", "code", "written"), [(b"y\n", 0, True), (b"\n", 1, False)])
def test_it_asks_on_a_terminal(tmp_path: Path, answer: bytes, code: int, *, written: bool) -> None:
    found = clone(tmp_path, "python-unittest", "git@github.com:acme/calculator.git")
    here = found.rename(tmp_path / "calculator")
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        ["mulligan", "init", here.name],
        cwd=tmp_path,
        env={"PATH": f"{BIN}:{os.environ['PATH']}", "HOME": str(tmp_path), "TERM": "dumb"},
        stdin=theirs,
        stdout=subprocess.PIPE,
        text=True,
    ) as asked:
        os.write(ours, answer)
        shown, _ = asked.communicate(timeout=120)
        assert asked.returncode == code
    os.close(ours)
    os.close(theirs)
    assert (here / ".github" / "mulligan.yml").exists() is written
    assert "Write these files? [y/N] " in shown
    typed = shown.replace("[y/N] ", "[y/N] y\n").replace(str(tmp_path), "/srv/src")
    assert is_as_documented("init", typed) is written


def test_a_directory_that_is_no_clone_is_one_sentence(tmp_path: Path) -> None:
    done = run_mulligan(tmp_path, "init", "--yes")
    assert done.returncode == 2
    assert "is not the top directory of a git repository" in done.stderr
    named = run_mulligan(clone(tmp_path, "go"), "init", "--repository", "nobody")
    assert (named.returncode, "write OWNER/NAME" in named.stderr) == (2, True)


@pytest.fixture
def github(tmp_path: Path) -> Generator[MulliganInstallation]:
    with mulligan_installation(tmp_path, {"notes.txt": "one\n"}) as made:
        yield made


def test_labels_are_created_with_colour_and_meaning(github: MulliganInstallation) -> None:
    here = clone(github.directory, "go")
    arguments = ["init", str(here), "--repository", NAME]
    token = github.environment["GITHUB_TOKEN"]
    without = run_mulligan(github.directory, *arguments, "--yes")
    assert "The labels of acme/tools were not checked: the token's variable" in without.stdout
    done = run_mulligan(github.directory, *arguments, "--yes", GITHUB_TOKEN=token)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Created 4 labels." in done.stdout
    made = {label.name: label for label in github.world.repositories[NAME].labels}
    assert made["mulligan:hitl"].color == "d93f0b"
    assert all(made[name].description for name in ("mulligan", "mulligan:running"))
    again = run_mulligan(github.directory, *arguments, GITHUB_TOKEN=token)
    assert again.stdout.splitlines()[-1] == "Nothing to do."


def in_a_clone(github: MulliganInstallation) -> Path:
    """Make a clone whose checks are found, and a configuration."""
    github.configure(repositories=[{"name": NAME}])
    return clone(github.directory, "node-npm")


def propose(github: MulliganInstallation, here: Path) -> str:
    token = github.environment["GITHUB_TOKEN"]
    arguments = ("init", str(here), "--repository", NAME, "--pull-request", "--yes")
    done = run_mulligan(github.directory, *arguments, GITHUB_TOKEN=token)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_a_pull_request_proposes_the_policy_once(github: MulliganInstallation) -> None:
    here = in_a_clone(github)
    said = propose(github, here)
    (pull,) = github.world.pulls_of(NAME)
    url = f"{github.url}/{NAME}/pull/{pull.number}"
    assert f"Opened a pull request with the policy: {url}\n" in said
    assert "1. Merge the pull request with the policy, then fetch it.\n   (cd " in said
    assert not (here / ".github").exists()
    git_show = ["git", "-C", str(github.bare), "show", "mulligan/configure:.github/mulligan.yml"]
    written = subprocess.run(git_show, capture_output=True, check=True).stdout
    names = subprocess.run(
        ["git", "-C", str(github.bare), "diff", "--name-only", "main...mulligan/configure"],
        capture_output=True,
        check=True,
    ).stdout
    assert names == b".github/mulligan.yml\n"
    assert len(load_policy(written, {}, "pushed").checks) == 2
    assert "**If you close it**, nothing changes" in (pull.body or "")
    assert "opens a pull request when its 2 checks pass." in (pull.body or "")
    assert f"The pull request with the policy is open: {url}\n" in propose(github, here)
    github.world.close(IssueName(NAME, pull.number), "maya")
    closed = propose(github, here)
    assert "was closed without being merged" in closed
    assert "Merge the pull request" not in closed
    assert len(github.world.pulls_of(NAME)) == 1


def test_a_run_that_was_killed_before_its_pull_request_is_continued(
    github: MulliganInstallation,
) -> None:
    here = in_a_clone(github)
    asked = [Fault(502), Fault(502, apply=True)]

    def fail(method: str, path: str) -> Fault | None:
        is_pull = (method, path) == ("POST", f"/repos/{NAME}/pulls")
        return asked.pop(0) if is_pull and asked else None

    github.world.faults = fail
    token = github.environment["GITHUB_TOKEN"]
    arguments = ("init", str(here), "--repository", NAME, "--pull-request", "--yes")
    assert run_mulligan(github.directory, *arguments, GITHUB_TOKEN=token).returncode == 1
    assert "Opened a pull request with the policy" in propose(github, here)
    assert len(github.world.pulls_of(NAME)) == 1


def test_a_policy_on_the_base_branch_needs_no_pull_request(github: MulliganInstallation) -> None:
    here = in_a_clone(github)
    (here / ".github").mkdir()
    push(github.bare, "main", {".github/mulligan.yml": "checks: []\n"})
    (here / ".github" / "mulligan.yml").write_text("checks: []\n")
    assert "The base branch has this policy already" in propose(github, here)
    assert github.world.pulls_of(NAME) == []


def test_a_pull_request_needs_a_token(github: MulliganInstallation) -> None:
    here = in_a_clone(github)
    done = run_mulligan(github.directory, "init", str(here), "--pull-request", "--yes")
    assert (done.returncode, "Set GITHUB_TOKEN, or add --gh-token." in done.stderr) == (2, True)


def test_a_person_at_a_terminal_is_offered_a_pull_request(github: MulliganInstallation) -> None:
    here, path = in_a_clone(github), f"{BIN}:{os.environ['PATH']}"
    home = {"PATH": path, "HOME": str(github.directory), **github.environment}
    command = [BIN / "mulligan", "init", here, "--repository", NAME]
    with on_a_terminal(command, github.directory, home) as shown:
        shown.wait_for(r"Answer p to open a pull request .*\nWrite these files\? \[y/p/N\] ")
        shown.press("p\n")
        assert shown.end() == 0
    assert "Opened a pull request with the policy" in shown.text
    assert not (here / ".github").exists()


def test_a_github_that_is_away_does_not_keep_the_files_from_being_written(
    github: MulliganInstallation,
) -> None:
    here = clone(github.directory, "go")
    github.configure(github={"api_url": "http://127.0.0.1:1", "token": "$GITHUB_TOKEN"})
    done = run_mulligan(
        github.directory, "init", str(here), "--repository", NAME, "--yes", GITHUB_TOKEN="t"
    )
    assert done.returncode == 0
    assert "The labels could not be read: GitHub at 127.0.0.1:1 did not answer" in done.stdout
    assert (here / ".github" / "mulligan.yml").exists()
