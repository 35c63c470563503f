"""The commit message and the list of changes, as tables."""

import pytest

from mulligan.config.policy import CommitSettings
from mulligan.domain.attempt import CommitText
from mulligan.domain.result import FileChange
from mulligan.git.worktrees.attempt_worktree import changes_of
from mulligan.git.worktrees.naming import message_of, sanitised

pytestmark = pytest.mark.pure

PLAIN = CommitSettings(name="Mull", email="m@example.org")
SIGNED = CommitSettings(name="Mull", email="m@example.org", signoff=True)
MULL = "Signed-off-by: Mull <m@example.org>"
ADA = "Co-authored-by: ada <ada@users.noreply.github.com>"


@pytest.mark.parametrize(
    ("text", "settings", "message"),
    [
        (CommitText("S", ""), PLAIN, "S\n"),
        (CommitText("S", "Body."), PLAIN, "S\n\nBody.\n"),
        (CommitText("S", "Body.", "ada"), PLAIN, f"S\n\nBody.\n\n{ADA}\n"),
        (CommitText("S", "", "ada"), PLAIN, f"S\n\n{ADA}\n"),
        (CommitText("S", "Body.\n\nIssue: x", "ada"), PLAIN, f"S\n\nBody.\n\nIssue: x\n{ADA}\n"),
        (CommitText("S", "Issue: x"), SIGNED, f"S\n\nIssue: x\n{MULL}\n"),
        (CommitText("S", "", "a[bot]"), PLAIN, f"S\n\n{ADA.replace('ada', 'a[bot]')}\n"),
        (CommitText("S", "", "a>\nSigned-off-by: x"), PLAIN, "S\n"),
        (CommitText("two\nlines", "Issue: x"), PLAIN, "two lines\n\nIssue: x\n"),
    ],
)  # fmt: skip
def test_a_message_has_its_trailers_together(
    text: CommitText, settings: CommitSettings, message: str
) -> None:
    assert message_of(text, settings) == message


def test_what_no_message_can_hold_is_dropped() -> None:
    assert sanitised("a\0b\x1b[31m\nc\ud800 ü\u202e") == "ab[31m\nc ü"


def test_changes_are_read_whatever_the_names_are() -> None:
    raw = (
        b":100644 000000 aaa 000 D\0gone\0"
        b":000000 100644 000 bbb A\0new\nline\0"
        b":100644 120000 ccc ddd T\0:odd\0"
        b":100644 100644 eee fff M\0b\xff\0"
        b"0\t3\tgone\0" b"2\t0\tnew\nline\0" b"1\t1\t:odd\0" b"-\t-\tb\xff\0"
    )  # fmt: skip
    assert changes_of(raw) == (
        FileChange(path="gone", status="D", insertions=0, deletions=3, mode="100644"),
        FileChange(path="new\nline", status="A", insertions=2, deletions=0, mode="100644"),
        FileChange(path=":odd", status="T", insertions=1, deletions=1, mode="120000"),
        FileChange(path="b\ufffd", status="M", mode="100644"),
    )
    assert changes_of(b"") == ()
