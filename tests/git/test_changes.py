"""The list of changes, read from git's output."""

import pytest

from mulligan.domain.result import FileChange
from mulligan.git.worktrees.attempt_worktree import changes_of

pytestmark = pytest.mark.pure


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
