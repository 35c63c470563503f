"""`mulligan check` runs where the checks of an attempt run, and agrees with the first attempt."""

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from world.confined import sandbox
from world.fork_server import run_forked, start_forked
from world.lfs import oid_of, place, store
from world.repositories import git

PASSES = "checks: [{name: tests, run: 'true', kind: test}]"
BELOW_HOME = ".local/state/mulligan/local"


@dataclass(frozen=True)
class Clone:
    """A clone with one commit, in a directory that is also the HOME of its user."""

    path: Path

    @property
    def home(self) -> Path:
        return self.path.parent

    @property
    def environment(self) -> dict[str, str]:
        (self.home / "tmp").mkdir(exist_ok=True)
        temporary = str(self.home / "tmp")
        return {"PATH": os.environ["PATH"], "HOME": str(self.home), "TMPDIR": temporary}

    def configure(self, policy: str) -> None:
        """Write the policy, without a commit."""
        (self.path / ".github").mkdir(exist_ok=True)
        (self.path / ".github" / "mulligan.yml").write_text(policy)

    def commit(self, policy: str | None = None) -> None:
        if policy:
            self.configure(policy)
        git(self.path, "add", "--all")
        git(self.path, "commit", "--quiet", "--message", "More")

    def check(self, *options: str, where: str = ".") -> subprocess.CompletedProcess[str]:
        return run_forked(["check", *options], self.path / where, self.environment)

    def rehearse(
        self, agent: str, environment: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        (self.home / "issue.md").write_text("# Say more\n\nPlease.\n")
        (self.home / "agent.sh").write_text(agent)
        words = ["rehearse", "../issue.md", "--agent", f"sh {self.home}/agent.sh"]
        return run_forked([*words, "--attempts", "1"], self.path, environment or self.environment)


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    sandbox()
    made = Clone(tmp_path / "tools")
    made.path.mkdir()
    git(made.path, "init", "--quiet", "--initial-branch", "trunk")
    (made.path / "notes.txt").write_text("one\n")
    (made.path / ".gitignore").write_text("made\n")
    made.commit()
    return made


def left_by_check(clone: Clone) -> list[str]:
    place = clone.home / BELOW_HOME
    names = sorted(path.name for path in place.iterdir()) if place.exists() else []
    return [name for name in names if not name.endswith(".lock") and name != "set-up"]


def test_check_runs_on_the_last_commit_in_the_sandbox(clone: Clone) -> None:
    look = "pwd; cat notes.txt; test ! -e made; test $HOME = /mulligan/home"
    clone.commit(f"checks: [{{name: tests, run: '{look}; exit 1', kind: test}}]")
    (clone.path / "notes.txt").write_text("two\n")
    (clone.path / "made").write_text("by hand\n")
    done = clone.check("--json")
    (found,) = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (1, "")
    assert "/mulligan/worktree\n" in found["digest"]
    assert "one" in found["digest"]
    assert git(clone.path, "status", "--porcelain") == " M notes.txt"
    assert left_by_check(clone) == []


def test_check_says_what_it_runs_on_and_what_it_leaves_out(clone: Clone) -> None:
    clone.configure(PASSES)
    (clone.path / "notes.txt").write_text("two\n")
    (clone.path / "more.txt").write_text("new\n")
    done = clone.check()
    sha = git(clone.path, "rev-parse", "HEAD")[:8]
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[:3] == [
        f"From the last commit on trunk of tools ({sha}), in the sandbox, as in an attempt.",
        "With the policy of your working tree, which is not committed yet.",
        "2 uncommitted files are not part of it. To check them too: `mulligan check --here`.",
    ]
    assert done.stdout.endswith("\n1 check, and none would fail an attempt.\n")
    (clone.home / "other.yml").write_text(PASSES)
    other = clone.check("--policy", "../other.yml").stdout.splitlines()
    assert other[1].startswith("3 uncommitted files are not part of it.")


def test_check_and_the_first_attempt_miss_the_same_program(clone: Clone) -> None:
    tool = clone.home / "elsewhere" / "tool"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    clone.commit(f"checks: [{{name: tests, run: {tool} -q, kind: test}}]")
    assert clone.check("--here").returncode == 0
    checked, tried = clone.check(), clone.rehearse("echo more >> notes.txt")
    assert (checked.returncode, tried.returncode) == (1, 3)
    assert f"{tool}: not found" in checked.stdout
    assert "cannot run on this commit: it does not start" in checked.stdout
    assert "cannot start on the base branch either" in tried.stdout


@pytest.mark.parametrize("where", ["in the clone", "above the clone", "in a variable", "named"])
def test_check_has_the_settings_of_the_operators_file(clone: Clone, where: str) -> None:
    shown = clone.home / "shown"
    shown.mkdir()
    (shown / "tool").write_text("")
    clone.commit(f"checks: [{{name: tests, run: test -e {shown}/tool, kind: test}}]")
    assert clone.check().returncode == 1
    places = {"in the clone": clone.path, "above the clone": clone.home}
    file = places.get(where, clone.home / "tmp") / "mulligan.yml"
    file.write_text(
        f"sandbox: {{read: [{shown}]}}\nrepositories: [{{name: acme/tools}}]\n"
        "agent: {kind: claude}\ngithub: {token: $NOT_SET}\n"
    )
    environment = clone.environment
    if where == "in a variable":
        environment["MULLIGAN_CONFIG"] = str(file)
    named = ["--config", str(file)] if where == "named" else []
    done = run_forked(["check", *named], clone.path, environment)
    assert (done.returncode, done.stderr) == (0, "")
    shown_as = os.path.relpath(file, clone.path)
    assert f"With the settings of {shown_as}." in done.stdout


def test_check_and_rehearse_obey_the_operators_overrides_for_the_repository(clone: Clone) -> None:
    clone.commit("checks: [{name: tests, run: 'false', kind: test}]")
    git(clone.path, "remote", "add", "origin", "git@github.com:acme/tools.git")
    override = "{name: Acme/Tools, policy: {checks: [{name: ours, run: 'true', kind: test}]}}"
    (clone.home / "mulligan.yml").write_text(
        f"repositories: [{{name: acme/other}}, {override}]\nagent: {{kind: claude}}\n"
    )
    done = clone.check()
    assert (done.returncode, "Check 'ours' passed." in done.stdout) == (0, True)
    assert "Check 'ours' passed." in clone.check("--here").stdout
    tried = clone.rehearse("echo more >> notes.txt")
    assert (tried.returncode, "✓ ours" in tried.stdout) == (0, True)
    git(clone.path, "remote", "set-url", "origin", "git@github.com:acme/another.git")
    assert clone.check().returncode == 1


def test_check_here_has_the_operators_network_and_redacts(clone: Clone) -> None:
    key = "sk-" + "a1B2" * 10
    run = "test $INDEX = ours && cat keys && false"
    clone.commit(f"setup: [test $INDEX = ours]\nchecks: [{{name: tests, run: {run}}}]")
    (clone.path / "keys").write_text(f"{key}\n")
    (clone.home / "mulligan.yml").write_text(
        "sandbox: {env: [INDEX]}\nrepositories: [{name: acme/tools}]\nagent: {kind: claude}\n"
        "github: {token: $TOKEN}\n"
    )
    environment = {**clone.environment, "INDEX": "ours", "TOKEN": key}
    done = run_forked(["check", "--here", "--setup"], clone.path, environment)
    assert (done.returncode, done.stderr) == (1, "")
    assert "With the settings of ../mulligan.yml.\n✓ 1 setup command finished." in done.stdout
    assert "Check 'tests' failed with exit code 1." in done.stdout
    assert key not in done.stdout


def test_check_names_the_time_of_the_command_and_of_its_files(clone: Clone) -> None:
    clone.commit("setup: [touch ~/made]\nchecks: [{name: tests, run: 'true', kind: test}]")
    programs = clone.home / "bin"
    programs.mkdir()
    (programs / "cp").write_text('#!/bin/sh\nsleep 1\nexec /bin/cp "$@"\n')
    (programs / "cp").chmod(0o755)
    environment = clone.environment
    environment["PATH"] = f"{programs}:{environment['PATH']}"
    line = r"^✓ Check 'tests' passed\.  0\.\d s, and [1-9]\.\d s to prepare its files$"
    # Without a sandbox there are no layers, so each check gets a copy of the HOME.
    here = ("check", "--here", "--setup")
    done = run_forked(here, clone.path, environment)
    assert re.search(line, done.stdout, re.MULTILINE), done.stdout
    (found,) = json.loads(run_forked([*here, "--json"], clone.path, environment).stdout)
    assert (found["runs"], found["wall_ms"] - found["duration_ms"] >= 1000) == (1, True)
    assert "to prepare" not in clone.check().stdout


def test_check_runs_the_setup_commands_once_a_day_and_rehearse_uses_their_result(
    clone: Clone,
) -> None:
    set_up = "date +%s%N > made"
    clone.commit(f"setup: ['{set_up}']\nchecks: [{{name: tests, run: cat made; false}}]")
    first, second = clone.check(), clone.check()
    assert "✓ 1 setup command finished." in first.stdout
    assert "✓ 1 setup command did not run again: its result of today was used." in second.stdout
    stamp = re.search(r"\d{19}", first.stdout)
    assert stamp
    assert stamp[0] in second.stdout
    tried = clone.rehearse("cp made notes.txt")
    assert tried.returncode == 1
    (diff,) = re.findall(r"The last change: (.*)", tried.stdout)
    assert stamp[0] in Path(diff).read_text()
    assert not (clone.path / "made").exists()


def test_two_checks_of_one_clone_do_not_meet(clone: Clone) -> None:
    run = "sleep 1; cat notes.txt; echo two > notes.txt"
    clone.commit(f"setup: [touch made]\nchecks: [{{name: tests, run: '{run}', kind: test}}]")
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(clone.check) for _ in range(2)]
    assert [each.result().returncode for each in both] == [0, 0]
    assert left_by_check(clone) == []


def test_a_failed_setup_command_is_shown_with_its_output_and_its_whole_log(clone: Clone) -> None:
    clone.commit("setup: ['seq 100; exit 3']\nchecks: [{name: tests, run: 'true'}]")
    done = clone.check()
    assert done.returncode == 1
    assert "The setup command 'seq 100; exit 3' failed with exit code 3.\n86\n" in done.stderr
    kept = Path(done.stderr.rpartition("The whole output: ")[2].strip())
    assert kept.read_text().splitlines() == ["$ seq 100; exit 3", *map(str, range(1, 101))]
    assert "inspect" not in done.stderr
    assert left_by_check(clone) == []


@pytest.mark.parametrize("options", [(), ("--here",)])
def test_a_check_that_changes_tracked_files_is_named(clone: Clone, options: Sequence[str]) -> None:
    for number in range(7):
        (clone.path / f"{number}.txt").write_text("")
    fixes = "for each in ?.txt; do echo fixed > $each; done; touch new"
    checks = f"[{{name: lint, run: '{fixes}'}}, {{name: tests, run: 'true', kind: test}}]"
    clone.commit(f"checks: {checks}")
    # What a person has not committed is not the check's.
    (clone.path / "notes.txt").write_text("two\n")
    done = clone.check(*options)
    assert done.returncode == 0
    names = "0.txt, 1.txt, 2.txt, 3.txt, 4.txt and 2 more"
    assert f"  Check 'lint' changed 7 tracked files: {names}.\n" in done.stdout
    assert "Check 'tests' changed" not in done.stdout
    assert "Write the checking form of its command, such as `ruff check --no-fix`" in done.stdout
    again = clone.check(*options)
    assert ("changed 7 tracked files" in again.stdout) == (not options)


def test_check_says_when_nothing_is_a_test(clone: Clone) -> None:
    clone.commit("checks: [{name: lint, run: 'true'}]")
    for options in ((), ("--here",)):
        done = clone.check(*options)
        assert done.returncode == 0
        assert "No check has `kind: test`, so no test verifies a change." in done.stdout
    clone.configure("checks: []")
    assert "No check has" not in clone.check().stdout
    assert "would publish every change without verification" in clone.check().stdout


LISTS = "echo notes.txt:1:1: error: wrong; exit 1"
MEANINGS = {
    "pre-existing": (LISTS, "", "without any change. In attempts, Mulligan reports"),
    "not identified": ("echo oh; exit 1", "", "its output does not identify each failure. Fix"),
    "baseline off": (LISTS, "baseline: off", "and `baseline` is off. Fix this first."),
    "does not start": ("./notes.txt", "", "cannot run on this commit: it does not start"),
}


@pytest.mark.parametrize("case", MEANINGS)
def test_the_summary_says_what_a_failure_without_a_change_means(clone: Clone, case: str) -> None:
    run, more, meaning = MEANINGS[case]
    passing = "{name: types, run: 'true'}"
    clone.commit(f"checks: [{{name: tests, run: '{run}', kind: test}}, {passing}]\n{more}\n")
    done = clone.check()
    assert done.returncode == 1
    last = done.stdout.splitlines()[-1]
    assert last.startswith("1 of 2 checks ")
    assert meaning in last
    assert clone.check("--here").stdout.endswith("\n1 of 2 checks would fail an attempt.\n")


def test_the_summary_names_failures_beside_a_missing_program(clone: Clone) -> None:
    late = "{name: late, run: sleep 5, timeout: 1s}"
    clone.commit(f"checks: [{{name: tests, run: no-such-program, kind: test}}, {late}]")
    done = clone.check()
    assert (done.returncode, "'no-such-program' not found." in done.stderr) == (2, True)
    assert "\n1 check could not run; 1 did.\n1 of 2 checks cannot run on this" in done.stdout


def test_without_a_sandbox_check_says_so_and_sets_up_once(clone: Clone) -> None:
    clone.commit("setup: [pwd > made, 'true']\nchecks: [{name: tests, run: cat made; false}]")
    (clone.home / "mulligan.yml").write_text(
        "sandbox: off\nrepositories: [{name: acme/tools}]\nagent: {kind: claude}\n"
    )
    first, second = clone.check(), clone.check()
    assert "without a sandbox (`sandbox: off`), as in an attempt." in first.stdout
    assert "✓ 2 setup commands did not run again: their result of today" in second.stdout


def test_a_sandbox_that_does_not_work_is_an_error_that_names_the_way_without(clone: Clone) -> None:
    clone.commit(PASSES)
    programs = clone.home / "bin"
    programs.mkdir()
    for name in ("git", "sh", "env"):
        (programs / name).symlink_to(f"/usr/bin/{name}")
    environment = {**clone.environment, "PATH": str(programs)}
    done = run_forked(["check"], clone.path, environment)
    assert (done.returncode, done.stdout) == (2, "")
    assert "bubblewrap is not installed" in done.stderr
    assert "`mulligan check --here`" in done.stderr


@pytest.mark.parametrize(
    ("where", "said"),
    [
        (".github", "is not the top directory of a git repository"),
        ("detached", "has no branch checked out"),
        ("empty", "has no commit on trunk yet"),
    ],
)
def test_check_of_no_commit_is_one_sentence_that_names_the_way_without(
    clone: Clone, where: str, said: str
) -> None:
    clone.commit(PASSES)
    if where == "detached":
        git(clone.path, "checkout", "--quiet", "--detach")
    if where == "empty":
        git(clone.path, "update-ref", "-d", "HEAD")
    done = clone.check(where=".github" if where == ".github" else ".")
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "as it is: `mulligan check --here`.\n" in done.stderr


def test_check_and_rehearse_name_submodules_and_a_check_may_fetch_them(clone: Clone) -> None:
    words = clone.home / "words"
    words.mkdir()
    git(words, "init", "--quiet")
    (words / "list.txt").write_text("one\n")
    git(words, "add", ".")
    git(words, "commit", "--quiet", "--message", "Words")
    allowed = ("-c", "protocol.file.allow=always")
    git(clone.path, *allowed, "submodule", "--quiet", "add", str(words), "spec")
    trust = "git config --global safe.directory '*'"
    fetch = "git -c protocol.file.allow=always submodule update --init --quiet"
    checks = (
        f"[{{name: tests, run: {fetch} && cat spec/list.txt, kind: test, network: true}},"
        "{name: without, run: test -e spec/list.txt}]"
    )
    clone.commit(f'setup: ["{trust}", "{fetch}"]\nchecks: {checks}')
    (clone.home / "mulligan.yml").write_text(
        f"sandbox: {{read: [{words}]}}\nrepositories: [{{name: acme/tools}}]\n"
        "agent: {kind: claude}\n"
    )
    note = (
        "The submodule spec is empty in attempts. If a check needs those files, set `checkout:"
        " {submodules: true}` in .github/mulligan.yml."
    )
    done, tried = clone.check(), clone.rehearse("echo more >> notes.txt")
    assert f"\n{note}\n" in done.stdout
    assert f"\n{note}\n" in tried.stdout
    for said in (done.stdout, tried.stdout):
        assert re.search(r"✓ (Check ')?tests", said)
        assert re.search(r"✗ (Check ')?without", said)
    clone.commit("checkout: {submodules: true}\nchecks: [{name: with, run: test -e spec/list.txt}]")
    note = "Attempts get the files of the submodule spec, by `checkout.submodules`."
    done, tried = clone.check(), clone.rehearse("echo more >> notes.txt")
    for said in (done.stdout, tried.stdout):
        assert f"\n{note}\n" in said
        assert re.search(r"✓ (Check ')?with", said)


def test_check_and_rehearse_name_git_lfs_and_fetch_from_the_clone(clone: Clone) -> None:
    content = b"the content\n"
    (clone.path / ".gitattributes").write_text("*.dat filter=lfs\n")
    (clone.path / "words.dat").write_text(store(clone.path / ".git", content))
    run = "grep content words.dat"
    (clone.path / ".gitignore").write_text("*.o\n")
    lines = f"setup: [cp words.dat made.o]\nchecks: [{{name: words, run: {run} made.o}}]"
    off, on = (f"{key}{lines}" for key in ("", KEY))
    clone.commit(off)
    done = clone.check()
    assert "\nGit LFS files are pointers in attempts." in done.stdout
    assert done.returncode == 1
    clone.commit(on)
    done, tried = clone.check(), clone.rehearse("echo more >> notes.txt")
    for said in (done.stdout, tried.stdout):
        assert "\nAttempts get the content of Git LFS files, by `checkout.lfs`.\n" in said
        assert re.search(r"✓ (Check ')?words", said)
    assert "tracked file" not in done.stdout
    place(clone.path / ".git", oid_of(content)).unlink()
    done = clone.check()
    assert done.returncode != 0
    assert "Run `git lfs fetch` in that repository" in " ".join(done.stderr.split())


KEY = "checkout: {lfs: true}\n"


def test_setup_without_here_is_accepted_with_a_warning(clone: Clone) -> None:
    clone.commit(PASSES)
    done = clone.check("--setup")
    assert done.returncode == 0
    assert "`--setup` has no effect without `--here`" in done.stderr


def test_check_of_another_directory_and_of_a_linked_worktree(clone: Clone) -> None:
    clone.commit(PASSES)
    git(clone.path, "worktree", "add", "--quiet", "../linked", "-b", "topic")
    (clone.home / "linked" / "notes.txt").write_text("two\n")
    done = run_forked(["check", "linked"], clone.home, clone.environment)
    assert done.returncode == 0, done.stderr
    assert "From the last commit on topic of linked (" in done.stdout
    assert "To check it too: `mulligan check --here linked`." in done.stdout
    (clone.home / "empty").mkdir()
    none = run_forked(["check", "empty"], clone.home, clone.environment)
    assert "as it is: `mulligan check --here empty`." in none.stderr


@pytest.mark.parametrize(
    "words", [("check",), ("check", "--here"), ("init",), ("rehearse", "ISSUE.md")]
)
def test_a_directory_that_does_not_exist_is_one_sentence(
    clone: Clone, words: tuple[str, ...]
) -> None:
    (clone.home / "ISSUE.md").write_text("# Say two\n")
    done = run_forked([*words, "hello"], clone.home, clone.environment)
    said = f"mulligan: {clone.home}/hello is not a directory. Name the directory of a clone.\n"
    assert (done.returncode, done.stderr) == (2, said)


def test_check_takes_the_directory_that_init_was_given(clone: Clone) -> None:
    (clone.path / "test_it.py").write_text("import unittest\n")
    clone.commit(PASSES)
    where = os.path.relpath(clone.path, clone.home)
    init = run_forked(["init", where, "--yes"], clone.home, clone.environment)
    assert init.returncode == 0, init.stderr
    done = run_forked(["check", where], clone.home, clone.environment)
    assert done.returncode == 0, done.stderr


def test_check_of_a_shallow_clone(clone: Clone) -> None:
    clone.commit(PASSES)
    clone.commit("checks: [{name: tests, run: git log -p, kind: test}]")
    git(clone.home, "clone", "--quiet", "--depth", "1", f"file://{clone.path}", "shallow")
    done = run_forked(["check", "shallow"], clone.home, clone.environment)
    assert done.returncode == 0, done.stderr


def has_log(directory: Path) -> bool:
    try:
        return any(directory.rglob("check.log"))
    except FileNotFoundError:
        # The kernel makes and removes directories of a layer meanwhile.
        return False


@pytest.mark.parametrize("options", [(), ("--here",)])
def test_a_signal_ends_the_commands_and_leaves_nothing(
    clone: Clone, options: Sequence[str]
) -> None:
    pid = "echo $$ > pid; cat pid; sleep 60"
    clone.commit(f"checks: [{{name: tests, run: '{pid}', kind: test}}]")
    began = time.monotonic()
    with start_forked(["check", *options], clone.path, clone.environment) as running:
        logs = clone.home if not options else clone.home / "tmp"
        while not has_log(logs) and time.monotonic() < began + 20:
            time.sleep(0.05)
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(20)
    assert running.returncode == 130
    assert "SIGINT: stopping the running command" in said
    assert time.monotonic() < began + 30
    assert left_by_check(clone) == []
    assert list((clone.home / "tmp").iterdir()) == []
