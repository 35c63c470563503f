"""The terminal: JSON, lists, errors, and the filter that hides secrets."""

import json
import re
import shlex
import shutil
import sys
from collections.abc import Iterable, MutableMapping
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

TOLD_SECTIONS = ("Failure summary", "Attempt history", "Your options")


def program() -> str:
    """Give the words that start this program: as they were typed, or found along PATH."""
    started = Path(sys.argv[0])
    if started.name == MODULE:
        return "python -m mulligan"
    found = shutil.which(started.name)
    return started.name if found and Path(found) == started else str(started)


def typed(words: str, config: Path | None) -> str:
    """Give a command of this program as one types it here, with the configuration in use."""
    return f"{program()} {words}" + (f" --config {shlex.quote(str(config))}" if config else "")


def with_program_name(text: str) -> str:
    """Write the commands that a text names in backquotes as this program was started."""
    return HINT.sub(lambda _: program(), text)


@dataclass(slots=True)
class OutputFilter:
    """The filter of this process; errors and log records end here, whatever they came from."""

    redactor: Redactor = field(default_factory=Redactor)

    def clean(self, text: str) -> str:
        """Remove secrets, escape sequences and invisible characters."""
        return visible(self.redactor.text(text))


OUTPUT_FILTER = OutputFilter()
"""One for the process: it learns the secrets as soon as the configuration is read."""


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
    """Cleans all that a console prints, just before it becomes bytes; its own colours stay."""

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
    """Tell whether a table can be shown without a word in it being broken."""
    options = console.options.update_width(UNLIMITED_WIDTH)
    return Measurement.get(console, options, table).minimum <= console.width


def print_command(console: Console, line: str) -> None:
    """Print a command without line breaks, so that it can be copied."""
    console.print(Text(f"  {line}"), soft_wrap=True)


def print_point(console: Console, mark: Text, said: str) -> None:
    """Print text as it stands behind a mark, and what wraps of it below the text."""
    for line in Text(said).wrap(console, max(20, console.width - len(mark) - 1)):
        console.print(Text.assemble(mark, " ", line))
        mark = Text(" " * len(mark))


def show_comment(console: Console, body: str) -> None:
    """Print what counts of a comment in a frame."""
    # Imported here: every command imports this module, and parsing Markdown takes 50 ms of CPU.
    from rich.markdown import Markdown  # noqa: PLC0415

    width = min(WIDTH, console.width)
    console.print(Panel(Markdown(_in_short(body)), width=width), soft_wrap=False)


def _in_short(comment: str) -> str:
    """Leave out the sections that repeat the story, and the marker that GitHub does not show."""
    opening, *sections = comment.split("\n### ")
    visible = [line for line in opening.splitlines() if not line.startswith("<!--")]
    kept = [f"### {section}" for section in sections if section.startswith(TOLD_SECTIONS)]
    return "\n\n".join(["\n".join(visible), *kept])
