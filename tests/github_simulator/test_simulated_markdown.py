"""Markdown becomes HTML in which nothing that somebody wrote is run."""

import pytest

from github_simulator.pages.markdown import as_html

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("markdown", "html"),
    [
        ("**bold** `a < b`", "<p><strong>bold</strong> <code>a &lt; b</code></p>\n"),
        ("a <script>alert(1)</script>", "<p>a &lt;script&gt;alert(1)&lt;/script&gt;</p>\n"),
        ("<script>\nx\n</script>", "&lt;script&gt;\nx\n&lt;/script&gt;"),
        ("<details><summary>More</summary>", "<details><summary>More</summary>"),
        ("<details onclick=x>", "&lt;details onclick=x&gt;"),
        ("seen <!-- not\nseen -->", "<p>seen</p>\n"),
        (
            'See http://a.example/b?c=1&d#e, "http://x.example"on=1',
            (
                '<p>See <a href="http://a.example/b?c=1&amp;d#e">'
                'http://a.example/b?c=1&amp;d#e</a>, "<a href="http://x.example">http://x.example</a>"on=1</p>\n'
            ),
        ),
        (
            "[http://a.example](http://b.example)\n`http://c.example`",
            (
                '<p><a href="http://b.example">http://a.example</a><br />\n'
                "<code>http://c.example</code></p>\n"
            ),
        ),
        ("[x](javascript:alert(1))", "<p>[x](javascript:alert(1))</p>\n"),
    ],
)
def test_markdown_is_shown_and_disarmed(markdown: str, html: str) -> None:
    assert as_html(markdown) == html


def test_tables_are_shown_and_scroll_by_keyboard() -> None:
    shown = as_html("| a |\n|---|\n| 1 |\n")
    assert '<table tabindex="0">' in shown
    assert "<td>1</td>" in shown


@pytest.mark.parametrize(
    ("markdown", "link"),
    [
        ("Closes #2.", '<a href="/a/b/issues/2">#2</a>'),
        ("see c/d#3", '<a href="/c/d/issues/3">c/d#3</a>'),
        ("x#4, a/#5, `#6`, #x", ""),
    ],
)
def test_numbers_of_issues_become_links(markdown: str, link: str) -> None:
    shown = as_html(markdown, "a/b")
    assert link in shown
    assert shown.count("<a ") == bool(link)


def test_without_a_repository_numbers_stay_text() -> None:
    assert as_html("#2") == "<p>#2</p>\n"
