"""Nothing untrusted steers a terminal, and no secret reaches it."""

import io
import json
import logging
import os
import sys
from pathlib import Path

import pytest
import structlog
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from mulligan.interfaces.cli.setup import sentence, start_logs
from mulligan.interfaces.cli.terminal import (
    OUTPUT_FILTER,
    Cleaning,
    clean_record,
    is_attended,
    pager_of,
    print_error,
    print_json,
    print_point,
    print_text,
    with_program_name,
)
from mulligan.text.redact import Redactor
from world.pseudo_terminal import on_a_terminal

SECRET = "token-of-the-bot"
STEERING = "a\x1b]0;title\x07\x1b[2Jb\x9b31m\u202ec\x08\x7f"


@pytest.fixture(autouse=True)
def _known_secret() -> None:
    OUTPUT_FILTER.redactor = Redactor((SECRET,))


def printed(*renderables: object) -> str:
    console = Console(
        file=io.StringIO(),
        force_terminal=True,
        width=200,
        color_system="standard",
        highlight=False,
    )
    console.push_render_hook(Cleaning())
    for each in renderables:
        console.print(each)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_text_markup_and_tables_are_cleaned_and_our_own_colours_stay() -> None:
    table = Table()
    table.add_column("c")
    table.add_row(escape(STEERING))
    shown = printed(f"[red]{escape(STEERING)}[/]", Text(f"{STEERING} {SECRET}"), table)
    assert "\x1b[31m" in shown
    assert not {"\x07", "\x08", "\x7f", "\x9b", "\u202e"} & set(shown)
    assert "\x1b]" not in shown
    assert "\x1b[2J" not in shown
    assert shown.count("ab31mc") == 3
    assert "[redacted]" in shown
    assert SECRET not in shown


def test_an_error_is_cleaned(capsys: pytest.CaptureFixture[str]) -> None:
    print_error(f"It failed with {SECRET}\x1b[2J.")
    assert capsys.readouterr().err == "mulligan: It failed with [redacted].\n"


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_sentences_on_a_terminal_wrap_between_words_and_keep_a_path_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    path = f"/var/lib/{'mulligan' * 6}/dashboard.key"
    monkeypatch.setattr(sys, "stderr", screen := Screen())
    print_error(f"Sign in on the dashboard with the key in {path} first.")
    shown = f"mulligan: Sign in on the\ndashboard with the key in\n{path}\nfirst.\n"
    assert screen.getvalue() == shown
    record: dict[str, object] = {"event": "dashboard_open", "address": "http://x/"}
    line = sentence(None, "info", {**record, "key_file": path})
    assert line.splitlines()[-1] == path


def test_a_log_record_is_cleaned() -> None:
    record = clean_record(
        None, "info", {"event": "a\x1b[1m", "n": 1, "error": ValueError(SECRET), "none": None}
    )
    assert record == {"event": "a", "n": 1, "error": "[redacted]", "none": None}


def test_json_says_what_nobody_would_see(capsys: pytest.CaptureFixture[str]) -> None:
    content = {"a": "é \u202e\x9b\U000e0041\x7f\n"}
    print_json(content)
    written = capsys.readouterr().out
    assert json.loads(written) == content
    assert not {"\u202e", "\x9b", "\x7f"} & set(written)
    assert "é" in written


DIFF = """\
diff --git a/a b/a
--- a/a
+++ b/a
@@ -1,3 +1,3 @@ def
 same
--- gone
++ new
"""


@pytest.mark.parametrize(
    ("environment", "pager"),
    [
        ({}, "less"),
        ({"PAGER": "less -S"}, "less -S"),
        ({"PAGER": "cat"}, ""),
        ({"PAGER": ""}, ""),
        ({"PAGER": "not-installed --flag"}, ""),
        ({"PATH": "/nowhere"}, ""),
    ],
)
def test_the_pager_is_the_users_own(
    tmp_path: Path, environment: dict[str, str], pager: str
) -> None:
    less = tmp_path / "less"
    less.touch(0o755)
    assert pager_of({"PATH": str(tmp_path), **environment}) == pager


PAGING = f"""
from mulligan.interfaces.cli.setup import make_console
from mulligan.interfaces.cli.terminal import page_diff
page_diff(make_console(), {DIFF!r})
"""


@pytest.mark.parametrize("pager", ["sed s/^/paged:/", ""])
def test_a_diff_has_colours_and_goes_through_the_pager(tmp_path: Path, pager: str) -> None:
    environment = {"PATH": os.environ["PATH"], "PAGER": pager}
    command = [sys.executable, "-c", PAGING]
    with on_a_terminal(command, tmp_path, environment) as shown:
        assert shown.end() == 0
    mark = "paged:" if pager else ""
    assert shown.text == "".join(f"{mark}{line}\n" for line in DIFF.splitlines())
    head, removed, added = "\x1b[1m--- a/a", "\x1b[31m--- gone", "\x1b[32m++ new"
    assert all(each in shown.seen for each in (head, removed, added))
    with on_a_terminal(command, tmp_path, {**environment, "NO_COLOR": "1"}) as plain:
        assert plain.end() == 0
    assert "\x1b[3" not in plain.seen


WAITING = """
import os
from rich.console import Console
from mulligan.interfaces.cli.terminal import is_attended, wait_for_key
print("attended" if is_attended(os.environ) else "alone")
wait_for_key(Console(), "Press a key.", lambda: False)
print("pressed")
"""


def test_a_person_at_a_terminal_is_waited_for(tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"]}
    with on_a_terminal([sys.executable, "-c", WAITING], tmp_path, environment) as shown:
        shown.wait_for("Press a key")
        shown.press("x")
        assert shown.end() == 0
        assert shown.text == "attended\nPress a key.\npressed\n"


def test_nobody_is_waited_for_in_a_pipe_or_in_ci(tmp_path: Path) -> None:
    assert not is_attended({})
    said = (
        "from mulligan.interfaces.cli.terminal import is_attended; print(is_attended({'CI': '1'}))"
    )
    with on_a_terminal([sys.executable, "-c", said], tmp_path, dict(os.environ)) as shown:
        assert (shown.end(), shown.text) == (0, "False\n")


@pytest.mark.parametrize(
    ("text", "config", "shown"),
    [
        ("Run `mulligan once`.", "a b.yml", "Run `prog once --config 'a b.yml'`."),
        ("Run `mulligan once`.", "", "Run `prog once`."),
        ("Run `mulligan check --here`.", "x.yml", "Run `prog check --here`."),
        (
            "`mulligan run` (process 812) is running.",
            "x.yml",
            "`mulligan run` (process 812) is running.",
        ),
        ("Write `mulligan.yml`.", "x.yml", "Write `mulligan.yml`."),
    ],
)
def test_advice_can_be_typed_as_it_is_shown(
    monkeypatch: pytest.MonkeyPatch, text: str, config: str, shown: str
) -> None:
    monkeypatch.setattr(sys, "argv", ["prog"])
    monkeypatch.setattr(OUTPUT_FILTER, "config", Path(config) if config else None)
    assert with_program_name(text) == shown


def test_no_line_ends_inside_a_command_or_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["prog"])
    monkeypatch.setattr(OUTPUT_FILTER, "config", Path("/srv/a/long/path/mulligan.yml"))
    console = Console(file=io.StringIO(), width=40, highlight=False)
    said = "Start `mulligan run`, or make one pass. See https://example.org/a/b/c/d/e/f/g/h/i/j."
    print_text(console, said)
    print_point(console, Text("  →"), said)
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().splitlines() == [
        "Start",
        "`prog run --config /srv/a/long/path/mulligan.yml`,",
        "or make one pass. See",
        "https://example.org/a/b/c/d/e/f/g/h/i/j.",
        "  → Start",
        "    `prog run --config /srv/a/long/path/mulligan.yml`,",
        "    or make one pass. See",
        "    https://example.org/a/b/c/d/e/f/g/h/i/j.",
    ]


@pytest.mark.parametrize("style", ["json", "pairs", "sentence"])
def test_a_log_record_is_one_line(capsys: pytest.CaptureFixture[str], style: str) -> None:
    level = logging.WARNING if style == "sentence" else logging.INFO
    try:
        start_logs(level, as_json=style == "json")
        structlog.get_logger().log(level, "started", reason="two\nlines\x1b[31m of 'text'", count=2)
    finally:
        structlog.reset_defaults()
    (line,) = capsys.readouterr().err.splitlines()
    if style == "json":
        record = json.loads(line)
        assert record.pop("timestamp").endswith("Z")
        assert record == {
            "level": "info",
            "event": "started",
            "reason": "two\nlines of 'text'",
            "count": 2,
        }
    elif style == "pairs":
        assert " level=info event=started reason=" in line
    else:
        assert line == "mulligan: two lines of 'text' (count 2)"


def test_the_dashboards_line_says_where_it_is_and_what_opens_it() -> None:
    record: dict[str, object] = {"event": "dashboard_open", "level": "info"}
    line = sentence(None, "info", {**record, "address": "http://x/", "key_file": "/s/key"})
    assert line == "mulligan: The dashboard is at http://x/ and asks for the access key in /s/key"
