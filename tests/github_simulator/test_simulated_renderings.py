"""With the full media type, texts come with their rendering, as on GitHub."""

import pytest

from github_simulator.body_html import FULL, body_html, signature, with_body_html
from github_simulator.json_shapes import Shape

pytestmark = pytest.mark.pure

BASE = "http://localhost:1"


def test_a_text_is_rendered_and_sanitised() -> None:
    page = body_html("A *b* <!-- c --><script>d</script>\n\n```py\nx\n```", BASE)
    assert "<em>b</em>" in page
    assert '<pre lang="py"><code>x\n</code></pre>' in page
    assert "<!--" not in page


def test_only_the_full_media_type_has_renderings() -> None:
    shape: Shape = {"body": "**a**"}
    assert with_body_html(shape, "application/vnd.github+json", BASE) == shape
    assert with_body_html(shape, FULL, BASE)["body_html"] == "<p><strong>a</strong></p>\n"
    assert with_body_html({"body": None}, FULL, BASE)["body_html"] == ""


def test_the_address_of_an_uploaded_picture_is_signed() -> None:
    page = body_html(f"![x]({BASE}/user-attachments/assets/1-a) ![y]({BASE}/b)", BASE)
    assert f'src="{BASE}/storage/user/1/files/1-a?token={signature("1-a")}"' in page
    assert f'src="{BASE}/b"' in page
