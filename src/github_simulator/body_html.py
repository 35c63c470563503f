"""Render a text as GitHub's API does for the full media type. Pure."""

import hashlib
import re
from importlib import import_module

import nh3

from github_simulator.json_shapes import Shape

FULL = "application/vnd.github.full+json"

PICTURES, SIGNED = "/user-attachments/assets/", "/storage/user/1/files/"
"""Paths of a picture: in a text, and as the API of GitHub Enterprise Server renders it."""

ATTRIBUTES = {
    "*": {"class", "dir"},
    "a": {"href"},
    "img": {"src", "alt", "width", "height"},
    "pre": {"lang"},
}
EXTENSIONS = ["table", "autolink", "tagfilter", "strikethrough", "tasklist"]


def with_body_html(shape: Shape, accept: str, base: str) -> Shape:
    """Add the rendering of a text, if the media type asks for it; `base` is the server."""
    if FULL not in accept:
        return shape
    return {**shape, "body_html": body_html(str(shape["body"] or ""), base)}


def body_html(markdown: str, base: str) -> str:
    """Return the sanitised HTML of a text, as of GitHub's published parser.

    The addresses of uploaded pictures are signed.
    """
    # The package has no types.
    cmark = import_module("cmarkgfm.cmark")
    options = (
        cmark.Options.CMARK_OPT_UNSAFE
        | cmark.Options.CMARK_OPT_FOOTNOTES
        | cmark.Options.CMARK_OPT_GITHUB_PRE_LANG
    )
    page: str = cmark.markdown_to_html_with_extensions(markdown, options, EXTENSIONS)
    clean = nh3.clean(page, attributes=ATTRIBUTES, link_rel="nofollow")
    picture = re.compile(rf'(?<=src="){re.escape(base + PICTURES)}([0-9a-f-]+)(?=")')
    return picture.sub(lambda found: f"{base}{SIGNED}{found[1]}?token={signature(found[1])}", clean)


def signature(upload: str) -> str:
    """Return the word that proves that the address of an upload is the API's."""
    return hashlib.sha256(upload.encode()).hexdigest()[:16]
