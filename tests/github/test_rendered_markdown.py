"""As GitHub renders them, the texts keep their shape, whatever others wrote into them."""

import re

import pytest

from world.rendered import pages, to_html

PAGES = pages()
CALM = [name for name in PAGES if not name.endswith("-hostile")]
SHAPE = re.compile(r"<(h[1-6]|table|tr|th|td|pre|ul|ol|li|blockquote|hr|details)\b")
ACTIVE = re.compile(r"<(a|img|script|iframe|s|del|details|form|input)\b")
FOLDED = {"escalation": ["details"]}
"""What Mulligan folds itself: the history of attempts."""
MARKS = {"status": 2, "pull": 2, "draft": 2, "escalation": 5}
"""Invisible lines: the record of a status, and those around the text of a pull request, or around
the two parts of an escalation that an answer replaces."""
MARKER = re.compile(r"<!-- mulligan:[^\n]*? -->")


def shape(text: str) -> list[str]:
    """List the elements of a text in order."""
    return SHAPE.findall(to_html(text))


@pytest.mark.parametrize("name", PAGES)
def test_nothing_of_others_becomes_active(name: str) -> None:
    shown = to_html(PAGES[name])
    assert ACTIVE.findall(shown) == FOLDED.get(name.removesuffix("-hostile"), [])
    marks = MARKS.get(name.partition("-")[0], 1)
    assert len(MARKER.findall(shown)) == shown.count("<!--") == marks


@pytest.mark.parametrize("name", CALM)
def test_hostile_text_leaves_headings_and_tables_as_they_are(name: str) -> None:
    calm, attacked = shape(PAGES[name]), shape(PAGES[f"{name}-hostile"])
    for element in ("h1", "h2", "h3", "table", "tr", "th", "td", "hr", "ol"):
        if name != "status":
            assert attacked.count(element) == calm.count(element), element
    for table in re.findall(r"<table>.*?</table>", to_html(PAGES[f"{name}-hostile"]), re.DOTALL):
        rows = re.findall(r"<tr>(.*?)</tr>", table, re.DOTALL)
        assert len({len(re.findall(r"<t[hd]\b", row)) for row in rows}) == 1


def test_what_is_fenced_stays_in_its_fence() -> None:
    shown = to_html(PAGES["escalation-hostile"])
    fences = re.findall(r"<pre>(.*?)</pre>", shown, re.DOTALL)
    assert any("onerror" in fence and "&lt;img" in fence for fence in fences)
    assert "<h3>Your options</h3>" in shown
