"""What Markdown makes of defused text is asked of a Markdown renderer, not of our own rules."""

import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from mulligan.text.escape import defuse, one_line, subject_line, table_cell, visible

pytestmark = pytest.mark.pure

MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])
SAFE = {
    *("paragraph_open", "paragraph_close", "inline"),
    *("text", "softbreak", "hardbreak", "code_inline"),
}
GITHUB_ACTS_ON = re.compile(
    r"(?<!\w)@\w|#\d|(?<![a-z0-9])gh-\d|https?://|(?<![a-z0-9])www\.", re.IGNORECASE
)

pieces = st.sampled_from(
    [
        *("@alice", "#3", "fixes ", "GH-7", "owner/repo#3", "https://github.com/o/r/issues/3"),
        *("www.example.com", "`", "``", "```", "~~~", "\n", "\n\n", " ", "    ", "\t", "\u200b"),
        *("![a](https://x.example/i.png)", "<img src=x>", "<!-- a -->", "[a](b)", "[a]: b"),
        *("&#64;", "| a |", "|---|", ":-:", "---", "***", "===", "# ", "- ", "1. ", "> ", "\\"),
        *("|", "$x$", "word", "x"),
    ]
)
foreign = st.one_of(st.text(), st.lists(pieces, max_size=12).map("".join))


def tokens(markdown: str) -> Iterator[Token]:
    for token in MARKDOWN.parse(markdown):
        yield token
        yield from token.children or ()


def shown(markdown: str) -> str:
    """What a reader sees, without the differences of white space."""
    texts = (token.content for token in tokens(markdown) if token.type in {"text", "code_inline"})
    return squeezed("".join(texts))


def squeezed(text: str) -> str:
    return "".join(text.split())


@given(foreign)
def test_defused_text_is_nothing_but_plain_paragraphs_and_code(text: str) -> None:
    assert {token.type for token in tokens(defuse(text))} <= SAFE


@given(foreign)
def test_defused_text_leaves_nothing_for_github_to_act_on(text: str) -> None:
    for token in tokens(defuse(text)):
        if token.type == "text":
            assert not GITHUB_ACTS_ON.search(token.content)


@given(foreign)
def test_defused_text_reads_as_it_was_written(text: str) -> None:
    assert shown(defuse(text)) == squeezed(visible(text))


@given(foreign)
def test_a_table_cell_is_one_cell_that_reads_as_it_was_written(text: str) -> None:
    table = f"| a | b |\n|---|---|\n| {table_cell(text, 10_000)} | end |"
    found = list(tokens(table))
    assert [token.type for token in found].count("td_open") == 2
    cells = [token for token in found if token.type == "inline"][2:]
    assert squeezed("".join(child.content for child in cells[0].children or ())) == squeezed(
        visible(text)
    )
    assert cells[1].content == "end"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("@alice look", "`@alice` look"),
        ("(@org/team)", "(`@org/team`)"),
        ("mail a@b.example", "mail `a@b.example`"),
        ("This fixes #3.", "This fixes `#3`."),
        ('it says "Depends on: #1".', 'it says "Depends on: `#1`".'),
        ("(see o/r#3), then", "(see `o/r#3`), then"),
        ("@", "`@`"),
        ("www.", "`www.`"),
        ("closes owner/repo#3", "closes `owner/repo#3`"),
        ("resolves GH-3", "resolves `GH-3`"),
        ("a high-5 and C# are words", "a high-5 and C# are words"),
        ("see https://github.com/o/r/issues/3", "see `https://github.com/o/r/issues/3`"),
        ("fixes `#3`", "fixes `` `#3` ``"),
        ("@\u200balice", "`@alice`"),
        ("![x](https://t.example/p.png)", "`![x](https://t.example/p.png)`"),
        ("<b>bold</b> & more", r"\<b>bold\</b> \& more"),
        ("# title\n- item\n12. twelve", "\\# title\n\\- item\n12\\. twelve"),
        ("if x:\n    return *y", "if x:\n\u00a0\u00a0\u00a0\u00a0return \\*y"),
        ("safe\u202eevil", "safeevil"),
        ("snake_case", r"snake\_case"),
        ("", ""),
    ],
)
def test_defuse_by_example(text: str, expected: str) -> None:
    assert defuse(text) == expected


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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Fix *this* crash", "Fix *this* crash"),
        ("Regression, fixes #3 of @alice", "Regression, fixes `#3` of `@alice`"),
        ("two\nlines", "two lines"),
        ("x" * 60, "x" * 49 + "…"),
        ("Typo [skip ci]", "Typo (skip ci)"),
        ("[CI skip] [no ci] [actions  skip]", "(CI skip) (no ci) (actions skip)"),
        ("[skip-travis] [wip] [skip] a[0]", "(skip-travis) [wip] [skip] a[0]"),
    ],
)
def test_subject_line_by_example(text: str, expected: str) -> None:
    assert subject_line(text, 50) == expected


def test_the_limit_of_a_table_cell_is_what_is_shown() -> None:
    assert table_cell("a|b|c", 4) == "a\\|b…"
