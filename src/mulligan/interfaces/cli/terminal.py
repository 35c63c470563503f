"""The terminal: JSON, lists, errors, keys, the pager, and the filter that hides secrets."""

import json
import os
import re
import select
import shlex
import shutil
import sys
import termios
import textwrap
import tty
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.measure import Measurement
from rich.panel import Panel
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from mulligan.text.escape import HIDDEN, visible
from mulligan.text.redact import Redactor

HINT = re.compile(r"`mulligan (?P<command>(?:debug )?[a-z]+)(?P<rest>[^`]*)`(?! \()")
"""A command in a text; before a parenthesis, it names a process."""

UNQUOTED_HINT = re.compile(
    r"(?<=run: )mulligan (?P<command>inspect)(?P<rest> [\w./-]+#\d+ --log setup)\b"
)
"""The command at the end of a recorded reason, which comments on GitHub show too."""

WITHOUT_CONFIG = frozenset(
    {"action", "check", "debug action", "debug digest", "demo", "init", "rehearse", "simulate"}
)
"""The commands that work without the configuration, or propose one."""

COMMAND = re.compile(r"`[^`\n]+`")

IN_COMMAND = "\ue000"
"""Stands for a space inside a command while text is wrapped."""

MODULE = "__main__.py"

UNLIMITED_WIDTH = 10_000

WIDTH = 100

KEY_POLL_SECONDS = 0.2

END_OF_INPUT = "\x04"
"""The character that Ctrl-D sends."""

TOLD_SECTIONS = ("Failure summary", "Attempt history", "Your options")


def program() -> str:
    """Return the command that starts this program: as typed, or found on PATH."""
    started = Path(sys.argv[0])
    if started.name == MODULE:
        return "python -m mulligan"
    found = shutil.which(started.name)
    return started.name if found and Path(found) == started else str(started)


def typed(words: str, config: Path | None) -> str:
    """Return a command of this program as a user types it here, with the configuration in use."""
    return f"{program()} {words}" + (f" --config {shlex.quote(str(config))}" if config else "")


def with_program_name(text: str) -> str:
    """Spell the commands in a text, in backquotes or after `run:`, as a user types them here."""

    def spelled(found: re.Match[str]) -> str:
        has_config = found["command"] not in WITHOUT_CONFIG and "--config" not in found["rest"]
        words = f"{found['command']}{found['rest']}"
        return typed(words, OUTPUT_FILTER.config if has_config else None)

    text = HINT.sub(lambda found: f"`{spelled(found)}`", text)
    return UNQUOTED_HINT.sub(spelled, text)


@dataclass(slots=True)
class OutputFilter:
    """The output filter of this process; every error and log record passes through it.

    `config` is the configuration file that the user named, for the commands in advice.
    """

    redactor: Redactor = field(default_factory=Redactor)
    config: Path | None = None

    def clean(self, text: str) -> str:
        """Remove secrets, escape sequences and invisible characters."""
        return visible(self.redactor.text(text))


OUTPUT_FILTER = OutputFilter()
"""One for the process; it gets the secrets as soon as the configuration is read."""


def print_error(message: str) -> None:
    """Write one sentence to standard error."""
    text = f"mulligan: {OUTPUT_FILTER.clean(with_program_name(message))}"
    sys.stderr.write(f"{on_standard_error(text)}\n")


def on_standard_error(text: str) -> str:
    """Return text for standard error: on a terminal, it wraps, but never inside a word or path."""
    if not sys.stderr.isatty():
        return text
    return "\n".join(_wrapped(text, shutil.get_terminal_size().columns))


def clean_record(
    _logger: object, _method: str, record: MutableMapping[str, object]
) -> MutableMapping[str, object]:
    """Clean every value of a log record; a processor of structlog."""
    for name, value in record.items():
        if not isinstance(value, int | float | None):
            record[name] = OUTPUT_FILTER.clean(str(value))
    return record


class Cleaning(RenderHook):
    """Cleans all output of a console before it is encoded; keeps the console's own colours."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Cleaned(renderables)]


@dataclass(frozen=True, slots=True)
class _Cleaned:
    inner: Iterable[ConsoleRenderable]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for each in self.inner:
            for segment in console.render(each, options):
                shown = segment.control or segment.text == OUTPUT_FILTER.clean(segment.text)
                yield (
                    segment if shown else Segment(OUTPUT_FILTER.clean(segment.text), segment.style)
                )


def print_json(content: object) -> None:
    """Print JSON for other programs; invisible characters are escaped."""
    written = json.dumps(content, indent=2, ensure_ascii=False)
    sys.stdout.write(HIDDEN.sub(lambda found: json.dumps(found[0])[1:-1], written) + "\n")


def fits(table: Table, console: Console, *, wraps: bool) -> bool:
    """Return whether a table fits without breaking a word or, if it may not wrap, a cell."""
    options = console.options.update_width(UNLIMITED_WIDTH)
    needs = Measurement.get(console, options, table)
    return (needs.minimum if wraps else needs.maximum) <= console.width


def print_command(console: Console, line: str) -> None:
    """Print a command without line breaks, so that it can be copied."""
    console.print(Text(f"  {line}"), soft_wrap=True)


def print_point(console: Console, mark: Text, text: str) -> None:
    """Print text after a mark, with wrapped lines indented below the text."""
    for line in _wrapped(text, max(20, console.width - len(mark) - 1)):
        console.print(Text.assemble(mark, f" {line}"), soft_wrap=True)
        mark = Text(" " * len(mark))


def print_text(console: Console, text: str) -> None:
    """Print text that wraps at the width of the terminal, but never inside a command."""
    for line in _wrapped(text, console.width):
        console.print(Text(line), soft_wrap=True)


def _wrapped(text: str, width: int) -> Iterator[str]:
    """Wrap text between words; keep what stands in backquotes, and addresses, on one line."""
    whole = COMMAND.sub(lambda found: found[0].replace(" ", IN_COMMAND), with_program_name(text))
    for paragraph in whole.split("\n"):
        lines = textwrap.wrap(
            paragraph, width, break_long_words=False, break_on_hyphens=False, drop_whitespace=True
        )
        yield from (line.replace(IN_COMMAND, " ") for line in lines or [""])


def is_attended(environment: Mapping[str, str]) -> bool:
    """Return whether a person can press a key: input and output are terminals, and no CI runs."""
    return sys.stdin.isatty() and sys.stdout.isatty() and not environment.get("CI")


ReadKey = Callable[[float], str]
"""Waits up to some seconds for keys, and returns them; empty if none was pressed."""


@contextmanager
def single_keys() -> Generator[ReadKey]:
    """Read keys without Enter while the block lasts; earlier ones do not count.

    The terminal keeps Ctrl-C.
    """
    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)

    def read(seconds: float) -> str:
        if not select.select([keyboard], [], [], seconds)[0]:
            return ""
        # A terminal that was closed reads as its end.
        return os.read(keyboard, 64).decode(errors="replace") or END_OF_INPUT

    try:
        tty.setcbreak(keyboard)
        yield read
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)


def wait_for_key(console: Console, request: str, stopping: Callable[[], bool]) -> None:
    """Print a request, and wait until a key is pressed or `stopping` is true."""
    with single_keys() as read_key:
        console.print(request)
        while not stopping():
            if read_key(KEY_POLL_SECONDS):
                return


DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def print_diff(console: Console, lines: Iterable[str]) -> None:
    """Print a unified diff with git's colours."""
    in_head = True
    for line in lines:
        in_head = line.startswith("diff ") or (in_head and not line.startswith("@@"))
        style = "bold" if in_head else DIFF_STYLES.get(line[:1], "")
        console.print(Text(line, style), soft_wrap=True)


def pager_of(environment: Mapping[str, str]) -> str:
    """Return the command of the user's pager: PAGER, else `less`; empty for none, as with git."""
    pager = environment.get("PAGER", "less").strip()
    words = shlex.split(pager) if pager != "cat" else []
    is_found = bool(words) and shutil.which(words[0], path=environment.get("PATH"))
    return pager if is_found else ""


def page_diff(console: Console, diff: str) -> None:
    """Show a diff on a terminal, in colour, through the user's pager."""
    with console.capture() as captured:
        print_diff(console, diff.removesuffix("\n").split("\n"))
    if not (pager := pager_of(os.environ)):
        sys.stdout.write(captured.get())
        return
    # Imported here: only a terminal needs it.
    import pydoc  # noqa: PLC0415

    # As git does: a short diff is printed at once, and `less` passes colours on.
    os.environ.setdefault("LESS", "FRX")
    os.environ.setdefault("LV", "-c")
    pydoc.pipepager(captured.get(), pager)


def show_comment(console: Console, body: str) -> None:
    """Print the main part of a comment in a frame."""
    # Imported here: every command imports this module, and importing this takes 50 ms of CPU.
    from rich.markdown import Markdown  # noqa: PLC0415

    width = min(WIDTH, console.width)
    console.print(Panel(Markdown(_in_short(body)), width=width), soft_wrap=False)


def _in_short(comment: str) -> str:
    """Omit the sections that repeat the history, and the marks and folds of GitHub."""
    lines = (line for line in comment.splitlines() if not line.startswith("<"))
    opening, *sections = "\n".join(lines).split("\n### ")
    kept = [f"### {section}" for section in sections if section.startswith(TOLD_SECTIONS)]
    return "\n\n".join([opening, *kept])
