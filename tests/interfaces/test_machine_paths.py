"""Comments, prompts and events have no absolute path of the machine that Mulligan runs on."""

from collections.abc import Generator
from pathlib import Path

import pytest

from mulligan.interfaces.bootstrap.redaction import without_machine_paths
from mulligan.text.redact import Redactor
from world.place import MulliganInstallation, mulligan_installation

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
    shown = "\n".join([*here.comments(ref), prompt, here.run("events", "--json").stdout])
    assert str(here.directory) not in shown
