import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from mulligan.text.escape import code_block, fence, mark_of, visible

pytestmark = pytest.mark.pure

OPENING = re.compile(r'<untrusted-([0-9a-f]{12}) from="([^"\n]*)">\n')
ticks = st.lists(st.sampled_from(["`", "```", "~~~", "\n", "a", " "]), max_size=20).map("".join)


@given(st.one_of(st.text(), ticks))
def test_a_code_block_holds_all_of_its_text(text: str) -> None:
    found = MarkdownIt("commonmark").parse(code_block(text, "text"))
    assert [token.type for token in found] == ["fence"]
    assert found[0].content.rstrip("\n") == visible(text).strip("\n")
    assert found[0].info == "text"


def test_a_code_block_has_the_shortest_fence_that_holds() -> None:
    assert code_block("plain") == "```\nplain\n```"
    assert code_block("a\n```\nb\n", "diff") == "````diff\na\n```\nb\n````"
    assert code_block("") == "```\n\n```"


@given(st.text())
def test_a_fenced_text_ends_where_its_mark_says(text: str) -> None:
    fenced = fence("the issue", text)
    opening = OPENING.match(fenced)
    assert opening
    closing = f"\n</untrusted-{opening[1]}>"
    assert fenced.count(opening[1]) == 2
    assert fenced[opening.end() :].removesuffix(closing) == visible(text).strip("\n")
    assert fenced.endswith(closing)


def test_a_fence_says_where_its_text_comes_from() -> None:
    assert OPENING.match(fence("check 'a \"b\"'\n>", "text"))
    assert 'from="the issue"' in fence("the issue", "text")


def test_equal_texts_have_equal_marks_and_others_do_not() -> None:
    assert fence("a tool", "text") == fence("a tool", "text")
    assert fence("a tool", "text")[:24] != fence("a tool", "other")[:24]


@pytest.mark.parametrize("free", "07f")
def test_a_mark_is_never_one_that_the_text_holds(free: str) -> None:
    taken = "0123456789abcdef".replace(free, "")
    assert mark_of(taken, length=1) == free


@given(st.text())
def test_nothing_invisible_passes_a_fence(text: str) -> None:
    fenced = fence("a tool", text)
    assert visible(fenced) == fenced
