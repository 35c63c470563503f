"""The screen of `mulligan status` on a terminal: issues to scroll, filter and open."""

import webbrowser
from collections.abc import Callable
from datetime import UTC, datetime
from typing import ClassVar

from rich.cells import cell_len
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.events import Resize
from textual.widgets import DataTable, Footer, Input, Static

from mulligan.domain.errors import MulliganError
from mulligan.implement.prompt.outcome_text import pluralize
from mulligan.interfaces.cli.exit_codes import Exit
from mulligan.interfaces.cli.status import NO_ISSUES, ScreenContent, ScreenRow

REFRESH_SECONDS = 1.0

COLUMNS = ("issue", "stage", "attempt", "outcome", "title")

SCROLL_BAR = 2
"""The columns of the scroll bar, which a longer list needs."""

MIN_TITLE = 10


class IssueTable(DataTable[Text]):
    """The list; Home and End go to its first and last row."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("home", "scroll_top", show=False),
        Binding("end", "scroll_bottom", show=False),
    ]


class StatusScreen(App[None]):
    """Shows `read()` once a second until a key ends it.

    Scroll with the arrow keys, PageUp, PageDown, Home and End, or the mouse.
    """

    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "leave", "Quit"),
        Binding("ctrl+c", "interrupt", "Quit", show=False, priority=True),
        Binding("slash", "filter", "Filter", key_display="/"),
        Binding("escape", "unfilter", "Show all"),
        Binding("d", "details", "Details on or off"),
        Binding("o", "open", "Open in browser"),
    ]
    CSS = """
    Screen { layout: vertical; }
    #notices { height: auto; color: ansi_yellow; }
    #filter { height: 1; border: none; padding: 0; display: none; }
    #filter.on { display: block; }
    #count { height: 1; text-style: dim; }
    IssueTable { height: 1fr; scrollbar-size-horizontal: 0; }
    IssueTable > .datatable--header { background: transparent; text-style: bold underline; }
    #details { height: auto; max-height: 50%; border-top: solid gray; padding: 0 1; }
    #details.off { display: none; }
    #links { text-wrap: nowrap; text-overflow: clip; }
    """

    def __init__(self, read: Callable[[], ScreenContent]) -> None:
        super().__init__(ansi_color=True)
        self._read = read
        self._content = ScreenContent((), ())
        self._shown: tuple[ScreenRow, ...] = ()
        self._width = 0
        self.table = IssueTable(cursor_type="row")
        self.fault: MulliganError | None = None

    def compose(self) -> ComposeResult:
        """Lay the screen out: notices, filter, list, details, keys."""
        yield Static(id="notices")
        yield Input(id="filter", placeholder="words to find; Esc shows all issues", compact=True)
        yield Static(id="count")
        yield self.table
        with VerticalScroll(id="details"):
            yield Static(id="lines")
            yield Static(id="links")
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Show the first content, and refresh it every second."""
        self.table.focus()
        self._width = self.size.width
        self._update(self._read())
        self.set_interval(REFRESH_SECONDS, self._refresh_content)

    def _refresh_content(self) -> None:
        self.run_worker(self._read_again, thread=True, exclusive=True)

    def _read_again(self) -> None:
        try:
            content = self._read()
        except MulliganError as error:
            self.fault = error
            self.call_from_thread(self.exit)
        else:
            self.call_from_thread(self._update, content)

    def _update(self, content: ScreenContent) -> None:
        self._content = content
        notices = self.query_one("#notices", Static)
        notices.update(Text("\n".join(content.notices)))
        notices.display = bool(content.notices)
        words = self.query_one("#filter", Input).value
        rows = tuple(row for row in content.rows if row.has(words))
        if rows != self._shown:
            self._fill(rows)
        self._show_details()
        shown = (
            f"{len(rows)} of {len(content.rows)} issues" if words else pluralize(len(rows), "issue")
        )
        self.query_one("#count", Static).update(f"{shown} · {datetime.now(UTC):%H:%M:%S} UTC")

    def on_resize(self, event: Resize) -> None:
        """Fit the titles to the new width."""
        self._width = event.size.width
        self._fill(self._shown)

    def _fill(self, rows: tuple[ScreenRow, ...]) -> None:
        """Write the list anew; the cursor stays on its issue."""
        before = self._selected
        self._shown = rows
        self.table.clear(columns=True)
        for name, width in zip(COLUMNS, self._widths(rows), strict=True):
            self.table.add_column(name, width=width)
        for row in rows:
            self.table.add_row(*map(_cell, row.cells), key=row.issue)
        places = [place for place, row in enumerate(rows) if before and row.issue == before.issue]
        self.table.move_cursor(row=places[0] if places else 0)

    def _widths(self, rows: tuple[ScreenRow, ...]) -> list[int]:
        """Return the widths of the columns; the titles get what the others leave."""
        columns = zip(COLUMNS, *(row.cells for row in rows), strict=True)
        *others, _ = (max(map(cell_len, column)) for column in columns)
        taken = sum(others) + 2 * self.table.cell_padding * len(COLUMNS) + SCROLL_BAR
        return [*others, max(self._width - taken, MIN_TITLE)]

    @property
    def _selected(self) -> ScreenRow | None:
        place = self.table.cursor_row
        return self._shown[place] if 0 <= place < len(self._shown) else None

    def on_data_table_row_highlighted(self) -> None:
        """Show the details of the issue that the cursor is on."""
        self._show_details()

    def on_input_changed(self) -> None:
        """Show the issues that have the words."""
        self._update(self._content)

    def on_input_submitted(self) -> None:
        """Go from the filter to the list."""
        self.table.focus()

    def on_data_table_row_selected(self) -> None:
        """Enter or a click shows or hides the details."""
        self.action_details()

    def _show_details(self) -> None:
        row = self._selected
        none = "No issue has these words." if self._content.rows else NO_ISSUES
        lines = (row.issue, *row.details) if row else (none,)
        self.query_one("#lines", Static).update(Text("\n".join(lines)))
        # An address is one line, and a link where the terminal knows links.
        links = (Text(each, f"link {each}") for each in (row.addresses if row else ()))
        self.query_one("#links", Static).update(Text("\n").join(links))

    # The keys

    def action_leave(self) -> None:
        """End the screen."""
        self.exit()

    def action_interrupt(self) -> None:
        """End the screen as Ctrl-C ends a command."""
        self.exit(return_code=Exit.INTERRUPTED)

    def action_filter(self) -> None:
        """Ask for the words of the filter."""
        field = self.query_one("#filter", Input)
        field.add_class("on")
        field.focus()

    def action_unfilter(self) -> None:
        """Show all issues again."""
        field = self.query_one("#filter", Input)
        field.value = ""
        field.remove_class("on")
        self.table.focus()

    def action_details(self) -> None:
        """Show or hide the details."""
        self.query_one("#details").toggle_class("off")

    def action_open(self) -> None:
        """Open the issue's pull request, else its issue, in a browser."""
        if self._selected and self._selected.addresses:
            webbrowser.open(self._selected.addresses[0])


def _cell(text: str) -> Text:
    return Text(text, no_wrap=True, overflow="ellipsis")
