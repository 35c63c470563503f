"""The terminal: JSON, lists, errors, and the filter that hides secrets."""

import json
import os
import re
import select
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, MutableMapping
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

HINT = re.compile(r"(?<=`)mulligan(?= [a-z])")

MODULE = "__main__.py"

UNLIMITED_WIDTH = 10_000

WIDTH = 100

KEY_POLL_SECONDS = 0.2

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
    """Spell the commands in a text's backquotes as this program was started."""
    return HINT.sub(lambda _: program(), text)


@dataclass(slots=True)
class OutputFilter:
    """The output filter of this process; every error and log record passes through it."""

    redactor: Redactor = field(default_factory=Redactor)

    def clean(self, text: str) -> str:
        """Remove secrets, escape sequences and invisible characters."""
        return visible(self.redactor.text(text))


OUTPUT_FILTER = OutputFilter()
"""One for the process; it gets the secrets as soon as the configuration is read."""


def say_error(message: str) -> None:
    """Write one sentence to standard error."""
    sys.stderr.write(f"mulligan: {OUTPUT_FILTER.clean(with_program_name(message))}\n")


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


def fits(table: Table, console: Console) -> bool:
    """Return whether a table fits without breaking a word."""
    options = console.options.update_width(UNLIMITED_WIDTH)
    return Measurement.get(console, options, table).minimum <= console.width


def print_command(console: Console, line: str) -> None:
    """Print a command without line breaks, so that it can be copied."""
    console.print(Text(f"  {line}"), soft_wrap=True)


def print_point(console: Console, mark: Text, said: str) -> None:
    """Print text after a mark, with wrapped lines indented below the text."""
    for line in Text(said).wrap(console, max(20, console.width - len(mark) - 1)):
        console.print(Text.assemble(mark, " ", line))
        mark = Text(" " * len(mark))


def is_attended(environment: Mapping[str, str]) -> bool:
    """Return whether a person can press a key: input and output are terminals, and no CI runs."""
    return sys.stdin.isatty() and sys.stdout.isatty() and not environment.get("CI")


def wait_for_key(console: Console, request: str, stopping: Callable[[], bool]) -> None:
    """Print a request, and wait until a key is pressed or `stopping` is true.

    Keys pressed before do not count. The terminal keeps Ctrl-C.
    """
    # Imported here: only a terminal needs it.
    import termios  # noqa: PLC0415
    import tty  # noqa: PLC0415

    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    try:
        tty.setcbreak(keyboard)
        console.print(request)
        while not stopping():
            if select.select([keyboard], [], [], KEY_POLL_SECONDS)[0]:
                os.read(keyboard, 1)
                return
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)


def show_comment(console: Console, body: str) -> None:
    """Print the main part of a comment in a frame."""
    # Imported here: every command imports this module, and importing this takes 50 ms of CPU.
    from rich.markdown import Markdown  # noqa: PLC0415

    width = min(WIDTH, console.width)
    console.print(Panel(Markdown(_in_short(body)), width=width), soft_wrap=False)


def _in_short(comment: str) -> str:
    """Omit the sections that repeat the history, and the marker that GitHub hides."""
    opening, *sections = comment.split("\n### ")
    visible = [line for line in opening.splitlines() if not line.startswith("<!--")]
    kept = [f"### {section}" for section in sections if section.startswith(TOLD_SECTIONS)]
    return "\n\n".join(["\n".join(visible), *kept])
