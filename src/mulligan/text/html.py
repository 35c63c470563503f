"""Show Markdown as HTML that is safe to open: its own tags are text, but for folding. Pure."""

import html
import re
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.token import Token

COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
FOLDING = re.compile(r"&lt;(/?(?:details|summary))&gt;")
AS_HTML = {"html_block", "html_inline"}


def as_html(markdown: str) -> str:
    """Render a text; links lead to addresses of the web only, and comments are left out."""
    reader = _reader()
    tokens = reader.parse(COMMENT.sub("", markdown))
    for token in tokens:
        _disarm(token)
        for inner in token.children or ():
            _disarm(inner)
    rendered: object = reader.renderer.render(tokens, reader.options, {})
    return str(rendered)


@cache
def _reader() -> MarkdownIt:
    return MarkdownIt("commonmark").enable(["table", "strikethrough"])


def _disarm(token: Token) -> None:
    """Make text of a tag that somebody wrote; only folding, which does no harm, is kept."""
    if token.type in AS_HTML:
        token.content = FOLDING.sub(r"<\1>", html.escape(token.content))
