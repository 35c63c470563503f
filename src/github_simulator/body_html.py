"""Render a text as GitHub's API does for the full media type. Pure."""

from importlib import import_module

import nh3

from github_simulator.json_shapes import Shape

FULL = "application/vnd.github.full+json"

ATTRIBUTES = {"*": {"class", "dir"}, "a": {"href"}, "img": {"src", "alt"}, "pre": {"lang"}}
EXTENSIONS = ["table", "autolink", "tagfilter", "strikethrough", "tasklist"]


def with_body_html(shape: Shape, accept: str) -> Shape:
    """Add the rendering of a text, if the media type asks for it."""
    if FULL not in accept:
        return shape
    return {**shape, "body_html": body_html(str(shape["body"] or ""))}


def body_html(markdown: str) -> str:
    """Return the sanitised HTML of a text, as of GitHub's published parser."""
    # The package has no types.
    cmark = import_module("cmarkgfm.cmark")
    options = (
        cmark.Options.CMARK_OPT_UNSAFE
        | cmark.Options.CMARK_OPT_FOOTNOTES
        | cmark.Options.CMARK_OPT_GITHUB_PRE_LANG
    )
    page: str = cmark.markdown_to_html_with_extensions(markdown, options, EXTENSIONS)
    return nh3.clean(page, attributes=ATTRIBUTES, link_rel="nofollow")
