"""Render Markdown as GitHub renders comments, with nothing in it that a browser runs. Pure."""

import html
import re
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.token import Token

COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)

FOLDING = re.compile(r"&lt;(/?(?:details|summary))&gt;")

AS_HTML = {"html_block", "html_inline"}

LINKED = re.compile(
    r"(?P<address>https?://[^\s<>\"]*[\w/#])"
    r"|(?<![\w/#&])(?P<repository>[\w.-]+/[\w.-]+)?#(?P<number>\d+)\b"
)

NESTING = {"link_open": 1, "link_close": -1}


def as_html(markdown: str, repository: str = "") -> str:
    """Render a text: line breaks stay, addresses and `#12` of a repository become links.

    Link only to web addresses, and omit HTML comments.
    """
    reader = _reader()
    tokens = reader.parse(COMMENT.sub("", markdown))
    for token in tokens:
        if token.type == "table_open":
            token.attrSet("tabindex", "0")  # a wide table scrolls, also by keyboard
        _disarm(token)
        for inner in token.children or ():
            _disarm(inner)
        _link(token.children or [], repository)
    rendered: object = reader.renderer.render(tokens, reader.options, {})
    return str(rendered)


@cache
def _reader() -> MarkdownIt:
    return MarkdownIt("commonmark", {"breaks": True}).enable(["table", "strikethrough"])


def _disarm(token: Token) -> None:
    """Escape HTML in a comment, except folding, which is harmless."""
    if token.type in AS_HTML:
        token.content = FOLDING.sub(r"<\1>", html.escape(token.content))


def _link(tokens: list[Token], repository: str) -> None:
    """Turn addresses and numbers of issues in text into links, in place."""

    def linked(found: re.Match[str]) -> str:
        address, named = found["address"], found["repository"] or repository
        # The page of an issue also shows a pull request.
        target = address or (f"/{named}/issues/{found['number']}" if named else "")
        return f'<a href="{target}">{found[0]}</a>' if target else found[0]

    depth = 0
    for token in tokens:
        depth += NESTING.get(token.type, 0)
        if token.type == "text" and not depth:
            token.content = LINKED.sub(linked, html.escape(token.content, quote=False))
            token.type = "html_inline"
