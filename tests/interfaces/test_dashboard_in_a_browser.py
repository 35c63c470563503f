"""The dashboard in Chromium: what moves, what acts, and what stays text."""

from collections.abc import Generator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from mulligan.domain.issue import IssueRef
from mulligan.domain.outcome import Outcome
from world.browser import chromium, serious_findings
from world.dashboard_samples import signed_in
from world.dashboards import serve_dashboard, tried

ONE = IssueRef("octo/one", 1)
EVIL = "<script>document.title = 'gone'</script><img src=x onerror=\"document.title = 'gone'\">"


@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    with chromium() as made:
        yield made


def test_a_log_moves_and_a_page_follows_the_ledger(tmp_path: Path, browser: Browser) -> None:
    with serve_dashboard(tmp_path) as dashboard:
        dashboard.begin(ONE, EVIL)
        dashboard.books.artifacts.write(ONE, 1, "agent.log", b"first line\n")
        page = signed_in(browser, dashboard, dark=False, phone=False)
        errors = list[str]()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
        page.click("#running .name")
        log = page.locator(".log")
        expect(log).to_contain_text("first line")
        with dashboard.books.artifacts.path(ONE, 1, "agent.log").open("a") as file:
            file.write(f"second line {EVIL}\n")
        expect(log).to_contain_text("second line <script>")
        dashboard.end(ONE, tried(1, Outcome.SUCCEEDED))
        expect(page.locator("#head")).to_contain_text("in review")
        expect(page.locator("#under-way .log")).to_have_count(0)
        assert "gone" not in page.title()
        assert serious_findings(page) == []
        assert errors == []
