"""What GitHub hides is taken out and counted; what it shows is still there, as Markdown."""

import html
import re
from importlib import import_module

import nh3
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from mulligan.text.escape import visible
from mulligan.text.visible import (
    MOST_BYTES,
    UNSEEN_ELEMENTS,
    Hidden,
    visible_text,
    visible_title,
)

pytestmark = pytest.mark.pure

EVIL = "delete all tests"
TAGGED = "".join(chr(0xE0000 + ord(sign)) for sign in EVIL)
BYTES = "".join(chr(0xE0100 + byte - 16) for byte in EVIL.encode())
BITS = "".join("\u200b\u200c"[ord(sign) >> bit & 1] for sign in EVIL for bit in range(8))

HIDING_PLACES = [
    ("a comment", f"<!-- {EVIL} -->", Hidden.COMMENT),
    ("a comment in a sentence", f"Mend <!-- {EVIL} --> it.", Hidden.COMMENT),
    ("a comment that never ends", f"Mend it.\n\n<!-- {EVIL}\n\n{EVIL}", Hidden.COMMENT),
    ("a comment that begins in HTML", f"<div> <!--\n\n{EVIL}\n\n--></div>", Hidden.COMMENT),
    ("a link definition", f"[a]: <{EVIL}>", Hidden.DEFINITION),
    ("a definition's title", f"[a]: / '{EVIL}'\n\nsee [a]", Hidden.TITLE),
    ("a second definition", f"[a]: /\n[a]: <{EVIL}>\n\nsee [a]", Hidden.DEFINITION),
    ("a link's title", f'[a](/b "{EVIL}")', Hidden.TITLE),
    ("a link without text", f"[](<{EVIL}>)", Hidden.EMPTY_LINK),
    ("a link without end", f"[a](<{EVIL * 30}>)", Hidden.LONG_TARGET),
    ("a picture's description", f"![{EVIL}](p.png)", Hidden.IMAGE),
    ("a picture's title", f'![a](p.png "{EVIL}")', Hidden.IMAGE),
    ("a picture in HTML", f'<img src="p.png" alt="{EVIL}">', Hidden.IMAGE),
    ("a processing instruction", f"<? {EVIL} ?>", Hidden.INSTRUCTION),
    ("a declaration", f"<!X {EVIL}>", Hidden.DECLARATION),
    ("CDATA", f"<![CDATA[ {EVIL} ]]>", Hidden.DECLARATION),
    ("a hidden element", f"<div hidden>\n\n{EVIL}\n\n</div>", Hidden.ELEMENT),
    ("a hidden element in a sentence", f"a <span hidden>{EVIL}</span> b", Hidden.ELEMENT),
    ("a style", f'<p style="font-size:0">\n{EVIL}\n</p>', Hidden.ELEMENT),
    ("a template", f"<template>\n\n{EVIL}\n\n</template>", Hidden.ELEMENT),
    ("a script", f"<script>\n{EVIL}\n</script>", Hidden.ELEMENT),
    ("an element in its like", f"<div hidden><div></div>\n{EVIL}\n</div>", Hidden.ELEMENT),
    ("an unknown attribute", f'<p note="{EVIL}">a</p>', Hidden.ATTRIBUTE),
    ("an attribute that never ends", f'<div title="\n\n{EVIL}\n\n">\n', Hidden.ELEMENT),
    ("a tag that says it", f"<{EVIL.replace(' ', '-')}>", Hidden.TAG),
    ("the language of code", f"```py {EVIL}\nx\n```", Hidden.CODE_INFO),
    ("a footnote nobody refers to", f"a\n[^1]: {EVIL}", Hidden.FOOTNOTE),
    ("more of that footnote", f"[^1]: a\n\n    {EVIL}\n\n    {EVIL}", Hidden.FOOTNOTE),
    ("a footnote that only code refers to", f"`[^1]`\n\n[^1]: {EVIL}", Hidden.FOOTNOTE),
    ("tag characters", TAGGED, Hidden.TAG_CHARACTER),
    ("variation selectors", f"a{BYTES}", Hidden.VARIATION_SELECTOR),
    ("zero-width characters", BITS, Hidden.ZERO_WIDTH),
    ("bidirectional controls", f"\u202e{EVIL[::-1]}\u202c", Hidden.BIDIRECTIONAL),
    ("a zero-width character as an entity", "a&#x200b;b", Hidden.ZERO_WIDTH),
    ("terminal sequences", "\x1b[8mseen\x1b[0m", Hidden.CONTROL),
    ("an empty place in a formula", f"a $x\\phantom{{{EVIL}}}$ b", Hidden.FORMULA),
    ("white in a formula", f"a $`\\color{{white}}{{{EVIL}}}`$ b", Hidden.FORMULA),
    ("a comment in a formula", f"$$\nx % {EVIL}\n$$", Hidden.FORMULA),
    ("a label in a formula", f"```math\nx \\label{{{EVIL}}}\n```", Hidden.FORMULA),
    ("a formula moved away", f"$$x\\\\[9em] {EVIL}$$", Hidden.FORMULA),
    ("columns of a formula", f"$$\\begin{{array}}{{{EVIL}}}a\\end{{array}}$$", Hidden.FORMULA),
    ("an odd environment", f"$$\\begin {EVIL}$$", Hidden.FORMULA),
    ("a formula in HTML", f"<p>\n$\\hphantom{{{EVIL}}}$\n</p>", Hidden.FORMULA),
    ("a name in a diagram", f"```mermaid\ngraph\n{EVIL}[Seen]\n```", Hidden.DIAGRAM),
    ("a diagram in HTML", f'<pre lang="mermaid">\n{EVIL}\n</pre>', Hidden.ELEMENT),
    ("a diagram by an entity", f"```&#109;ermaid\n{EVIL}\n```", Hidden.DIAGRAM),
    ("a diagram by an escape", f"```\\mermaid\n{EVIL}\n```", Hidden.DIAGRAM),
    ("a diagram with more", f"~~~mermaid,x\n{EVIL}\n~~~", Hidden.DIAGRAM),
    ("a diagram in HTML by an entity", f'<pre lang="&#109;ermaid">{EVIL}</pre>', Hidden.ELEMENT),
    ("a property of a map", f"```geojson\n{EVIL}\n```", Hidden.DIAGRAM),
    ("tiny text", f"<sub><sup><sub><b>{EVIL}</b></sub></sup></sub>", Hidden.ELEMENT),
    ("a bracket of a ruby", f"<ruby>a<rp>{EVIL}</rp></ruby>", Hidden.ELEMENT),
    # Not compared with GitHub's parser: it reads past the end of the entity.
    ("a reference with an entity", f"x [&Hat;a\n{EVIL}] y", Hidden.FOOTNOTE),
]
"""Markdown whose meaning to a person is not its meaning to a program, and what it counts as."""

OLDER_RULES = [
    ("a title after an open bracket", f'[a](b( "{EVIL}") c', Hidden.TITLE),
    ("an address after a form feed", f"[a](\x0c<{EVIL * 30}>)", Hidden.LONG_TARGET),
    ("a title that an escaped mark ends", f'[a](b "{EVIL}\\")', Hidden.TITLE),
    ("a title with a form feed", f'[a](b \x0c"{EVIL}"\x0c)', Hidden.TITLE),
    ("a definition with an open bracket", f"[a]: b( '{EVIL}'\n\nsee [a]", Hidden.TITLE),
    ("a definition's title with an escape", f'[a]: b "{EVIL}\\"\n\nsee [a]', Hidden.TITLE),
    ("a definition that is indented", f"[a]: b\n      [c]: <{EVIL}>", Hidden.DEFINITION),
    ("a title in a line below a definition", f'[a]: b\n    [c](d "{EVIL}")', Hidden.TITLE),
    ("an image below a definition", f"[a]: b\n</b>\n![{EVIL}](c)", Hidden.IMAGE),
    ("an image below a definition and a line", f"[a]: b\n===\n    ![{EVIL}](c)", Hidden.IMAGE),
    ("an image in an item with a blank line", f"1.\n\t\n    ![{EVIL}](c)", Hidden.IMAGE),
    ("a comment in an item with a blank line", f"-\n  \n   \n     <!-- {EVIL} -->", Hidden.COMMENT),
    ("a comment below a wide number", f"123. b\n    <!-- {EVIL} -->", Hidden.COMMENT),
    ("an image below two quotes", f">> b\n    # ![{EVIL}](c)", Hidden.IMAGE),
    ("a comment below an indented mark", f"> b\n    >\n    <!-- {EVIL} -->", Hidden.COMMENT),
    ("a comment after quotes and a tab", f">> > \t<!-- {EVIL} -->", Hidden.COMMENT),
    ("a comment in a note with a tab", f"[^a]\n\n[^a]:>\t  <!-- {EVIL} -->", Hidden.COMMENT),
    (
        "a comment below a note with code",
        f"[^a]\n\n[^a]: ```\n    b\n<!-- {EVIL} -->",
        Hidden.COMMENT,
    ),
    ("an image below code in a note", f"[^a]:-     b\n=\n<b>\n![{EVIL}](c)", Hidden.IMAGE),
    ("a comment that a note seems to end", f"- <!--\n[^a]: <!-->\n\n{EVIL}", Hidden.COMMENT),
    ("a comment in a list below a note", f"- [^a]: b\n    - <!--\n\n{EVIL}", Hidden.COMMENT),
    ("a note with text below an empty line", f"[^a]:\n\n    {EVIL}", Hidden.FOOTNOTE),
    ("a cell below an indented mark", f"b\n    -\n-|\nc|{EVIL}", Hidden.CELL),
    ("a table in a note, its heading outside", f"[^a]: b\n{EVIL}\n    |-", Hidden.FOOTNOTE),
    (
        "a note that one in another was before",
        f"[^b]\n[^a]:[^a]:[^b]:\n[^b]:{EVIL}",
        Hidden.FOOTNOTE,
    ),
    ("a note that goes on after marks", f"[^a]: *--\n{EVIL}", Hidden.FOOTNOTE),
    ("a note that goes on after a number", f"[^a]: b\n    1.\n{EVIL}", Hidden.FOOTNOTE),
    ("a note that goes on after a line", f"[^a]: b\n    2. ---\n{EVIL}", Hidden.FOOTNOTE),
    ("a note with a quote that goes on", f"[^a]: > b\n    > *\n{EVIL}", Hidden.FOOTNOTE),
    ("a note that may go on after tags", f"[^a]: b\n    1.\n    <b>\n{EVIL}", Hidden.FOOTNOTE),
    ("a reference of two lines", f"x [^a\n{EVIL}] y", Hidden.FOOTNOTE),
    ("a reference in another", f"[^a [^b\n{EVIL}] c\n]", Hidden.FOOTNOTE),
    ("an escaped reference of two lines", f"x [\\^a\n{EVIL}] y", Hidden.FOOTNOTE),
    ("a reference with a hidden line", f"[^a <svg>\n</svg> {EVIL}]", Hidden.FOOTNOTE),
    ("a reference with CDATA", f"[^{EVIL}<![CDATA[\n]]]>", Hidden.FOOTNOTE),
    ("a reference with an address", f"[^<http://x]>\n{EVIL}]", Hidden.FOOTNOTE),
    ("a reference with a declaration", f"a<!X[^>\n{EVIL}]", Hidden.FOOTNOTE),
    ("a reference in an address", f"www.a[^1]\n\n[^1]: {EVIL}", Hidden.FOOTNOTE),
    ("a reference with an escape", f"[^1\\)]\n\n[^1]: {EVIL}", Hidden.FOOTNOTE),
    ("a reference with a control character", f"[^1\x1f]\n\n[^1]: {EVIL}", Hidden.FOOTNOTE),
    ("a reference in another reference", f"[^ [^1]]\n\n[^1]: {EVIL}", Hidden.FOOTNOTE),
    ("a reference in an address in marks", f"<ab:[^1]>\n\n[^1]: {EVIL}", Hidden.FOOTNOTE),
    ("a reference in two blocks", f"[^\n> 1]\n\n[^1]: {EVIL}", Hidden.FOOTNOTE),
    ("a second footnote of a name", f"a[^1]\n\n[^1]: b\n\n[^1]: {EVIL}", Hidden.FOOTNOTE),
    ("a footnote around its like", f"a[^1]\n\n[^1]: {EVIL}\n\n    [^1]: b", Hidden.FOOTNOTE),
    ("a footnote with a wide space", f"[^a\u00a0b]: {EVIL}", Hidden.FOOTNOTE),
    ("a footnote after an empty line", f"[^1]: b\n\n    c\n{EVIL}", Hidden.FOOTNOTE),
    ("a footnote with a tag alone", f"[^1]: b\n    <i>\n{EVIL}", Hidden.FOOTNOTE),
    ("a footnote in a list", f"- [^1]: a\n{EVIL}", Hidden.FOOTNOTE),
    ("a footnote in a quotation", f"> [^1]: a\n\t<b>{EVIL}", Hidden.FOOTNOTE),
    ("a footnote at a hidden end", f"a[^1]\n\n[^1]: {EVIL}\n\n<template>", Hidden.FOOTNOTE),
    ("a footnote and what looks like a table", f"[^1]: a\nb|\n-|-\n{EVIL}", Hidden.FOOTNOTE),
    ("a line in such a note", f'a[^1]\n\n[^1]: b|\n-|-\n[d](e\n"{EVIL}")', Hidden.TITLE),
    ("a tag in a declaration", f"a <!x<template>{EVIL}", Hidden.ELEMENT),
    ("a tag in an instruction", f"<?><template>?>{EVIL}", Hidden.INSTRUCTION),
    ("a tag in CDATA", f"<![CDATA[ <!-- a --></b> < <i d='> ]]>{EVIL}", Hidden.DECLARATION),
    ("a comment in CDATA", f"<![CDATA[><!--]]>{EVIL}", Hidden.DECLARATION),
    ("CDATA in small letters", f"a <![cdata[{EVIL}]]>", Hidden.DECLARATION),
    ("a comment that HTML ends early", f"<!--><template>-->{EVIL}", Hidden.COMMENT),
    ("a mark of byte order", f"\ufeff<!-- {EVIL} -->", Hidden.COMMENT),
    ("an element in a hidden one", f"<script><svg></script>{EVIL}", Hidden.ELEMENT),
    ("a table in a hidden element", f"<object><table></object>{EVIL}", Hidden.ELEMENT),
    ("a name with a quotation mark", f"<div>\n<b/'='>{EVIL}", Hidden.ELEMENT),
    ("a tag with an odd space", f"<svg></svg\x0b>{EVIL}", Hidden.ELEMENT),
    ("a tag that old Markdown does not know", f'<search> [a](b "{EVIL}")', Hidden.TITLE),
    ("a tag with a wide space", f"<b\u00a0c='[x](y \"'> {EVIL} \")", Hidden.TITLE),
    ("a declaration in small letters", f'<!x> [a](b "{EVIL}")', Hidden.TITLE),
    ("a tag alone below a quotation", f"> a\n<b>\n<i {EVIL}", Hidden.ELEMENT),
    ("a tag in the description of an image", f"![^<template>](a) {EVIL}", Hidden.IMAGE),
    ("code that an address contains", f"http://x.example/`<!-- {EVIL} -->`", Hidden.COMMENT),
    ("such code after brackets", f"`[` \\[ <a:]> [c] *d* www.e`<!-- {EVIL} -->`", Hidden.COMMENT),
    ("code whose beginning GitHub forgets", f"``a` `b`<!-- {EVIL} -->`", Hidden.COMMENT),
    ("an escape that an address contains", f"www.x\\<b title='{EVIL}'>", Hidden.ATTRIBUTE),
    ("a cell too many", f"| a |\n| - |\n| b | {EVIL} |", Hidden.CELL),
    ("a cell too many below a plain line", f"a\n-|\nb | {EVIL}", Hidden.CELL),
    ("a cell too many below an indented line", f"a\n    b|c\n-|-\nd|e|{EVIL}", Hidden.CELL),
    ("a cell after a wide space", f"a||\n-|-\n\u00a0||{EVIL}", Hidden.CELL),
    ("a cell below a quotation in a note", f"[^1]:\n    >\na\n-|\nb|{EVIL}", Hidden.CELL),
    ("a cell below a tag", f"a\n<b>\n-|\nc|{EVIL}", Hidden.CELL),
    ("a comment above what looks like a table", f"<!--{EVIL}\n|-", Hidden.COMMENT),
    ("a line after a table", f'|a|\n|-|\n|\n[b](c\n"{EVIL}")', Hidden.TITLE),
    ("a line where no table is", f'|\n-|\na\n-|\n[b](c\n"{EVIL}")', Hidden.TITLE),
    ("a line below an underlined heading", f'|a|\n--\n[b](c\n"{EVIL}")', Hidden.TITLE),
    ("a line in a list", f'a||\n- |-\n[b](c\n"{EVIL}")', Hidden.TITLE),
]
"""Places that only GitHub's parser hides, whose rules are older than those of other parsers."""


@pytest.mark.parametrize(
    ("markdown", "kind"),
    [(markdown, kind) for _, markdown, kind in HIDING_PLACES + OLDER_RULES],
    ids=[name for name, _, _ in HIDING_PLACES + OLDER_RULES],
)
def test_nothing_is_read_from_a_hiding_place(markdown: str, kind: Hidden) -> None:
    sight = visible_text(f"Before.\n\n{markdown}")
    assert EVIL not in sight.text
    assert sight.text.startswith("Before.")
    assert visible(sight.text) == sight.text
    assert sight.counts[kind] > 0


# GitHub's own parser, cmark-gfm, and a sanitizer after it that removes every tag

CMARK = import_module("cmarkgfm.cmark")
OPTIONS = (
    CMARK.Options.CMARK_OPT_UNSAFE
    | CMARK.Options.CMARK_OPT_FOOTNOTES
    | CMARK.Options.CMARK_OPT_GITHUB_PRE_LANG
)
EXTENSIONS = ["table", "autolink", "tagfilter", "strikethrough", "tasklist"]


def shown_on_github(markdown: str) -> str:
    page = CMARK.markdown_to_html_with_extensions(markdown, OPTIONS, EXTENSIONS)
    return html.unescape(nh3.clean(page, tags=set(), clean_content_tags={*UNSEEN_ELEMENTS}))


@pytest.mark.parametrize(
    "markdown",
    [markdown for _, markdown, _ in OLDER_RULES],
    ids=[name for name, _, _ in OLDER_RULES],
)
def test_github_hides_what_only_its_rules_hide(markdown: str) -> None:
    assert EVIL not in shown_on_github(f"Before.\n\n{markdown}")


WORD = "\0"
PARTS = [
    *("<!-- ", "-->", "<div hidden>", "</div>", "<b>", "</b>", "<?", "?>", "<!A ", "<!x", "<", ">"),
    *("<![CDATA[", "]]>", "<svg>", "</svg>", "<script>", "</script>", "<pre>", "<table>", "<p>\n"),
    *(
        "[a]",
        "[a]: b",
        "(b)",
        "![",
        "[",
        "]",
        "](",
        "(",
        ")",
        '"',
        "'",
        "=",
        "[^1]",
        "[^1]: ",
        "[^",
    ),
    *('[a](b "', "[a](b '", "[a](b (", "[a](<b", '[a]: b "', "[a]: <", "[a]: b (", "[^2]: ", "^"),
    *("\n", "\n\n", "\n\n    ", "\n    ", "  ", "\t", " ", "  \n", "\\", "&lt;", "&#91;"),
    *(
        "- ",
        "1. ",
        "2) ",
        "> ",
        "# ",
        "\n---\n",
        "\n===\n",
        "```",
        "~~~",
        "`",
        "``",
        "*",
        "**",
        "_",
    ),
    *("|", "|-|", "\n-|-\n", "\n|-|\n", "| a | b |\n| - | - |\n", "\n-|\n", ":-", "a||", "\n- "),
    *(
        "http://x.y/",
        "www.x",
        "<http://x.y/]>",
        "http://x.y/`",
        "www.x\\",
        "$",
        "$$",
        "~~",
        "\u00a0",
    ),
    *(f"<!-- {WORD} -->", f'[a](b "{WORD}")', f"![{WORD}](b)", f"[a]: {WORD}\n", f"[^a\n{WORD}]"),
    *(f"\n[^1]: {WORD}\n", f"\n| a |\n|-|\n| b | {WORD} |\n", f'<b title="{WORD}">', f"`{WORD}`"),
    *(
        f"\n    {WORD}\n",
        f"\n\n{WORD}\n\n",
        f"<?{WORD}?>",
        f"[{WORD}][a]",
        f"\n``` \n{WORD}\n```\n",
    ),
    *(WORD, f" {WORD} ", f"{WORD}\n", f"\n{WORD}", f"*{WORD}*", f"\n- {WORD}\n", f"\n> {WORD}\n"),
]
NUMBERED = re.compile("zq[0-9]+q")
NOT_TEXT = re.compile(r"\([^)\n]*\)|(?m:^[-+*> \t0-9.)^:[\]ab]*(?:```|~~~).*$)")
"""The addresses of links, and the language of code."""


CONTAINERS = [
    *(
        "",
        " ",
        "   ",
        "    ",
        "     ",
        "        ",
        "\t",
        " \t",
        "- ",
        "-",
        "-   ",
        "-\t",
        "* ",
        "1. ",
    ),
    *(
        "1.",
        "1.\t",
        "2. ",
        "12) ",
        "  3. ",
        "> ",
        ">",
        ">> ",
        " > ",
        ">\t",
        "[^a]: ",
        "[^a]:",
        "[^b]:",
    ),
]
CONTENTS = [
    *(WORD, f"{WORD} x", f"<!-- {WORD} -->", f"![{WORD}](c)", f"# {WORD}", f'[q]: /u "{WORD}"'),
    *("", "```", "~~~", "---", "***", "===", "[q]", "[^a]", "[^b]", "a|b", "-|-", "|-|-|", "<b>"),
    *("<div>", "</b>", "<!--", "-->", "`", f"`{WORD}`", f"<{WORD}", f"{WORD}>", "[^b", f"{WORD}]"),
    *("[x](", "\\", "<svg>", "</svg>", "<pre>", "<details>", "$$", f"${WORD}$"),
]
LINES = st.tuples(
    st.lists(st.sampled_from(CONTAINERS), max_size=3).map("".join), st.sampled_from(CONTENTS)
).map("".join)
TEXTS = st.lists(st.sampled_from(PARTS), max_size=16).map("".join) | st.lists(
    LINES, max_size=8
).map("\n".join)


@given(TEXTS)
def test_no_word_is_read_that_github_hides(text: str) -> None:
    pieces = re.split(f"({WORD})", text)
    words = [f"zq{at}q" if piece == WORD else piece for at, piece in enumerate(pieces)]
    markdown = "".join(words)
    try:
        shown = shown_on_github(markdown)
    except UnicodeDecodeError:
        # The parser cut a reference inside a character.
        reject()
    read = NUMBERED.findall(NOT_TEXT.sub("", visible_text(markdown).text))
    assert {*read} <= {*NUMBERED.findall(shown)}


SHOWN = [
    "Some *text*, **bold**, ~~gone~~, `code` and ``a ` b``.\nA second line, @ada and #3.",
    "# One\n\n###### Six",
    "- a\n- b\n  - c\n\n  more\n- [ ] to do",
    "- a\n  - b\n    1. c\n    2. d\n\n3) e",
    "7. seven\n8. eight",
    "> a quote\n>\n> > and one in it",
    "```py\nif a < b:\n\n    return '<!-- shown -->'\n```",
    "````\n```\nin a fence\n```\n````",
    "| a | b |\n| --- | --- |\n| 1 | `x` |\n| a \\| b | |",
    "H<sub>2</sub>O, <kbd>Ctrl</kbd>, a<br>b",
    "$E = mc^2$, $`\\frac{a}{b}`$, and $$\\begin{cases} 1 & x \\\\ 2 & y \\end{cases}$$",
    "```math\n\\sqrt{x} \\leq 10\\%\n```",
    "It costs $5 or $6; `$A\\b` and `c\\d$`, $HOME\\bin and $PATH, 100% of $it.",
    "x<sub>i</sub> y<sub>j<sup>2</sup></sub> z<sub>k<sub>3</sub></sub>",
    "<sup>a<sup>\n\n<sup>b</sup>",
    "Five &lt; six, \\*stars\\* and &amp;amp;",
    "See [the docs](https://docs.example/a?b=c#d) and <https://auto.example/x>.",
    "A note.[^1]\n\n[^1]: What it says.",
    "<details>\n<summary>Log</summary>\n\n```\ntrace\n```\n\n</details>",
    "a\n\n___\n\nb",
    "This List<String> is text: 1 < 2, x <- y, <!-- is not closed here",
    "www.x_y`<!-- shown -->` and a://b`<b>` and www.x.y and [ http://x.y/`<!-- shown -->`.",
    "[a](b (c(d)) e [http://x.y](z)",
    f"[a]({'(' * 40}b)",
    "日本語, العربية, עברית, naïve, 🎉",
]


@pytest.mark.parametrize("markdown", SHOWN)
def test_what_a_person_sees_stays_word_for_word(markdown: str) -> None:
    sight = visible_text(markdown)
    expected = markdown.replace("List<String>", "List").replace("| |", "|  |")
    assert squeezed(sight.text) == squeezed(expected)


def squeezed(text: str) -> list[str]:
    return [line.rstrip() for line in text.split("\n") if line.strip()]


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        ("setext\n===", "# setext"),
        ("    indented\n    code", "```\nindented\ncode\n```"),
        ("***", "___"),
        ("~~~\n```\n~~~", "````\n```\n````"),
        ("see [a]\n\n[a]: http://x.example", "see [a](http://x.example)"),
        ("[a](<b c>)", "[a](b%20c)"),
        ("[a](b$c)$", "[a](b%24c)$"),
        ("![a](b) c", "[image] c"),
        ("<picture><img src=a></picture>", "[image]"),
        ("<pre lang='py'>\na\n</pre>", "<pre>\na\n</pre>"),
        ("<section><p class='a'>b</p></section>", "<p>b</p>"),
        ("<b\nhidden>c</b> d", " d".strip()),
        ("<br hidden>a", "a"),
        ("- <!-- a -->\n- b", "-\n- b"),
        ("# <!-- a -->\n\n> <!-- b -->\n\nc", "c"),
        ("<!-- a --> <!-- b -->", ""),
        ('[a]: b "c\nd"\n\nsee [a]', "see [a](b)"),
        ("    a\n-|\nb|c", "```\na\n```\n\n-|\nb|c"),
        ("[a](javascript:alert(1))", "[a](javascript:alert%281%29)"),
        ("👨\u200d👩\u200d👧 ❤\ufe0f", "👨👩👧 ❤"),
        ("<!-- a\n-->\nb", "b"),
        ("a <b and c", "a <b and c"),
        ("<p>\na < b\n</p>", "<p>\na < b\n</p>"),
        ("[^1]: [^2]: a\n\nb[^1] [^2]", "b[^1] [^2]"),
        ("<details open>\nb\n</details>", "<details>\nb\n</details>"),
        ("x[^A]\n\n[^a]: b\n    c", "x[^A]\n\n[^a]: b\n    c"),
        ("[^a]: b\n  \n    c", "```\nc\n```"),
        ("> - <pre>\n>", "> - <pre>"),
        ("`a`[](b)", "`a`"),
        ("(at www.a.example/b&amp;).", "(at www.a.example/b&amp;)."),
        ("<div hidden>\n\n```\na\n```\n\n---\n\n[a](b)\n\n</div>", ""),
        ("[a <span hidden>](b) c", ""),
        ("", ""),
    ],
)
def test_what_is_seen_by_example(markdown: str, text: str) -> None:
    assert visible_text(markdown).text == text


def test_what_a_click_shows_stays_and_is_counted() -> None:
    sight = visible_text("<details>\n\nlog\n\n</details>\n\n[a](http://x.example)")
    assert sight.text == "<details>\n\nlog\n\n</details>\n\n[a](http://x.example)"
    assert sight.counts == {Hidden.COLLAPSED: 1, Hidden.TARGET: 1}


def test_a_plain_text_counts_nothing() -> None:
    assert visible_text("Mend it.\n\n- really").counts == {}


def test_of_a_huge_text_the_beginning_is_read_and_the_rest_counted() -> None:
    sight = visible_text("word é\n" * 20_000)
    over = 20_000 * 8 - MOST_BYTES
    assert sight.text.endswith(f"\n\n[... {over} bytes omitted]")
    assert len(sight.text.encode()) < MOST_BYTES + 100
    assert sight.counts == {Hidden.CUT: over}


def test_what_hides_something_again_and_again_is_shown_as_code() -> None:
    sight = visible_text("<" * 9 + "!-- a -->" * 9)
    assert sight.text.startswith("```\n<")
    assert visible_text(sight.text).text == sight.text


def test_what_hides_cannot_hide_that_something_was_cut() -> None:
    assert visible_text("<!--" + "x" * MOST_BYTES).text == "[... 4 bytes omitted]"


@pytest.mark.parametrize(
    "piece",
    ["<div>\n<aaaa", "<", "<a b='", "[", "[a](", "*a_", "`a``", "> - ", "&#x", "[^a]: b\n", "<!--"],
)
def test_a_text_made_to_take_long_does_not(piece: str) -> None:
    assert len(visible_text(piece + piece[-1] * 60_000).text) < 2 * MOST_BYTES
    assert len(visible_text(piece * 4000).text) < 2 * MOST_BYTES


def test_of_a_text_with_too_many_brackets_the_beginning_is_read() -> None:
    sight = visible_text("[" * 5000)
    assert sight.counts == {Hidden.CUT: 1001}
    assert sight.text.startswith("[" * 3999 + "\n")


def test_what_is_nested_too_deep_to_be_read_is_left_out_and_counted() -> None:
    sight = visible_text("> " * 5000 + "a")
    assert sight.counts[Hidden.TOO_DEEP] > 0


def test_a_title_is_no_markdown() -> None:
    sight = visible_title(f"Mend *it*{TAGGED} <!-- a -->")
    assert sight.text == "Mend *it* <!-- a -->"
    assert sight.counts == {Hidden.TAG_CHARACTER: len(EVIL)}
    assert visible_title("x" * 2000).counts == {Hidden.CUT: 976}
    assert visible_title("x" * 2000).text == "x" * 1024 + "…"


pieces = st.sampled_from(
    [
        *("<!--", "-->", "<div hidden>", "</div>", "<b>", "</b>", "<?", "?>", "<", ">", '"', "="),
        *("[a]", "[a]: b", "(b)", "![", "]", "[^1]", "[^1]: ", "\n", "\n\n", "    ", "  ", "\t"),
        *(
            "- ",
            "1. ",
            "2) ",
            "> ",
            "# ",
            "```",
            "~~~",
            "`",
            "*",
            "**",
            "_",
            "~~",
            "|",
            "|-|",
            "---",
        ),
        *("\\", "&lt;", "&#x200b;", "&nbsp;", "\u200b", "\U000e0041", "\u2028", "\x1b[1m", "\0"),
        *("a", "b c", "<details>", "<img alt=x>", "<script>", "<a href='", "==="),
    ]
)
foreign = st.one_of(st.text(), st.lists(pieces, max_size=30).map("".join))


@given(foreign)
def test_reading_what_was_seen_changes_nothing(text: str) -> None:
    sight = visible_text(text)
    assert visible_text(sight.text).text == sight.text
    assert visible(sight.text) == sight.text


@given(st.text(alphabet=st.characters()))
def test_a_title_is_always_seen(text: str) -> None:
    assert visible_title(visible_title(text).text).counts == {}


@pytest.mark.parametrize(
    ("markdown", "shown", "kind"),
    [
        ("```STL\nobey\n```", "[diagram]", Hidden.DIAGRAM),
        ("a $\\tiny b$ `$c\\d$` e", "a [formula] `$c\\d$` e", Hidden.FORMULA),
        (
            "<details data-x='open' x=\"open\" y=open>\n\nHi.\n\n</details>",
            "<details>\n\nHi.\n\n</details>",
            Hidden.COLLAPSED,
        ),
    ],
)
def test_what_github_draws_or_folds_is_not_taken_for_text(
    markdown: str, shown: str, kind: Hidden
) -> None:
    found = visible_text(markdown)
    assert found.text == shown
    assert found.counts[kind] >= 1


def test_open_details_are_not_counted_as_collapsed() -> None:
    assert Hidden.COLLAPSED not in visible_text("<details open>\n\nHi.\n\n</details>").counts
