"""Text is shown without what nobody sees, and on one line within its limit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.text.escape import LAST_LINES, last_lines, one_line, visible

pytestmark = pytest.mark.pure

foreign = st.text() | st.lists(st.sampled_from(["\u200b", "\n", " ", "\t", "x"])).map("".join)


def test_visible_text_has_no_control_bidi_or_zero_width_characters() -> None:
    hidden = "\x00\x1b\u200b\u200d\u202e\u2066\ufeff\u00ad\ufe0f\U000e0041\ud800"
    assert visible(f"a{hidden}b\r\nc\rd\u2028e") == "ab\nc\nd\ne"
    assert visible("\x1b[31mred\x1b[0m \x1b]0;title\x07plain\ttab") == "red plain\ttab"


@given(st.text(alphabet=st.characters()))
def test_visible_text_can_always_be_written_as_utf8(text: str) -> None:
    visible(text).encode()


@given(foreign, st.integers(1, 40))
def test_one_line_is_one_line_within_its_limit(text: str, limit: int) -> None:
    line = one_line(text, limit)
    assert len(line) <= limit
    assert len(line.splitlines()) <= 1


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("a\n b\t\tc ", 10, "a b c"),
        ("exactly ten", 11, "exactly ten"),
        ("exactly ten", 10, "exactly t…"),
        ("word word", 6, "word…"),
        ("\x07", 5, ""),
    ],
)
def test_one_line_by_example(text: str, limit: int, expected: str) -> None:
    assert one_line(text, limit) == expected


def test_last_lines_are_those_with_words_as_a_terminal_shows_them() -> None:
    drawn = "\u2570\u2500> See above\r\n\u2502\n\n10 %\r100 %\n"
    assert last_lines(drawn) == "See above\n100 %"
    many = "\n".join(f"line {number}" for number in range(LAST_LINES + 5))
    assert last_lines(many).split("\n") == [f"line {number + 5}" for number in range(LAST_LINES)]
    assert last_lines("\n") == "It printed nothing."
