"""The dashboard in Chromium: what moves, what acts, and what stays text."""

from collections.abc import Generator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from mulligan.domain.command import Verb
from mulligan.domain.events import CommandReceived
from mulligan.domain.issue import IssueRef
from mulligan.domain.outcome import Outcome
from mulligan.interfaces.dashboard.views import page_of
from world.browser import chromium, cut_off, serious_findings
from world.dashboard_samples import asked_issue, filled_dashboard, running_issue, signed_in
from world.dashboards import Dashboard, serve_dashboard, tried

ONE = IssueRef("octo/one", 1)
EVIL = "<script>document.title = 'gone'</script><img src=x onerror=\"document.title = 'gone'\">"


@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    with chromium() as made:
        yield made


def test_a_log_moves_and_a_page_follows_the_ledger(tmp_path: Path, browser: Browser) -> None:
    with serve_dashboard(tmp_path) as dashboard:
        dashboard.begin(ONE, EVIL)
        dashboard.stores.artifacts.write(ONE, 1, "agent.log", b"first line\n")
        page = signed_in(browser, dashboard, dark=False, phone=False)
        errors = watched(page)
        page.click("#running .name")
        log = page.locator(".log")
        expect(log).to_contain_text("first line")
        with dashboard.stores.artifacts.path(ONE, 1, "agent.log").open("a") as file:
            file.write(f"second line {EVIL}\n")
        expect(log).to_contain_text("second line <script>")
        dashboard.end(ONE, tried(1, Outcome.SUCCEEDED))
        expect(page.locator("#head")).to_contain_text("in review")
        expect(page.locator("#under-way .log")).to_have_count(0)
        assert "gone" not in page.title()
        assert serious_findings(page) == []
        assert errors == []


@pytest.mark.parametrize("has_scripts", [True, False])
def test_the_printed_link_opens_the_board(
    tmp_path: Path, browser: Browser, *, has_scripts: bool
) -> None:
    with serve_dashboard(tmp_path) as dashboard:
        home = f"http://127.0.0.1:{dashboard.port}/"
        page = browser.new_page(java_script_enabled=has_scripts)
        page.goto(f"{home}open?key={dashboard.link_key.secret}")
        if not has_scripts:
            page.click("main button")
        expect(page.locator("#running")).to_be_visible()
        assert page.url == home
        page.goto(f"{home}login")
        page.context.clear_cookies()
        page.goto(f"{home}open?key={dashboard.link_key.secret}")
        if not has_scripts:
            page.click("main button")
        expect(page.get_by_role("alert")).to_contain_text("This link does not work any more.")
        page.context.close()


def test_a_page_that_nobody_sees_does_not_use_the_link(tmp_path: Path, browser: Browser) -> None:
    with serve_dashboard(tmp_path) as dashboard:
        page = browser.new_page()
        page.add_init_script(
            "Object.defineProperty(document, 'visibilityState', {value: 'hidden'})"
        )
        page.goto(f"http://127.0.0.1:{dashboard.port}/open?key={dashboard.link_key.secret}")
        expect(page.get_by_role("button", name="Open the dashboard")).to_be_visible()
        assert serious_findings(page) == []
        assert dashboard.link_key.use(dashboard.link_key.secret)
        page.close()


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Generator[Dashboard]:
    with filled_dashboard(tmp_path_factory.mktemp("filled")) as made:
        yield made


def watched(page: Page) -> list[str]:
    """Collect what a page reports as an error."""
    errors = list[str]()
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
    return errors


@pytest.mark.deep
@pytest.mark.parametrize(("dark", "phone"), [(False, False), (True, False), (False, True)])
def test_every_page_of_500_attempts_is_fit_for_everyone(
    filled: Dashboard, browser: Browser, *, dark: bool, phone: bool
) -> None:
    page = signed_in(browser, filled, dark=dark, phone=phone)
    errors, home = watched(page), f"http://127.0.0.1:{filled.port}"
    paths = (
        *("/", "/issues", "/issues?list=done&page=2&text=report", "/stats", "/stats?since=7d"),
        *(running_issue(filled), f"{running_issue(filled)}/attempts/1", asked_issue(filled)),
    )
    for path in paths:
        page.goto(home + path)
        expect(page.locator("#live")).to_have_text("Live")
        closed = page.locator("details:not([open]) > summary:visible")
        while closed.count():
            closed.first.click()
        assert serious_findings(page) == [], path
        assert not phone or cut_off(page) == [], path
    page.goto(home + "/stats")
    page.click("#all-figures > summary")
    for plot in page.locator("img.plot").all():
        plot.scroll_into_view_if_needed()
        expect(plot).to_be_visible()
        assert plot.evaluate("image => image.naturalWidth") > 0
    assert errors == []
    page.close()


@pytest.mark.deep
def test_a_button_gives_its_command(filled: Dashboard, browser: Browser) -> None:
    page = signed_in(browser, filled, dark=False, phone=False)
    errors = watched(page)
    page.goto(f"http://127.0.0.1:{filled.port}{asked_issue(filled)}")
    page.fill("#text", f"Take the lower rate. {EVIL}")
    page.get_by_role("button", name="Fix").click()
    expect(page.locator("#commands")).to_contain_text("Recorded: fix")
    page.locator("#all-events > summary").click()
    expect(page.locator("#events")).to_contain_text(
        "The operator, on the dashboard, gave the command `fix Take the lower rate. <script>"
    )
    assert "gone" not in page.title()
    assert errors == []
    page.close()


def test_a_phone_shows_the_stage_of_each_issue(tmp_path: Path, browser: Browser) -> None:
    long = IssueRef("a-rather-long-name-of-an-owner/and-a-long-name-of-a-repository", 12345)
    with serve_dashboard(tmp_path) as dashboard:
        for ref in (ONE, long):
            dashboard.begin(ref, f"Round amounts in {'Wordswithoutanyspace' * 9}")
            for number in (1, 2, 3):
                dashboard.end(ref, tried(number))
        page = signed_in(browser, dashboard, dark=False, phone=True)
        for path in ("/", "/issues", page_of(ONE), page_of(long)):
            page.goto(f"http://127.0.0.1:{dashboard.port}{path}")
            assert cut_off(page) == [], path
            assert serious_findings(page) == [], path
        page.goto(f"http://127.0.0.1:{dashboard.port}/issues")
        stages = page.get_by_text("needs human review", exact=True)
        expect(stages).to_have_count(2)
        for stage in stages.all():
            box = stage.bounding_box()
            assert box
            assert box["x"] + box["width"] <= 390
        page.close()


def test_the_next_attempt_is_never_in_the_past(tmp_path: Path, browser: Browser) -> None:
    with serve_dashboard(tmp_path) as dashboard:
        dashboard.begin(ONE, "Round amounts")
        dashboard.end(ONE, tried(1))  # due long ago
        page = signed_in(browser, dashboard, dark=False, phone=False)
        page.goto(f"http://127.0.0.1:{dashboard.port}{page_of(ONE)}")
        expect(page.locator("#head")).to_contain_text("Next attempt: now")
        page.close()


@pytest.mark.parametrize("has_scripts", [True, False])
def test_abort_and_skip_ask_for_a_confirmation(
    tmp_path: Path, browser: Browser, *, has_scripts: bool
) -> None:
    with serve_dashboard(tmp_path) as dashboard:
        dashboard.begin(ONE, "Round amounts")
        context = browser.new_context(java_script_enabled=has_scripts)
        home, name = f"http://127.0.0.1:{dashboard.port}", f"mulligan-{dashboard.port}"
        context.add_cookies([{"name": name, "value": dashboard.key.cookie, "url": home}])
        page = context.new_page()
        page.goto(f"{home}{page_of(ONE)}")
        page.click("#orders > summary")
        page.fill("#text", "Done by hand")
        before = dashboard.stores.ledger.last_seq()
        for verb in ("abort", "skip"):
            expect(page.locator(f"#confirm-{verb} button")).to_be_hidden()
            page.click(f"#confirm-{verb} > summary")
            expect(page.locator(f"#confirm-{verb} button")).to_be_visible()
        if has_scripts:
            assert serious_findings(page) == []
        assert dashboard.stores.ledger.last_seq() == before
        page.get_by_role("button", name="Skip octo/one#1").click()
        expect(page.locator("#commands")).to_contain_text("Recorded: skip")
        (skip,) = dashboard.stores.ledger.events(ONE, before)
        assert isinstance(skip.event, CommandReceived)
        assert (skip.event.command, skip.event.text) == (Verb.SKIP, "Done by hand")
        context.close()


@pytest.mark.deep
def test_the_board_is_used_by_keyboard(filled: Dashboard, browser: Browser) -> None:
    page = signed_in(browser, filled, dark=False, phone=False)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    seen = set[str]()
    for _ in range(80):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("document.activeElement.textContent.trim()"))
    assert {"Board", "Issues", "Statistics", "Sign out", "Answer on GitHub"} <= seen
    page.goto(f"http://127.0.0.1:{filled.port}{asked_issue(filled)}")
    page.focus("#orders > summary")
    page.keyboard.press("Enter")
    expect(page.locator("#text")).to_be_hidden()
    page.keyboard.press("Enter")
    expect(page.locator("#text")).to_be_visible()
    page.close()


@pytest.mark.deep
def test_what_a_person_opened_and_typed_stays_while_the_page_updates(
    tmp_path: Path, browser: Browser
) -> None:
    with serve_dashboard(tmp_path) as dashboard:
        dashboard.begin(ONE, "Mend it")
        for number in (1, 2, 3):
            dashboard.end(ONE, tried(number))
        page = signed_in(browser, dashboard, dark=False, phone=False)
        page.click("#asked .name")
        page.locator("#all-events > summary").click()
        page.fill("#text", "half an instruct")
        page.focus("#text")
        dashboard.start(ONE, 4)
        expect(page.locator("#under-way")).to_contain_text("running claude")
        assert page.input_value("#text") == "half an instruct"
        assert page.evaluate("document.activeElement.id") == "text"
        expect(page.locator("#all-events > ol")).to_be_visible()
        page.close()
