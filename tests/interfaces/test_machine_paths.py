"""Nothing that Mulligan publishes has an absolute path of the machine that it runs on."""

from collections.abc import Generator
from pathlib import Path

import pytest

from mulligan.interfaces.bootstrap.redaction import without_machine_paths
from mulligan.text.redact import Redactor
from world.place import MulliganInstallation, mulligan_installation
from world.starts import run_mulligan

ROOT, STATE = Path("/srv/mulligan/work"), Path("/srv/mulligan/state")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"File {ROOT}/acme/calc/issue-12/tests/test_a.py, line 3", "File tests/test_a.py, line 3"),
        (f"[a]({ROOT}/acme/calc/issue-12/a.py)", "[a](a.py)"),
        (f"file://{ROOT}/acme/calc/issue-12/a.py", "a.py"),
        (f"cd {ROOT}/acme/calc/issue-12 && ls", "cd . && ls"),
        (f"The worktree at {ROOT}/acme/calc/issue-12.", "The worktree at .."),
        (f"{ROOT}/acme/calc/issue-12.run/agent.log", "$WORKSPACE/acme/calc/issue-12.run/agent.log"),
        (f"Less is free for {ROOT}.", "Less is free for $WORKSPACE."),
        (f"{STATE}/mulligan.db is damaged", "$STATE/mulligan.db is damaged"),
        (f"{ROOT}-2/x and /etc/passwd", f"{ROOT}-2/x and /etc/passwd"),
    ],
)
def test_paths_are_relative(text: str, shown: str) -> None:
    redactor = without_machine_paths(Redactor(), ROOT, STATE)
    assert redactor.text(text) == shown
    assert redactor.tree({"error": [text]}) == {"error": [shown]}
    assert redactor.text(shown) == shown


@pytest.fixture
def here(tmp_path: Path) -> Generator[MulliganInstallation]:
    with mulligan_installation(tmp_path, {"calc.py": "one = 1\n"}) as made:
        yield made


def test_an_agents_words_reach_comment_and_prompt_without_the_machines_paths(
    here: MulliganInstallation,
) -> None:
    here.configure(agent={"command": ["sh", "-c", "echo I looked at $PWD/calc.py"]})
    ref = here.issue()
    assert here.run("once").returncode == 3
    (comment,) = [each for each in here.comments(ref) if "### Failure summary" in each]
    assert "I looked at calc.py" in comment
    prompt = here.run("inspect", str(ref), "--prompt").stdout
    assert "I looked at calc.py" in prompt
    shown = "\n".join([*here.comments(ref), prompt, here.run("debug", "events", "--json").stdout])
    assert str(here.directory) not in shown


def test_the_action_reports_a_failure_without_the_runners_paths(tmp_path: Path) -> None:
    state = tmp_path / "_temp" / "mulligan-state"
    state.parent.mkdir()
    state.write_text("a file, where the directory should be")
    ran = run_mulligan(
        tmp_path,
        "action",
        RUNNER_TEMP=str(state.parent),
        GITHUB_REPOSITORY="octo/calc",
        GITHUB_RUN_ID="1",
        GITHUB_RUN_ATTEMPT="1",
        GITHUB_STEP_SUMMARY=str(tmp_path / "summary"),
        INPUT_COMMAND="true",
        INPUT_SANDBOX="off",
    )
    assert ran.returncode == 1
    summary = (tmp_path / "summary").read_text()
    assert "**Failed:** The directory \\$STATE could not be created" in summary
    assert "::error title=Mulligan::The directory $STATE could not be created" in ran.stdout
    assert str(tmp_path) not in ran.stdout + ran.stderr + summary.replace("\\", "")
