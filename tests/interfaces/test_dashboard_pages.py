"""The pages show what happens, and nothing that is hostile, secret or of no known attempt."""

from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import pytest

from mulligan.domain.events import RetryScheduled
from mulligan.domain.issue import IssueRef
from mulligan.domain.outcome import Outcome
from mulligan.domain.ownership import StandBack
from mulligan.domain.result import AgentFacts
from mulligan.domain.spending import Run
from mulligan.implement.ports import NoOwners
from mulligan.interfaces.dashboard.state import MAX_RESULTS, RecentEventsReader
from mulligan.interfaces.json_output import event_row, status_row
from world.dashboards import SECRET, Dashboard, serve_dashboard, tried
from world.ledgers import START
from world.stories import green_check, red_check

ONE, TWO, THREE = (IssueRef("octo/one", number) for number in (1, 2, 3))
EVIL = "<script>alert(1)</script>\"'><img src=x> \u202egnp"


@pytest.fixture
def dashboard(tmp_path: Path) -> Generator[Dashboard]:
    with serve_dashboard(tmp_path) as made:
        yield made


def section(page: str, name: str) -> str:
    return page.partition(f'id="{name}"')[2].partition("</section>")[0]


def test_the_first_page_says_who_has_to_act(dashboard: Dashboard) -> None:
    for ref in (ONE, TWO, THREE):
        dashboard.begin(ref, f"Title of {ref.number}")
    for number in (1, 2, 3):
        dashboard.end(ONE, tried(number))
    dashboard.end(TWO, tried(1, Outcome.SUCCEEDED))
    used = AgentFacts(kind="claude", cost_usd=4.5, input_tokens=1200)
    dashboard.books.accounts.record(Run(ONE, 1, 0, START), used)
    page = dashboard.ask("/").text
    assert "<title>(1) Mulligan</title>" in page
    assert "Title of 1" in section(page, "asked")
    assert "All 3 attempts failed" in section(page, "asked")
    assert 'issuecomment-9" rel="noreferrer">Open question</a>' in section(page, "asked")
    assert "the agent claude is running" in section(page, "running")
    assert "https://github.com/octo/one/pull/13" in section(page, "review")
    assert section(page, "results").count("Checks failed") == 3
    assert "$4.50 of $5.00 · 1,200 tokens" in " ".join(section(page, "used").split())


def test_the_first_page_names_the_installation_that_this_one_stands_back_for(
    dashboard: Dashboard, tmp_path: Path
) -> None:
    back = StandBack("octo/one", "mulligan", "93f5a1c07b2e", START)
    found = replace(dashboard.books, owners=NoOwners((back,)))
    with serve_dashboard(tmp_path, found=found) as other:
        assert "another installation of Mulligan (93f5a1c07b2e)" in other.ask("/").text
    assert "another installation" not in dashboard.ask("/").text


def test_what_waits_says_why(dashboard: Dashboard) -> None:
    later = dashboard.books.clock.now().replace(year=2100)
    dashboard.begin(ONE, "Later")
    dashboard.books.ledger.append(ONE, RetryScheduled(due=later, reason="GitHub was away."))
    waiting = section(dashboard.ask("/").text, "waiting")
    assert "GitHub was away." in waiting
    assert "again <time" in waiting


def test_the_page_of_an_issue_has_every_attempt(dashboard: Dashboard) -> None:
    dashboard.begin(ONE, "Mend it", "https://github.com/octo/one/issues/1")
    dashboard.end(ONE, tried(1))
    dashboard.start(ONE, 2)
    page = dashboard.ask("/issues/octo/one/1").text
    assert 'href="https://github.com/octo/one/issues/1"' in page
    assert "FAILED tests/test_add.py::test_negative" in page
    assert "<details open" in page
    assert "$0.21" in page
    assert "the agent claude is running" in section(page, "under-way")


def test_files_are_those_of_attempts_that_are_known(dashboard: Dashboard) -> None:
    dashboard.begin(ONE, "Mend it")
    kept = dashboard.books.artifacts
    log = kept.write(ONE, 1, "check.log", b"\x1b[31mred\x1b[0m")
    kept.write(ONE, 1, "prompt.md", f"<b>Mend it</b> with {SECRET}".encode())
    kept.write(ONE, 7, "prompt.md", b"of no attempt")
    kept.write(ONE, 1, "verified.bundle", b"not to be shown")
    check = green_check().model_copy(update={"log_artifact": log})
    dashboard.end(ONE, tried(1, Outcome.SUCCEEDED).model_copy(update={"checks": (check,)}))
    place = "/issues/octo/one/1/attempts"
    prompt = dashboard.ask(f"{place}/1/prompt")
    assert prompt.headers["content-type"] == "text/plain; charset=utf-8"
    assert prompt.text == "<b>Mend it</b> with [redacted]"
    assert dashboard.ask(f"{place}/1/check-1").text == "red"
    page = dashboard.ask("/issues/octo/one/1").text
    assert page.count(f"{place}/1/") == 2
    for path in (
        *("7/prompt", "0/prompt", "01/prompt", "1/diff", "1/check-2", "1/check-0", "1/prompt.md"),
        *("1/verified.bundle", "1/..%2fprompt", "1/..%2f7%2fprompt.md", "1/prompt-fix-x", "x/log"),
    ):
        assert dashboard.ask(f"{place}/{path}").status == 404, path
    assert dashboard.ask("/issues/octo/one/99/attempts/1/prompt").status == 404
    assert dashboard.ask("/issues/..%2f..%2fx/one/1").status == 404


def test_of_a_long_log_the_end_is_shown(dashboard: Dashboard) -> None:
    dashboard.begin(ONE, "Mend it")
    dashboard.books.artifacts.write(ONE, 1, "agent.log", b"x" * 2_000_000 + b"the end")
    said = dashboard.ask("/issues/octo/one/1/attempts/1/log").text
    assert said.startswith("[… only the end")
    assert said.endswith("the end")
    assert len(said) < 1_100_000


def test_hostile_text_is_text(dashboard: Dashboard) -> None:
    dashboard.begin(ONE, EVIL, "javascript:alert(1)")
    check = red_check(EVIL, f"</pre>{EVIL} {SECRET}")
    for number in (1, 2, 3):
        meta = tried(number).model_copy(
            update={"error": EVIL, "checks": (check,), "agent_summary": EVIL, "diff_summary": EVIL}
        )
        dashboard.end(ONE, meta)
    for path in ("/", "/issues/octo/one/1"):
        page = dashboard.ask(path).text
        assert "&lt;script&gt;alert(1)" in page
        for wrong in ("<script>", "<img", "javascript:", "\u202e", SECRET):
            assert wrong not in page, (path, wrong)


def test_the_api_gives_what_the_commands_give(dashboard: Dashboard) -> None:
    dashboard.begin(ONE, "Mend it")
    dashboard.end(ONE, tried(1).model_copy(update={"error": f"{SECRET} leaked"}))
    listed = dashboard.ask("/api/issues").json
    assert isinstance(listed, list)
    standing = status_row(dashboard.books.ledger.status(ONE))
    assert listed == [{**standing, "reason": "[redacted] leaked", "paused": None}]
    told = dashboard.ask("/api/issues/octo/one/1")
    assert isinstance(told.json, dict)
    assert [*told.json][-3:] == ["title", "attempts", "decisions"]
    assert "[redacted] leaked" in told.text
    assert SECRET not in told.text
    for path in ("octo/one/2", "octo/none/1", "octo/one/x", "octo/one/99999999999999999999"):
        assert dashboard.ask(f"/api/issues/{path}").status == 404


def test_events_are_given_by_their_number(dashboard: Dashboard) -> None:
    dashboard.begin(ONE, "Mend it")
    rows = dashboard.ask("/api/events?after=1&limit=2").json
    assert isinstance(rows, list)
    known = [event_row(each) for each in dashboard.books.ledger.events(after=1, most=2)]
    assert rows == known
    assert [each["name"] for each in known] == ["authorised", "attempt_started"]
    assert dashboard.ask("/api/events?after=x").status == 404
    assert dashboard.ask("/api/events?after=-1").status == 404


def test_events_come_as_they_are_recorded(dashboard: Dashboard) -> None:
    dashboard.begin(ONE, "Mend it")
    dashboard.desk.ending.set()
    # One that is to end at once still begins as it should.
    said = dashboard.ask("/api/events", accept="text/event-stream")
    assert said.headers["content-type"].startswith("text/event-stream")
    assert said.text.startswith("retry: 3000\n\n")


def test_the_last_results_are_kept_and_the_ledger_is_read_once(dashboard: Dashboard) -> None:
    ledger, recent = dashboard.books.ledger, RecentEventsReader()
    for number in range(1, MAX_RESULTS + 5):
        dashboard.begin(IssueRef("octo/one", number), f"{number}")
        dashboard.end(IssueRef("octo/one", number), tried(1))
    lately = recent.refresh(ledger)
    assert len(lately.results) == MAX_RESULTS
    assert lately.results[0].issue == f"octo/one#{MAX_RESULTS + 4}"
    assert lately.seq == ledger.last_seq()
    assert recent.refresh(ledger) == lately
