"""What Markdown makes of others' text is asked of a Markdown renderer, not of our own rules."""

import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from mulligan.text.escape import visible
from mulligan.text.foreign import (
    COMMENT,
    address,
    code,
    inert,
    note,
    output,
    phrase,
    plain,
    quoted,
    sentence,
    subject_line,
    table_cell,
)

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
URL = "https://github.com/o/r/issues/3"


def defuse(text: str) -> str:
    """Return quoted text without the marks of quotation."""
    return "\n".join(line[2:] for line in quoted(text).split("\n"))


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


@given(foreign)
def test_no_function_leaves_the_opener_of_a_comment(text: str) -> None:
    text = f"{text}<!-- {text}<\u200b!--"
    found = (phrase(text, 90), table_cell(text, 90), code(text), sentence(text), note(text, URL))
    more = (address(text), plain(text, 90), subject_line(text, 90), quoted(text), output(text))
    assert [each for each in (*found, *more) if COMMENT in each] == []


@given(foreign)
def test_every_line_of_a_quotation_begins_with_its_mark(text: str) -> None:
    for each in (quoted(text), output(text)):
        assert all(line.startswith(">") for line in each.split("\n") if each)
    assert all(line.startswith(" ") for line in plain(text, 90).split("\n"))


@given(foreign)
def test_an_output_is_shown_and_copied_as_it_is(text: str) -> None:
    found = list(MARKDOWN.parse(output(text)))
    kinds = ["blockquote_open", "fence", "blockquote_close"]
    assert [token.type for token in found] == kinds
    assert found[1].content.removesuffix("\n") == inert(text).strip("\n")


@pytest.mark.parametrize("line", ["\tmake", "    indented", "+x ", "", "```", "@pytest.fixture"])
def test_a_line_of_an_output_keeps_its_blanks(line: str) -> None:
    found = list(MARKDOWN.parse(output(f"a\n{line}\nb")))
    assert found[1].content == f"a\n{line}\nb\n"


@given(foreign)
def test_a_sentence_keeps_its_code_and_nothing_else(text: str) -> None:
    for each in (sentence(text), note(text, URL), sentence(f"The `tests` {text} (`x`, `y`).")):
        for token in tokens(f"So: {each}"):
            assert token.type in SAFE
            if token.type == "text":
                assert not GITHUB_ACTS_ON.search(token.content)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("There is no command `rety`.", "There is no command `rety`."),
        ("Retarget it to `a b` (`c`), or\nnot.", "Retarget it to `a b` (`c`), or not."),
        ("`a``b` @zoe", r"\`a\`\`b\` `@zoe`"),
        ("`x`@zoe `y`", "`` `x`@zoe `` `y`"),
        (" so ", "so"),
    ],
)
def test_sentence_by_example(text: str, expected: str) -> None:
    assert sentence(text) == expected


def test_a_note_keeps_its_links_to_comments() -> None:
    link = f"{URL}#issuecomment-5"
    assert note(f"ann wrote ({link}) on @zoe", URL) == f"ann wrote ({link}) on `@zoe`"
    assert note(link, URL) == link


def test_plain_text_keeps_its_lines() -> None:
    assert plain("/approve\r\n  b\n", 90) == " /approve\n   b\n "
