import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.text.escape import Excerpt, omitted

pytestmark = pytest.mark.pure

FIVE = Excerpt.of("one\ntwo\nthree\nfour\nfive")
texts = st.text(alphabet="ab\n é", max_size=60)


def bytes_of(excerpt: Excerpt) -> int:
    return sum(len(line.encode()) + 1 for line in excerpt.lines) + excerpt.left_out_bytes


@pytest.mark.parametrize(
    ("excerpt", "text"),
    [
        (FIVE.head(5), "one\ntwo\nthree\nfour\nfive"),
        (FIVE.head(2), "one\ntwo\n[... 3 lines omitted]"),
        (FIVE.head(0), "[... 5 lines omitted]"),
        (FIVE.head(3).head(1), "one\n[... 4 lines omitted]"),
        (FIVE.both_ends(5), "one\ntwo\nthree\nfour\nfive"),
        (FIVE.both_ends(4), "one\ntwo\n[... 2 lines omitted]\nfive"),
        (FIVE.both_ends(3), "one\n[... 3 lines omitted]\nfive"),
        (FIVE.both_ends(1), "one\n[... 4 lines omitted]"),
        (FIVE.head(4).both_ends(3), "one\n[... 2 lines omitted]\nfour\n[... 1 line omitted]"),
        (FIVE.within(7), "one\ntwo\n[... 3 lines omitted]"),
        (FIVE.within(6), "one\n[... 4 lines omitted]"),
        (FIVE.within(2), "o…\n[... 4 lines omitted]"),
        (FIVE.within(100), "one\ntwo\nthree\nfour\nfive"),
        (Excerpt.of("\n\nno \x1b[31mcolour\x1b[0m\n\n"), "no colour"),
        (Excerpt.of(""), ""),
        (Excerpt.of("").within(0), ""),
    ],
)
def test_the_beginning_is_kept_and_the_rest_counted(excerpt: Excerpt, text: str) -> None:
    assert str(excerpt) == text


def test_the_marker_has_the_form_of_the_specification() -> None:
    assert omitted(12) == "[... 12 lines omitted]"


@given(texts, st.integers(0, 30))
def test_no_line_is_lost_from_the_count(text: str, most: int) -> None:
    whole = Excerpt.of(text)
    head = whole.head(most)
    assert len(head.lines) == min(most, len(whole.lines))
    assert len(head.lines) + head.left_out == len(whole.lines)
    assert bytes_of(head) == bytes_of(whole)
    ends = whole.both_ends(most)
    marks = sum(len(line) + 1 for line in ends.lines if line.startswith("[..."))
    assert bytes_of(ends) - marks == bytes_of(whole)


@given(texts, st.integers(1, 80))
def test_characters_are_kept_within_their_limit(text: str, most: int) -> None:
    whole = Excerpt.of(text)
    kept = whole.within(most)
    assert len("\n".join(kept.lines)) <= most
    assert len(kept.lines) + kept.left_out == len(whole.lines)
    assert (kept.left_out_bytes > 0) == (kept != whole)
