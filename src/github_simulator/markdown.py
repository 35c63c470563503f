"""Render the Markdown of issues and comments as HTML that runs nothing. Pure."""

import html
import re
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.token import Token

COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)

FOLDING = re.compile(r"&lt;(/?(?:details|summary))&gt;")

AS_HTML = {"html_block", "html_inline"}

ADDRESS = re.compile(r"https?://[^\s<>\"]*[\w/#]")

NESTING = {"link_open": 1, "link_close": -1}


def as_html(markdown: str) -> str:
    """Render a text as GitHub does a comment: lines end where they do, addresses are links.

    Links lead to addresses of the web only, and HTML comments are left out.
    """
    reader = _reader()
    tokens = reader.parse(COMMENT.sub("", markdown))
    for token in tokens:
        _disarm(token)
        for inner in token.children or ():
            _disarm(inner)
        _link(token.children or [])
    rendered: object = reader.renderer.render(tokens, reader.options, {})
    return str(rendered)


@cache
def _reader() -> MarkdownIt:
    return MarkdownIt("commonmark", {"breaks": True}).enable(["table", "strikethrough"])


def _disarm(token: Token) -> None:
    """Make text of a tag that somebody wrote; only folding, which does no harm, is kept."""
    if token.type in AS_HTML:
        token.content = FOLDING.sub(r"<\1>", html.escape(token.content))


def _link(tokens: list[Token]) -> None:
    """Make links of the addresses that stand in text, in place."""
    depth = 0
    for token in tokens:
        depth += NESTING.get(token.type, 0)
        if token.type == "text" and not depth:
            escaped = html.escape(token.content, quote=False)
            token.content = ADDRESS.sub(r'<a href="\g<0>">\g<0></a>', escaped)
            token.type = "html_inline"
