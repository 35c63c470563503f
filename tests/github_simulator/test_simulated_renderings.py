"""With the full media type, texts come with their rendering, as on GitHub."""

import pytest

from github_simulator.body_html import FULL, body_html, with_body_html
from github_simulator.json_shapes import Shape

pytestmark = pytest.mark.pure


def test_a_text_is_rendered_and_sanitised() -> None:
    page = body_html("A *b* <!-- c --><script>d</script>\n\n```py\nx\n```")
    assert "<em>b</em>" in page
    assert '<pre lang="py"><code>x\n</code></pre>' in page
    assert "<!--" not in page


def test_only_the_full_media_type_has_renderings() -> None:
    shape: Shape = {"body": "**a**"}
    assert with_body_html(shape, "application/vnd.github+json") == shape
    assert with_body_html(shape, FULL)["body_html"] == "<p><strong>a</strong></p>\n"
    assert with_body_html({"body": None}, FULL)["body_html"] == ""
