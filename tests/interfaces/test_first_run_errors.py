"""What a new user meets when something is not as it should be: one sentence, and no traces."""

import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from mulligan.domain.outcome import Outcome
from world.place import BIN, MAINTAINER, NAME, MulliganInstallation, mulligan_installation
from world.repositories import git

FILES = {"notes.txt": "one\n"}
WRITE = "pathlib.Path('notes.txt').write_text('two')\n"


@pytest.fixture
def here(tmp_path: Path) -> Generator[MulliganInstallation]:
    with mulligan_installation(tmp_path, FILES) as made:
        made.agent(WRITE)
        yield made


def test_commands_that_only_look_here_need_no_token(here: MulliganInstallation) -> None:
    del here.environment["GITHUB_TOKEN"]
    said = "No issues yet. Add the label to one, then run `mulligan once --config "
    assert here.run("status").stdout == f"{said}{here.config}`.\n"
    assert here.run("debug", "config", "check").returncode == 0
    assert "*** (from $GITHUB_TOKEN)" in here.run("debug", "config", "show").stdout


def test_looking_at_an_attempt_makes_no_directories(here: MulliganInstallation) -> None:
    ref = here.issue()
    assert here.run("once").returncode == 0
    missing = here.run("inspect", str(ref), "--attempt", "7", "--prompt")
    assert missing.returncode == 2
    artifacts = here.directory / "work" / "artifacts" / NAME / str(ref.number)
    assert [attempt.name for attempt in artifacts.iterdir()] == ["1"]


def test_an_operators_command_wins_over_a_label_that_was_taken_off(
    here: MulliganInstallation,
) -> None:
    ref = here.issue()
    here.agent("sys.exit(3)\n")
    here.run("once", "--attempts", "1")
    here.world.unlabel(ref, "mulligan", MAINTAINER)
    here.agent(WRITE)
    done = here.run("work", str(ref))
    assert (done.returncode, done.stderr) == (0, "")
    assert "pull request" in done.stdout
    assert here.attempts(ref)[-1].outcome is Outcome.SUCCEEDED


def test_a_base_branch_that_is_missing_is_explained(here: MulliganInstallation) -> None:
    ref = here.issue()
    git(here.bare, "branch", "-m", "main", "trunk")
    told = here.run("explain", str(ref)).stdout
    assert f"It cannot be worked on now: {NAME} has no branch 'main'" in told


def test_the_doctor_says_that_nothing_listens(here: MulliganInstallation) -> None:
    here.configure(github={"api_url": "http://127.0.0.1:1", "token": "$GITHUB_TOKEN"})
    told = here.run("doctor").stdout
    assert "did not answer GET /user: connection refused; start it" in " ".join(told.split())


@pytest.mark.parametrize(
    ("started", "named"),
    [
        ([str(BIN / "mulligan")], str(BIN / "mulligan")),
        (["sh", "-c", 'exec mulligan "$@"', "sh"], "mulligan"),
        ([sys.executable, "-m", "mulligan"], "python -m mulligan"),
    ],
)
def test_hints_name_the_program_as_it_was_started(
    tmp_path: Path, started: list[str], named: str
) -> None:
    path = f"{BIN}:{os.environ['PATH']}" if named == "mulligan" else "/usr/bin:/bin"
    done = subprocess.run(
        [*started, "status"],
        cwd=tmp_path,
        env={"PATH": path, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert f" Run `{named} init` to write one, or name another" in done.stderr


def test_a_role_without_a_job_engine_is_refused(here: MulliganInstallation) -> None:
    done = here.run("run", "--role", "worker")
    assert (done.returncode, "set state.url: postgresql://… in mulligan.yml" in done.stderr) == (
        2,
        True,
    )
