"""The first heading of a Markdown file is the title of the issue, wherever it stands."""

import pytest

from mulligan.github.issue_file import split_issue

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("# Mend it\n\nPlease.\n", ("Mend it", "Please.")),
        ("Before.\n## Mend it ##\nAfter.", ("Mend it", "Before.\nAfter.")),
        ("```\n# no\n```\n# Yes\n", ("Yes", "```\n# no\n```")),
        ("~~~~\n~~~\n# no\n~~~~\n# Yes", ("Yes", "~~~~\n~~~\n# no\n~~~~")),
        ("#hashtag\n", None),
        ("", None),
    ],
)
def test_a_file_is_split(text: str, found: tuple[str, str] | None) -> None:
    assert split_issue(text) == found
