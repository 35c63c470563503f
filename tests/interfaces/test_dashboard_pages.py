"""The pages show what happens, and nothing that is hostile, secret or of no known attempt."""

import os
import re
import threading
from collections.abc import Generator
from dataclasses import replace
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from queue import Queue

import pytest
from hypothesis import assume, example, given

from mulligan.config.settings import AllowanceSettings, Budget
from mulligan.domain.command import Verb
from mulligan.domain.errors import UnavailableError
from mulligan.domain.events import (
    AgentStarted,
    AttemptStarted,
    CommandReceived,
    Decided,
    Escalated,
    Event,
    IssueSeen,
    RecordedEvent,
    RetryScheduled,
    StoodDown,
)
from mulligan.domain.explanation import QUEUED
from mulligan.domain.feedback import Feedback
from mulligan.domain.hold import Pause
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.outcome import Outcome, Retry
from mulligan.domain.ownership import StandBack
from mulligan.domain.recorded_effects import PullNote, Topic
from mulligan.domain.result import AgentFacts, AttemptTimes, CheckKind, OnBase, SkippedCheck
from mulligan.domain.spending import Run, Spent
from mulligan.domain.stats import LedgerHistory
from mulligan.domain.status import IssueStatus, Phase, SeenText
from mulligan.implement.ports import NoOwners
from mulligan.interfaces.dashboard import app
from mulligan.interfaces.dashboard.diff_view import diff_view
from mulligan.interfaces.dashboard.files import SKIPPED, LogPosition, read_on, readable
from mulligan.interfaces.dashboard.openapi import OPERATIONS, description
from mulligan.interfaces.dashboard.prompt_parts import parts_of
from mulligan.interfaces.dashboard.state import (
    MAX_RESULTS,
    RecentEventsReader,
    StatsReader,
    activity_of,
)
from mulligan.interfaces.dashboard.views import (
    MAX_COMPARED,
    MAX_LISTED,
    AttemptView,
    ListName,
    RunningAttempt,
    address_of,
    asked_at,
    compared,
    matching,
    offers,
    overview,
    page_of,
    used_today,
    why_waiting,
)
from mulligan.interfaces.event_text import sentence_of
from mulligan.interfaces.json_output import (
    decisions_of,
    event_row,
    inspection,
    pause_row,
    status_row,
    status_rows,
)
from mulligan.text.redact import Redactor
from world.dashboards import SECRET, Dashboard, serve_dashboard, tried
from world.ledgers import START, events
from world.sample_history import sample_month
from world.stories import attempt, green_check, red_check

ONE, TWO, THREE = (IssueRef("octo/one", number) for number in (1, 2, 3))
FORM = "application/x-www-form-urlencoded"
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
    dashboard.stores.accounts.record(Run(ONE, 1, 0, START), used)
    page = dashboard.ask("/").text
    assert "<title>(1) Mulligan</title>" in page
    assert "Title of 1" in section(page, "asked")
    assert "All 3 attempts failed" in section(page, "asked")
    assert 'issuecomment-9" rel="noreferrer">Answer on GitHub</a>' in section(page, "asked")
    assert "running claude" in section(page, "running")
    assert "https://github.com/octo/one/pull/13" in section(page, "review")
    assert section(page, "results").count("Checks failed") == 3
    assert "$4.50 of $5.00 · 1,200 tokens" in " ".join(section(page, "used").split())


def test_a_change_without_checks_is_not_called_a_success(dashboard: Dashboard) -> None:
    dashboard.begin(ONE, "Title of 1")
    dashboard.end(ONE, tried(1, Outcome.SUCCEEDED).model_copy(update={"checks": ()}))
    for path in ("/", "/issues/octo/one/1"):
        page = dashboard.ask(path).text
        assert '<span class="badge calm">Not verified</span>' in page
        assert "Succeeded" not in page


def test_the_first_page_names_the_installation_that_this_one_stands_back_for(
    dashboard: Dashboard, tmp_path: Path
) -> None:
    back = StandBack("octo/one", "mulligan", "93f5a1c07b2e", START)
    found = replace(dashboard.stores, owners=NoOwners((back,)))
    with serve_dashboard(tmp_path, found=found) as other:
        assert "another installation of Mulligan (93f5a1c07b2e)" in other.ask("/").text
    assert "another installation" not in dashboard.ask("/").text


@pytest.mark.pure
@pytest.mark.parametrize(
    ("agent", "doing", "sentence"),
    [
        ("claude", "running claude", "The agent claude started."),
        ("command", "running the agent", "The agent started."),
    ],
)
def test_an_agent_without_a_name_is_not_called_command(
    agent: str, doing: str, sentence: str
) -> None:
    event = AgentStarted(agent=agent)
    assert (activity_of(event), sentence_of(event)) == (doing, sentence)


def test_what_waits_says_why(dashboard: Dashboard) -> None:
    later = dashboard.stores.clock.now().replace(year=2100)
    dashboard.begin(ONE, "Later")
    dashboard.stores.ledger.append(ONE, RetryScheduled(due=later, reason="GitHub was away."))
    waiting = section(dashboard.ask("/").text, "waiting")
    assert "GitHub was away." in waiting
    assert "next attempt: <time" in waiting


def test_the_page_of_an_issue_shows_the_end_of_a_failed_set_up(dashboard: Dashboard) -> None:
    said = f"{EVIL}\n╰─> no matching distribution"
    failed = red_check("setup", said).model_copy(
        update={"is_set_up": True, "command": "pip install x", "exit_code": 7}
    )
    meta = tried(1, Outcome.INFRASTRUCTURE).model_copy(update={"set_up": failed, "checks": ()})
    dashboard.begin(ONE, "Mend it")
    dashboard.end(ONE, meta)
    page = dashboard.ask("/issues/octo/one/1").text
    assert "✗ The setup command &#39;pip install x&#39; failed with exit code 7." in page
    assert "╰─&gt; no matching distribution</pre>" in page
    assert "<script>alert(1)" not in page


def test_a_check_that_cannot_run_stands_among_those_that_failed(dashboard: Dashboard) -> None:
    stuck = red_check().model_copy(update={"on_base": OnBase.CANNOT_RUN})
    meta = tried(1, Outcome.MISCONFIGURED).model_copy(update={"checks": (stuck, green_check("a"))})
    dashboard.begin(ONE, "Mend it")
    dashboard.end(ONE, meta)
    page = dashboard.ask("/issues/octo/one/1").text
    assert "✗ The check &#39;tests&#39; cannot start on the base branch either" in page
    assert "<li>✓ a" in page


def test_the_page_of_an_issue_has_every_attempt(dashboard: Dashboard) -> None:
    dashboard.begin(ONE, "Mend it", "https://github.com/octo/one/issues/1")
    dashboard.end(ONE, tried(1))
    dashboard.start(ONE, 2)
    page = dashboard.ask("/issues/octo/one/1").text
    assert 'href="https://github.com/octo/one/issues/1"' in page
    assert "FAILED tests/test_add.py::test_negative" in page
    assert "Attempts compared" not in page
    assert "Decision: make another attempt. Check &#39;tests&#39; failed" in page
    assert "$0.21" in page
    assert "running claude" in section(page, "under-way")


def test_finished_issues_are_counted_with_the_right_plural(dashboard: Dashboard) -> None:
    for number, shown in enumerate((">1 finished issue</a>", ">All 2 finished issues</a>"), 1):
        dashboard.begin(ref := IssueRef("octo/one", number), "Mend it")
        dashboard.stores.ledger.append(ref, StoodDown(reason="Its label was removed."))
        assert shown in dashboard.ask("/").text


def test_the_page_of_an_issue_names_the_image_of_the_checks(dashboard: Dashboard) -> None:
    image = f"ghcr.io/octo/{'tools-' * 20}ci:22.04@sha256:{'5e' * 32}"
    dashboard.begin(ONE, "Mend it")
    dashboard.end(ONE, tried(1).model_copy(update={"image": image}))
    assert f"Container image: <code>{image}</code>" in dashboard.ask("/issues/octo/one/1").text


def test_the_page_of_an_issue_says_where_the_time_went(dashboard: Dashboard) -> None:
    times = AttemptTimes(waited_ms=1_200_000, agent_ms=161_000, checks_ms=34_000)
    often = {"runs": 4, "wall_ms": 34_000}
    checks = (red_check().model_copy(update=often), green_check("lint"))
    meta = tried(1).model_copy(update={"checks": checks, "times": times})
    dashboard.begin(ONE, "Mend it")
    dashboard.end(ONE, meta)
    page = dashboard.ask("/issues/octo/one/1").text
    assert ">Total time 23m15s: 20m waiting to start, 2m41s in the agent</p>" in page
    assert 'exit code 1. <span class="more">4 runs, 34s</span></summary>' in page
    assert '✓ lint <span class="more">3s</span>' in page


def test_the_page_of_an_issue_names_checks_that_were_not_run(dashboard: Dashboard) -> None:
    web = SkippedCheck(name="web", kind=CheckKind.TEST, command="npm test")
    dashboard.begin(ONE, "Mend it")
    dashboard.end(ONE, tried(1).model_copy(update={"skipped_checks": (web,)}))
    dashboard.end(ONE, tried(2, Outcome.SUCCEEDED))
    page = dashboard.ask("/issues/octo/one/1/attempts/1").text
    assert "<li>– web (not run: the change touches none of its paths)</li>" in page
    page = dashboard.ask("/issues/octo/one/1").text
    row = page.partition('<th scope="row">web</th>')[2].partition("</tr>")[0]
    assert "– not run</span>" in row.partition("</td>")[0]
    assert "passed" not in row
    assert '<span>web <span class="mark calm">– not run</span>' in page


def test_the_page_of_an_issue_has_the_notes_about_its_pull_request(dashboard: Dashboard) -> None:
    dashboard.begin(ONE, "Mend it")
    note = PullNote(topic=Topic.CHECKS, text=f"Waits for `tide` since 10:31 UTC; `{EVIL}` failed.")
    dashboard.stores.ledger.append(ONE, note)
    page = dashboard.ask("/issues/octo/one/1").text
    assert "Waits for `tide` since 10:31 UTC" in page
    assert "<script>alert" not in page


def test_files_are_those_of_attempts_that_are_known(dashboard: Dashboard) -> None:
    dashboard.begin(ONE, "Mend it")
    kept = dashboard.stores.artifacts
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
    dashboard.stores.artifacts.write(ONE, 1, "agent.log", b"x" * 2_000_000 + b"the end")
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
    standing = status_row(dashboard.stores.ledger.status(ONE))
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
    known = [event_row(each) for each in dashboard.stores.ledger.events(after=1, most=2)]
    assert rows == known
    assert [each["name"] for each in known] == ["authorised", "attempt_started"]
    for query in ("events?after=x", "events?after=-1", "stats?since=x", "stats?since="):
        assert dashboard.ask(f"/api/v1/{query}").status == 400


def test_every_answer_of_the_api_is_as_described(dashboard: Dashboard) -> None:
    dashboard.begin(ONE, "Mend it")
    dashboard.end(ONE, tried(1))
    described = dashboard.ask("/api/v1/openapi.json").json
    assert described == description()
    paths = {
        "/issues": "/issues",
        "/issues/{owner}/{name}/{number}": "/issues/octo/one/1",
        "/events": "/events?limit=3",
        "/stats": "/stats?since=40d",
    }
    assert [each.path for each in OPERATIONS] == [*paths]
    for each in OPERATIONS:
        for root in ("/api/v1", "/api"):
            found = dashboard.ask(root + paths[each.path])
            assert found.status == 200
            each.answer.validate_json(found.body, extra="forbid")


def test_events_come_as_they_are_recorded(dashboard: Dashboard) -> None:
    dashboard.begin(ONE, "Mend it")
    dashboard.desk.ending.set()
    # One that is to end at once still begins as it should.
    said = dashboard.ask("/api/events", accept="text/event-stream")
    assert said.headers["content-type"].startswith("text/event-stream")
    assert said.text.startswith("retry: 3000\n\n")


def test_the_last_results_are_kept_and_the_ledger_is_read_once(dashboard: Dashboard) -> None:
    ledger, recent = dashboard.stores.ledger, RecentEventsReader()
    for number in range(1, MAX_RESULTS + 5):
        dashboard.begin(IssueRef("octo/one", number), f"{number}")
        dashboard.end(IssueRef("octo/one", number), tried(1))
    lately = recent.refresh(ledger)
    assert len(lately.results) == MAX_RESULTS
    assert lately.results[0].issue == f"octo/one#{MAX_RESULTS + 4}"
    assert lately.seq == ledger.last_seq()
    assert recent.refresh(ledger) == lately


def test_the_list_of_issues_is_found_by_list_and_words_and_page(dashboard: Dashboard) -> None:
    for number in range(1, 54):
        dashboard.begin(IssueRef("octo/one", number), f"Title {number} of many")
    dashboard.end(ONE, tried(1, Outcome.SUCCEEDED))
    page = dashboard.ask("/issues").text
    assert "octo/one#50<" in page
    assert "octo/one#51<" not in page
    assert 'href="/issues?page=2" rel="next"' in page
    assert "octo/one#51<" in dashboard.ask("/issues?page=2").text
    assert "Title 1 of" not in dashboard.ask("/issues?list=running").text
    found = dashboard.ask("/issues?list=review&text=TITLE+one%231").text
    assert found.count('class="name"') == 1
    for query in ("list=nothing&page=x", "page=0", "page=99999999999", "text=%00%3Cscript%3E"):
        assert dashboard.ask(f"/issues?{query}").status == 200


def test_what_others_wrote_is_the_file_that_they_published() -> None:
    """From htmx.org 4.0.1 in the npm registry: its licence, and two files of dist/."""
    place = Path(app.__file__).with_name("static")
    sums = {
        "htmx.license.txt": "d3d2456f76414f2456104660ebd65aff1c04cd7966b942bdabd63f3cdb316a38",
        "htmx.min.js": "a0abb04f2f45a1f89d1d4844023245537e5e6014c87b144553e0607b4cc32130",
        "hx-sse.min.js": "18ef2761356ec1fe0bb6d92612315b37517a7c1e9856b661c5ae81fef239d103",
    }
    assert {name: sha256((place / name).read_bytes()).hexdigest() for name in sums} == sums
    others = {path.name for path in place.iterdir()} - sums.keys()
    assert others == {"icon.svg", "open.js", "page.js", "style.css"}


def test_a_log_is_followed_from_file_to_file_in_whole_lines(tmp_path: Path) -> None:
    at, text = read_on(tmp_path, LogPosition(), 100)
    assert (at, text) == (LogPosition(), "")
    agent, check = tmp_path / "agent.log", tmp_path / "check-1.log"
    agent.write_text("one\ntw")
    at, text = read_on(tmp_path, at, 100)
    assert (text, str(at)) == ("── agent ──\none\n", "4:agent.log")
    assert read_on(tmp_path, at, 100) == (at, "")
    agent.write_text("one\ntwo\nthe rest")
    os.utime(agent, (1, 1))
    check.write_text("3 passed\n")
    at, text = read_on(tmp_path, LogPosition.parse(str(at)), 100)
    assert text == "two\nthe rest"
    at, text = read_on(tmp_path, at, 100)
    assert text == "── check-1 ──\n3 passed\n"
    check.write_text("x" * 200 + "\nthe end\n")
    assert read_on(tmp_path, at, 20)[1] == f"{SKIPPED}\nthe end\n"
    assert LogPosition.parse("4") == LogPosition("", 4)
    assert LogPosition.parse("x:y") == LogPosition()


@pytest.mark.pure
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("plain \x1b[31mtext", "plain text"),
        ('{"type": "result", "usage": {"input_tokens": 7}}', None),
        ('{"type": "x", "message": {"content": [{"name": "Read", "input": {"path": "a.py"}}]}}',
         "Read a.py"),
        ("{not JSON", "{not JSON"),
        (f"with {SECRET}", "with [redacted]"),
    ],
)  # fmt: skip
def test_a_line_of_a_log_is_shown_as_what_it_says(line: str, said: str | None) -> None:
    assert readable(line, Redactor((SECRET,))) == (said or "")


def test_only_the_log_of_a_running_attempt_is_followed(dashboard: Dashboard) -> None:
    dashboard.begin(ONE, "Mend it")
    dashboard.stores.artifacts.write(ONE, 1, "agent.log", b"<b>bold</b>\n")
    page = dashboard.ask("/issues/octo/one/1").text
    assert "&lt;b&gt;bold" in section(page, "under-way")
    assert 'hx-sse:connect="/issues/octo/one/1/attempts/1/follow?after=12%3Aagent.log"' in page
    dashboard.desk.ending.set()
    followed = dashboard.ask("/issues/octo/one/1/attempts/1/follow")
    assert (followed.status, followed.text) == (200, "retry: 3000\n\n")
    dashboard.end(ONE, tried(1))
    assert dashboard.ask("/issues/octo/one/1/attempts/1/follow").status == 404


def test_attempts_stand_side_by_side_and_each_has_an_address(dashboard: Dashboard) -> None:
    dashboard.begin(ONE, "Mend it")
    for number in (1, 2, 3):
        dashboard.start(ONE, number)
        dashboard.end(ONE, tried(number).model_copy(update={"agent_summary": f"Try {number}."}))
    kept = dashboard.stores.artifacts
    kept.write(ONE, 2, "changes.diff", f"{DIFF}+<b>{SECRET}".encode())
    kept.write(ONE, 2, "prompt.md", b"Read this.\n\n# Task\n\nMend <it>.\n")
    last = dashboard.ask("/issues/octo/one/1").text
    assert last.count("✗ failed") == 2 * 3  # in the table, and in the list for phones
    assert "Try 3." in last
    page = dashboard.ask("/issues/octo/one/1/attempts/2").text
    assert "Try 2." in page
    assert "Try 3." not in page
    diff = page.partition('<pre class="diff"')[2].partition("</pre>")[0]
    assert "redacted" in diff
    assert "&lt;" in diff
    assert "<b>" not in diff
    assert "Task <span" in page
    assert "Mend &lt;it&gt;." in page
    assert "The operator requested the work." not in page
    assert "ada requested the work." in page
    for number in ("0", "4", "x", "-1", "99999999999"):
        assert dashboard.ask(f"/issues/octo/one/1/attempts/{number}").status == 404


def test_whoever_has_the_key_gives_commands_as_the_operator(dashboard: Dashboard) -> None:
    dashboard.begin(ONE, "Mend it")
    for number in (1, 2, 3):
        dashboard.end(ONE, tried(number))
    place = "/issues/octo/one/1"
    orders = section(dashboard.ask(place).text, "commands")
    token = orders.partition('name="token" value="')[2].partition('"')[0]
    cookie = f"mulligan-{dashboard.port}={dashboard.key.cookie}"
    sent = {"authorization": "", "cookie": cookie, "content_type": FORM}

    def order(body: str, **headers: str) -> int:
        return dashboard.ask(f"{place}/commands", "POST", body, **{**sent, **headers}).status

    before = dashboard.stores.ledger.last_seq()
    wrong = ("", f"token={token}x&command=retry", "command=retry", f"token={token}")
    odd = (f"token={token}&command={verb}" for verb in ("abort", "status", "x", "fix", "pause"))
    assert {order(body) for body in (*wrong, *odd)} == {400}
    for headers in ({"origin": "http://evil.example"}, {"sec_fetch_site": "same-site"}):
        assert order(f"token={token}&command=retry", **headers) == 403
    assert order(f"token={token}&command=retry", cookie="") == 303
    assert order(f"token={token}&command=fix&text={'x' * 20_000}") == 400
    assert dashboard.stores.ledger.last_seq() == before
    assert order(f"token={token}&command=fix&text=Use+<b>{SECRET}") == 303
    assert order("command=skip&text=done", authorization=f"Bearer {dashboard.key.secret}") == 303
    fix, skip = dashboard.stores.ledger.events(ONE, before)
    assert isinstance(fix.event, CommandReceived)
    assert (fix.event.command, fix.event.actor) == (Verb.FIX, "")
    assert fix.event.key.startswith("command:dashboard 2025-")
    assert isinstance(skip.event, CommandReceived)
    assert skip.event.text == "done"
    page = dashboard.ask(place).text
    assert "The operator, on the dashboard, gave the command `fix Use &lt;b&gt;[redacted]`." in page
    assert page.count("Recorded: <code>") == 2
    assert dashboard.ask("/issues/octo/one/9/commands", "POST", "command=retry").status == 400


def test_a_command_that_stops_work_comes_with_a_warning(dashboard: Dashboard) -> None:
    dashboard.begin(ONE, "Mend it")
    orders = section(dashboard.ask("/issues/octo/one/1").text, "commands")
    for verb in ("abort", "skip"):
        _, _, confirmation = orders.partition(f'<details class="confirm" id="confirm-{verb}">')
        shown, _, _ = confirmation.partition("</details>")
        assert "Mulligan stops" in shown
        assert f'name="command" value="{verb}"' in shown
        assert orders.count(f'value="{verb}"') == 1


@pytest.mark.pure
@pytest.mark.parametrize(
    ("stage", "paused", "verbs"),
    [
        (Stage.HITL, "", "retry fix skip"),
        (Stage.RUNNING, "", "abort fix skip pause"),
        (Stage.READY, "ada", "resume fix abort skip"),
        (Stage.REVIEW, "", "retry fix skip"),
        (Stage.RESOLVED, "", "retry fix"),
    ],
)
def test_the_commands_offered_fit_the_issue(stage: Stage, paused: str, verbs: str) -> None:
    status = IssueStatus(ONE, stage=stage, paused_by=paused)
    assert " ".join(each.verb for each in offers(status)) == verbs


HITL = IssueStatus(ONE, stage=Stage.HITL, epoch=1, text=SeenText("Add a flag"))
RUNNING = IssueStatus(TWO, stage=Stage.RUNNING, epoch=1, text=SeenText("Mend it"))
WAITING = IssueStatus(THREE, epoch=1, text=SeenText("Mend that"))


@pytest.mark.pure
def test_an_issue_is_in_the_list_of_who_must_act() -> None:
    reviewed, done = replace(WAITING, stage=Stage.REVIEW), replace(HITL, stage=Stage.RESOLVED)
    board = overview([HITL, RUNNING, WAITING, reviewed, done, replace(HITL, phase=Phase.DECIDED)])
    assert board[ListName.ASKED].shown == (HITL,)
    assert board[ListName.RUNNING].shown == (RUNNING, replace(HITL, phase=Phase.DECIDED))
    assert board[ListName.WAITING].shown == (WAITING,)
    assert board[ListName.REVIEW].shown == (reviewed,)
    assert board[ListName.DONE].count == 1
    many = overview([WAITING] * (MAX_LISTED + 2))[ListName.WAITING]
    assert (len(many.shown), many.count, many.more) == (MAX_LISTED, MAX_LISTED + 2, 2)


@pytest.mark.pure
@pytest.mark.parametrize(
    ("chosen", "text", "page", "found", "more"),
    [
        (ListName.ALL, "", 1, [HITL, RUNNING, WAITING], 0),
        (ListName.ALL, " mend ONE#2", 1, [RUNNING], 0),
        (ListName.WAITING, "mend", 1, [WAITING], 0),
        (ListName.REVIEW, "", 1, [], 0),
        (ListName.ALL, "", 2, [], 0),
    ],
)
def test_issues_are_found_by_list_and_words(
    chosen: ListName, text: str, page: int, found: list[IssueStatus], more: int
) -> None:
    listed = matching([HITL, RUNNING, WAITING], chosen, text, page)
    assert ([*listed.shown], listed.more) == (found, more)


@pytest.mark.pure
@pytest.mark.parametrize(
    ("status", "why"),
    [
        (replace(WAITING, paused_by="ada"), "Paused by ada. Resume it to continue."),
        (replace(WAITING, due=START + timedelta(1), reason="No disk."), "No disk."),
        (
            replace(WAITING, feedback=Feedback(at=START)),
            f"Its pull request needs another attempt. {QUEUED}",
        ),
        (replace(WAITING, due=START), QUEUED),
        (replace(WAITING, reason="Try again."), "Try again."),
        (replace(WAITING, epoch=0), "Mulligan is checking who requested the work."),
        (RUNNING, QUEUED),
    ],
)
def test_an_issue_that_waits_says_for_what(status: IssueStatus, why: str) -> None:
    assert why_waiting(status, START) == why


@pytest.mark.pure
def test_the_larger_share_of_a_budget_is_shown() -> None:
    day = {"octo/two": Spent(1.0, 900), "octo/one": Spent(3.0, 100)}
    budget = Budget(day=AllowanceSettings(usd=8, tokens=2000))
    total, *each = used_today(day, budget)
    assert (total.spent, total.share) == (Spent(4.0, 1000), 0.5)
    assert [(used.name, used.share) for used in each] == [("octo/one", None), ("octo/two", None)]
    one = {"octo/one": Spent(3.0, 100)}
    assert len(used_today(one, budget)) == 1
    limited = Budget(repository_day=AllowanceSettings(tokens=50))
    assert [used.share for used in used_today(one, limited)] == [None, 1.0]


@pytest.mark.pure
@pytest.mark.parametrize(
    ("day", "limits", "shown"),
    [
        ((), (None, None), "nothing"),
        ((), (8, 2000), "nothing of $8.00 and 2,000 tokens"),
        ((Spent(),), (None, None), "not reported"),
        ((Spent(),), (8, None), "cost not reported, limit $8.00"),
        ((Spent(None, 900), Spent()), (8, None), "cost not reported, limit $8.00 · 900 tokens"),
        ((Spent(0.0, 0),), (None, None), "$0.00 · 0 tokens"),
        ((Spent(1.0), Spent(3.0, 100)), (8, 2000), "$4.00 of $8.00 · 100 tokens of 2,000 tokens"),
    ],
)
def test_what_no_agent_reported_today_is_not_shown_as_zero(
    day: tuple[Spent, ...], limits: tuple[float | None, int | None], shown: str
) -> None:
    used = {f"octo/{number}": spent for number, spent in enumerate(day)}
    budget = Budget(day=AllowanceSettings(usd=limits[0], tokens=limits[1]))
    assert used_today(used, budget)[0].text == shown


@pytest.mark.pure
def test_attempts_are_compared_check_by_check() -> None:
    history = [attempt(number) for number in range(1, MAX_COMPARED + 3)]
    lint = history[-1].model_copy(update={"checks": (red_check("lint"), green_check("types"))})
    found = compared([*history, lint])
    assert (len(found.shown), found.earlier, found.checks) == (8, 3, ("tests", "lint", "types"))
    assert found.check(lint, "lint") == red_check("lint")
    assert found.check(lint, "tests") is None
    shown = AttemptView(lint, ())
    assert (shown.red, shown.others) == ((red_check("lint"),), (green_check("types"),))
    assert shown.spent == Spent(0.21)
    running = RunningAttempt(replace(RUNNING, started_at=START), "the agent runs", Spent())
    assert running.since == START


def recorded(*happened: Event) -> list[RecordedEvent]:
    return [
        RecordedEvent(seq=seq, at=START, issue=ONE, epoch=1, attempt=1, event=event)
        for seq, event in enumerate(happened, 1)
    ]


@pytest.mark.pure
def test_the_addresses_of_an_issue_are_the_last_that_were_recorded() -> None:
    seen = [IssueSeen(title="a", url="https://x/1"), IssueSeen(title="b")]
    asked = [Escalated(reason="x", comment=f"https://x/1#{n}") for n in (5, 9)]
    assert address_of(recorded(*seen)) == "https://x/1"
    assert address_of(recorded(*asked)) == ""
    assert asked_at(recorded(*seen, *asked)) == "https://x/1#9"
    assert asked_at(recorded(*seen)) == ""
    assert page_of(ONE) == "/issues/octo/one/1"


@pytest.mark.pure
def test_the_widest_pause_that_holds_an_issue_is_listed() -> None:
    own = replace(WAITING, paused_by="ada")
    one, everything = Pause("octo/one", START), Pause("", START)
    since = START.isoformat()

    def paused(*pauses: Pause, status: IssueStatus = own) -> object:
        (row,) = status_rows([status], pauses)
        return row["paused"]

    assert paused() == {"scope": "issue", "by": "ada", "since": None}
    assert paused(Pause("octo/two", START), status=WAITING) is None
    assert paused(one) == {"scope": "repository", "by": "operator", "since": since}
    assert paused(everything, one) == {"scope": "everything", "by": "operator", "since": since}
    assert pause_row(everything) == {"repository": None, "since": since}


@pytest.mark.pure
def test_decisions_are_listed_with_the_attempt_that_they_follow() -> None:
    again = Decided(decision=Retry(reason="It is red."))
    begun = AttemptStarted(attempt=1, number=4, worker="here")
    (row,) = decisions_of(recorded(begun, IssueSeen(title="a"), again))
    assert row == {
        "attempt": 1,
        "number": 4,
        "epoch": 1,
        "decision": "retry",
        "reason": "It is red.",
    }
    restored = replace(HITL, restored="status comment 3")
    found = inspection(restored, [attempt(1)], [row])
    assert (found["title"], found["restored"]) == ("Add a flag", "status comment 3")
    assert (found["decisions"], found["review_until"]) == ([row], None)
    assert event_row(recorded(begun)[0])["payload"] == begun.model_dump(
        mode="json", exclude={"kind"}
    )


@pytest.mark.pure
def test_every_operation_of_the_api_is_described_once() -> None:
    described = description()
    assert described["openapi"] == "3.1.0"
    paths = described["paths"]
    assert isinstance(paths, dict)
    assert [*paths] == [each.path for each in OPERATIONS]
    assert "operationId': 'issues_of_one'" in str(paths)


@pytest.mark.pure
@given(events())
@example(CommandReceived(key="command:dashboard 2026", command=Verb.RETRY, at=START))
def test_every_event_is_a_sentence(event: Event) -> None:
    actor = getattr(event, "actor", "")
    assume(actor == "" or actor.replace("-", "a").isalnum())  # as GitHub's logins are
    assume(not getattr(event, "unreadable", ""))  # which is a sentence already
    said = sentence_of(event)
    assert said[:1].isupper() or not said[:1].isalpha() or (actor and said.startswith(actor))
    assert "\n" not in said
    assert len(said) <= 400


PROMPT = """\
Read this first.

# Task

<untrusted-ba4f7bb37233 from="the issue">
# Not a part
</untrusted-0000>
</untrusted-ba4f7bb37233>

# Retry context

## What went wrong

It failed.
"""


@pytest.mark.pure
def test_a_prompt_is_split_at_its_own_headings() -> None:
    found = [(part.name, part.level) for part in parts_of(PROMPT)]
    named = [("Task", 1), ("Retry context", 1), ("What went wrong", 2)]
    assert found == [("Opening", 1), *named]
    assert "# Not a part" in parts_of(PROMPT)[1].text
    assert len(parts_of("x" * 20_000)[0].shown) < 13_000
    assert parts_of("") == ()


DIFF = """\
diff --git a/a.py b/a.py
--- a/a.py
+++ b/a.py
@@ -1,2 +1,2 @@ def f():
 x = 1
-y = "</span><script>"
+y = '''open
"""


@pytest.mark.pure
def test_a_diff_is_shown_by_file_with_its_lines_marked() -> None:
    more = "diff --git a/b b/b\nnew file mode 100755\nBinary files /dev/null and b/b differ\n"
    gone = "diff --git a/c.zz b/c.zz\n--- a/c.zz\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n"
    shown = diff_view(DIFF + more + gone)
    counts = [(each.path, each.added, each.removed) for each in shown.files]
    assert counts == [("a.py", 1, 1), ("b", 0, 0), ("c.zz", 0, 1)]
    assert "<script>" not in shown.files[0].html
    assert shown.files[0].html.count('<span class="add">') == 1
    assert "Binary files" in shown.files[1].html
    assert diff_view("x\n" * 500).hidden == 101
    assert diff_view("").files == ()


def test_the_statistics_answer_three_questions_and_the_rest_is_closed(dashboard: Dashboard) -> None:
    first, _, more = dashboard.ask("/stats").text.partition('<details id="all-figures"')
    questions = re.findall(r'<h2 id="answer-\d">(.+)</h2>', first)
    assert questions == [
        "What came of the issues?",
        "What did a merged pull request cost?",
        "Where is time lost?",
    ]
    assert "<table" not in first
    assert "<img" not in first
    assert more.count("<table") == more.count("<h2")
    assert ">unknown</dd>" not in first + more


def test_statistics_have_a_plot_beside_the_same_figures(dashboard: Dashboard) -> None:
    page = dashboard.ask("/stats?since=30d").text
    assert 'aria-current="true">last 30 days' in page
    plots = re.findall(r'src="(/stats/[a-z-]+\.svg\?since=30d)"', page)
    assert len(plots) == 5
    drawn = dashboard.ask(plots[0])
    assert drawn.headers["content-type"].startswith("image/svg+xml")
    assert "script" not in drawn.headers["content-security-policy"]
    assert "<script" not in drawn.text
    assert "unsafe" not in dashboard.ask("/stats").headers["content-security-policy"]
    assert dashboard.ask("/stats/agents.svg").status == 404
    assert dashboard.ask("/stats?since=x").status == 200


def test_statistics_that_take_long_are_computed_once_and_shown_later() -> None:
    gate, reads = threading.Event(), Queue[int]()

    def read() -> LedgerHistory:
        reads.put(1)
        gate.wait(60)
        return sample_month()

    figures, now = StatsReader(read), START
    assert figures.refresh(None, now, 0) is None
    assert figures.refresh(None, now, 0) is None
    gate.set()
    first = figures.refresh(None, now, None)
    assert first
    assert figures.refresh(None, now + timedelta(seconds=59)) is first
    gate.clear()
    assert figures.refresh(None, now + timedelta(minutes=2)) is first
    gate.set()
    assert [reads.get(timeout=20), reads.get(timeout=20)] == [1, 1]
    assert reads.empty()


@pytest.mark.parametrize("kind", [UnavailableError, ZeroDivisionError])
def test_statistics_that_fail_say_so(kind: type[Exception]) -> None:
    def read() -> LedgerHistory:
        raise kind

    with pytest.raises(kind):
        StatsReader(read).refresh(None, START, 9)
