"""How the commands print what they share: JSON for programs, and lists of points with marks."""

import json
import sys

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from mulligan.text.escape import HIDDEN

ENDLESS = 10_000


def print_json(content: object) -> None:
    """Print JSON for other programs; what nobody would see stands as its escape."""
    written = json.dumps(content, indent=2, ensure_ascii=False)
    sys.stdout.write(HIDDEN.sub(lambda found: json.dumps(found[0])[1:-1], written) + "\n")


def fits(table: Table, console: Console) -> bool:
    """Tell whether a table can be shown without a word in it being broken."""
    options = console.options.update_width(ENDLESS)
    return Measurement.get(console, options, table).minimum <= console.width


def print_point(console: Console, mark: Text, said: str) -> None:
    """Print text as it stands behind a mark, and what wraps of it below the text."""
    for line in Text(said).wrap(console, max(20, console.width - len(mark) - 1)):
        console.print(Text.assemble(mark, " ", line))
        mark = Text(" " * len(mark))
