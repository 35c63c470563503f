"""`mulligan debug learnings` shows what agents noted, and accepts and drops it (LEARNING-2)."""

import json
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from mulligan.domain.events import LearningsAccepted, LearningsDropped, NotedFact
from mulligan.domain.issue import IssueRef
from mulligan.domain.learning import key_of
from mulligan.interfaces.bootstrap.clock_and_backoff import SystemClock
from mulligan.interfaces.cli.app import app
from mulligan.storage.ledger import SqlLedger
from world.ledgers import START, completed, open_ledger_at

ONE, TWO = (IssueRef("acme/tools", number) for number in (1, 2))
FACT, OTHER = "The tests need TZ=UTC.", "The [docs] are built by Sphinx."
KEY, OTHER_KEY = key_of("acme/tools", FACT), key_of("acme/tools", OTHER)
PULL = "https://github.example/acme/tools/pull/7"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let two facts be noted at one issue, one of which the merge of its pull request accepted."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mulligan.yml").write_text(
        "repositories: [{name: acme/tools}]\nagent: {command: [agent]}\n"
        f'state: {{url: "sqlite:///{tmp_path}/ledger.db"}}\nworkspace: {{root: work}}\n'
    )
    done = completed(ONE, 1)
    meta = done.meta.model_copy(update={"learned": (FACT, OTHER), "finished_at": START})
    fact = NotedFact(text=FACT, number=1, noted_at=START)
    with open_ledger_at(tmp_path / "ledger.db") as opened:
        ledger = SqlLedger(opened.database, SystemClock())
        ledger.append(ONE, done.model_copy(update={"meta": meta}))
        ledger.append(ONE, LearningsAccepted(facts=(fact,), pull_request=PULL))
        ledger.append(TWO, LearningsAccepted(facts=(fact,), pull_request=PULL))
    return tmp_path


def learnings(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["debug", "learnings", *arguments])


def rows(*arguments: str) -> list[dict[str, object]]:
    return json.loads(learnings(*arguments, "--json").stdout)


@pytest.mark.usefixtures("here")
def test_facts_are_listed_with_their_source() -> None:
    shown = learnings().stdout
    assert f"{KEY}  {FACT}\n" in shown
    assert f"acme/tools#2, attempt 1, {START:%Y-%m-%d}; accepted by the merge of {PULL}" in shown
    (row,) = rows()
    assert (row["id"], row["fact"], row["issue"], row["attempt"]) == (KEY, FACT, "acme/tools#2", 1)
    assert (row["pull_request"], row["accepted_by"]) == (PULL, "merge")
    assert row["noted_at"] == START.isoformat()
    begin, end = (datetime.fromisoformat(str(row[at])) for at in ("accepted_at", "expires_at"))
    assert end - begin == timedelta(days=90)


@pytest.mark.usefixtures("here")
def test_an_operator_accepts_one_fact_of_an_issue() -> None:
    assert [row["in_force"] for row in rows("--issue", "acme/tools#1")] == [True, False]
    shown = learnings("--issue", "ACME/tools#1").stdout
    assert f"{OTHER_KEY}  {OTHER}\n          not accepted; attempt 1" in shown
    done = learnings("accept", "acme/tools#1", OTHER_KEY)
    assert (done.exit_code, done.stdout) == (0, f"accepted: {OTHER}\n")
    assert [(row["fact"], row["accepted_by"]) for row in rows()] == [
        (FACT, "merge"),
        (OTHER, "operator"),
    ]
    assert "accepted by an operator" in learnings().stdout


def test_a_dropped_fact_is_gone_from_every_issue_that_taught_it(here: Path) -> None:
    done = learnings("drop", KEY)
    assert (done.exit_code, done.stdout) == (0, f"dropped: {FACT}\n")
    assert "No facts are in force." in learnings().stdout
    with open_ledger_at(here / "ledger.db") as ledger:
        dropped = [
            each.issue for each in ledger.events() if isinstance(each.event, LearningsDropped)
        ]
    assert dropped == [ONE, TWO]
    assert learnings("accept", "acme/tools#1", KEY).exit_code == 0
    assert [row["fact"] for row in rows()] == [FACT]


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["accept", "acme/tools#2", KEY],
            "To list the facts: mulligan debug learnings --issue acme",
        ),
        (["accept", "octo/other#2", KEY], "octo/other is not in the configuration"),
        (["drop", OTHER_KEY], f"There is no fact {OTHER_KEY}. To list the facts: mulligan"),
        (["--json", "drop", KEY], "Give the options after drop"),
        (["drop"], "Missing argument"),
    ],
)
def test_a_mistake_changes_nothing(arguments: list[str], message: str) -> None:
    done = learnings(*arguments)
    assert done.exit_code == 2
    assert message in " ".join(done.stderr.replace("│", " ").split())
    assert [row["fact"] for row in rows()] == [FACT]


@pytest.mark.usefixtures("here")
def test_an_issue_without_facts_says_so() -> None:
    assert learnings("--issue", "acme/tools#2").stdout == "Agents noted no facts at acme/tools#2.\n"
