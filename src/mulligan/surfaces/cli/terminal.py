"""What stands before the terminal: no secret reaches it, and nothing untrusted steers it."""

import sys
from collections.abc import Iterable, MutableMapping
from dataclasses import dataclass, field

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.segment import Segment

from mulligan.surfaces.cli.program import as_started
from mulligan.text.escape import visible
from mulligan.text.redact import Redactor


@dataclass(slots=True)
class Shield:
    """The filter of this process; errors and log records end here, whatever they came from."""

    redactor: Redactor = field(default_factory=Redactor)

    def clean(self, text: str) -> str:
        """Take out secrets, escape sequences and characters that nobody sees."""
        return visible(self.redactor.text(text))


SHIELD = Shield()
"""One for the process: it learns the secrets as soon as the configuration is read."""


def say_error(message: str) -> None:
    """Write one sentence to standard error."""
    sys.stderr.write(f"mulligan: {SHIELD.clean(as_started(message))}\n")


def clean_record(
    _logger: object, _method: str, record: MutableMapping[str, object]
) -> MutableMapping[str, object]:
    """Clean every value of a log record; a processor of structlog."""
    for name, value in record.items():
        if not isinstance(value, int | float | None):
            record[name] = SHIELD.clean(str(value))
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
                shown = segment.control or segment.text == SHIELD.clean(segment.text)
                yield segment if shown else Segment(SHIELD.clean(segment.text), segment.style)
