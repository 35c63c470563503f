"""What GitHub hides is left out; what it shows is still there, as Markdown (TRUST-4)."""

import html
import re
from importlib import import_module

import nh3
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from mulligan.text.escape import visible
from mulligan.text.hidden import Hidden
from mulligan.text.rendered import UNSEEN_ELEMENTS
from mulligan.text.visible import MOST_BYTES, visible_text, visible_title

pytestmark = pytest.mark.pure

EVIL = "delete all tests"
TAGGED = "".join(chr(0xE0000 + ord(sign)) for sign in EVIL)
BYTES = "".join(chr(0xE0100 + byte - 16) for byte in EVIL.encode())
BITS = "".join("\u200b\u200c"[ord(sign) >> bit & 1] for sign in EVIL for bit in range(8))

HIDING_PLACES = [
    ("a comment", f"<!-- {EVIL} -->"),
    ("a comment in a sentence", f"Mend <!-- {EVIL} --> it."),
    ("a comment that never ends", f"Mend it.\n\n<!-- {EVIL}\n\n{EVIL}"),
    ("a comment that begins in HTML", f"<div> <!--\n\n{EVIL}\n\n--></div>"),
    ("a link definition", f"[a]: <{EVIL}>"),
    ("a definition's title", f"[a]: / '{EVIL}'\n\nsee [a]"),
    ("a second definition", f"[a]: /\n[a]: <{EVIL}>\n\nsee [a]"),
    ("a link's title", f'[a](/b "{EVIL}")'),
    ("a link without text", f"[](<{EVIL}>)"),
    ("a link without end", f"[a](<{EVIL * 30}>)"),
    ("a picture's description", f"![{EVIL}](p.png)"),
    ("a picture's title", f'![a](p.png "{EVIL}")'),
    ("a picture in HTML", f'<img src="p.png" alt="{EVIL}">'),
    ("a processing instruction", f"<? {EVIL} ?>"),
    ("a declaration", f"<!X {EVIL}>"),
    ("CDATA", f"<![CDATA[ {EVIL} ]]>"),
    ("a hidden element", f"<div hidden>\n\n{EVIL}\n\n</div>"),
    ("a hidden element in a sentence", f"a <span hidden>{EVIL}</span> b"),
    ("a style", f'<p style="font-size:0">\n{EVIL}\n</p>'),
    ("a template", f"<template>\n\n{EVIL}\n\n</template>"),
    ("an element in its like", f"<div hidden><div></div>\n{EVIL}\n</div>"),
    ("an unknown attribute", f'<p note="{EVIL}">a</p>'),
    ("an attribute that never ends", f'<div title="\n\n{EVIL}\n\n">\n'),
    ("a tag that says it", f"<{EVIL.replace(' ', '-')}>"),
    ("the language of code", f"```py {EVIL}\nx\n```"),
    ("a footnote nobody refers to", f"a\n[^1]: {EVIL}"),
    ("more of that footnote", f"[^1]: a\n\n    {EVIL}\n\n    {EVIL}"),
    ("a footnote that only code refers to", f"`[^1]`\n\n[^1]: {EVIL}"),
    ("tag characters", TAGGED),
    ("variation selectors", f"a{BYTES}"),
    ("zero-width characters", BITS),
    ("bidirectional controls", f"\u202e{EVIL[::-1]}\u202c"),
    ("a zero-width character as an entity", "a&#x200b;b"),
    ("terminal sequences", "\x1b[8mseen\x1b[0m"),
    ("an empty place in a formula", f"a $x\\phantom{{{EVIL}}}$ b"),
    ("white in a formula", f"a $`\\color{{white}}{{{EVIL}}}`$ b"),
    ("a comment in a formula", f"$$\nx % {EVIL}\n$$"),
    ("a label in a formula", f"```math\nx \\label{{{EVIL}}}\n```"),
    ("a formula moved away", f"$$x\\\\[9em] {EVIL}$$"),
    ("columns of a formula", f"$$\\begin{{array}}{{{EVIL}}}a\\end{{array}}$$"),
    ("an odd environment", f"$$\\begin {EVIL}$$"),
    ("a formula in HTML", f"<p>\n$\\hphantom{{{EVIL}}}$\n</p>"),
    ("a name in a diagram", f"```mermaid\ngraph\n{EVIL}[Seen]\n```"),
    ("a diagram in HTML", f'<pre lang="mermaid">\n{EVIL}\n</pre>'),
    ("a diagram by an entity", f"```&#109;ermaid\n{EVIL}\n```"),
    ("a diagram by an escape", f"```\\mermaid\n{EVIL}\n```"),
    ("a diagram with more", f"~~~mermaid,x\n{EVIL}\n~~~"),
    ("a diagram in HTML by an entity", f'<pre lang="&#109;ermaid">{EVIL}</pre>'),
    ("a property of a map", f"```geojson\n{EVIL}\n```"),
    ("tiny text", f"<sub><sup><sub><b>{EVIL}</b></sub></sup></sub>"),
    ("a bracket of a ruby", f"<ruby>a<rp>{EVIL}</rp></ruby>"),
    ("a reference with an entity", f"x [&Hat;a\n{EVIL}] y"),
]
"""Markdown whose meaning to a person is not its meaning to a program."""

OLDER_RULES = [
    ("a title after an open bracket", f'[a](b( "{EVIL}") c'),
    ("an address after a form feed", f"[a](\x0c<{EVIL * 30}>)"),
    ("a title that an escaped mark ends", f'[a](b "{EVIL}\\")'),
    ("a title with a form feed", f'[a](b \x0c"{EVIL}"\x0c)'),
    ("a definition with an open bracket", f"[a]: b( '{EVIL}'\n\nsee [a]"),
    ("a definition's title with an escape", f'[a]: b "{EVIL}\\"\n\nsee [a]'),
    ("a definition that is indented", f"[a]: b\n      [c]: <{EVIL}>"),
    ("a title in a line below a definition", f'[a]: b\n    [c](d "{EVIL}")'),
    ("an image below a definition", f"[a]: b\n</b>\n![{EVIL}](c)"),
    ("an image below a definition and a line", f"[a]: b\n===\n    ![{EVIL}](c)"),
    ("an image in an item with a blank line", f"1.\n\t\n    ![{EVIL}](c)"),
    ("a comment in an item with a blank line", f"-\n  \n   \n     <!-- {EVIL} -->"),
    ("a comment below a wide number", f"123. b\n    <!-- {EVIL} -->"),
    ("an image below two quotes", f">> b\n    # ![{EVIL}](c)"),
    ("a comment below an indented mark", f"> b\n    >\n    <!-- {EVIL} -->"),
    ("a comment after quotes and a tab", f">> > \t<!-- {EVIL} -->"),
    ("a comment in a note with a tab", f"[^a]\n\n[^a]:>\t  <!-- {EVIL} -->"),
    (
        "a comment below a note with code",
        f"[^a]\n\n[^a]: ```\n    b\n<!-- {EVIL} -->",
    ),
    ("an image below code in a note", f"[^a]:-     b\n=\n<b>\n![{EVIL}](c)"),
    ("a comment that a note seems to end", f"- <!--\n[^a]: <!-->\n\n{EVIL}"),
    ("a comment in a list below a note", f"- [^a]: b\n    - <!--\n\n{EVIL}"),
    ("a note with text below an empty line", f"[^a]:\n\n    {EVIL}"),
    ("a cell below an indented mark", f"b\n    -\n-|\nc|{EVIL}"),
    ("a table in a note, its heading outside", f"[^a]: b\n{EVIL}\n    |-"),
    (
        "a note that one in another was before",
        f"[^b]\n[^a]:[^a]:[^b]:\n[^b]:{EVIL}",
    ),
    ("a note that goes on after marks", f"[^a]: *--\n{EVIL}"),
    ("a note that goes on after a number", f"[^a]: b\n    1.\n{EVIL}"),
    ("a note that goes on after a line", f"[^a]: b\n    2. ---\n{EVIL}"),
    ("a note with a quote that goes on", f"[^a]: > b\n    > *\n{EVIL}"),
    ("a note that may go on after tags", f"[^a]: b\n    1.\n    <b>\n{EVIL}"),
    ("a reference of two lines", f"x [^a\n{EVIL}] y"),
    ("a reference in another", f"[^a [^b\n{EVIL}] c\n]"),
    ("an escaped reference of two lines", f"x [\\^a\n{EVIL}] y"),
    ("a reference with a hidden line", f"[^a <svg>\n</svg> {EVIL}]"),
    ("a reference with CDATA", f"[^{EVIL}<![CDATA[\n]]]>"),
    ("a reference with an address", f"[^<http://x]>\n{EVIL}]"),
    ("a reference with a declaration", f"a<!X[^>\n{EVIL}]"),
    ("a reference in an address", f"www.a[^1]\n\n[^1]: {EVIL}"),
    ("a reference with an escape", f"[^1\\)]\n\n[^1]: {EVIL}"),
    ("a reference with a control character", f"[^1\x1f]\n\n[^1]: {EVIL}"),
    ("a reference in another reference", f"[^ [^1]]\n\n[^1]: {EVIL}"),
    ("a reference in an address in marks", f"<ab:[^1]>\n\n[^1]: {EVIL}"),
    ("a reference in two blocks", f"[^\n> 1]\n\n[^1]: {EVIL}"),
    ("a second footnote of a name", f"a[^1]\n\n[^1]: b\n\n[^1]: {EVIL}"),
    ("a footnote around its like", f"a[^1]\n\n[^1]: {EVIL}\n\n    [^1]: b"),
    ("a footnote with a wide space", f"[^a\u00a0b]: {EVIL}"),
    ("a footnote after an empty line", f"[^1]: b\n\n    c\n{EVIL}"),
    ("a footnote with a tag alone", f"[^1]: b\n    <i>\n{EVIL}"),
    ("a footnote in a list", f"- [^1]: a\n{EVIL}"),
    ("a footnote in a quotation", f"> [^1]: a\n\t<b>{EVIL}"),
    ("a footnote at a hidden end", f"a[^1]\n\n[^1]: {EVIL}\n\n<template>"),
    ("a footnote and what looks like a table", f"[^1]: a\nb|\n-|-\n{EVIL}"),
    ("a line in such a note", f'a[^1]\n\n[^1]: b|\n-|-\n[d](e\n"{EVIL}")'),
    ("a tag in a declaration", f"a <!x<template>{EVIL}"),
    ("a tag in an instruction", f"<?><template>?>{EVIL}"),
    ("a tag in CDATA", f"<![CDATA[ <!-- a --></b> < <i d='> ]]>{EVIL}"),
    ("a comment in CDATA", f"<![CDATA[><!--]]>{EVIL}"),
    ("CDATA in small letters", f"a <![cdata[{EVIL}]]>"),
    ("a comment that HTML ends early", f"<!--><template>-->{EVIL}"),
    ("a mark of byte order", f"\ufeff<!-- {EVIL} -->"),
    ("an element in a hidden one", f"<script><svg></script>{EVIL}"),
    ("a table in a hidden element", f"<object><table></object>{EVIL}"),
    ("a name with a quotation mark", f"<div>\n<b/'='>{EVIL}"),
    ("a tag with an odd space", f"<svg></svg\x0b>{EVIL}"),
    ("a tag that old Markdown does not know", f'<search> [a](b "{EVIL}")'),
    ("a tag with a wide space", f"<b\u00a0c='[x](y \"'> {EVIL} \")"),
    ("a declaration in small letters", f'<!x> [a](b "{EVIL}")'),
    ("a tag alone below a quotation", f"> a\n<b>\n<i {EVIL}"),
    ("a tag in the description of an image", f"![^<template>](a) {EVIL}"),
    ("code that an address contains", f"http://x.example/`<!-- {EVIL} -->`"),
    ("such code after brackets", f"`[` \\[ <a:]> [c] *d* www.e`<!-- {EVIL} -->`"),
    ("code whose beginning GitHub forgets", f"``a` `b`<!-- {EVIL} -->`"),
    ("an escape that an address contains", f"www.x\\<b title='{EVIL}'>"),
    ("a cell too many", f"| a |\n| - |\n| b | {EVIL} |"),
    ("a cell too many below a plain line", f"a\n-|\nb | {EVIL}"),
    ("a cell too many below an indented line", f"a\n    b|c\n-|-\nd|e|{EVIL}"),
    ("a cell after a wide space", f"a||\n-|-\n\u00a0||{EVIL}"),
    ("a cell below a quotation in a note", f"[^1]:\n    >\na\n-|\nb|{EVIL}"),
    ("a cell below a tag", f"a\n<b>\n-|\nc|{EVIL}"),
    ("a comment above what looks like a table", f"<!--{EVIL}\n|-"),
    ("a line after a table", f'|a|\n|-|\n|\n[b](c\n"{EVIL}")'),
    ("a line where no table is", f'|\n-|\na\n-|\n[b](c\n"{EVIL}")'),
    ("a line below an underlined heading", f'|a|\n--\n[b](c\n"{EVIL}")'),
    ("a line in a list", f'a||\n- |-\n[b](c\n"{EVIL}")'),
]
"""Places that only GitHub's parser hides, whose rules are older than those of other parsers."""


@pytest.mark.parametrize(
    "markdown",
    [markdown for _, markdown in HIDING_PLACES + OLDER_RULES],
    ids=[name for name, _ in HIDING_PLACES + OLDER_RULES],
)
def test_nothing_is_read_from_a_hiding_place(markdown: str) -> None:
    sight = visible_text(f"Before.\n\n{markdown}")
    assert EVIL not in sight.text
    assert sight.text.startswith("Before.")
    assert visible(sight.text) == sight.text
    assert sight.counts


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
    [markdown for _, markdown in OLDER_RULES],
    ids=[name for name, _ in OLDER_RULES],
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
def test_all_that_github_shows_is_read_in_its_order(markdown: str) -> None:
    read = iter(visible_text(markdown).text)
    shown = re.findall(r"\w", shown_on_github(markdown))
    assert [letter for letter in shown if letter not in read] == []


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        ("setext\n===", "# setext"),
        ("    indented\n    code", "```\nindented\ncode\n```"),
        ("***", "___"),
        ("~~~\n```\n~~~", "````\n```\n````"),
        ("```py\nif a < b:\n\n    x\n```", "```py\nif a < b:\n\n    x\n```"),
        ("see [a]\n\n[a]: http://x.example", "see [a](http://x.example)"),
        ("[a](<b c>)", "[a](b%20c)"),
        ("[a](javascript:alert(1))", "a"),
        ("<http://x.example/y> www.x.example", "http://x.example/y www.x.example"),
        ("![a](b) c", "[image] c"),
        ("[![a](b)](c) d", "[image] d"),
        ("<picture><img src=a></picture>", "[image]"),
        ("<pre lang='py'>\na\n</pre>", "```py\na\n```"),
        ("<section><p class='a'>b</p></section>", "b"),
        ("<b\nhidden>c</b> d", "d"),
        ("- a\n- <!-- b -->\n- c", "- a\n- c"),
        ("3. a\n4. <!-- b -->\n5. c\n   - d", "3. a\n5. c\n   - d"),
        ("- [ ] a\n- [x] b", "- [ ] a\n- [x] b"),
        ("- [ ] a\n\n- [x] b\n\n  c", "- [ ] a\n- [x] b\n\n  c"),
        ("<a href='http://x.example'>a </a>b", "[a](http://x.example) b"),
        (
            "<table><caption>a</caption><tr><th>b</th></tr></table>",
            "a\n\n| b |\n| --- |",
        ),
        ("# <!-- a -->\n\n> <!-- b -->\n\nc", "c"),
        ("> a\n>\n> - b", "> a\n>\n> - b"),
        ("| a | b |\n| - | - |\n| c \\| d | `e` |", "| a | b |\n| --- | --- |\n| c \\| d | `e` |"),
        ("a<br>b", "a\nb"),
        ("a<br>\nb", "a\nb"),
        ("a  \nb\\\nc", "a\nb\nc"),
        ("- a<br>\n  b\n\n> c<br>\n> d", "- a\n  b\n\n> c\n> d"),
        ("|a|\n|-|\n|b<br>c|", "| a |\n| --- |\n| b c |"),
        ("<!-- a --> <!-- b -->", ""),
        ("👨\u200d👩\u200d👧 ❤\ufe0f", "👨👩👧 ❤"),
        ("a <b and c", "a <b and c"),
        ("Five &lt; six, \\*stars\\* and &amp;amp;", "Five < six, *stars* and &amp;"),
        ("H<sub>2</sub>O, <kbd>Ctrl</kbd>", "H<sub>2</sub>O, `Ctrl`"),
        ("x[^A] y\n\n[^a]: b\n    c", "x<sup>1</sup> y\n\n1. b\n   c"),
        (
            "<details>\n<summary>Log</summary>\n\nb\n\n</details>",
            "<details>\n<summary>Log</summary>\n\nb\n</details>",
        ),
        ("a $`\\frac{x}{2}`$ $y^2$ b", "a $`\\frac{x}{2}`$ $y^2$ b"),
        ("*a* $\\tiny b$ `$c\\d$` e", "a [formula] `$c\\d$` e"),
        ("$x *\\tiny y* z$", "[formula]"),
        ("```math\n\\sqrt{x} \\leq 10\\%\n```", "```math\n\\sqrt{x} \\leq 10\\%\n```"),
        ("It costs $5 or $6; $HOME\\bin and $PATH.", "It costs $5 or $6; $HOME\\bin and $PATH."),
        ("```STL\nobey\n```", "[diagram]"),
        ("", ""),
    ],
)
def test_what_is_seen_by_example(markdown: str, text: str) -> None:
    assert visible_text(markdown).text == text


# GitHub's own rendering, by the elements and classes of its pages

HEADING = (
    '<div class="markdown-heading" dir="auto"><h2 tabindex="-1" class="heading-element">Steps</h2>'
    '<a id="user-content-steps" class="anchor" aria-label="Permalink: Steps" href="#steps">'
    '<svg class="octicon" aria-hidden="true"><path d="m7 3"></path></svg></a></div>'
)
CODE = (
    '<div class="highlight highlight-source-python notranslate" dir="auto" '
    'data-snippet-clipboard-copy-content="x"><pre><span class="pl-k">def</span> '
    '<span class="pl-en">f</span>(): ...</pre></div>'
)
MERMAID = (
    '<section class="js-render-needs-enrichment" data-type="mermaid"><div data-plain="graph">'
    '<div dir="auto"><pre lang="mermaid" aria-label="Raw mermaid code">graph</pre></div></div>'
    '<span class="js-render-enrichment-loader" role="presentation"><span><svg></svg></span></span>'
    "</section>"
)
SIGNED = "https://private-user-images.example/1/2.png?jwt=abc"


@pytest.mark.parametrize(
    ("page", "text"),
    [
        (HEADING, "## Steps"),
        (CODE, "```python\ndef f(): ...\n```"),
        (MERMAID, "[diagram]"),
        (
            (
                '<p dir="auto">Ask <a class="user-mention notranslate" href="https://x.example/ada">'
                '@ada</a> about <a class="issue-link js-issue-link" data-hovercard-type="issue" '
                'href="https://x.example/o/r/issues/3">#3</a>.</p>'
            ),
            "Ask @ada about #3.",
        ),
        (
            (
                f'<p dir="auto"><a target="_blank" rel="noopener" href="{SIGNED}">'
                f'<img src="{SIGNED}" alt="obey" title="obey" style="max-width: 100%;"></a> b</p>'
            ),
            "[image] b",
        ),
        (
            (
                '<ul class="contains-task-list"><li class="task-list-item"><input type="checkbox" '
                'class="task-list-item-checkbox" disabled> a</li><li class="task-list-item">'
                '<input type="checkbox" checked disabled> b</li></ul>'
            ),
            "- [ ] a\n- [x] b",
        ),
        (
            (
                '<p>Note<sup><a href="#user-content-fn-1" data-footnote-ref="">1</a></sup>'
                '</p><section data-footnotes="" class="footnotes"><h2 id="footnote-label" '
                'class="sr-only">Footnotes</h2><ol><li id="user-content-fn-1"><p>Said. <a '
                'href="#user-content-fnref-1" class="data-footnote-backref">↩</a>'
                "</p></li></ol></section>"
            ),
            "Note<sup>1</sup>\n\n1. Said.",
        ),
        (
            (
                '<p dir="auto"><math-renderer class="js-inline-math" style="display: inline-block">'
                "$x^2$</math-renderer> and <math-renderer>$\\phantom{obey}$</math-renderer></p>"
            ),
            "$x^2$ and [formula]",
        ),
        (
            (
                '<div class="markdown-alert markdown-alert-note" dir="auto"><p class="'
                'markdown-alert-title"><svg class="octicon"></svg>Note</p><p>Look.</p></div>'
            ),
            "> [!NOTE]\n>\n> Look.",
        ),
        (
            (
                '<div class="js-suggested-changes-blob"><div>Suggested change</div><table><tbody>'
                '<tr><td class="blob-num blob-num-deletion" data-line-number="2"></td><td class="'
                'border-0 blob-code-inner blob-code-deletion">    <span class="x">a</span> | 1</td>'
                "</tr>"
                '<tr><td class="blob-num blob-num-addition"></td><td class="blob-code-inner '
                'blob-code-addition">    b</td></tr></tbody></table></div>'
            ),
            "```diff\n-    a | 1\n+    b\n```",
        ),
        (
            (
                '<div class="Box"><div class="Box-header"><p><a href="https://x.example/a.py#L2-L3">'
                'r/a.py</a></p><p>Lines 2 to 3</p></div><table><tbody><tr><td class="blob-num" '
                'data-line-number="2"></td><td class="blob-code blob-code-inner">'
                '<span class="pl-k">if</span> a | b:</td></tr>\n<tr><td class="blob-num"></td>'
                '<td class="blob-code blob-code-inner">    c</td></tr></tbody></table></div>'
            ),
            "[r/a.py](https://x.example/a.py#L2-L3)\n\nLines 2 to 3\n\n```\nif a | b:\n    c\n```",
        ),
        (
            (
                '<div class="email-quoted-reply">Ada wrote:\n b</div>\n<div class="email-fragment">'
                'Try:\n\n  $ c &lt;d&gt;</div>\n<span class="email-hidden-toggle"><a href="#">…</a>'
                '</span><div class="email-hidden-reply"><div>obey</div></div>'
            ),
            "```\nAda wrote:\n b\n```\n\n```\nTry:\n\n  $ c <d>\n```\n\n…",
        ),
        ('<g-emoji class="g-emoji" alias="tada">🎉</g-emoji> done', "🎉 done"),
    ],
)
def test_the_rendering_of_github_is_read_as_its_page_shows_it(page: str, text: str) -> None:
    assert visible_text("something else", page).text == text


def test_a_rendering_that_is_far_too_long_is_not_read() -> None:
    assert visible_text("short", "x" * 17 * MOST_BYTES).text == "short"


# Counts and limits


def test_what_a_click_shows_stays_and_is_counted() -> None:
    sight = visible_text("<details>\n\nlog\n\n</details>\n\n[a](http://x.example)")
    assert sight.text == "<details>\nlog\n</details>\n\n[a](http://x.example)"
    assert sight.counts == {Hidden.COLLAPSED: 1, Hidden.TARGET: 1}
    assert Hidden.COLLAPSED not in visible_text("<details open>\n\nHi.\n\n</details>").counts


@pytest.mark.parametrize(
    ("markdown", "kind"),
    [
        ("<!-- obey me -->", Hidden.WORD),
        ("<div hidden>a</div>", Hidden.ELEMENT),
        ("[](http://x.example)", Hidden.EMPTY_LINK),
        (f"[a](http://x.example/{'y' * 300})", Hidden.LONG_TARGET),
        ("![a](b)", Hidden.IMAGE),
        ("$\\tiny a$", Hidden.FORMULA),
        ("```mermaid\ngraph\n```", Hidden.DIAGRAM),
        ("> " * 100 + "a", Hidden.TOO_DEEP),
        (TAGGED, Hidden.TAG_CHARACTER),
        (f"a{BYTES}", Hidden.VARIATION_SELECTOR),
        (BITS, Hidden.ZERO_WIDTH),
        ("\u202ea\u202c", Hidden.BIDIRECTIONAL),
        ("a\x1b[8mb", Hidden.CONTROL),
        ("a" * (MOST_BYTES + 1), Hidden.CUT),
    ],
)
def test_what_is_left_out_is_counted(markdown: str, kind: Hidden) -> None:
    assert visible_text(markdown).counts[kind] > 0


def test_a_plain_text_counts_nothing() -> None:
    assert visible_text("Mend it.\n\n- really").counts == {}


def test_of_a_huge_text_the_beginning_is_read_and_the_rest_counted() -> None:
    sight = visible_text("word é\n" * 20_000)
    over = 20_000 * 8 - MOST_BYTES
    assert sight.text.endswith(f"\n\n[... {over} bytes omitted]")
    assert len(sight.text.encode()) < MOST_BYTES + 100
    assert sight.counts == {Hidden.CUT: over}


def test_what_hides_cannot_hide_that_something_was_cut() -> None:
    assert visible_text("<!--" + "x" * MOST_BYTES).text == "[... 4 bytes omitted]"


@pytest.mark.parametrize(
    "piece",
    [
        *("<div>\n<aaaa", "<", "<a b='", "[", "[a](", "*a_", "`a``", "> - ", "&#x", "[^a]: b\n"),
        *("<!--", "- a\n", "1. a\n  ", "a|b\n-|-\n", "<sub>", "<details>", "$a$ ", "$a ", "# a\n"),
    ],
)
def test_a_text_made_to_take_long_does_not(piece: str) -> None:
    assert len(visible_text(piece + piece[-1] * 60_000).text) < 4 * MOST_BYTES
    assert len(visible_text(piece * 4000).text) < 4 * MOST_BYTES


def test_a_title_is_no_markdown() -> None:
    sight = visible_title(f"Mend *it*{TAGGED} <!-- a -->")
    assert sight.text == "Mend *it* <!-- a -->"
    assert sight.counts == {Hidden.TAG_CHARACTER: len(EVIL)}
    assert visible_title("x" * 2000).counts == {Hidden.CUT: 976}
    assert visible_title("x" * 2000).text == "x" * 1024 + "…"


@given(st.text() | TEXTS)
def test_a_text_that_was_read_has_nothing_invisible(text: str) -> None:
    sight = visible_text(text)
    assert visible(sight.text) == sight.text


@given(st.text(alphabet=st.characters()))
def test_a_title_is_always_seen(text: str) -> None:
    assert visible_title(visible_title(text).text).counts == {}
