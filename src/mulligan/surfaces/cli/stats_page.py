"""Write statistics as one page that needs nothing else: no network, no script."""

from pathlib import Path

from jinja2 import Environment, StrictUndefined, select_autoescape

from mulligan.domain.figures import Stats
from mulligan.surfaces.cli.sheets import points, sheets
from mulligan.surfaces.cli.stats import period
from mulligan.surfaces.cli.terminal import SHIELD

TEMPLATE = Path(__file__).with_name("stats.html")


def write_page(found: Stats) -> str:
    """Give the page; no secret stands in it, and nothing foreign is more than text."""
    environment = Environment(
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
    page = template.render(
        period=period(found),
        points=points(found) if found.since else [],
        sheets=sheets(found) if found.since else [],
    )
    return SHIELD.clean(page)
