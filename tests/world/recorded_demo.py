"""A recording of `mulligan demo`, drawn as the lines appear on a terminal of 80 columns.

`python tests/world/recorded_demo.py FILE` runs the demo and writes docs/images/demo.svg.
"""

import os
import re
import sys
from collections.abc import Iterator, Sequence
from html import escape
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from rich.text import Text

from world.pseudo_terminal import on_a_terminal

ERASED, MOVES = "\x1b[2K", re.compile(r"\x1b\[[0-9;?]*[A-Za-ln-z]|\r")
CHAPTERS = ("acme/calculator#2", "Results:")
COLUMN, ROW, MARGIN, WIDTH = 8.4, 20, 16, 80
GAP = "\u00a0\u00a0"
SECONDS, PAUSE = 0.3, 0.9
COLOURS = {
    "color(1)": "#ff7b72",
    "color(2)": "#3fb950",
    "color(3)": "#d29922",
    "color(4)": "#79c0ff",
    "color(6)": "#56d4dd",
}
"""The colours of the terminal that the demo uses, as Rich names them."""
STYLE = """\
text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#e6edf3}
g{animation:show .01s both}
@keyframes show{from{opacity:0}}
@media (prefers-reduced-motion:reduce){g{animation:none}}
"""


def lines_of(seen: str) -> list[Text]:
    """Return the lines that a terminal keeps; live lines were erased."""
    kept = (line.rpartition(ERASED)[2] for line in seen.split("\n"))
    return [Text.from_ansi(MOVES.sub("", line)) for line in kept]


def chapters(lines: Sequence[Text]) -> Iterator[Text]:
    """Yield the lines of CHAPTERS, with an empty line between them."""
    for name in CHAPTERS:
        begin = next(place for place, line in enumerate(lines) if line.plain.startswith(name))
        if name != CHAPTERS[0]:
            yield Text()
        for line in lines[begin:]:
            if not line.plain.strip():
                break
            yield line


def drawn(lines: Sequence[Text]) -> str:
    """Draw the lines, each at its time; a viewer without animation sees them all."""
    size = f"{2 * MARGIN + COLUMN * WIDTH:.0f} {2 * MARGIN + ROW * len(lines)}"
    shown, after = list[str](), 0.0
    for row, line in enumerate(lines, 1):
        after += SECONDS if line.plain else PAUSE
        spans = "".join(_spans(line, MARGIN + ROW * row - 5))
        if spans:
            shown.append(f'<g style="animation-delay:{after:.1f}s">{spans}</g>\n')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" role="img">\n'
        "<title>The demo: the second attempt knows which test failed</title>\n"
        f"<style>\n{STYLE}</style>\n"
        f'<rect width="100%" height="100%" rx="8" fill="#0d1117"/>\n{"".join(shown)}</svg>\n'
    )


def _spans(line: Text, height: int) -> Iterator[str]:
    """Draw the parts of a line, each at its first letter."""
    edges = {0, len(line), *(edge for span in line.spans for edge in (span.start, span.end))}
    places = sorted(edges)
    for begin, end in pairwise(places):
        text = line.plain[begin:end]
        words = text.strip()
        if not words:
            continue
        start = begin + len(text) - len(text.lstrip())
        said = " ".join(str(span.style) for span in line.spans if span.start <= begin < span.end)
        colour = next((code for name, code in COLOURS.items() if name in said), "")
        style = f"fill:{colour}" if colour else "font-weight:700" if "bold" in said else ""
        look = f' style="{style}"' if style else ""
        width = f'textLength="{COLUMN * len(words):.1f}"'
        yield f'<text x="{MARGIN + COLUMN * start:.1f}" y="{height}" {width}{look}>'
        written = escape(words.replace("  ", GAP), quote=False)
        yield f"{written}</text>"


def record() -> list[Text]:
    """Run the demo on a terminal, and return the lines to draw."""
    mulligan = Path(sys.executable).with_name("mulligan")
    argv = [mulligan, "demo", "--no-wait"]
    with on_a_terminal(argv, Path.cwd(), dict(os.environ)) as terminal:
        terminal.end()
    prompt = Text.assemble(("$ ", "color(2)"), ("make demo", "bold"))
    return [prompt, *chapters(lines_of(terminal.seen))]


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(drawn(record()), encoding="utf-8")
