"""An agent that leaves no change: of what kind that was is said to everybody who reads of it."""

from collections.abc import Generator
from pathlib import Path

import pytest

from mulligan.domain.outcome import Outcome, ZeroKind
from world.place import MulliganInstallation, mulligan_installation

FILES = {"add.py": "def add(a, b):\n    return a - b\n", ".gitignore": "*.log\nbuild/\n"}
MEND = "pathlib.Path('add.py').write_text('def add(a, b):\\n    return a + b\\n')\n"
GIT = "def git(*w): subprocess.run(['git', '-c', 'user.name=a', '-c', 'user.email=a@b', *w])\n"
COMMIT = f"{MEND}git('commit', '-qam', 'Mend')"
REPORT = """
said = '{"status": "nothing_to_do", "reason": "It adds.", "evidence": "add.py:2"}'
pathlib.Path(os.environ["MULLIGAN_REPORT"]).write_text(said)
"""


@pytest.fixture
def here(tmp_path: Path) -> Generator[MulliganInstallation]:
    with mulligan_installation(tmp_path, FILES, max_issue_attempts=2) as made:
        yield made


@pytest.mark.parametrize(
    ("agent", "outcome", "kind", "told", "asked"),
    [
        (
            "print('I would change add.py.')",
            Outcome.ZERO_COMMIT,
            ZeroKind.NOTHING,
            "describing it is not enough",
            "The agent changed nothing.",
        ),
        pytest.param(
            "print('I would change `add.py`. **Shall I go ahead?**')",
            Outcome.ZERO_COMMIT,
            ZeroKind.ASKED,
            "Nobody answers while you work",
            "It asked: Shall I go ahead?",
            marks=pytest.mark.deep,
        ),
        pytest.param(
            "pathlib.Path('plan.log').write_text('later')",
            Outcome.ZERO_COMMIT,
            ZeroKind.ONLY_IGNORED,
            "It wrote only files that git ignores or tools leave: plan.log.",
            "It wrote only files that git ignores or tools leave: plan.log.",
            marks=pytest.mark.deep,
        ),
        (
            f"{GIT}git('commit', '-q', '--allow-empty', '-m', 'Mend')",
            Outcome.ZERO_DIFF,
            ZeroKind.UNDONE,
            "the commits were empty or undid each other",
            "The agent made 1 commit, but the files equal the base branch (zero diff).",
        ),
        (
            f"{GIT}git('worktree', 'add', '-q', '.trees/x'); os.chdir('.trees/x')\n{COMMIT}",
            Outcome.ZERO_DIFF,
            ZeroKind.NESTED,
            "It worked in a git repository of its own: .trees/x.",
            "It worked in a git repository of its own: .trees/x.",
        ),
        pytest.param(
            "os.kill(os.getpid(), 9)",
            Outcome.AGENT_CRASHED,
            ZeroKind.CUT_OFF,
            "your program was killed before it had changed a file",
            "killed by SIGKILL",
            marks=pytest.mark.deep,
        ),
    ],
)
def test_every_kind_is_told_to_the_next_attempt_and_to_the_person(
    here: MulliganInstallation, agent: str, outcome: Outcome, kind: ZeroKind, told: str, asked: str
) -> None:
    here.agent(agent)
    ref = here.issue()
    assert here.run("once").returncode == 3
    assert [(meta.outcome, meta.zero_kind) for meta in here.attempts(ref)] == [(outcome, kind)] * 2
    assert told in here.prompt(ref, 2)
    assert "answer BLOCKED or NOTHING_TO_DO" in here.prompt(ref, 2)
    assert asked in here.comments(ref)[-1]


def test_what_it_is_told_makes_the_next_attempt_better(here: MulliganInstallation) -> None:
    here.agent(f"""
    if 'Nobody answers while you work' in prompt:
        {MEND}
    else:
        print('Shall I mend it?')
    """)
    ref = here.issue()
    assert here.run("once").returncode == 0
    outcomes = [meta.outcome for meta in here.attempts(ref)]
    assert outcomes == [Outcome.ZERO_COMMIT, Outcome.SUCCEEDED]


@pytest.mark.deep
def test_agents_that_change_nothing_may_be_given_up_earlier(tmp_path: Path) -> None:
    with mulligan_installation(
        tmp_path, FILES, max_issue_attempts=5, max_no_output_attempts=2
    ) as here:
        here.agent("print('Done.')")
        ref = here.issue()
        assert here.run("once").returncode == 3
        assert [meta.outcome for meta in here.attempts(ref)] == [Outcome.ZERO_COMMIT] * 2
        assert "2 attempts changed nothing." in here.comments(ref)[-1]
        assert here.world.labels_of(ref) == ["mulligan:hitl"]


@pytest.mark.deep
def test_other_failures_do_not_bring_that_closer(tmp_path: Path) -> None:
    check = {"name": "adds", "run": "python3 -c 'import add; assert add.add(1, 1) == 2'"}
    with mulligan_installation(tmp_path, FILES, [check], max_no_output_attempts=2) as here:
        here.agent(f"""
        if 'adds' not in prompt.partition('# Retry context')[2]:
            pathlib.Path('add.py').write_text('def add(a, b): return 0')
        elif 'Found: ' in prompt:
            {MEND}
        """)
        ref = here.issue()
        assert here.run("once").returncode == 0
        assert [meta.outcome for meta in here.attempts(ref)] == [
            Outcome.CHECKS_FAILED,
            Outcome.ZERO_COMMIT,
            Outcome.SUCCEEDED,
        ]


@pytest.mark.deep
def test_an_agent_that_finds_it_done_already_asks_a_person_at_once(
    here: MulliganInstallation,
) -> None:
    here.agent(REPORT)
    ref = here.issue()
    assert here.run("once").returncode == 3
    (meta,) = here.attempts(ref)
    assert (meta.outcome, meta.zero_kind) == (Outcome.NOTHING_TO_DO, None)
    asked = here.comments(ref)[-1]
    assert "It adds. Evidence: add.py:2" in asked
    assert "close the issue" in asked


def test_an_agent_that_says_so_and_changes_something_is_judged_by_its_change(
    here: MulliganInstallation,
) -> None:
    here.agent(REPORT + MEND)
    ref = here.issue()
    assert here.run("once").returncode == 0
    (meta,) = here.attempts(ref)
    assert (meta.outcome, meta.zero_kind) == (Outcome.SUCCEEDED, None)
    assert here.world.labels_of(ref) == ["mulligan:review"]
