"""Show a comment of Mulligan's on the terminal, in short, as people read it on GitHub."""

from rich.console import Console
from rich.markdown import Markdown
from rich.panel import Panel

WIDTH = 100
TOLD_SECTIONS = ("Failure summary", "Attempt history", "Your options")


def show_comment(console: Console, body: str) -> None:
    """Print what counts of a comment in a frame."""
    width = min(WIDTH, console.width)
    console.print(Panel(Markdown(_in_short(body)), width=width), soft_wrap=False)


def _in_short(comment: str) -> str:
    """Leave out the sections that repeat the story, and the marker that GitHub does not show."""
    opening, *sections = comment.split("\n### ")
    visible = [line for line in opening.splitlines() if not line.startswith("<!--")]
    told = [f"### {section}" for section in sections if section.startswith(TOLD_SECTIONS)]
    return "\n\n".join(["\n".join(visible), *told])
