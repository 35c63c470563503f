"""The life of an issue, from the label to the pull request or the person who is asked."""

from collections.abc import Generator
from pathlib import Path

import pytest
from pydantic import JsonValue

from github_simulator.records import IssueName
from mulligan.domain.outcome import Outcome
from world.issue_names import ref_of
from world.place import MAINTAINER, NAME, MulliganInstallation, mulligan_installation
from world.repositories import add_submodule, branch_head, commit_to, git, make_remote, read_branch
from world.signing import make_key, public_key, unsigned_below

FILES = {
    "add.py": "def add(a, b):\n    return a - b\n",
    "test_add.py": (
        "import unittest\nfrom add import add\n\n\nclass AddTest(unittest.TestCase):\n"
        "    def test_sum(self):\n        self.assertEqual(add(2, 3), 5, 'two and three')\n"
    ),
    ".gitignore": "__pycache__/\n",
}
TESTS = {"name": "tests", "run": "python3 -m unittest -v", "kind": "test", "timeout": "1m"}
MEND = "pathlib.Path('add.py').write_text('def add(a, b):\\n    return a + b\\n')\n"
SPOIL = "pathlib.Path('add.py').write_text('def add(a, b):\\n    return a * b\\n')\n"
MEND_WHAT_IS_NAMED = f"""
if 'test_sum' in prompt and 'two and three' in prompt:
    {MEND}else:
    {SPOIL}"""
COMMIT = "git('commit', '-qam', 'Try')\n"
GIT = """
def git(*words):
    subprocess.run(['git', '-c', 'user.name=a', '-c', 'user.email=a@b', *words], check=True)
"""


@pytest.fixture
def here(tmp_path: Path) -> Generator[MulliganInstallation]:
    with mulligan_installation(tmp_path, FILES, [TESTS]) as made:
        yield made


def test_a_good_change_becomes_a_pull_request_at_once(here: MulliganInstallation) -> None:
    here.agent(MEND + "print('Mended add(), see @zoe, fixes #99')")
    ref = here.issue("Adding subtracts")
    done = here.run("once")
    assert (done.returncode, done.stderr) == (0, "")
    (pull,) = here.world.pulls_of(NAME)
    assert pull.title == "Adding subtracts"
    assert f"Closes #{ref.number}" in (pull.body or "")
    assert "Mended add()" in (pull.body or "")
    assert " @zoe" not in (pull.body or "")
    assert read_branch(here.bare, ref.branch, "add.py") == "def add(a, b):\n    return a + b"
    assert here.branch_files(ref) == set(FILES)
    assert here.world.labels_of(ref) == ["mulligan:review"]
    assert len(here.comments(ref)) == 1
    (meta,) = here.attempts(ref)
    assert (meta.outcome, meta.commits) == (Outcome.SUCCEEDED, 1)
    assert [(file.path, file.status) for file in meta.files_modified] == [("add.py", "M")]
    assert here.ask("status") == [
        {
            "issue": str(ref),
            "stage": "review",
            "epoch": 1,
            "attempt": 1,
            "outcome": "SUCCEEDED",
            "reason": "The check 'tests' passed.",
            "pull_request": f"{here.url}/{NAME}/pull/{pull.number}",
            "review_until": None,
            "notes": [],
            "paused": None,
        }
    ]
    # A second pass has nothing to do.
    writes = [request for request in here.world.requests if request.method != "GET"]
    done = here.run("once")
    assert (done.returncode, done.stdout.strip()) == (0, "No issue is due.")
    assert [each for each in here.world.requests if each.method != "GET"] == writes


def test_with_a_signing_key_the_pull_request_holds_signed_commits_only(
    here: MulliganInstallation,
) -> None:
    key = make_key(here.directory / "signing-key")
    here.world.add_signing_key("mulligan-bot", public_key(key))
    for kind in ("required_signatures", "non_fast_forward", "required_linear_history"):
        here.world.add_rule(NAME, kind, ["*"])
    github = here.settings["github"]
    assert isinstance(github, dict)
    here.configure(github={**github, "signing_key_file": str(key)})
    here.agent(MEND)
    ref = here.issue("Adding subtracts")
    here.run("once")
    assert here.world.labels_of(ref) == ["mulligan:review"]
    assert unsigned_below(here.bare, ref.branch, "main", key) == []


def test_the_repositorys_template_is_filled_in_and_people_keep_what_they_tick(
    here: MulliganInstallation,
) -> None:
    template = "## Summary\n<!-- @zoe, fixes #99 -->\n\nFixes #\n\n## Checklist\n\n- [x] I ran it\n"
    commit_to(here.bare, {".github/pull_request_template.md": template})
    here.agent(MEND + "print('Mended add()')")
    ref = here.issue("Adding subtracts")
    here.run("once")
    (pull,) = here.world.pulls_of(NAME)
    text = pull.body or ""
    assert text.startswith("## Summary\n\n<!-- mulligan:description")
    assert text.index("Mended add()") < text.index(f"Fixes #{ref.number}") < text.index("- [ ] I")
    assert text.index("- [ ] I ran it") < text.index("## Mulligan") < text.index("### Checks")
    assert text.count("Mended add()") == 1
    assert "@zoe" not in text
    # A person ticks a box and asks for more: the box stays, the rest is brought up to date.
    ticked = text.replace("- [ ] I ran it", "- [x] I ran it")
    here.world.edit(IssueName(NAME, pull.number), MAINTAINER, body=ticked)
    here.agent(MEND + "pathlib.Path('new.py').touch()\nprint('Added a file, too')")
    here.world.comment(ref, "/mulligan fix: add a file", MAINTAINER)
    here.run("once")
    (pull,) = here.world.pulls_of(NAME)
    assert "- [x] I ran it" in (pull.body or "")
    assert "Added a file, too" in (pull.body or "")
    assert "Mended add()" not in (pull.body or "")


TITLED = """
pathlib.Path(os.environ['MULLIGAN_REPORT']).write_text('{"title": "%s"}')
assert '`type(scope): what changes`' in prompt
"""


@pytest.mark.parametrize(
    ("proposed", "title"),
    [
        ("fix(add): add the numbers", "fix(add): add the numbers"),
        ("fix: see @zoe, fixes #99", "feat: adding subtracts"),
    ],
)
def test_a_change_is_named_in_the_form_of_the_history(
    here: MulliganInstallation, proposed: str, title: str
) -> None:
    for number in range(6):
        commit_to(here.bare, {"n": str(number)}, message=f"feat(n): count to {number}")
    here.agent(MEND + TITLED % proposed)
    ref = here.issue("Adding subtracts")
    here.world.label(ref, "enhancement", MAINTAINER)
    here.run("once")
    (pull,) = here.world.pulls_of(NAME)
    assert pull.title == title
    assert read_subject(here.bare, ref.branch) == title
    (meta,) = here.attempts(ref)
    assert meta.title == title


def test_with_the_issues_title_an_agent_names_nothing(here: MulliganInstallation) -> None:
    (known,) = parts(here.settings["repositories"])
    assert isinstance(known, dict)
    policy: JsonValue = {"checks": [dict(TESTS)], "pull_request": {"title": "issue"}}
    here.configure(repositories=[{**known, "policy": policy}])
    here.agent(
        MEND + "assert 'title' not in prompt\n" + TITLED.partition("assert")[0] % "Add it up"
    )
    ref = here.issue("Adding subtracts")
    here.run("once")
    (pull,) = here.world.pulls_of(NAME)
    assert pull.title == "Adding subtracts"
    assert read_subject(here.bare, ref.branch) == f"Adding subtracts (#{ref.number})"


def read_subject(bare: Path, branch: str) -> str:
    return git(bare, "log", "-1", "--format=%s", branch)


def parts(value: JsonValue) -> list[JsonValue]:
    assert isinstance(value, list)
    return value


def test_the_second_try_succeeds_because_it_is_told_what_failed(here: MulliganInstallation) -> None:
    here.agent(MEND_WHAT_IS_NAMED)
    ref = here.issue()
    assert here.run("once").returncode == 0
    first, second = here.attempts(ref)
    assert (first.outcome, second.outcome) == (Outcome.CHECKS_FAILED, Outcome.SUCCEEDED)
    assert first.checks[0].fingerprint
    assert "Retry context" not in here.prompt(ref, 1)
    told = here.prompt(ref, 2)
    assert told.startswith("Attempt 2 of 3")
    for word in ("test_add.AddTest.test_sum", "two and three", "1 commit", "return a * b"):
        assert word in told
    assert len(here.world.pulls_of(NAME)) == 1
    found = here.ask("inspect", str(ref))
    assert isinstance(found, dict)
    decisions = found["decisions"]
    assert isinstance(decisions, list)
    assert [each["decision"] for each in decisions if isinstance(each, dict)] == [
        "retry",
        "open_pull_request",
    ]


def test_three_failures_reach_a_person_with_everything_they_need(
    here: MulliganInstallation,
) -> None:
    here.agent(SPOIL)
    ref = here.issue("Adding subtracts")
    done = here.run("once")
    assert done.returncode == 3
    assert here.world.labels_of(ref) == ["mulligan:hitl"]
    assert here.world.pulls_of(NAME) == []
    assert branch_head(here.bare, ref.branch) is None
    status, asked = here.comments(ref)
    assert "needs human review (HITL)" in status
    assert f"/issues/{ref.number}#issuecomment-" in status
    assert "All 3 attempts failed" in asked
    sections = [line for line in asked.splitlines() if line.startswith("#")]
    assert [section.lstrip("# ") for section in sections] == [
        "Failure summary",
        "Suggested actions",
        "Your options",
        "All commands",
        "Attempt history",
        "Last failure",
        "Files changed by the last attempt",
        "Observed patterns",
    ]
    for word in ("test_add.AddTest.test_sum", "two and three", "3 of 3", "add.py"):
        assert word in asked


@pytest.mark.deep
@pytest.mark.parametrize(
    ("agent", "outcome", "words"),
    [
        (
            "print('I would change add.py')",
            Outcome.ZERO_COMMIT,
            "no commit, and every file as it was",
        ),
        (
            GIT + SPOIL + COMMIT + "git('revert', '--no-edit', 'HEAD')",
            Outcome.ZERO_DIFF,
            "2 commits",
        ),
        ("sys.exit(3)", Outcome.AGENT_CRASHED, "exit code 3"),
    ],
)
def test_changing_nothing_is_tried_again_and_told(
    here: MulliganInstallation, agent: str, outcome: Outcome, words: str
) -> None:
    here.agent(agent)
    ref = here.issue()
    assert here.run("once").returncode == 3
    assert [meta.outcome for meta in here.attempts(ref)] == [outcome] * 3
    assert words in here.prompt(ref, 2)
    assert here.world.labels_of(ref) == ["mulligan:hitl"]


@pytest.mark.deep
def test_an_agent_that_cannot_go_on_reaches_a_person_at_once(here: MulliganInstallation) -> None:
    here.agent("""
    report = '{"status": "blocked", "reason": "Which rounding?"}'
    pathlib.Path(os.environ["MULLIGAN_REPORT"]).write_text(report)
    """)
    ref = here.issue()
    assert here.run("once").returncode == 3
    (meta,) = here.attempts(ref)
    assert meta.outcome is Outcome.BLOCKED
    assert "Which rounding?" in here.comments(ref)[-1]


@pytest.mark.deep
def test_a_new_request_opens_an_epoch_and_keeps_the_history(here: MulliganInstallation) -> None:
    here.agent(SPOIL)
    ref = here.issue()
    assert here.run("once").returncode == 3
    here.world.label(ref, "mulligan", MAINTAINER)
    here.agent(MEND)
    assert here.run("once").returncode == 0
    history = here.attempts(ref)
    assert [(meta.epoch, meta.attempt, meta.number) for meta in history] == [
        (1, 1, 1),
        (1, 2, 2),
        (1, 3, 3),
        (2, 1, 4),
    ]
    assert "test_sum" in here.prompt(ref, 4)
    assert here.world.labels_of(ref) == ["mulligan:review"]


@pytest.mark.deep
def test_one_attempt_each_leaves_the_issue_ready_for_the_next_pass(
    here: MulliganInstallation,
) -> None:
    here.agent(SPOIL)
    ref = here.issue()
    assert here.run("once", "--attempts", "1").returncode == 0
    assert len(here.attempts(ref)) == 1
    assert set(here.world.labels_of(ref)) >= {"mulligan"}
    assert here.run("once", "--attempts", "1").returncode == 0
    assert here.run("once", "--attempts", "1").returncode == 3
    assert len(here.attempts(ref)) == 3


def test_a_label_by_somebody_without_write_access_starts_nothing(
    here: MulliganInstallation,
) -> None:
    here.agent(MEND)
    ref = ref_of(here.world.open_issue(NAME, "Mend it", "Please.", "zoe"))
    here.world.label(ref, "mulligan", "tri")
    done = here.run("once")
    assert done.returncode == 0
    assert f"{ref}  skipped:" in done.stdout
    assert here.ask("status") == []
    assert here.comments(ref) == []


@pytest.mark.deep
def test_the_operator_needs_no_label(here: MulliganInstallation) -> None:
    here.agent(MEND)
    ref = here.world.open_issue(NAME, "Mend it", "Please.", "zoe")
    assert here.run("work", str(ref)).returncode == 0
    assert here.world.labels_of(ref) == ["mulligan:review"]


def test_a_dry_run_changes_nothing_on_github(here: MulliganInstallation) -> None:
    here.agent(MEND)
    ref = here.issue()
    done = here.run("work", str(ref), "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "Would push" in done.stdout
    assert "pull request" in done.stdout
    assert [each for each in here.world.requests if each.method != "GET"] == []
    assert branch_head(here.bare, ref.branch) is None
    assert here.ask("status") == []


@pytest.mark.deep
def test_a_failing_set_up_costs_no_attempt_and_waits(tmp_path: Path) -> None:
    line = "for n in $(seq 30); do echo line $n; done; echo '╰─> no network'; exit 7"
    with mulligan_installation(tmp_path, FILES, [TESTS], setup=[line]) as here:
        here.agent(MEND)
        ref = here.issue()
        done = here.run("once")
        assert done.returncode == 1
        (meta,) = here.attempts(ref)
        assert meta.outcome is Outcome.INFRASTRUCTURE
        assert meta.error.startswith(f"The setup command '{line}' failed with exit code 7. ")
        inspect = f"mulligan inspect {ref} --log setup"
        assert inspect in meta.error
        for told in (done.stdout, here.comments(ref)[0], here.run("inspect", str(ref)).stdout):
            assert told.count("no network\n") == 1
            assert "line 17" in told
            assert "line 16\n" not in told
        # The cause stands once; the last line says what follows.
        assert "waits until" in done.stderr
        assert f"Run `mulligan once --config {here.config}` again then" in done.stderr
        assert "failed with exit code" not in done.stderr
        log = here.run("inspect", str(ref), "--log", "setup").stdout
        assert log.startswith(f"$ {line}\nline 1\n")
        missing = here.run("inspect", str(ref), "--log", "lint")
        assert (missing.returncode, "has no log 'lint'" in missing.stderr) == (2, True)
        agent = here.run("inspect", str(ref), "--log")
        assert agent.returncode == 2
        assert f"run `{inspect} --config {here.config}`" in agent.stderr
        assert f"run: {inspect} --config {here.config}" in done.stdout
        assert here.run("once").stdout.startswith("No issue is due.\n")
        assert here.world.labels_of(ref) == ["mulligan"]


@pytest.mark.deep
def test_the_time_of_attempts_is_recorded_with_its_parts(tmp_path: Path) -> None:
    with mulligan_installation(tmp_path, FILES, [TESTS], setup=["sleep 1"]) as here:
        here.agent(SPOIL)
        ref = here.issue()
        told = here.run("once", "--attempts", "1").stdout
        here.agent(MEND)
        here.run("once")
        first, second = here.attempts(ref)
        assert first.times
        assert second.times
        assert (first.times.set_up_reused, second.times.set_up_reused) == (False, True)
        assert first.times.set_up_ms >= 1000
        for meta in (first, second):
            assert meta.times
            parts = meta.times.model_dump(exclude={"waited_ms", "set_up_reused"})
            assert sum(parts.values()) == meta.duration_ms
            assert meta.set_up_files
        # The change twice, and the start tree until it passes or has failed twice.
        (check,) = first.checks
        assert check.runs >= 3
        assert check.wall_ms >= check.duration_ms
        assert here.run("inspect", str(ref)).stdout.count("setup files: ") == 2
        assert f"✗ tests ({check.runs} runs, " in told


@pytest.mark.deep
def test_without_checks_the_pull_request_says_that_nothing_was_verified(tmp_path: Path) -> None:
    with mulligan_installation(tmp_path, FILES) as here:
        here.agent(SPOIL)
        here.issue()
        done = here.run("once")
        assert done.returncode == 0
        (pull,) = here.world.pulls_of(NAME)
        for told in (pull.body or "", done.stdout):
            assert "No check is configured: nothing was verified." in told


def test_a_change_out_of_scope_is_named_and_tried_again(tmp_path: Path) -> None:
    with mulligan_installation(tmp_path, FILES, [TESTS], scope={"allow": ["*.py"]}) as here:
        here.agent("""
        pathlib.Path('add.py').write_text('def add(a, b):\\n    return a + b\\n')
        if 'notes.txt' not in prompt:
            pathlib.Path('notes.txt').write_text('remember')
        """)
        ref = here.issue()
        assert here.run("once").returncode == 0
        first, second = here.attempts(ref)
        assert (first.outcome, second.outcome) == (Outcome.SCOPE_VIOLATION, Outcome.SUCCEEDED)
        assert first.guard_violations


@pytest.mark.parametrize("outside", ["", MEND])
def test_a_change_inside_a_submodule_is_named_and_tried_again(tmp_path: Path, outside: str) -> None:
    remote = make_remote(tmp_path / "submodule.git", FILES)
    add_submodule(remote, "lib")
    with mulligan_installation(tmp_path, remote, [TESTS], max_issue_attempts=2) as here:
        here.agent(f"""
        {outside}
        pathlib.Path('lib/fix.c').write_text('int x;')
        """)
        ref = here.issue()
        assert here.run("once").returncode == 3
        first, _ = here.attempts(ref)
        assert first.outcome is Outcome.SCOPE_VIOLATION
        assert "lib/fix.c is in a submodule" in here.prompt(ref, 2)
        assert "lib/fix.c is in a submodule" in here.comments(ref)[-1]


@pytest.mark.deep
def test_an_issue_that_was_closed_is_left_alone(here: MulliganInstallation) -> None:
    here.agent(MEND)
    ref = here.issue()
    here.world.close(ref, MAINTAINER)
    assert here.run("once").stdout.strip() == "No issue is due."
