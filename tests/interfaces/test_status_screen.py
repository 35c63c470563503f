"""`mulligan status` on a terminal: it scrolls, filters and shows details, and goes on."""

import asyncio
import json
import os
import re
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from mulligan.domain.errors import UnavailableError
from mulligan.domain.events import AttemptStarted, Authorised
from mulligan.domain.issue import IssueRef
from mulligan.interfaces.bootstrap.clock_and_backoff import SystemClock
from mulligan.interfaces.cli.exit_codes import Exit
from mulligan.interfaces.cli.status import ScreenContent, ScreenRow
from mulligan.interfaces.cli.status_screen import StatusScreen
from mulligan.storage.database import open_database
from mulligan.storage.ledger import SqlLedger
from world.place import BIN
from world.pseudo_terminal import on_a_terminal

REF = IssueRef("acme/tools", 7)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
STARTED = AttemptStarted(attempt=1, number=1, worker="w", position=1, most=3)
LONG = "https://github.example/" + "very-long/" * 12 + "pull/7"


def row(number: int, stage: str = "in review", title: str = "") -> ScreenRow:
    issue, title = f"acme/tools#{number}", title or f"Title {number}"
    return ScreenRow(issue, (issue, stage, "1", "Succeeded", title), (title, "Why."), (LONG,))


CONTENT = ScreenContent(("Everything is paused.",), tuple(map(row, range(1, 101))))
Use = Callable[[StatusScreen, Pilot[None]], Coroutine[None, None, None]]


def on_screen(content: Callable[[], ScreenContent], use: Use) -> StatusScreen:
    """Use a screen of 80 columns and 24 lines; return it when it has ended."""
    screen = StatusScreen(content)

    async def run() -> None:
        async with screen.run_test(size=(80, 24)) as pilot:
            await pilot.pause()
            await use(screen, pilot)

    asyncio.run(run())
    return screen


def text_of(screen: StatusScreen, name: str) -> str:
    return str(screen.query_one(name, Static).render())


def test_a_long_list_scrolls_and_shows_the_details_of_its_issue() -> None:
    async def use(screen: StatusScreen, pilot: Pilot[None]) -> None:
        assert "Everything is paused." in text_of(screen, "#notices")
        assert text_of(screen, "#count").startswith("100 issues · ")
        await pilot.press("pagedown", "down")
        assert screen.table.scroll_offset.y > 0
        await pilot.press("end")
        await pilot.pause()
        assert "acme/tools#100" in text_of(screen, "#lines")
        await pilot.press("home")
        await pilot.pause()
        assert "Title 1\nWhy." in text_of(screen, "#lines")

    on_screen(lambda: CONTENT, use)


def test_a_filter_finds_all_its_words_and_ends() -> None:
    odd = ScreenContent((), (row(1), row(2, "needs human review", "Sum of [nothing]"), row(3)))

    async def use(screen: StatusScreen, pilot: Pilot[None]) -> None:
        await pilot.press("slash", *"SUM human")
        await pilot.pause()
        assert text_of(screen, "#count").startswith("1 of 3 issues · ")
        assert "Sum of [nothing]" in text_of(screen, "#lines")
        await pilot.press(*"xx")
        await pilot.pause()
        assert text_of(screen, "#lines") == "No issue has these words."
        await pilot.press("escape")
        await pilot.pause()
        assert text_of(screen, "#count").startswith("3 issues · ")
        assert screen.table.has_focus

    on_screen(lambda: odd, use)


def test_the_cursor_stays_on_its_issue_when_others_come_and_go() -> None:
    rows = [row(5), row(6)]

    async def use(screen: StatusScreen, pilot: Pilot[None]) -> None:
        await pilot.press("down")
        rows[:] = [row(4), row(5), row(6, "done")]
        await pilot.pause(1.5)
        assert screen.table.row_count == 3
        assert "acme/tools#6" in text_of(screen, "#lines")

    on_screen(lambda: ScreenContent((), tuple(rows)), use)


def test_details_are_hidden_and_an_address_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = list[str]()
    monkeypatch.setattr("webbrowser.open", opened.append)

    async def use(screen: StatusScreen, pilot: Pilot[None]) -> None:
        await pilot.press("d")
        assert not screen.query_one("#details").display
        await pilot.press("enter", "o")
        await pilot.pause()
        assert screen.query_one("#details").display

    on_screen(lambda: CONTENT, use)
    assert opened == [LONG]


def test_an_address_is_one_line() -> None:
    async def use(screen: StatusScreen, pilot: Pilot[None]) -> None:
        await pilot.pause()
        assert text_of(screen, "#links") == LONG
        assert screen.query_one("#links").size.height == 1

    on_screen(lambda: CONTENT, use)


@pytest.mark.parametrize(("key", "code"), [("q", 0), ("ctrl+c", Exit.INTERRUPTED)])
def test_keys_end_it(key: str, code: int) -> None:
    async def use(_screen: StatusScreen, pilot: Pilot[None]) -> None:
        await pilot.press(key)

    assert on_screen(lambda: CONTENT, use).return_code == code


def test_a_ledger_that_cannot_be_read_ends_it_with_its_sentence() -> None:
    faults = [UnavailableError("The ledger is away.")]

    def read() -> ScreenContent:
        if len(reads := seen) and faults:
            raise faults[0]
        reads.append(1)
        return CONTENT

    async def use(_screen: StatusScreen, pilot: Pilot[None]) -> None:
        await pilot.pause(1.5)

    seen = list[int]()
    assert on_screen(read, use).fault is faults[0]


def test_status_is_kept_up_to_date_on_a_terminal_until_a_key_ends_it(tmp_path: Path) -> None:
    config, url = tmp_path / "mulligan.yml", f"sqlite:///{tmp_path}/mulligan.db"
    settings = {"repositories": [{"name": REF.repository}], "state": {"url": url}}
    config.write_text(json.dumps({**settings, "agent": {"kind": "claude"}}))
    home = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    with on_a_terminal([BIN / "mulligan", "status"], tmp_path, home) as shown:
        shown.wait_for(r"No issues yet")
        with open_database(url) as database:
            ledger = SqlLedger(database, SystemClock())
            ledger.append(REF, Authorised(act="operator:1", actor="ada", act_at=NOON))
            ledger.append(REF, STARTED)
        shown.wait_for(rf"{REF} +running")
        shown.press("x")
        shown.press("q")
        assert shown.end() == 0
    # What was seen last stays on the terminal, after its own screen is left.
    assert f"{REF}  running" in shown.seen.rpartition("\x1b[?1049l")[2]
    with on_a_terminal([BIN / "mulligan", "status"], tmp_path, home) as shown:
        shown.wait_for("q Quit")
        shown.press("\x03")
        assert shown.end() == Exit.INTERRUPTED
        assert not re.search("Traceback", shown.text)


def test_a_title_is_cut_with_a_sign_and_fits_the_terminal_again_after_a_resize() -> None:
    title = "The average of no values is an error that names the missing values"

    def line(screen: StatusScreen) -> str:
        return "".join(each.text for each in screen.table.render_line(1)).rstrip()

    async def use(screen: StatusScreen, pilot: Pilot[None]) -> None:
        assert line(screen).endswith("  The average of no values is an…")
        await pilot.resize_terminal(120, 24)
        await pilot.pause()
        assert line(screen).endswith(f"  {title}")

    on_screen(lambda: ScreenContent((), (row(1, title=title),)), use)
