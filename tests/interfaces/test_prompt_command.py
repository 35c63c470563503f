"""`mulligan debug prompt` prints what would be sent now, and leaves no trace."""

import json
from collections.abc import Generator
from pathlib import Path

import pytest

from mulligan.domain.issue import IssueRef
from mulligan.storage.database import open_database
from mulligan.storage.ledger import SqlLedger
from world.place import NAME, MulliganInstallation, mulligan_installation
from world.trackers import FrozenClock

FILES = {"notes.txt": "one\n"}
CHECK = {"name": "never", "run": "grep -qx one notes.txt || { echo notes.txt:1: no; false; }"}
WRITE = "pathlib.Path('notes.txt').write_text(f'{len(prompt)}\\n' * 900)\n"


@pytest.fixture
def here(tmp_path: Path) -> Generator[MulliganInstallation]:
    with mulligan_installation(tmp_path, FILES, [CHECK], max_issue_attempts=2) as made:
        made.agent(WRITE)
        yield made


def events(here: MulliganInstallation) -> int:
    with open_database(f"sqlite:///{here.directory}/mulligan.db") as database:
        return len(SqlLedger(database, FrozenClock()).events())


def shown(here: MulliganInstallation, ref: IssueRef) -> tuple[str, str]:
    """Give what is printed and what is said, having changed nothing."""
    before, asked = events(here), len(here.world.requests)
    done = here.run("debug", "prompt", str(ref))
    assert done.returncode == 0, done.stderr
    assert events(here) == before
    assert {each.method for each in here.world.requests[asked:] if each.path != "/graphql"} == {
        "GET"
    }
    return done.stdout, done.stderr


def test_it_is_the_prompt_that_is_sent_next_byte_for_byte(here: MulliganInstallation) -> None:
    ref = here.issue("Mend \u2603 it")
    first, sizes = shown(here, ref)
    assert "attempt 1 of 2" in sizes
    here.run("once", "--attempts", "1")
    assert here.prompt(ref, 1) == first
    second, sizes = shown(here, ref)
    assert f"whole prompt{len(second.encode()):>14}" in sizes
    assert "cut: previous_changes: " in sizes
    assert "over max_diff_lines (500)" in sizes
    here.run("once", "--attempts", "1")
    assert here.prompt(ref, 2) == second
    # It needs human review now: a new request would open an epoch, and know of both attempts.
    third, sizes = shown(here, ref)
    assert "attempt 1 of 2" in sizes
    assert "Attempt 2 ended CHECKS_FAILED" in third


def test_programs_get_the_sizes_and_the_cuts_as_json(here: MulliganInstallation) -> None:
    ref = here.issue()
    here.run("once", "--attempts", "1")
    found = here.ask("debug", "prompt", str(ref))
    assert isinstance(found, dict)
    assert (found["attempt"], found["max_attempts"]) == (2, 2)
    assert found["bytes"] == len(str(found["prompt"]).encode())
    assert found["context_budget_bytes"] == 32_000
    sections = json.dumps(found["sections"])
    for name in ("banner", "task", "criteria", "retry_context", "instructions"):
        assert f'"{name}"' in sections
    assert "max_diff_lines (500)" in json.dumps(found["cuts"])


@pytest.mark.parametrize(
    ("issue", "code", "why"),
    [
        (f"{NAME}#99", 1, "acme/tools#99"),
        ("acme/other#1", 2, "acme/other is not in the configuration"),
        ("nonsense", 2, "'nonsense' does not name an issue; write OWNER/NAME#NUMBER."),
    ],
)
def test_where_there_is_no_prompt_one_sentence_says_why(
    here: MulliganInstallation, issue: str, code: int, why: str
) -> None:
    done = here.run("debug", "prompt", issue)
    assert (done.returncode, done.stdout) == (code, "")
    assert why in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_an_issue_without_text_and_an_invalid_policy_have_none(here: MulliganInstallation) -> None:
    blank = here.issue("\u200b", "<!-- nothing -->")
    done = here.run("debug", "prompt", str(blank))
    assert done.returncode == 2
    assert f"Mulligan would not start an agent for {blank}. The issue has no title" in done.stderr
