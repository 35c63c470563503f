"""Plots of statistics as SVG, drawn by pygal; each has the same figures in a table beside it."""

import sys
from collections.abc import Callable, Iterator
from typing import Protocol

import pygal
from pygal.style import Style

from mulligan.interfaces.stats_report import PlotKind, StatsTable

# pygal adds a finder of its plug-ins to every later import; Python warns of it, and none is used.
sys.meta_path[:] = [each for each in sys.meta_path if type(each).__module__ != pygal.__name__]

COLOURS = ("#1a7f37", "#cf222e", "#8c959f")
"""Green, red and grey: readable on both backgrounds, and in the order of the series."""

GUIDE = "#8c959f44"

LOOK = """
.pygal-chart text { font-family: system-ui, sans-serif !important }
@media (prefers-color-scheme: dark) {
  .pygal-chart .axis text, .pygal-chart .legend text { fill: #9da7b3 !important }
}
"""
"""pygal's own rules name the id of the chart, so that these have to be important."""


class _Chart(Protocol):
    """The part of pygal's charts that is used here; pygal has no types."""

    uuid: str
    x_labels: list[str]

    def add(self, title: str, values: list[float | None]) -> object: ...
    def add_xml_filter(self, callback: Callable[["_Element"], "_Element"]) -> object: ...
    def render(self, *, is_unicode: bool) -> str: ...


class _Element(Protocol):
    """The part of an XML element that is used here; the tag of a comment is a function."""

    tag: object

    def iter(self) -> Iterator["_Element"]: ...
    def __iter__(self) -> Iterator["_Element"]: ...
    def remove(self, element: "_Element") -> None: ...


def _without_scripts(root: _Element) -> _Element:
    """Remove pygal's script and its comments, which name its website."""
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag == "script" or callable(child.tag):
                parent.remove(child)
    return root


def draw(sheet: StatsTable, name: str) -> str:
    """Return the plot of a table as an SVG element; `name` is its id on a page."""
    plot = sheet.plot
    if plot is None:
        return ""
    chart = _chart(plot.kind, is_single=len(plot.series) == 1)
    chart.uuid = name
    chart.x_labels = list(plot.labels)
    for title, values in plot.series.items():
        chart.add(title, [None if value is None else round(value, 2) for value in values])
    chart.add_xml_filter(_without_scripts)
    drawn = chart.render(is_unicode=True)
    return drawn.replace("<svg ", f'<svg role="img" aria-label="{sheet.title}" ', 1)


def _chart(kind: PlotKind, *, is_single: bool) -> _Chart:
    kinds = {
        PlotKind.BARS: pygal.Bar,
        PlotKind.STACKED: pygal.StackedBar,
        PlotKind.ROWS: pygal.HorizontalBar,
    }
    return kinds[kind](
        css=["file://style.css", "file://graph.css", "inline:" + LOOK],
        js=[],
        style=Style(
            background="transparent",
            plot_background="transparent",
            foreground="#59636e",
            foreground_strong="#59636e",
            foreground_subtle="#8c959f",
            guide_stroke_color=GUIDE,
            guide_stroke_dasharray="none",
            major_guide_stroke_color=GUIDE,
            major_guide_stroke_dasharray="none",
            colors=("#2f81d7",) if is_single else COLOURS,
            label_font_size=13,
            major_label_font_size=13,
            legend_font_size=14,
        ),
        width=820,
        height=300,
        margin=8,
        show_legend=not is_single,
        legend_at_bottom=True,
        x_label_rotation=0 if kind is PlotKind.ROWS else 20,
        disable_xml_declaration=True,
        pretty_print=False,
        explicit_size=False,
    )
