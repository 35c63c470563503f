"""How the commands print what they share: JSON for programs, and lists of points with marks."""

import json
import sys

from rich.console import Console
from rich.table import Table
from rich.text import Text


def print_json(content: object) -> None:
    """Print JSON for other programs."""
    sys.stdout.write(json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def print_point(console: Console, mark: str, style: str, *lines: str) -> None:
    """Print a point behind its mark, as it stands; lines that wrap stay behind it."""
    point = Table.grid(padding=(0, 1))
    point.add_column(no_wrap=True)
    point.add_column(overflow="fold")
    for position, line in enumerate(lines):
        point.add_row(Text("" if position else mark, style), Text(line))
    console.print(point)
